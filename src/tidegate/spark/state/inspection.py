"""A look inside a checkpoint: which rows are buffered, how old they are, what they score, what was counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StructField, StructType, _parse_datatype_json_string

from tidegate.policies import Policy, registered
from tidegate.spark.alert.inspection import ALERT, inspect_alert
from tidegate.spark.join.persistence import SavedBucket
from tidegate.spark.join.settings import online
from tidegate.spark.packing.buckets import labels
from tidegate.spark.packing.columns import travelled
from tidegate.spark.packing.type_encoding import carrier
from tidegate.spark.pool.shares import number_of
from tidegate.spark.state.checkpoint import find_state
from tidegate.spark.state.log import saved_logs
from tidegate.streams.trace import one_chunk
from tidegate.types import SIDES, Side, check_choice

What = Literal["rows", "counts", "model"]

_SECOND: Final = 1e6
_COUNTS: Final = (
    "bucket int, rows_left bigint, rows_right bigint, late bigint, null_keys bigint, results bigint, evicted bigint, "
    "expired bigint, buffered bigint, peak_rows bigint, peak_bytes bigint, budget bigint, policy string, "
    "fairness double, importance double, redefined bigint, refused bigint, refusal string"
)
_MODEL: Final = (
    "bucket int, model string, side string, key bigint, "
    "age_from double, age_to double, value double, sample double"
)
_ROWS: Final = (
    "bucket int, side string, time timestamp, age_seconds double, matches bigint, score double, "
    "importance double"
)


def inspect(
    checkpoint: str | Path,
    what: What = "rows",
    *,
    name: str | int | None = None,
    policy: Policy | str | None = None,
    spark: SparkSession | None = None,
) -> DataFrame:
    """Look inside the checkpoint of a streaming join or alarm, while it runs or after it stopped.

    Parameters
    ----------
    checkpoint
        The query's `checkpointLocation`.
    what
        "rows": the buffered rows with their age, score and importance, the row itself in the column `left` or
        `right`. Scores are those by which the query would evict now, with its own policy, its parameters and what it
        has learned, window and seed: the lowest of a bucket (of a side, where the budget is split) goes first.
        Minus infinity: its window is over, and it only waits for rows out of order. A sample has no scores.
        "counts": a row a bucket with what came in, left and was kept; a budget of -1 is none; how alike the lifetimes
        of rows that left were (`fairness`, Jain's index: 1 is all the same). Where the query was
        told what rows are worth: the total importance of its results, how often that was redefined, in how many
        micro-batches a watched file could not be used, and why (`refusal`).
        "model": what the policy of each bucket has learned, a row a number, and on how many rows each rests
        (`sample`, older ones counting less; null where it was given, or is not counted): the "rate" of each side in
        rows a second; by "age" (in seconds), how many matches a row may expect while it is of that age; the "share"
        that each of the most frequent keys has of a side, and without a key all of them. A key that is not an
        integer or a time is told by its hash. Of ijoin the "maturity", in seconds, and the "recomputations" of
        priorities, the sample being how often room was made; of heeb the parameters of the process that it found on
        each side, in steps from row to row, such as "LinearTrend.speed"; of heeb_histogram where each side's stream
        is ("offset"), and by how far from the other stream rows were (in the place of ages, as differences of keys)
        the "benefit" that they may expect. Of a sample,
        the "fraction" of new draws and how often it was "lowered" for want of memory; of a reservoir with groups how
        many results were of groups that have no place of their own ("sharing"). In a pool also the "epoch" and
        the "limit" it sets.
        Of an alarm, "rows" are those that are kept of each stream, with the key in the column `key` and what they
        carry in `carried`, by the names that it has in an alarm; "counts" is a row a bucket and stream: what
        arrived, was late, had no key or time (`null`), no value (`nan`) or one `outside` the domain; was omitted,
        shed for a budget, or expired; how many rows are kept, and how many alarms its arrivals raised. `undefined`,
        the same for all streams of a bucket, counts the combinations for which the condition has no value.
        `miss_probability` estimates how likely an alarm is missed because rows of the stream were shed.
    name
        Which join, sample or alarm, where the query has several: the `name` that it was given, or the number that
        Spark gives to its operator. Without it, a query that has several is refused with a list of them.
    policy
        What to score with instead; it takes over what was learned if it is the query's own, perhaps with other
        parameters. A policy of one's own is found by its name if its class is defined in this session and its
        parameters are plain; otherwise scores are null unless it is given here.
    spark
        The session; by default the active one.

    Returns
    -------
    DataFrame
        A batch DataFrame of the last committed micro-batch.

    Raises
    ------
    InputError
        No state can be read there, or it is damaged. What Spark itself said is in the error's `__context__`.
    """
    check_choice(what, What, "what")
    session = spark or SparkSession.active()
    found = find_state(checkpoint, session, name, "tidegate.join")
    states, layout = found.states, found.layout
    if layout is None:
        return session.createDataFrame([], {"model": _MODEL, "rows": _ROWS, "counts": _COUNTS}[what])
    if layout.get("kind") == ALERT:
        return inspect_alert(states, what, layout)
    if what == "counts":
        return states.mapInArrow(_counts, _COUNTS)
    # Found here and sent along: a worker need not know a class that was defined in this session.
    chosen = registered(found.policy) if policy is None else online(policy)
    if what == "model":
        return states.mapInArrow(_Model(chosen), _MODEL)
    return _with_rows(states, layout, chosen)


def _with_rows(
    states: DataFrame, layout: dict[str, list[list[str]]], policy: Policy | type[Policy] | None
) -> DataFrame:
    rows = {
        side: StructType(
            [StructField(name, _parse_datatype_json_string(kind)) for name, kind in layout[f"{side} columns"]]
        )
        for side in SIDES
    }
    # A row is carried as a whole: were each of its columns put back by itself, Spark's plan would double each time.
    carriers = {side: carrier(row, side) for side, row in rows.items()}
    travelling = {side: how.type if how else rows[side] for side, how in carriers.items()}
    schema = cast("StructType", StructType.fromDDL(_ROWS))
    for side, kind in travelling.items():
        schema = schema.add(side, kind)
    arrow = {side: travelled(to_arrow_type(kind, timezone="UTC")) for side, kind in travelling.items()}
    frame = states.mapInArrow(_Rows(arrow, policy), schema)
    for side, how in carriers.items():
        if how:
            frame = frame.withColumn(side, how.returned(F.col(side), nullable=True))
    return frame


def saved_states(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, SavedBucket]]:
    """What each bucket saved, by its number."""
    for label, log in saved_logs(batches):
        saved = SavedBucket.read(log)
        if saved is not None:
            yield labels(saved.layout["buckets"]).index(label), saved


def _counts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for bucket, saved in saved_states(batches):
        tally = saved.operator.tally
        numbers = [
            *vars(saved.progress.counts).values(),
            tally.results,
            tally.evicted,
            tally.expired,
            saved.operator.rows,
            tally.peak_rows,
            tally.peak_bytes,
            saved.settings.limit,
        ]
        columns = [
            pa.array([bucket], pa.int32()),
            *(pa.array([n], pa.int64()) for n in numbers),
            pa.array([saved.sampling["sampler"] if saved.sampling else saved.settings.policy]),
            pa.array([tally.fairness]),
            pa.array([tally.importance if saved.importance else None], pa.float64()),
            pa.array([saved.importance and saved.importance.redefined], pa.int64()),
            pa.array([saved.importance and saved.importance.refused], pa.int64()),
            pa.array([saved.importance and saved.importance.refusal], pa.string()),
        ]
        yield pa.record_batch(columns, [f"n{i}" for i in range(len(columns))])


@dataclass(frozen=True)
class _Model:
    """Lays out what the policies of saved states have learned."""

    policy: Policy | type[Policy] | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = ("bucket", "model", "side", "key", "age_from", "age_to", "value", "sample")
        kinds = (pa.int32(), pa.string(), pa.string(), pa.int64(), *[pa.float64()] * 4)
        for bucket, saved in saved_states(batches):
            rows = list(_numbers(bucket, saved, self.policy))
            columns = zip(*rows, strict=True) if rows else [()] * len(names)
            yield pa.record_batch([pa.array(c, k) for c, k in zip(columns, kinds, strict=True)], names)


def _numbers(
    bucket: int, saved: SavedBucket, policy: Policy | type[Policy] | None
) -> Iterator[tuple[int | str | float | None, ...]]:
    """What one bucket has learned; times are in seconds."""
    for name in ("fraction", "lowered", "sharing"):
        if saved.sampling and name in saved.sampling:
            yield bucket, name, None, None, None, None, float(saved.sampling[name]), None
    scorer = saved.scorer(policy)
    for told in scorer.learned() if scorer else []:
        unit = _SECOND if told.model == "age" else 1
        begin, end = (None if at is None else at / unit for at in (told.begin, told.end))
        scale = {"rate": _SECOND, "maturity": 1 / _SECOND}.get(told.model, 1.0)
        value = told.value * scale
        yield bucket, told.model, told.side, told.key, begin, end, value, told.sample
    if saved.grant:
        for model, value in (
            ("epoch", number_of(saved.grant.epoch)),
            ("limit", saved.grant.limit),
        ):
            yield bucket, model, None, None, None, None, float(value), None


@dataclass(frozen=True)
class _Rows:
    """Lays out the buffered rows of saved states."""

    types: dict[Side, pa.StructType]
    policy: Policy | type[Policy] | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for bucket, saved in saved_states(batches):
            scorer = saved.scorer(self.policy)
            for side in SIDES:
                # The scorer's rows have what its policy keeps of each.
                rows = (scorer or saved.operator).buffers[side].rows
                count = len(rows)
                if not count:
                    continue
                columns = [
                    pa.array([bucket] * count, pa.int32()),
                    pa.array([side] * count),
                    pa.array(rows.time, pa.timestamp("us", "UTC")),
                    pa.array((saved.progress.now - rows.time) / 1e6),
                    pa.array(rows.matches),
                    pa.array(scorer.scores(rows, saved.progress.now), pa.float64())
                    if scorer and not saved.sampling
                    else pa.nulls(count, pa.float64()),
                    pa.nulls(count, pa.float64()) if rows.importance is None else pa.array(rows.importance),
                ]
                values = saved.payload[side].take(rows.id)
                fields = list(self.types[side])
                cells = [one_chunk(values.column(f"c{i}")).cast(field.type) for i, field in enumerate(fields)]
                whole = {side: pa.StructArray.from_arrays(cells, fields=fields)}
                columns += [whole.get(s, pa.nulls(count, self.types[s])) for s in SIDES]
                yield pa.record_batch(columns, [f"n{i}" for i in range(len(columns))])
