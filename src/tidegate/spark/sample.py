"""An unbiased sample of a join: two DataFrames in, one DataFrame with weights out, batch or streaming."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, get_args

from tidegate.engine.operator import Join
from tidegate.engine.sampling_operator import SamplingOperator
from tidegate.sampling import (
    GroupedJoinReservoir,
    JoinReservoir,
    PpsCluster,
    ProgressiveJoinReservoir,
    Sampler,
)
from tidegate.sampling import find as find_sampler
from tidegate.sampling.drawn import Method, listed
from tidegate.spark.durations import Duration, as_written, window_of
from tidegate.spark.plan import SamplePlan
from tidegate.spark.query import Query
from tidegate.spark.saved import NAME
from tidegate.types import Budget, InputError, perhaps, refuse_class

if TYPE_CHECKING:
    from collections.abc import Sequence
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
    sampler: Sampler | str | None = None,
    by: str | Sequence[str] | None = None,
    least: int | None = None,
    where: str | None = None,
    lateness: str | timedelta | None = None,
    buckets: int | None = None,
    suffix: str = "_right",
    seed: int = 0,
    step: int = 100_000,
    name: str = NAME,
) -> DataFrame:
    """Sample the results of a join within a budget of memory.

    Every result tells the probability with which it came into the sample, so that estimates from it are unbiased:
    `tidegate.estimate` makes them, with intervals.

    Parameters
    ----------
    left, right, on, time, window, where, lateness, buckets, suffix, seed, step, name
        As in `tidegate.join`.
    budget
        What the whole query may buffer: rows (1000, "1000 rows"), bytes ("64 MB"), a `Budget`, or None. The
        sampling fraction follows from it. A reservoir's results count as rows, `size` in each bucket.
    method
        "uniform": each result with the same probability, most of them by themselves. "eq_cluster", "pps_cluster":
        rows are drawn, and all results that one has from then on are in the sample. "reservoir": of all results so
        far any `size` are held, each as likely as any other; the sample as it is leaves after each micro-batch (of a
        batch query, at its end), and can be read from the checkpoint (`tidegate.reservoir`). "progressive": a
        reservoir that takes over memory which the join no longer needs, until the sample is used. Or a sampler as an
        object.
    p
        The sampling fraction, a reservoir's sampler included; by default as high as the budget allows. For
        "pps_cluster" that of a row which expects one match. Where memory overflows it is lowered.
    size
        Of a reservoir: how many results it holds, at first.
    use_at
        When the sample of a progressive reservoir is to be used, in event time; UTC, unless it says otherwise.
    sampler
        Of a reservoir: which results it is shown, by name or as an object; "eq_cluster" by default, which needs
        least memory for it, or "uniform", whose results are more independent but may not fill it where memory is
        short. Any result is as likely as any other; any two of one row are not. It is shown up to 64 times what it
        holds, so that it has room for results of many rows.
    by, least
        Of a reservoir: columns of the result that make up groups. Rather than any `size` results, it then holds about
        as many of each group, and at least `least` (10 by default) of those that have as many. That is so for the
        first `size / (least + 1) - 1` groups of a bucket; of those that come later (`tidegate.inspect` tells how many
        results these have had) fewer may be held, or none. Weights differ by group, and are right for all of them.
        All buckets together give `size` results, or more where `least` of each group are.

    Returns
    -------
    DataFrame
        The columns of the join, then `probability`, `weight` (one over it), `owner` (whose match it is, by number)
        and `shown`: the probability with which the owner was kept for it, by which `tidegate.estimate` knows which
        results came together (1: this one came by itself). Of a reservoir also `batch`: the micro-batch after which
        it was so, since every one gives the whole sample anew. Its weights add up to an estimate of the number of
        the join's results, and so are estimates themselves.

    References
    ----------
    Memory-Limited Execution of Windowed Stream Joins, section 4. Reservoir Sampling over Memory-Limited Stream Joins.
    """
    query = Query.of(left, right, on=on, time=time, condition="=", by=None, lateness=lateness, step=step)
    count = query.buckets(buckets)
    memory = Budget.of(budget)
    chosen = _chosen(method, sampler, p)
    reservoir: JoinReservoir | ProgressiveJoinReservoir | GroupedJoinReservoir | None = None
    if method in _HELD:
        reservoir, memory = _reservoir(size, memory, count, _moment(method, use_at))
    else:
        _refuse(method, "'reservoir' or 'progressive'", size=size, use_at=use_at, sampler=sampler)
    groups = tuple(listed(by))
    if groups and isinstance(reservoir, JoinReservoir):
        reservoir = GroupedJoinReservoir(reservoir.size, reservoir.budget, 10 if least is None else least)
    else:
        _refuse(method, "'reservoir', with by=", by=by, least=least)
    span = window_of(window)
    core = Join(span, memory, seed=seed, numeric=query.numeric)
    with as_written(window, span):
        SamplingOperator(core, chosen)  # what the sampler refuses is told here and not by a worker
    plan = SamplePlan(chosen, reservoir, groups)
    fixed = buckets is not None or reservoir is not None  # a reservoir's share was settled above
    return query.run(
        core, count, how="inner", where=where, suffix=suffix, sampling=plan, name=name, fixed=fixed
    )


def _chosen(method: Method | Sampler, below: Sampler | str | None, p: float | None) -> Sampler:
    """The sampler that is meant; that below a reservoir, if the method is one."""
    refuse_class(method, "method", "")
    if not isinstance(method, Sampler) and method not in get_args(Method):
        raise InputError(
            f"method={method!r} is not known; use one of {', '.join(sorted(get_args(Method)))}, or a sampler"
            f"{perhaps(method, get_args(Method))}"
        )
    wanted = (below or "eq_cluster") if method in _HELD else method
    sampler = find_sampler(wanted)
    if method in _HELD and isinstance(sampler, PpsCluster):
        raise InputError(
            f"sampler={below!r}: a reservoir holds nothing that is likelier than its least likely result, which "
            "with chances by size would be next to nothing; use 'uniform' or 'eq_cluster'"
        )
    if wanted is not sampler:
        return type(sampler)(p=p)
    if p is not None:
        raise InputError(f"p={p!r} was given beside {sampler!r}; give it there")
    return sampler


def _refuse(chosen: object, needed: str, **options: object) -> None:
    """Refuse options that go with another method."""
    for name, value in options.items():
        if value is not None:
            raise InputError(
                f"{name}={value!r} is for method={needed}, and this is {chosen!r}; leave it out, or choose that"
            )


def _moment(method: str, use_at: str | datetime | None) -> int | None:
    """When the sample is used, in microseconds."""
    if method != "progressive":
        _refuse(method, "'progressive'", use_at=use_at)
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
