"""Joins in which one side is ahead of the other in event time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidegate as tg
from tidegate.types import Order, Side, StepSize, Time

if TYPE_CHECKING:
    from collections.abc import Sequence

Ahead = tuple[Side, Time] | None
Rolls = tuple[list[int], list[int]]
POLICIES = ("fifo", "random", "until_expiry", "age", "prob", "life", "heeb", "ijoin", "size", "flow_expect")
LAGS = (100, 500, 1000, 3000)


def stream(keys: list[int], times: list[int]) -> dict[str, Any]:
    return {"key": keys, "time": sorted(times)[: len(keys)]}


sides = st.integers(1, 30).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 3), min_size=n, max_size=n),
        st.lists(st.integers(0, 60), min_size=n, max_size=n),
    )
)


@given(
    left=sides,
    right=sides,
    window=st.tuples(st.integers(0, 30), st.integers(-5, 30)).filter(lambda w: sum(w) >= 0),
    ahead=st.tuples(st.sampled_from(["left", "right"]), st.sampled_from([0, 1, 7, 40, 7.3])),
    step=st.sampled_from([1, 4, "instant"]),
    order=st.sampled_from(["probe-first", "shed-first"]),
    unit=st.sampled_from([1, 0.1]),
)
def test_the_exact_join_does_not_depend_on_who_is_ahead(
    left: Rolls,
    right: Rolls,
    window: tuple[float, float],
    ahead: Ahead,
    step: StepSize,
    order: Order,
    unit: float,
) -> None:
    streams = [stream(*some) for some in (left, right)]
    if unit != 1:
        streams = [some | {"time": np.array(some["time"]) * unit} for some in streams]
        window = (window[0] * unit, window[1] * unit)
    together = tg.simulate(*streams, window=window, collect=True)
    apart = tg.simulate(*streams, window=window, ahead=ahead, step=step, order=order, collect=True)
    assert together.pairs is not None
    assert apart.pairs is not None
    assert apart.exact == together.exact == apart.results
    assert set(zip(*map(list, apart.pairs), strict=True)) == set(zip(*map(list, together.pairs), strict=True))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("ahead", [("left", 70), ("right", 25)])
def test_the_budget_holds_and_results_are_those_of_the_exact_join(
    policy: str, ahead: tuple[Side, Time]
) -> None:
    rng = np.random.default_rng(1)
    left, right = ({"key": rng.integers(0, 8, 300), "time": np.arange(300)} for _ in range(2))
    exact = tg.simulate(left, right, window=(30, 20), collect=True).pairs
    report = tg.simulate(
        left, right, window=(30, 20), budget=12, policy=policy, ahead=ahead, step=7, collect=True
    )
    assert exact is not None
    assert report.pairs is not None
    assert report.peak_rows <= 12
    assert set(zip(*map(list, report.pairs), strict=True)) <= set(zip(*map(list, exact), strict=True))


def recalls(
    streams: Sequence[object],
    policies: tuple[str, ...],
    ahead: Ahead,
    **settings: Any,  # noqa: ANN401 - of simulate
) -> dict[str, float]:
    return {
        policy: tg.simulate(*streams, policy=policy, ahead=ahead, step=50, **settings).recall
        for policy in policies
    }


def check_age(lag: int, rows: int, side: Side = "left") -> None:
    opened, bids = tg.streams.Auctions(length=1000).both(rows, seed=1)
    streams, window = ((opened, bids), (1000, 0)) if side == "left" else ((bids, opened), (0, 1000))
    found = recalls(
        streams, ("age", "fifo", "random", "until_expiry"), (side, lag), window=window, budget=500
    )
    assert found.pop("age") >= 0.95 * max(found.values())


@pytest.mark.parametrize("side", ["left", "right"])
def test_age_follows_a_side_that_is_ahead(side: Side) -> None:
    check_age(500, 6000, side)


@pytest.mark.slow
@pytest.mark.parametrize("lag", LAGS)
def test_age_at_every_lag(lag: int) -> None:
    check_age(lag, 10_000)


@pytest.fixture(scope="module")
def zipf() -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    return [{"key": np.minimum(rng.zipf(1.5, 4000), 300), "time": np.arange(4000)} for _ in range(2)]


@pytest.mark.parametrize("policy", ["prob", "life", "heeb"])
def test_frequent_keys_wait_for_the_other_side(zipf: list[dict[str, Any]], policy: str) -> None:
    """Ranked by the larger clock, heeb and life found 3 % of the results at a lag of 500, and prob 7 % at 1,000."""
    settings = {"window": (200, 200), "budget": 200}
    found = recalls(zipf, (policy, "random"), ("left", 500), **settings)
    assert found[policy] > 0.4 > 2 * found["random"]
    assert recalls(zipf, (policy,), ("left", 1000), **settings)[policy] > 0.2


@pytest.mark.parametrize("lead", [20, 45, 100])
def test_both_curves_are_learned_from_the_rows_of_the_side_that_is_ahead(lead: int) -> None:
    """A pair is one pair, whichever of its rows is kept."""
    rng = np.random.default_rng(2)
    partners = rng.permutation(4000)
    lag = rng.choice([-60, 40], 4000)
    left = {"key": np.arange(4000), "time": np.arange(4000)}
    right = {"key": partners, "time": partners + lag}
    right = {name: column[np.argsort(right["time"], kind="stable")] for name, column in right.items()}
    settings: Any = {"window": (100, 100), "policy": tg.policies.Age(buckets=10), "budget": 4000, "step": 10}

    def curves(ahead: Ahead) -> dict[tuple[str, float], float]:
        learned = tg.simulate(left, right, ahead=ahead, **settings).learned
        return {(one.side, float(one.begin or 0)): one.value for one in learned if one.model == "age"}

    together, apart = curves(None), curves(("left", lead))
    for at, value in together.items():
        assert apart[at] == pytest.approx(value, abs=0.06), at
    # Half of the rows match at the age 40 of a left row, the other half at the age 60 of a right row.
    assert sum(value for (side, _), value in apart.items() if side == "left") == pytest.approx(0.5, abs=0.1)
    assert sum(value for (side, _), value in apart.items() if side == "right") == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("sampler", ["uniform", "eq_cluster", "pps_cluster"])
@pytest.mark.parametrize("ahead", [("left", 150), ("right", 400)])
def test_samples_stay_unbiased(sampler: str, ahead: tuple[Side, Time]) -> None:
    sessions = tg.streams.Sessions().both(1500, seed=3)
    span = float(max(sessions[0].time[-1], 1)) / 10
    estimates = []
    for seed in range(30):
        report = tg.simulate_sample(
            *sessions,
            window=(span, span),
            budget=150,
            sampler=sampler,
            ahead=(ahead[0], ahead[1] * span / 200),
            step=50,
            seed=seed,
        )
        estimates.append(report.estimate / report.exact)
    error = np.std(estimates, ddof=1) / np.sqrt(len(estimates))
    assert abs(np.mean(estimates) - 1) < 3.5 * error + 1e-9


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (500, r"ahead 500 is not a side and a span of time; write ahead=\('left', 500\)"),
        (("top", 5), "side 'top' is not known"),
        (("left", -1), "has no span of time; give a finite number, at least 0"),
        (("left", np.nan), "has no span of time"),
        (("left", "1 h"), "has no span of time"),
    ],
)
def test_what_is_not_a_lead_is_refused(given: Ahead, message: str) -> None:
    one = {"key": [1], "time": [0]}
    with pytest.raises(tg.InputError, match=message):
        tg.simulate(one, one, window=(1, 1), ahead=given)


def test_a_window_that_counts_rows_has_no_lead() -> None:
    one = {"key": [1], "time": [0]}
    with pytest.raises(tg.InputError, match="counts rows in order of arrival"):
        tg.simulate(one, one, window=(tg.Last(3), 1), ahead=("left", 5))
