"""An unbiased sample of a join: two DataFrames in, one DataFrame with weights out, batch or streaming."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from tidegate.engine.operator import Join
from tidegate.engine.sampling_operator import SamplingOperator
from tidegate.sampling import JoinReservoir, Sampler, Uniform
from tidegate.sampling import find as find_sampler
from tidegate.spark.durations import Duration, window_of
from tidegate.spark.plan import SamplePlan
from tidegate.spark.query import Query
from tidegate.types import Budget, InputError

if TYPE_CHECKING:
    from datetime import timedelta

    from pyspark.sql import DataFrame

    from tidegate.spark.side import On

Method = Literal["uniform", "eq_cluster", "pps_cluster", "reservoir"]


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
        after each micro-batch, and can be read from the checkpoint (`tidegate.reservoir`). Or a sampler as an object.
    p
        The sampling fraction, for "uniform" and "eq_cluster"; by default as high as the budget allows. Where memory
        overflows it is lowered.
    size
        Of a reservoir: how many results it holds.

    Returns
    -------
    DataFrame
        The columns of the join, then `probability`, `weight` (one over it) and `owner`: whose match it is, by number.
        Of a reservoir also `rank` and `batch`: of one micro-batch, the results of the lowest `size` ranks over all
        buckets are a uniform sample of the whole join.

    References
    ----------
    Memory-Limited Execution of Windowed Stream Joins, section 4. Reservoir Sampling over Memory-Limited Stream Joins.
    """
    query = Query.of(left, right, on=on, time=time, condition="=", by=None, lateness=lateness, step=step)
    count = query.buckets(buckets)
    memory = Budget.of(budget)
    sampler, reservoir = _chosen(method, p), None
    if method == "reservoir":
        reservoir, memory = _reservoir(size, memory, count)
    elif size is not None:
        raise InputError(f"size={size!r} is for method='reservoir'; leave it out, or choose that")
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
    if method == "reservoir":
        return Uniform(p=p)
    return type(find_sampler(method))(p=p)


def _reservoir(size: int | None, budget: Budget | None, buckets: int) -> tuple[JoinReservoir, Budget | None]:
    """The reservoir of each bucket, and what it leaves of the budget to the join."""
    if size is None:
        raise InputError("method='reservoir' needs a size; give the number of results that it shall hold")
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
    return JoinReservoir(size=size, budget=budget.limit // buckets), Budget(rows=left)
