"""The reservoir of a running query, read from its checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import StructType

from tidegate.spark.bucket.join.reservoir import merge_buckets, unpack_buckets
from tidegate.spark.bucket.join.saved import saved_buckets
from tidegate.spark.packing.arrow_types import arrow_type
from tidegate.spark.packing.columns import OWNER, PROBABILITY, SHOWN, WEIGHT
from tidegate.spark.packing.packed_rows import RESULTS, pack_result
from tidegate.spark.packing.type_encoding import encoded_type, encoding_of
from tidegate.spark.query.checkpoint import find_state
from tidegate.types import InputError

if TYPE_CHECKING:
    from pathlib import Path

_RESULT: Final = "result"
_SAMPLE_COLUMNS: Final = (PROBABILITY, WEIGHT, OWNER, SHOWN)


def reservoir(
    checkpoint: str | Path,
    *,
    size: int | None = None,
    name: str | int | None = None,
    spark: SparkSession | None = None,
) -> DataFrame:
    """Read the sample in the reservoir of a query: uniform over all results of the join so far.

    Each bucket holds the results with the lowest ranks; the lowest ranks of all buckets are the sample. It is
    the sample that the query returned after its last micro-batch; with `by=`, it has results of each group.

    Parameters
    ----------
    checkpoint
        The query's `checkpointLocation`, while it runs or after it stopped.
    size
        The number of results to return; by default, and at most, the current size of the reservoir.
    name
        Which sample, where the query has several: as in `tidegate.inspect`.
    spark
        The session; by default the active one.

    Returns
    -------
    DataFrame
        The columns of the join, then `probability`, `weight`, `owner` and `shown`, as in `tidegate.sample`.
        The weights add up to an estimate of the number of the join's results. There are fewer than `size` results if
        the join has fewer so far, or if memory was so short that the sampling probability fell below that of a full
        reservoir.
    """
    session = spark or SparkSession.active()
    found = find_state(checkpoint, session, name, "tidegate.sample")
    states, layout = found.states, found.layout or {}
    if "reservoir" not in layout:
        raise InputError(
            f"the query at {str(checkpoint)!r} holds no reservoir; give the checkpointLocation of a "
            "tidegate.sample(..., method='reservoir' or 'progressive') that has run at least one micro-batch"
        )
    most = max(row.size for row in states.mapInArrow(_sizes, "size bigint").collect())
    if size is None:
        size = most
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= most:
        raise InputError(f"size must be from 1 to {most}, the size of the reservoir; got {size!r}")
    return _rows(states, StructType.fromJson(layout["reservoir"]["columns"]), size)


def _rows(states: DataFrame, schema: StructType, size: int) -> DataFrame:
    """Merge the reservoirs of all buckets."""
    # Encoded as one struct: if each column were decoded separately, Spark's plan would double with each column.
    encoding, encoded = encoding_of(schema, _RESULT), encoded_type(schema, _RESULT)
    layout = StructType().add(_RESULT, encoded)
    for name in _SAMPLE_COLUMNS:
        layout = layout.add(name, "long" if name == OWNER else "double")
    sample = _BucketMerger(arrow_type(encoded), size)
    rows = states.mapInArrow(_packed_reservoirs, RESULTS).repartition(1).mapInArrow(sample, layout)
    if encoding:
        rows = rows.withColumn(_RESULT, encoding.decode(F.col(_RESULT), nullable=True))
    return rows.select(f"{_RESULT}.*", *_SAMPLE_COLUMNS)


@dataclass(frozen=True)
class _BucketMerger:
    """Merges saved buckets into rows of a struct column and the columns of the sample."""

    type: pa.StructType
    size: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for sample in merge_buckets(unpack_buckets(batches), self.size):
            cells = [sample.column(f"o{i}").cast(f.type) for i, f in enumerate(self.type)]
            yield pa.record_batch(
                [
                    pa.StructArray.from_arrays(cells, fields=list(self.type)),
                    *map(sample.column, _SAMPLE_COLUMNS),
                ],
                [_RESULT, *_SAMPLE_COLUMNS],
            )


def _packed_reservoirs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The reservoir of each bucket, packed."""
    for _, saved in saved_buckets(batches):
        if saved.sample:
            yield pack_result(saved.sample.packed(0))


def _sizes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _, saved in saved_buckets(batches):
        if saved.sample:
            yield pa.record_batch([pa.array([saved.sample.reservoir.size])], ["size"])
