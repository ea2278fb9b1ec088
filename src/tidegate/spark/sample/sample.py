"""The function `sample`: an unbiased sample of a join of two DataFrames, batch or streaming."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, get_args

from tidegate.engine.join import Join
from tidegate.engine.sampler_retention import SamplerRetention
from tidegate.sampling import (
    GroupedJoinReservoir,
    JoinReservoir,
    PpsCluster,
    ProgressiveJoinReservoir,
    Sampler,
)
from tidegate.sampling import find as find_sampler
from tidegate.sampling.estimates.sample_design import Method, listed
from tidegate.spark.bucket.join.plan import SamplePlan
from tidegate.spark.frames.durations import Duration, parse_window, show_as_written
from tidegate.spark.query.join_query import JoinQuery
from tidegate.spark.state.layout import NAME
from tidegate.types import Budget, InputError, perhaps, refuse_class

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from pyspark.sql import DataFrame

    from tidegate.spark.frames.keys import On

_RESERVOIRS: Final = ("reservoir", "progressive")


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
    min_per_group: int | None = None,
    where: str | None = None,
    lateness: str | timedelta | None = None,
    buckets: int | None = None,
    suffix: str = "_right",
    seed: int = 0,
    step: int = 100_000,
    name: str = NAME,
) -> DataFrame:
    """Sample the results of a join within a budget of memory.

    Every result comes with its probability of being in the sample, so that estimates are unbiased:
    `tidegate.estimate` makes them, with intervals.

    Parameters
    ----------
    left, right, on, time, window, where, lateness, buckets, suffix, seed, step, name
        As in `tidegate.join`.
    budget
        What the whole query may buffer: rows (1000, "1000 rows"), bytes ("64 MB"), a `Budget`, or None. The
        sampling fraction follows from it. Results in a reservoir count as rows, `size` in each bucket.
    method
        One of these names, or a sampler as an object:

        | method | sample |
        |---|---|
        | "uniform" | each result with the same probability, most of them independently |
        | "eq_cluster" | rows with equal probability, each with all of its later results |
        | "pps_cluster" | rows with probability proportional to their expected matches, each with all results |
        | "reservoir" | `size` of all results so far, all equally likely |
        | "progressive" | a reservoir that grows into memory that the join no longer needs, until `use_at` |

        A reservoir is returned after each micro-batch, or at the end of a batch query. It can be read from the
        checkpoint (`tidegate.reservoir`).
    p
        The sampling fraction, a reservoir's sampler included; by default as high as the budget allows. For
        "pps_cluster" that of a row which expects one match. Where memory overflows it is lowered.
    size
        Of a reservoir: the number of results that it holds, at first.
    use_at
        The event time at which the sample of a progressive reservoir is used; UTC unless it has a time zone.
    sampler
        Of a reservoir: which results it is offered, by name or as an object. "eq_cluster", the default, needs the
        least memory. Results of "uniform" are closer to independent, but may not fill the reservoir if memory is
        short. All results are equally likely; two results of one row are not independent. Up to 64 times the
        reservoir's size are offered, so that it holds results of many rows.
    by, min_per_group
        Of a reservoir: columns of the result that form groups. It then holds about equal numbers of each group, and
        at least `min_per_group` (10 by default) of groups with that many results. This holds for the first
        `size / (min_per_group + 1) - 1` groups of a bucket. Of later groups fewer results are held, or none
        (`tidegate.inspect` gives the number of their results as `sharing`). Weights differ by group and are right for
        all. All buckets together return `size` results, or more if `min_per_group` of each group are more.

    Returns
    -------
    DataFrame
        The columns of the join, then:

        | column | meaning |
        |---|---|
        | `probability` | of the result to be in the sample |
        | `weight` | one over the probability |
        | `owner` | the number of the older of the result's two rows |
        | `shown` | the probability with which the owner was kept; 1 if the result was drawn independently |
        | `batch` | of a reservoir: the micro-batch after which it held these results |

        `tidegate.estimate` uses `owner` and `shown`. Every micro-batch returns a reservoir as a whole. The weights of
        a reservoir add up to an estimate of the number of results, so they are estimates themselves.

    References
    ----------
    Memory-Limited Execution of Windowed Stream Joins, section 4. Reservoir Sampling over Memory-Limited Stream Joins.
    """
    query = JoinQuery.of(left, right, on=on, time=time, condition="=", by=None, lateness=lateness, step=step)
    count = query.buckets(buckets)
    memory = Budget.of(budget)
    chosen = _find_sampler(method, sampler, p)
    reservoir: JoinReservoir | ProgressiveJoinReservoir | GroupedJoinReservoir | None = None
    if method in _RESERVOIRS:
        reservoir, memory = _reservoir(size, memory, count, _use_time(method, use_at))
    else:
        _refuse(method, "'reservoir' or 'progressive'", size=size, use_at=use_at, sampler=sampler)
    groups = tuple(listed(by))
    if groups and isinstance(reservoir, JoinReservoir):
        fewest = 10 if min_per_group is None else min_per_group
        reservoir = GroupedJoinReservoir(reservoir.size, reservoir.budget, fewest)
    else:
        _refuse(method, "'reservoir', with by=", by=by, min_per_group=min_per_group)
    span = parse_window(window)
    core = Join(span, memory, seed=seed, integer_keys=query.integer_keys)
    with show_as_written(window, span):
        SamplerRetention(core, chosen)  # so that errors are raised here and not by a worker
    plan = SamplePlan(chosen, reservoir, groups)
    return query.run(
        core,
        count,
        how="inner",
        where=where,
        suffix=suffix,
        sampling=plan,
        name=name,
        # The share of each reservoir was computed above.
        buckets_given=buckets is not None or reservoir is not None,
    )


def _find_sampler(method: Method | Sampler, filling: Sampler | str | None, p: float | None) -> Sampler:
    """The sampler of a method; for a reservoir, the sampler that fills it."""
    refuse_class(method, "method", "")
    if not isinstance(method, Sampler) and method not in get_args(Method):
        raise InputError(
            f"method={method!r} is not known; use one of {', '.join(sorted(get_args(Method)))}, or a sampler"
            f"{perhaps(method, get_args(Method))}"
        )
    wanted = (filling or "eq_cluster") if method in _RESERVOIRS else method
    sampler = find_sampler(wanted)
    if method in _RESERVOIRS and isinstance(sampler, PpsCluster):
        raise InputError(
            f"sampler={filling!r} cannot fill a reservoir, whose results must all be equally likely; "
            "use 'uniform' or 'eq_cluster'"
        )
    if wanted is not sampler:
        return type(sampler)(p=p)
    if p is not None:
        raise InputError(f"p={p!r} cannot be combined with {sampler!r}; set p there")
    return sampler


def _refuse(chosen: object, needed: str, **options: object) -> None:
    """Refuse options that belong to another method."""
    for name, value in options.items():
        if value is not None:
            raise InputError(
                f"{name}={value!r} needs method={needed}, but method is {chosen!r}; remove {name}=, or change method="
            )


def _use_time(method: str, use_at: str | datetime | None) -> int | None:
    """The time at which the sample is used, in microseconds; None for other methods."""
    if method != "progressive":
        _refuse(method, "'progressive'", use_at=use_at)
        return None
    try:
        moment = datetime.fromisoformat(use_at) if isinstance(use_at, str) else use_at
        if moment is None:
            raise ValueError  # noqa: TRY301 - the message is below
        return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1e6)
    except (AttributeError, ValueError) as error:
        raise InputError(
            f"method='progressive' needs use_at=, a time such as '2026-01-31 18:00'; got {use_at!r}"
        ) from error


def _reservoir(
    size: int | None, budget: Budget | None, buckets: int, use_at: int | None
) -> tuple[JoinReservoir | ProgressiveJoinReservoir, Budget | None]:
    """The reservoir of each bucket, and the budget that the reservoirs leave to the join."""
    if size is None:
        raise InputError("a reservoir needs size=, the number of results to hold")
    if budget is None and use_at is not None:
        raise InputError(
            "method='progressive' needs budget=, the number of rows that join and reservoir share"
        )
    if budget is None:
        return JoinReservoir(size=size, budget=1 << 62), None
    if budget.unit != "rows":
        raise InputError(f"a reservoir needs a budget in rows; got {budget.limit} bytes")
    left = budget.limit - size * buckets
    if left < buckets:
        raise InputError(
            f"a reservoir of {size} results in each of {buckets} buckets leaves the join no memory of a budget of "
            f"{budget.limit} rows; set a budget of at least {(size + 1) * buckets}, or fewer buckets"
        )
    share = budget.limit // buckets
    if use_at is not None:
        return ProgressiveJoinReservoir(size=size, budget=share, use_at=use_at), Budget(rows=left)
    return JoinReservoir(size=size, budget=share), Budget(rows=left)
