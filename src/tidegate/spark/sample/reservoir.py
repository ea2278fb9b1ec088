"""The reservoir of a running query, read from its checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StructType

from tidegate.spark.packing.columns import travelled
from tidegate.spark.packing.packed_rows import RESULTS, result
from tidegate.spark.packing.type_encoding import carrier
from tidegate.spark.sample.bucket_reservoir import sample_of, unpacked
from tidegate.spark.sample.columns import OWNER, PROBABILITY, SHOWN, WEIGHT
from tidegate.spark.state.checkpoint import find_state
from tidegate.spark.state.inspection import saved_states
from tidegate.types import InputError

if TYPE_CHECKING:
    from pathlib import Path

_RESULT: Final = "result"
_BESIDE: Final = (PROBABILITY, WEIGHT, OWNER, SHOWN)


def reservoir(
    checkpoint: str | Path,
    *,
    size: int | None = None,
    name: str | int | None = None,
    spark: SparkSession | None = None,
) -> DataFrame:
    """The sample that a query with `method="reservoir"` holds: uniform over all results of the join so far.

    Each bucket holds the results of its lowest ranks; the lowest of all of them are those of the whole query. It is
    the sample that the query gave after its last micro-batch; with `by=`, it has results of each group.

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
        The columns of the join, then `probability`, `weight`, `owner` and `shown`: as `tidegate.sample` has them.
        The weights add up to an estimate of the number of the join's results. Fewer than `size` results where the
        join has had fewer, or where memory was so short that the sampling fraction fell below what a full reservoir
        takes.
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
    """The sample of what all buckets hold."""
    # Carried as a whole: were each of its columns put back by itself, Spark's plan would double each time.
    how = carrier(schema, _RESULT)
    travelling = how.type if how else schema
    layout = StructType().add(_RESULT, travelling)
    for name in _BESIDE:
        layout = layout.add(name, "long" if name == OWNER else "double")
    sample = _Sample(travelled(to_arrow_type(travelling, timezone="UTC")), size)
    rows = states.mapInArrow(_held, RESULTS).repartition(1).mapInArrow(sample, layout)
    if how:
        rows = rows.withColumn(_RESULT, how.returned(F.col(_RESULT), nullable=True))
    return rows.select(f"{_RESULT}.*", *_BESIDE)


@dataclass(frozen=True)
class _Sample:
    """Lays out the sample that saved buckets have together."""

    type: pa.StructType
    size: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for sample in sample_of(unpacked(batches), self.size):
            cells = [sample.column(f"o{i}").cast(f.type) for i, f in enumerate(self.type)]
            yield pa.record_batch(
                [pa.StructArray.from_arrays(cells, fields=list(self.type)), *map(sample.column, _BESIDE)],
                [_RESULT, *_BESIDE],
            )


def _held(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The reservoir of each bucket, packed."""
    for _, saved in saved_states(batches):
        if saved.sample:
            yield result(saved.sample.packed(0))


def _sizes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _, saved in saved_states(batches):
        if saved.sample:
            yield pa.record_batch([pa.array([saved.sample.reservoir.size])], ["size"])
