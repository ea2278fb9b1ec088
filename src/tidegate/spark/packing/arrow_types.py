"""The Arrow types of Spark's types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.pandas.types import to_arrow_type

from tidegate.spark.packing.columns import transport_type

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType


def arrow_type(kind: DataType) -> pa.DataType:
    """The Arrow type in which columns of a type are sent and stored; the type must not need an encoding.

    Examples
    --------
    >>> from pyspark.sql.types import LongType, TimestampType
    >>> arrow_type(LongType()), arrow_type(TimestampType())
    (DataType(int64), TimestampType(timestamp[us, tz=UTC]))
    """
    return transport_type(to_arrow_type(kind, timezone="UTC"))
