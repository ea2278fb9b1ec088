"""The reservoir of a running query, read from its checkpoint."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StructType

from tidegate.engine.snapshot import unpack
from tidegate.sampling.ranks import chance_of
from tidegate.spark.carriers import carrier
from tidegate.spark.columns import travelled
from tidegate.spark.held_sample import OWNER, PROBABILITY, RANK, WEIGHT
from tidegate.spark.inspection import saved_states, states_of
from tidegate.spark.state import reassembled
from tidegate.streams.trace import one_chunk
from tidegate.types import InputError

if TYPE_CHECKING:
    from pathlib import Path

_RESULT: Final = "result"
_BOUNDS: Final = "size bigint, bound double"


def reservoir(
    checkpoint: str | Path, *, size: int | None = None, spark: SparkSession | None = None
) -> DataFrame:
    """The sample that a query with `method="reservoir"` holds: uniform over all results of the join so far.

    Each bucket holds the results of its lowest ranks; the lowest of all of them are those of the whole query.

    Parameters
    ----------
    checkpoint
        The query's `checkpointLocation`, while it runs or after it stopped.
    size
        How many results are wanted, at most the query's own size (as it is by now), which is the default.
    spark
        The session; by default the active one.

    Returns
    -------
    DataFrame
        The columns of the join, then `probability`, `weight` and `owner`. The weights add up to an estimate of the
        number of the join's results. Fewer than `size` results where the join has had fewer, or where memory was
        so short that the sampling fraction fell below what a full reservoir takes.
    """
    session = spark or SparkSession.active()
    states = states_of(checkpoint, session)
    first = states.limit(1).collect()
    data = reassembled([chunk.payload for chunk in first[0].chunks]) if first else None
    layout = json.loads(unpack(data)["layout"].tobytes()) if data else {}
    if "reservoir" not in layout:
        raise InputError(
            f"the query at {str(checkpoint)!r} holds no reservoir; give the checkpointLocation of a "
            "tidegate.sample(..., method='reservoir' or 'progressive') that has run at least one micro-batch"
        )
    bounds = states.mapInArrow(_bounds, _BOUNDS).collect()
    most = max(bound.size for bound in bounds)
    if size is None:
        size = most
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= most:
        raise InputError(f"size={size!r} is not within the reservoir's {most}; give 1 to {most}")
    # Higher ranks than any bucket could still take have no like there.
    bound = min(bound.bound for bound in bounds)
    rows = _rows(states, StructType.fromJson(layout["reservoir"]["columns"]))
    lowest = rows.where(F.col(RANK) <= bound).orderBy(RANK).limit(size)
    ranks = np.array([row.rank for row in lowest.select(RANK).collect()])
    chance = chance_of(ranks, size, bound)
    return lowest.select(
        f"{_RESULT}.*", F.lit(chance).alias(PROBABILITY), F.lit(1 / chance).alias(WEIGHT), OWNER
    )


def _rows(states: DataFrame, schema: StructType) -> DataFrame:
    """What all buckets hold, a result as a whole with its owner and rank."""
    # Carried as a whole: were each of its columns put back by itself, Spark's plan would double each time.
    how = carrier(schema, _RESULT)
    travelling = how.type if how else schema
    told = StructType().add(_RESULT, travelling).add(OWNER, "long").add(RANK, "double")
    rows = states.mapInArrow(_Held(travelled(to_arrow_type(travelling, timezone="UTC"))), told)
    return rows.withColumn(_RESULT, how.returned(F.col(_RESULT), nullable=True)) if how else rows


@dataclass(frozen=True)
class _Held:
    """Lays out the results that saved buckets hold."""

    type: pa.StructType

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _, saved in saved_states(batches):
            held = saved.sample
            if held is None or held.rows is None:
                continue
            cells = [one_chunk(held.rows.column(f"o{i}")).cast(f.type) for i, f in enumerate(self.type)]
            yield pa.record_batch(
                [
                    pa.StructArray.from_arrays(cells, fields=list(self.type)),
                    one_chunk(held.rows.column(OWNER)),
                    pa.array(held.reservoir.ranks),
                ],
                [_RESULT, OWNER, RANK],
            )


def _bounds(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _, saved in saved_states(batches):
        if saved.sample:
            kept = saved.sample.reservoir
            yield pa.record_batch([pa.array([kept.size]), pa.array([kept.fraction])], ["size", "bound"])
