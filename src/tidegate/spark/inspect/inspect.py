"""`tidegate.inspect`: the buffered rows, the counts and the learned models in a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import StructField, StructType, _parse_datatype_json_string

from tidegate.arrow_columns import one_chunk
from tidegate.policies import Policy, registered
from tidegate.spark.alert.inspection import ALERT, inspect_alert
from tidegate.spark.bucket.join.saved import SavedBucket, saved_buckets
from tidegate.spark.bucket.join.settings import online_policy
from tidegate.spark.packing.arrow_types import arrow_type
from tidegate.spark.packing.type_encoding import encoding_of
from tidegate.spark.pool.shares import number_of
from tidegate.spark.query.checkpoint import find_state
from tidegate.types import SIDES, Side, check_choice, other_side

What = Literal["rows", "counts", "model"]

_MICROS_PER_SECOND: Final = 1e6
_COUNTS: Final = (
    "bucket int, rows_left bigint, rows_right bigint, late bigint, null_keys bigint, results bigint, evicted bigint, "
    "expired bigint, buffered bigint, peak_rows bigint, peak_bytes bigint, budget bigint, policy string, "
    "fairness double, left_ahead_seconds double, importance double, redefined bigint, refused bigint, refusal string"
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
    """Read the checkpoint of a streaming join, sample or alarm, while the query runs or after it stopped.

    Parameters
    ----------
    checkpoint
        The query's `checkpointLocation`.
    what
        "rows", "counts" or "model"; see below.
    name
        The join, sample or alarm, if the query has several: its `name`, or the number that Spark gives to its
        operator. Without it, a query that has several is refused with a list of them.
    policy
        The policy to score with; by default the query's own. If it is the query's policy, perhaps with other
        parameters, it continues with what the query has learned. Your own policy is found by its name if its class
        is defined in this session and its parameters are plain values. Otherwise give it here, or scores are null.
    spark
        The session; by default the active one.

    Returns
    -------
    DataFrame
        A batch DataFrame of the last committed micro-batch.

    Raises
    ------
    InputError
        No state can be read there, or it is damaged. Spark's own error is in the `__context__` of this one.

    Notes
    -----
    **Rows.** One row for each buffered row.

    | column | content |
    |---|---|
    | `bucket`, `side`, `time` | the bucket, the side and the event time |
    | `age_seconds` | the event time that the other side has reached minus that of the row; negative if it waits |
    | `matches` | the number of its results so far |
    | `score` | the lowest score of a bucket is evicted first (of a side, if the budget is split) |
    | `importance` | null if no importance is defined |
    | `left`, `right` | the row itself; the other of the two is null |

    Scores are those by which the query would evict now, with its policy, window and seed, and with what it has
    learned. A row with a score of minus infinity has passed its window, and only waits for rows out of order. A
    sample has no scores.

    **Counts.** One row for each bucket.

    | column | content |
    |---|---|
    | `rows_left`, `rows_right`, `late`, `null_keys` | arrivals, and those that were late or had no key or time |
    | `results`, `evicted`, `expired` | results, and rows that left the buffer |
    | `buffered`, `peak_rows`, `peak_bytes` | the buffered rows now, and the largest numbers so far |
    | `budget` | -1 without a budget |
    | `policy` | the name of the policy, or of the sampler |
    | `fairness` | Jain's index of the lifetimes of rows that left; 1 if all are equal |
    | `left_ahead_seconds` | how far the left side is ahead of the right in event time; negative if it is behind |
    | `importance` | the total importance of the results; null, like the next three, if no importance is defined |
    | `redefined` | how often the definition of importance changed |
    | `refused`, `refusal` | the micro-batches in which a watched file could not be used, and the last reason |

    **Model.** One row for each number that the policy of a bucket has learned. `sample` is the number of rows behind
    it, in which older rows count less. It is null if the number was given, or rows are not counted.

    | `model` | used by | `value` |
    |---|---|---|
    | "rate" | policies that learn rates | rows per second of a side |
    | "age" | age | the matches that a row may expect from age `age_from` to `age_to`, in seconds |
    | "share" | prob, life, heeb | the share of a frequent key in its side; without a key, of all frequent keys |
    | "maturity" | ijoin | in seconds |
    | such as "LinearTrend.speed" | heeb | a parameter of the process of a side, in steps from row to row |
    | "offset" | heeb_histogram | the position of a side's stream |
    | "benefit" | heeb_histogram | the expected benefit by distance from the other stream, `age_from` to `age_to` |
    | "fraction", "lowered" | samples | the fraction of new draws, and how often it was lowered for lack of memory |
    | "sharing" | reservoirs with groups | results of groups that have no place of their own |
    | "epoch", "limit" | pools | the epoch, and the limit that it sets |

    A key that is neither an integer nor a time is represented by its hash.

    **Alarms.** "rows" are the rows that are kept of each stream. `key` is the key, and `carried` has the columns that
    an alarm shows, by the same names. "counts" has one row for each bucket and stream:

    | column | content |
    |---|---|
    | `arrived`, `late` | rows that arrived, and those that were late |
    | `null`, `nan`, `outside` | rows without a key or time, without a value, and with a value outside the domain |
    | `omitted`, `evicted`, `expired` | rows that were omitted, evicted for a budget, or expired |
    | `kept`, `alarms` | rows that are kept, and alarms that arrivals of the stream raised |
    | `undefined` | combinations for which the condition has no value; the same for all streams of a bucket |
    | `miss_probability` | the estimated probability that an alarm is missed because rows of the stream were evicted |
    """
    check_choice(what, What, "what")
    session = spark or SparkSession.active()
    saved_state = find_state(checkpoint, session, name, "tidegate.join")
    states, layout = saved_state.states, saved_state.layout
    if layout is None:
        return session.createDataFrame([], {"model": _MODEL, "rows": _ROWS, "counts": _COUNTS}[what])
    if layout.get("kind") == ALERT:
        return inspect_alert(states, what, layout)
    if what == "counts":
        return states.mapInArrow(_counts, _COUNTS)
    # Found here and sent to the workers, which do not have the classes that are defined in this session.
    chosen = registered(saved_state.policy) if policy is None else online_policy(policy)
    if what == "model":
        return states.mapInArrow(_ModelReader(chosen), _MODEL)
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
    # Encoded as one struct: if each column were decoded separately, Spark's plan would double with each column.
    encodings = {side: encoding_of(row, side) for side, row in rows.items()}
    encoded_types = {side: encoding.type if encoding else rows[side] for side, encoding in encodings.items()}
    schema = cast("StructType", StructType.fromDDL(_ROWS))
    for side, kind in encoded_types.items():
        schema = schema.add(side, kind)
    arrow = {side: arrow_type(kind) for side, kind in encoded_types.items()}
    frame = states.mapInArrow(_RowReader(arrow, policy), schema)
    for side, encoding in encodings.items():
        if encoding:
            frame = frame.withColumn(side, encoding.decode(F.col(side), nullable=True))
    return frame


def _counts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for bucket, saved in saved_buckets(batches):
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
            pa.array([saved.progress.clocks.now.lead("left") / 1e6], pa.float64()),
            pa.array([tally.importance if saved.importance else None], pa.float64()),
            pa.array([saved.importance and saved.importance.redefined], pa.int64()),
            pa.array([saved.importance and saved.importance.refused], pa.int64()),
            pa.array([saved.importance and saved.importance.refusal], pa.string()),
        ]
        yield pa.record_batch(columns, [f"n{i}" for i in range(len(columns))])


@dataclass(frozen=True)
class _ModelReader:
    """Builds the rows of "model" from saved states."""

    policy: Policy | type[Policy] | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = ("bucket", "model", "side", "key", "age_from", "age_to", "value", "sample")
        kinds = (pa.int32(), pa.string(), pa.string(), pa.int64(), *[pa.float64()] * 4)
        for bucket, saved in saved_buckets(batches):
            rows = list(_model_numbers(bucket, saved, self.policy))
            columns = zip(*rows, strict=True) if rows else [()] * len(names)
            yield pa.record_batch([pa.array(c, k) for c, k in zip(columns, kinds, strict=True)], names)


def _model_numbers(
    bucket: int, saved: SavedBucket, policy: Policy | type[Policy] | None
) -> Iterator[tuple[int | str | float | None, ...]]:
    """The numbers that one bucket has learned; times are in seconds."""
    for name in ("fraction", "lowered", "sharing"):
        if saved.sampling and name in saved.sampling:
            yield bucket, name, None, None, None, None, float(saved.sampling[name]), None
    restored = saved.restore_policy(policy)
    for number in restored.retention.learned() if restored else []:
        unit = _MICROS_PER_SECOND if number.model == "age" else 1
        begin, end = (None if at is None else at / unit for at in (number.begin, number.end))
        scale = {"rate": _MICROS_PER_SECOND, "maturity": 1 / _MICROS_PER_SECOND}.get(number.model, 1.0)
        value = number.value * scale
        yield bucket, number.model, number.side, number.key, begin, end, value, number.sample
    if saved.grant:
        for model, value in (
            ("epoch", number_of(saved.grant.epoch)),
            ("limit", saved.grant.limit),
        ):
            yield bucket, model, None, None, None, None, float(value), None


@dataclass(frozen=True)
class _RowReader:
    """Builds the rows of "rows" from saved states."""

    types: dict[Side, pa.StructType]
    policy: Policy | type[Policy] | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for bucket, saved in saved_buckets(batches):
            restored = saved.restore_policy(self.policy)
            for side in SIDES:
                rows = saved.operator.buffers[side].rows
                count = len(rows)
                if not count:
                    continue
                columns = [
                    pa.array([bucket] * count, pa.int32()),
                    pa.array([side] * count),
                    pa.array(rows.time, pa.timestamp("us", "UTC")),
                    pa.array((saved.progress.clocks.now.of(other_side(side)) - rows.time) / 1e6),
                    pa.array(rows.matches),
                    pa.array(restored.scores(side), pa.float64())
                    if restored
                    else pa.nulls(count, pa.float64()),
                    pa.nulls(count, pa.float64()) if rows.importance is None else pa.array(rows.importance),
                ]
                values = saved.payload[side].take(rows.id)
                fields = list(self.types[side])
                cells = [one_chunk(values.column(f"c{i}")).cast(field.type) for i, field in enumerate(fields)]
                structs = {side: pa.StructArray.from_arrays(cells, fields=fields)}
                columns += [structs.get(s, pa.nulls(count, self.types[s])) for s in SIDES]
                yield pa.record_batch(columns, [f"n{i}" for i in range(len(columns))])
