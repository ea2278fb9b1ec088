"""An unbiased sample of a join: two DataFrames in, one DataFrame with weights out, batch or streaming."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, get_args

from tidegate.engine.operator import Join
from tidegate.engine.sampling_operator import SamplingOperator
from tidegate.sampling import JoinReservoir, ProgressiveJoinReservoir, Sampler, Uniform
from tidegate.sampling import find as find_sampler
from tidegate.sampling.drawn import Method
from tidegate.spark.durations import Duration, window_of
from tidegate.spark.plan import SamplePlan
from tidegate.spark.query import Query
from tidegate.types import Budget, InputError

if TYPE_CHECKING:
    from datetime import timedelta

    from pyspark.sql import DataFrame

    from tidegate.spark.side import On

_HELD: Final = ("reservoir", "progressive")


def sample(
    left: DataFrame,
    right: DataFrame,
    *,
    on: On,
    time: str | tuple[str, str],
    window: tuple[Duration, Duration],
    budget: Budget | int | str | None = None,
    method: Method | Sampler = "uniform",
    p: float | None = None,
    size: int | None = None,
    use_at: str | datetime | None = None,
    where: str | None = None,
    lateness: str | timedelta | None = None,
    buckets: int | None = None,
    suffix: str = "_right",
    seed: int = 0,
    step: int = 100_000,
) -> DataFrame:
    """Sample the results of a join within a budget of memory.

    Every result tells the probability with which it came into the sample, so that estimates from it are unbiased:
    `tidegate.estimate` makes them, with intervals.

    Parameters
    ----------
    left, right, on, time, window, where, lateness, buckets, suffix, seed, step
        As in `tidegate.join`.
    budget
        What the whole query may buffer: a number of rows, a string of bytes ("64 MB"), a `Budget`, or None. The
        sampling fraction follows from it. A reservoir's results count as rows, `size` in each bucket.
    method
        "uniform": each result by itself. "eq_cluster", "pps_cluster": rows are drawn, and all results that one has
        from then on are in the sample; these need no model to be right, but their results are not independent.
        "reservoir": of all results so far any `size` are held, as likely as any others; the sample as it is leaves
        after each micro-batch, and can be read from the checkpoint (`tidegate.reservoir`). "progressive": a reservoir
        that takes over memory which the join no longer needs, until the sample is used. Or a sampler as an object.
    p
        The sampling fraction, for "uniform" and "eq_cluster"; by default as high as the budget allows. Where memory
        overflows it is lowered.
    size
        Of a reservoir: how many results it holds, at first.
    use_at
        When the sample of a progressive reservoir is to be used, in event time; UTC, unless it says otherwise.

    Returns
    -------
    DataFrame
        The columns of the join, then `probability`, `weight` (one over it) and `owner`: whose match it is, by number.
        Of a reservoir also `rank`, `bound` and `batch`: of one micro-batch, the results whose rank is at most the
        least bound, and of these the lowest `size` if there are more, are a uniform sample of the whole join. A
        reservoir's probabilities are told by its ranks, and so themselves estimates.

    References
    ----------
    Memory-Limited Execution of Windowed Stream Joins, section 4. Reservoir Sampling over Memory-Limited Stream Joins.
    """
    query = Query.of(left, right, on=on, time=time, condition="=", by=None, lateness=lateness, step=step)
    count = query.buckets(buckets)
    memory = Budget.of(budget)
    sampler, reservoir = _chosen(method, p), None
    if method in _HELD:
        reservoir, memory = _reservoir(size, memory, count, _moment(method, use_at))
    elif size is not None or use_at is not None:
        raise InputError(
            f"size={size!r} and use_at={use_at!r} are for method='reservoir' and 'progressive'; leave them out, or "
            "choose one of these"
        )
    core = Join(window_of(window), memory, seed=seed, numeric=query.numeric)
    SamplingOperator(core, sampler)  # what the sampler refuses is told here and not by a worker
    plan = SamplePlan(sampler, reservoir)
    return query.run(core, count, how="inner", where=where, suffix=suffix, sampling=plan)


def _chosen(method: Method | Sampler, p: float | None) -> Sampler:
    if isinstance(method, Sampler):
        if p is not None:
            raise InputError(f"p={p!r} was given beside {method!r}; give it there")
        return method
    if method not in get_args(Method):
        raise InputError(
            f"method={method!r} is not known; use one of {', '.join(get_args(Method))}, or a sampler"
        )
    if method in _HELD:
        return Uniform(p=p)
    return type(find_sampler(method))(p=p)


def _moment(method: str, use_at: str | datetime | None) -> int | None:
    """When the sample is used, in microseconds."""
    if method != "progressive":
        if use_at is not None:
            raise InputError(f"use_at={use_at!r} is for method='progressive'; leave it out, or choose that")
        return None
    try:
        moment = datetime.fromisoformat(use_at) if isinstance(use_at, str) else use_at
        if moment is None:
            raise ValueError  # noqa: TRY301 - said below
        return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1e6)
    except (AttributeError, ValueError) as error:
        raise InputError(
            f"method='progressive' needs use_at, and {use_at!r} is no time; give one such as '2026-01-31 18:00'"
        ) from error


def _reservoir(
    size: int | None, budget: Budget | None, buckets: int, use_at: int | None
) -> tuple[JoinReservoir | ProgressiveJoinReservoir, Budget | None]:
    """The reservoir of each bucket, and what it leaves of the budget to the join."""
    if size is None:
        raise InputError("a reservoir needs a size; give the number of results that it shall hold")
    if budget is None and use_at is not None:
        raise InputError(
            "method='progressive' needs a budget, which join and reservoir share; give a number of rows"
        )
    if budget is None:
        return JoinReservoir(size=size, budget=1 << 62), None
    if budget.unit != "rows":
        raise InputError(
            f"a reservoir counts results, and the budget is {budget.limit} bytes; give a number of rows"
        )
    left = budget.limit - size * buckets
    if left < buckets:
        raise InputError(
            f"a reservoir of {size} results in each of {buckets} buckets leaves the join nothing of a budget of "
            f"{budget.limit} rows; give at least {(size + 1) * buckets}, or fewer buckets"
        )
    share = budget.limit // buckets
    if use_at is not None:
        return ProgressiveJoinReservoir(size=size, budget=share, use_at=use_at), Budget(rows=left)
    return JoinReservoir(size=size, budget=share), Budget(rows=left)
