"""The front door: two DataFrames in, one DataFrame out, batch or streaming."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.engine.operator import Join
from tidegate.policies import find
from tidegate.policies.policy import has_processes
from tidegate.spark.frames.durations import Duration, parse_window, show_as_written
from tidegate.spark.join.importance import stated
from tidegate.spark.join.plan import how_of
from tidegate.spark.join.query import Query
from tidegate.spark.join.settings import online
from tidegate.spark.pool.pool import PoolMember
from tidegate.spark.state.layout import NAME
from tidegate.types import Budget, Combine, Condition, InputError, Split

if TYPE_CHECKING:
    from datetime import timedelta
    from pathlib import Path

    from pyspark.sql import DataFrame

    from tidegate.importance import DefinitionLike
    from tidegate.policies import Policy
    from tidegate.spark.frames.side import On


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
) -> DataFrame:
    """Join two DataFrames within a budget of memory; with one that suffices, exactly as Spark does.

    Both are streaming, or both are batch. Rows of a micro-batch are handled in order of event time. The same
    micro-batches give the same rows, also when Spark runs one again; what a budget sheds depends on how rows were
    divided into micro-batches. Null keys never match. The watermark is the lesser of both sides'; a row at or
    before that of the previous micro-batch is late and dropped, as in Spark's own join.

    Parameters
    ----------
    left, right
        The two sides. Streaming ones need a watermark: `df.withWatermark(time, delay)`, or `lateness`.
    on
        The key: a column that both have, several of them, or pairs `(left, right)` where names differ. Or equalities
        of columns, as Spark takes them: `left.id == right.auction_id`, several joined by `&`.
    time
        The column of event time, or `(left, right)`.
    window
        `(left, right)`: `l` and `r` join iff `-right <= r.time - l.time <= left`; "10 minutes", a timedelta, or
        None for no end.
    budget
        What the whole query may buffer: rows (1000, "1000 rows"), bytes ("64 MB"), a `Budget`, the member
        of a `Pool`, or None for no limit.
    policy
        Who stays, by name or as an object; see `tidegate.policies`.
    how
        "inner", "left", "right", "full" or "left_semi", in any of Spark's spellings ("outer", "left_outer"). A row
        without a match leaves when its window has passed, or earlier when it is shed; the column `uncertain` then
        says whether a match may have been missed. A row whose key is null leaves at once.
    where
        A further condition on the pair, as Spark SQL over `l.` and `r.`: "l.amount > r.amount".
    condition
        How keys compare, `l.key ? r.key`: "=", or "<", "<=", "!=", ">", ">=" or a `Band` on a number or a time.
    by
        With such a condition: a column (or a pair) whose values must be equal, by which rows are dealt out.
    lateness
        Sets a watermark with this delay on both sides.
    importance
        What rows are worth, for a policy that ranks by it and for the total in `inspect`: one of
        `tidegate.importance`, a column's name, a number, or a pair (left, right) of these; 1 for all rows without it.
    combine
        The importance of a result from its partners': "min", "max", "sum", "product" or "mean".
    split
        How the sides share the budget: "shared", "even", (left, right) in the budget's unit, or "optimal": as
        the model of prob, life or age divides it.
    buckets
        Into how many parts keys, budget and state are divided. By default as many as the query has shuffle
        partitions, at most 64. A restart needs the same number; by default it has that of the checkpoint.
    suffix
        Appended to the right's columns whose names the left has too.
    seed
        Fixes all randomness.
    step
        On batch DataFrames: how many rows are handled together, in order of time.
    name
        What it is called, where a query has several: `tidegate.inspect(checkpoint, name="bids")`. A restart needs the
        same name; one that had none can be given one.
    checkpoint
        The query's `checkpointLocation`. If the query has run before, this call lists what it has changed that a
        restart may not, instead of a worker in the first micro-batch.

    Returns
    -------
    DataFrame
        The left's columns, then the right's; a key that has one name on both sides once. For "left_semi" the
        left's alone.
    """
    kind = how_of(how)
    query = Query.of(left, right, on=on, time=time, condition=condition, by=by, lateness=lateness, step=step)
    member = budget if isinstance(budget, PoolMember) else None
    span = parse_window(window)
    core = Join(
        span,
        budget.budget if isinstance(budget, PoolMember) else Budget.of(budget),
        _timely(policy),
        split,
        condition=condition,
        combine=combine,
        seed=seed,
        numeric=query.numeric,
    )
    count = query.buckets(buckets)
    with show_as_written(window, span):
        core.start()  # what the policy refuses is told here and not by a worker
        if member:
            member.check(find(policy), split, span, count, streaming=query.streaming)
    valuation = stated(importance, query.frames, find(policy), streaming=query.streaming)
    return query.run(
        core,
        count,
        how=kind,
        where=where,
        suffix=suffix,
        valuation=valuation,
        member=member,
        name=name,
        fixed=buckets is not None,
        checkpoint=checkpoint,
    )


def _timely(policy: Policy | str) -> Policy:
    """The policy that is meant, if it can go by the times of a query."""
    meant = online(policy)
    if has_processes(meant):
        raise InputError(
            f"policy {meant.label()!r} was given processes (left=, right=), which move from one whole time to the "
            "next, and on Spark these are microseconds; leave processes out: 'heeb' finds them itself, row by row"
        )
    return meant
