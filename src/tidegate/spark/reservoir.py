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

from tidegate.spark.carriers import carrier
from tidegate.spark.checkpoint import find_state
from tidegate.spark.columns import travelled
from tidegate.spark.held_sample import OWNER, PROBABILITY, SHOWN, WEIGHT, sample_of, unpacked
from tidegate.spark.inspection import saved_states
from tidegate.spark.packing import RESULTS, result
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
    the sample that the query gave after its last micro-batch; with `by=` there, so many results of each group.

    Parameters
    ----------
    checkpoint
        The query's `checkpointLocation`, while it runs or after it stopped.
    size
        How many results are wanted, at most the query's own size (as it is by now), which is the default.
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
        raise InputError(f"size={size!r} is not within the reservoir's {most}; give 1 to {most}")
    return _rows(states, StructType.fromJson(layout["reservoir"]["columns"]), size)


def _rows(states: DataFrame, schema: StructType, size: int) -> DataFrame:
    """The sample of what all buckets hold."""
    # Carried as a whole: were each of its columns put back by itself, Spark's plan would double each time.
    how = carrier(schema, _RESULT)
    travelling = how.type if how else schema
    told = StructType().add(_RESULT, travelling)
    for name in _BESIDE:
        told = told.add(name, "long" if name == OWNER else "double")
    sample = _Sample(travelled(to_arrow_type(travelling, timezone="UTC")), size)
    rows = states.mapInArrow(_held, RESULTS).repartition(1).mapInArrow(sample, told)
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
    """Tell what each bucket holds."""
    for _, saved in saved_states(batches):
        if saved.sample:
            yield result(saved.sample.told(0))


def _sizes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _, saved in saved_states(batches):
        if saved.sample:
            yield pa.record_batch([pa.array([saved.sample.reservoir.size])], ["size"])
