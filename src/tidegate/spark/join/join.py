"""`tidegate.join`: joins two DataFrames, batch or streaming, within a budget of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.engine.join import Join
from tidegate.policies import find
from tidegate.spark.bucket.join.settings import online_policy
from tidegate.spark.frames.durations import Duration, parse_window, show_as_written
from tidegate.spark.join.arguments import find_conflicts
from tidegate.spark.join.importance import read_importance
from tidegate.spark.pool.pool import PoolMember
from tidegate.spark.query.how import parse_how
from tidegate.spark.query.join_query import JoinQuery
from tidegate.spark.state.layout import NAME
from tidegate.types import Budget, Combine, Condition, InputError, Split

if TYPE_CHECKING:
    from datetime import timedelta
    from pathlib import Path

    from pyspark.sql import DataFrame

    from tidegate.importance import DefinitionLike
    from tidegate.policies import Policy
    from tidegate.spark.frames.keys import On


def join(
    left: DataFrame,
    right: DataFrame,
    *,
    on: On,
    time: str | tuple[str, str],
    window: tuple[Duration, Duration],
    budget: Budget | PoolMember | int | str | None = None,
    policy: Policy | str = "fifo",
    how: str = "inner",
    where: str | None = None,
    condition: Condition = "=",
    by: str | tuple[str, str] | None = None,
    lateness: str | timedelta | None = None,
    importance: DefinitionLike | None = None,
    combine: Combine = "min",
    split: Split = "shared",
    buckets: int | None = None,
    suffix: str = "_right",
    seed: int = 0,
    step: int = 100_000,
    name: str = NAME,
    checkpoint: str | Path | None = None,
    event_time: str | None = None,
) -> DataFrame:
    """Join two DataFrames within a budget of memory. With a sufficient budget, the result is that of Spark's join.

    Both DataFrames are streaming, or both are batch. Rows of a micro-batch are handled in order of event time. The
    same micro-batches give the same rows, also when Spark runs one again. Which rows are evicted depends on how rows
    were divided into micro-batches. Null keys never match. The watermark is the lesser of the two sides'. As in
    Spark's own join, a row at or before the watermark of the previous micro-batch is late and dropped.

    Parameters
    ----------
    left, right
        The two sides. Streaming ones need a watermark: `df.withWatermark(time, delay)`, or `lateness`.
    on
        The key: a column that both sides have, a list of columns, or pairs `(left, right)` if names differ. Or
        equalities of columns, as in Spark: `left.id == right.auction_id`, several joined by `&`.
    time
        The column of event time, or `(left, right)` if names differ.
    window
        `(left, right)`: `l` and `r` join iff `-right <= r.time - l.time <= left`; "10 minutes", a timedelta, or
        None for no limit.
    budget
        How much the whole query may buffer: rows (1000, "1000 rows"), bytes ("64 MB"), a `Budget`, the member
        of a `Pool`, or None for no limit.
    policy
        Decides which rows stay in the buffer. A name or an object; see `tidegate.policies`.
    how
        "inner", "left", "right", "full", "left_semi" or "left_anti", in any of Spark's spellings ("outer", "anti").
        A row without a match is emitted when its window has passed, or earlier if it is evicted. The column
        `uncertain` then states whether a match may have been missed. A row whose key is null is emitted at once.
    where
        A further condition on pairs, in Spark SQL over `l.` and `r.`: "l.amount > r.amount".
    condition
        How keys compare, `l.key ? r.key`: "=", or "<", "<=", "!=", ">", ">=" or a `Band` on a number or a time.
    by
        With such a condition: a column (or a pair) whose values must be equal; rows are distributed by it.
    lateness
        Sets a watermark with this delay on both sides.
    importance
        The importance of rows, used by policies that rank by it and for the total in `inspect`. A definition of
        `tidegate.importance`, the name of a column, a number, or a pair (left, right) of these. By default 1.
    combine
        How the importance of a result follows from that of its two rows: "min", "max", "sum", "product" or "mean".
    split
        How the sides share the budget: "shared", "even", (left, right) in the budget's unit, or "optimal",
        by the model of prob, life or age.
    buckets
        The number of parts into which keys, budget and state are divided. By default the number of the query's
        shuffle partitions, at most 64. A restart needs the same number; by default it has that of the checkpoint.
    suffix
        Appended to the names of right columns that the left has, too.
    seed
        The seed of all random choices.
    step
        On batch DataFrames: the number of rows that are handled together, in order of time.
    name
        The name of the join, for a query with several: `tidegate.inspect(checkpoint, name="bids")`. A restart needs
        the same name. A join without a name can be given one.
    checkpoint
        The query's `checkpointLocation`. If the query has run before, this call refuses changes that a restart may
        not make, and lists them. Without it, the first micro-batch does.
    event_time
        The name of a column to add: the later time of the two rows; of a row without a match, the end of its window.
        It has a watermark, so that a windowed aggregation or another join by this time can run behind the join in
        the same query.

    Returns
    -------
    DataFrame
        The left's columns, then the right's. A key with the same name on both sides appears once. For "left_semi"
        and "left_anti", only the left's columns.
    """
    kind = parse_how(how)
    query = JoinQuery.of(
        left, right, on=on, time=time, condition=condition, by=by, lateness=lateness, step=step
    )
    member = budget if isinstance(budget, PoolMember) else None
    span = parse_window(window)
    core = Join(
        span,
        budget.budget if isinstance(budget, PoolMember) else Budget.of(budget),
        online_policy(policy),
        split,
        condition=condition,
        combine=combine,
        seed=seed,
        integer_keys=query.integer_keys,
    )
    for _, conflict in find_conflicts(core, on, by, importance, buckets):
        raise InputError(conflict)
    count = query.buckets(buckets)
    with show_as_written(window, span):
        core.start()  # so that the policy refuses settings on the driver, not on a worker
        if member:
            member.check(find(policy), split, span, count, streaming=query.streaming)
    valuation = None
    if importance is not None:
        valuation = read_importance(importance, query.frames, streaming=query.streaming)
    return query.run(
        core,
        count,
        how=kind,
        where=where,
        suffix=suffix,
        valuation=valuation,
        member=member,
        name=name,
        buckets_given=buckets is not None,
        checkpoint=checkpoint,
        event_time=event_time,
    )
