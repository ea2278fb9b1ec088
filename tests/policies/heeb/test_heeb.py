"""The policy ranks by the expected benefit, keeps the laws with every process, and beats those that look back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidegate as tg
from tests.running_policy import observe, policy_of
from tidegate import Budget, InputError, Window
from tidegate.checks import LAWS, Law
from tidegate.engine import Join
from tidegate.engine.encode import encode
from tidegate.engine.one_loop import run as one_loop_run
from tidegate.engine.operator import Operator, collected
from tidegate.experiments.stochastic_streams.survivals import Infinite, Inverse
from tidegate.models import (
    AR1,
    Frequency,
    History,
    LinearTrend,
    Noise,
    Oracle,
    Process,
    RandomWalk,
    Stationary,
)
from tidegate.policies import Exponential, Fixed, Heeb, Policy, Prob, RunningPolicy, Survival
from tidegate.policies.heeb import expected_benefit
from tidegate.policies.heeb.lifetime import Lifetime
from tidegate.streams import Trace
from tidegate.types import SIDES, Array, Clocks, Last, Rows, Setting, Side, Step, Time

Chosen: TypeAlias = list[tuple[Side, int]]
"""Rows by side and key."""
STILL = Stationary(dict.fromkeys(range(9), 1 / 9))
CONFIGS = [
    Heeb(survival=Exponential(5.0)),
    Heeb(left=STILL, right=STILL),
    Heeb(left=LinearTrend(0.1, 0, Noise(4)), right=LinearTrend(0.1, 1, Noise(4, 2.0)), survival=Fixed(9)),
    Heeb(left=RandomWalk(0, Noise(sigma=2)), right=RandomWalk(0.5, Noise(2)), ahead=20),
    Heeb(left=AR1(2, 0.5, 2), right=AR1(2, 0.5, 2), survival=Inverse()),
    Heeb(left=Oracle(np.arange(90) % 9), right=STILL, survival=Infinite()),
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("policy", CONFIGS, ids=repr)
def test_every_law_holds_with_every_process(policy: Heeb, law: Law) -> None:
    law(policy)


def seen(side: Side, keys: list[int], times: list[int]) -> Rows:
    count = len(keys)
    columns = np.array(keys, np.int64), np.array(times, np.int64)
    return Rows(side, *columns, np.arange(count), np.zeros(count, np.int64))


def after(policy: Heeb, window: Window, now: int, last: dict[Side, tuple[int, int]]) -> RunningPolicy:
    """The policy at work, after a step with one row a side: its time and key."""
    setting = Setting(window)
    running = policy.start(setting)
    rows = {side: seen(side, *([[at[1]], [at[0]]] if (at := last.get(side)) else [[], []])) for side in SIDES}
    empty = {side: np.zeros(len(rows[side]), np.int64) for side in SIDES}
    observe(
        running, setting, Step(0, Clocks.both(now), Clocks.both(now), rows, dict.fromkeys(SIDES, 0), empty)
    )
    return running


PAIRS: list[Process] = [
    Stationary({0: 0.5, 1: 0.3, 5: 0.2}),
    LinearTrend(1, -3, Noise(4, 2.0)),
    RandomWalk(0.5, Noise(2)),
    AR1(2, 0.5, 2),
]


@given(
    st.sampled_from(PAIRS),
    st.lists(st.tuples(st.integers(-3, 15), st.integers(0, 9)), min_size=1, max_size=6),
    st.integers(0, 12),
    st.floats(0.5, 20),
)
def test_scores_are_the_expected_benefit_within_the_window(
    process: Process, rows: list[tuple[int, int]], span: int, alpha: float
) -> None:
    now, survival = 9, Exponential(alpha)
    keys, times = [key for key, _ in rows], [time for _, time in rows]
    policy = Heeb(left=STILL, right=process, survival=survival, ahead=10_000)
    running = after(policy, Window(span, 3), now, {"left": (9, 1), "right": (9, 4)})
    lasting = np.maximum(np.array(times) + span - now, 0)
    summed = expected_benefit(process, History(9, 4), keys, survival, lasting=lasting)
    # Scores have 36 binary digits.
    assert running.scores(seen("left", keys, times), now) == pytest.approx(summed, rel=1e-10, abs=1e-12)
    endless = after(policy, Window(None, 3), now, {"left": (9, 1), "right": (9, 4)})
    summed = expected_benefit(process, History(9, 4), keys, survival)
    assert endless.scores(seen("left", keys, times), now) == pytest.approx(summed, rel=1e-10, abs=1e-11)


def test_the_other_sides_row_of_the_same_time_is_still_to_come() -> None:
    future = Oracle([0, 7, 8, 9])
    policy = Heeb(left=future, right=future, survival=Fixed(1))
    running = after(policy, Window(9, 9), 1, {"left": (1, 7), "right": (0, 0)})
    assert running.scores(seen("left", [7, 8], [1, 1]), 1).tolist() == [1, 0]
    assert running.scores(seen("right", [7, 8], [0, 0]), 1).tolist() == [0, 1]


def test_a_window_that_begins_later_counts_from_there() -> None:
    future = Oracle([0, 7, 7, 7, 7, 7, 7, 7, 7, 7])
    policy = Heeb(left=future, right=future, survival=Fixed(9))
    running = after(policy, Window(5, -3), 0, {"left": (0, 7), "right": (0, 0)})
    assert running.scores(seen("left", [7], [0]), 0).tolist() == [3]  # at the times 3, 4 and 5


def test_a_walk_of_which_nothing_was_seen_tells_nothing() -> None:
    walk = RandomWalk(0, Noise(2))
    running = after(Heeb(left=walk, right=walk), Window(5, 5), 0, {"left": (0, 7)})
    assert running.scores(seen("left", [7], [0]), 0).tolist() == [0]
    assert running.scores(seen("right", [7], [0]), 0)[0] > 0


def test_a_walk_that_fell_silent_is_not_followed_for_ever() -> None:
    walk = RandomWalk(0, Noise(2))
    running = after(Heeb(walk, walk, ahead=20), Window(None, None), 0, {"left": (0, 7), "right": (0, 7)})
    late = running.scores(seen("left", [7, 60], [10**6, 10**6]), 10**6)
    assert late[0] > late[1] >= 0


def unequal(rates: tuple[int, int], times: int = 30) -> RunningPolicy:
    """The policy at work, after so many rows of either side at each time."""
    setting = Setting(Window(9, 9))
    running = Heeb(STILL, STILL, survival=Exponential(4.0)).start(setting)
    number = 0
    for now in range(times):
        rows = {}
        for side, rate in zip(SIDES, rates, strict=True):
            arrived = seen(side, [0] * rate, [now] * rate)
            rows[side] = replace(arrived, id=np.arange(number, number + rate))
            number += rate
        none = {side: np.zeros(len(rows[side]), np.int64) for side in SIDES}
        observe(
            running,
            setting,
            Step(now, Clocks.both(now), Clocks.both(now), rows, dict.fromkeys(SIDES, 0), none),
        )
    return running


@pytest.mark.parametrize(("rates", "times"), [((1, 1), 1), ((3, 3), 1), ((1, 4), 4), ((6, 2), 1 / 3)])
def test_rows_are_worth_as_many_results_as_the_other_side_brings_rows(
    rates: tuple[int, int], times: float
) -> None:
    running = unequal(rates)
    left, right = (running.scores(seen(side, [1], [29]), 29)[0] for side in SIDES)
    assert left / right == pytest.approx(times, rel=0.05)
    if rates[0] == rates[1]:
        assert (
            left
            == right
            == pytest.approx(expected_benefit(STILL, History(0), [1], Exponential(4), lasting=[9])[0])
        )


def test_with_unequal_rates_the_side_that_meets_more_gets_the_memory() -> None:
    """Ten rows on the right for one on the left: a left row meets ten times as many."""
    rng = np.random.default_rng(4)
    shares = rng.dirichlet(np.ones(40))
    left, right = (
        {"key": rng.choice(40, count, p=shares), "time": np.arange(count) * 400 // count}
        for count in (400, 4_000)
    )
    still = Stationary(dict(enumerate(shares.tolist())))
    weighed = results(left, right, Heeb(still, still, Exponential(9.0)), budget=30)
    shared = dict(enumerate(shares.tolist()))
    model = Frequency(shared, shared)
    assert results(left, right, Prob(model), budget=30) == weighed
    assert weighed > 1.5 * results(left, right, Prob(model, rates=(1, 1)), budget=30)


def test_large_steps_rank_as_small_ones_do() -> None:
    """Rows enough for tables to be made, against a sum for each; the lifetime is the one that was observed."""
    trend = LinearTrend(0.75, 0, Noise(20, 6.0))
    rng = np.random.default_rng(5)
    sides = [
        {"key": np.round(0.75 * np.arange(9_000) + rng.normal(0, 6, 9_000)).astype(np.int64)} for _ in "lr"
    ]
    left, right = ({**side, "time": np.arange(9_000)} for side in sides)
    operator = Operator(Join(Window(60, 60), Budget(rows=2_000), Heeb(trend, trend)))
    arrivals = encode(Trace.of(left), Trace.of(right), Window(60, 60), "=", None).arrivals
    for step in arrivals.steps(arrivals.cuts(3_000), whole_instants=False):
        collected(operator.step(*step))
        policy, now = policy_of(operator), int(step[2].now)
        for side in SIDES:
            rows = operator.buffers[side].rows
            lasting = np.maximum(rows.time + 60 - now, 0)
            survival = policy.survival()  # type: ignore[attr-defined]
            summed = expected_benefit(trend, History(now), rows.key, survival, lasting=lasting)
            assert policy.scores(rows, now) == pytest.approx(summed, abs=1e-9)


def trending(process: LinearTrend, count: int, rng: np.random.Generator) -> dict[str, Array]:
    span = np.arange(-15, 16)
    chances = process.noise.mass(span)
    centre = process.centre(np.arange(count)).astype(np.int64)
    return {"key": centre + rng.choice(span, count, p=chances / chances.sum()), "time": np.arange(count)}


SECTION_8 = {
    "TOWER": (LinearTrend(1, -1, Noise(10, 1.0)), LinearTrend(1, 0, Noise(15, 2.0))),
    "ROOF": (LinearTrend(1, -1, Noise(10, 3.3)), LinearTrend(1, 0, Noise(15, 5.0))),
    "FLOOR": (LinearTrend(1, -1, Noise(10)), LinearTrend(1, 0, Noise(15))),
}


def results(left: dict[str, Array], right: dict[str, Array], policy: str | Policy, **others: Any) -> int:  # noqa: ANN401
    usual: dict[str, Any] = {"window": (None, None), "budget": 10, "step": "instant", "warmup": 40}
    return tg.simulate(left, right, policy=policy, **usual | others).results


@pytest.mark.parametrize("name", SECTION_8)
def test_trends_of_section_8(name: str) -> None:
    processes = SECTION_8[name]
    rng = np.random.default_rng(8)
    left, right = (trending(process, 800, rng) for process in processes)
    with_processes = results(left, right, Heeb(*processes))
    windows = {"window": (10, 15)}
    blind = {rival: results(left, right, rival, **windows) for rival in ("random", "prob", "life")}
    assert with_processes > 1.1 * max(blind.values())
    # What the paper takes for the mean lifetime does about as well as the one observed.
    crude = results(left, right, Heeb(*processes, survival=Exponential.from_lifetime(12.5)))
    assert with_processes == pytest.approx(crude, rel=0.05)
    fitted = Heeb(LinearTrend.fit(left["key"]), LinearTrend.fit(right["key"]))
    assert results(left, right, fitted) == pytest.approx(with_processes, rel=0.05)


def test_walks_of_section_8() -> None:
    walk = RandomWalk(0, Noise(sigma=1.0))
    ahead = {"random": 0, "prob": 0}
    for seed in range(6):
        rng = np.random.default_rng(seed)
        left, right = (
            {"key": np.cumsum(np.round(rng.normal(size=300)).astype(np.int64)), "time": np.arange(300)}
            for _ in range(2)
        )
        with_processes = results(left, right, Heeb(walk, walk))
        for rival in ahead:
            ahead[rival] += with_processes - results(left, right, rival)
    assert min(ahead.values()) > 0


def nearest_kept(left: Array, right: Array, budget: int) -> int:
    """Results where the rows nearest to the other walk stay, and of equally near ones the newest: by plain loops."""
    kept: list[tuple[int, int, int]] = []  # side, key, number
    found = 0
    for now, here in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
        found += sum(here[1 - side] == key for side, key, _ in kept)
        kept += [(side, here[side], 2 * now + side) for side in range(2)]
        kept.sort(key=lambda row: (abs(row[1] - here[1 - row[0]]), -row[2]))
        del kept[budget:]
    return found


STEPS = (Noise(2), Noise(sigma=1.0), Noise(sigma=12.0))
WALKS = [(1, STEPS[0]), (5, STEPS[1]), (10, STEPS[2])]
MORE_WALKS = [
    pytest.param(budget, step, marks=pytest.mark.slow)
    for budget in (1, 5, 10, 20)
    for step in STEPS
    if (budget, step) not in WALKS
]


@pytest.mark.parametrize(("budget", "step"), [*WALKS, *MORE_WALKS], ids=repr)
def test_of_rows_equally_far_from_a_walk_the_newest_stay(budget: int, step: Noise) -> None:
    walk = RandomWalk(0, step)
    left, right = (walk.sample(600, np.random.default_rng(seed)) for seed in (budget, 99))
    sides = [{"key": keys, "time": np.arange(600)} for keys in (left, right)]
    expected = nearest_kept(left, right, budget)
    # With a given survival the whole run is one compiled loop; without, each step goes through the operator.
    for survival in (Exponential(float(budget)), None):
        report = tg.simulate(
            *sides, window=(None, None), budget=budget, policy=Heeb(walk, walk, survival), step="instant"
        )
        assert report.results - report.from_step == expected


@settings(max_examples=25)
@given(st.integers(0, 99), st.integers(1, 12))
def test_section_7_2_stationary_streams_without_window_are_ranked_like_prob(seed: int, budget: int) -> None:
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(8), 2)
    left, right = ({"key": rng.choice(8, 60, p=share), "time": np.arange(60)} for share in shares)
    given_shares = [dict(enumerate(share.tolist())) for share in shares]
    prob = Prob(Frequency(given_shares[0], given_shares[1]))
    heeb = Heeb(Stationary(given_shares[0]), Stationary(given_shares[1]), Exponential(4.0))
    assert results(left, right, heeb, budget=budget) == results(left, right, prob, budget=budget)


def decisions(keys: dict[Side, Array], policy: Policy, budget: int) -> Iterator[tuple[int, Chosen, Chosen]]:
    """Of a join without windows, the time and the rows that stay and that go at each step."""
    window = Window(None, None)
    left, right = (Trace.of({"key": keys[side], "time": np.arange(len(keys[side]))}) for side in SIDES)
    arrivals = encode(left, right, window, "=", None).arrivals
    operator = Operator(Join(window, Budget(rows=budget), policy))
    held: set[tuple[Side, int]] = set()
    for step in arrivals.steps(arrivals.cuts("instant"), whole_instants=True):
        collected(operator.step(*step))
        now = int(step[2].now)
        wanted = held | {(side, now) for side in SIDES}
        held = {(side, int(time)) for side in SIDES for time in operator.buffers[side].rows.time}
        assert held <= wanted
        stay, go = ([(side, int(keys[side][at])) for side, at in rows] for rows in (held, wanted - held))
        yield now, stay, go


OBSERVED_OR_GIVEN = [None, Exponential(2.0), Exponential(30.0)]


@pytest.mark.parametrize("survival", [*OBSERVED_OR_GIVEN, Fixed(4)], ids=repr)
def test_section_7_2_the_key_least_likely_on_the_other_side_goes(survival: Survival | None) -> None:
    rng = np.random.default_rng(2)
    shares: dict[Side, Array] = {side: rng.dirichlet(np.ones(12)) for side in SIDES}
    keys: dict[Side, Array] = {side: rng.choice(12, 150, p=shares[side]) for side in SIDES}
    still = {side: Stationary(dict(enumerate(shares[side].tolist()))) for side in SIDES}
    for _, stay, go in decisions(keys, Heeb(still["left"], still["right"], survival), 9):
        worth, lost = (
            [shares["right" if side == "left" else "left"][key] for side, key in rows] for rows in (stay, go)
        )
        assert max(lost, default=0.0) <= min(worth)


@given(st.integers(0, 5), st.integers(1, 6), st.sampled_from(OBSERVED_OR_GIVEN))
def test_section_7_3_scores_are_in_the_order_of_each_category(
    narrow: int, more: int, survival: Survival | None
) -> None:
    wide, now = narrow + more, 30
    policy = Heeb(LinearTrend(1, 0, Noise(narrow)), LinearTrend(1, 0, Noise(wide)), survival)
    running = after(policy, Window(None, None), now, {"left": (now, now), "right": (now, now)})

    def scores(side: Side, above: int, upto: int) -> Array:
        values = list(range(now + above + 1, now + upto + 1))
        return running.scores(seen(side, values, [now] * len(values)), now)

    assert not scores("left", -wide - 5, -wide).any()
    assert not scores("right", -wide, -narrow).any()
    passing = scores("left", -wide, narrow), scores("right", -narrow, narrow + 1)
    for some in passing:
        assert (np.diff(some, prepend=0.0) > 0).all()
    ahead = scores("right", narrow + 1, wide)
    assert (np.diff(ahead, prepend=passing[1][-1]) < 0).all()
    assert passing[1][-1] > passing[0][-1]


@pytest.mark.parametrize("survival", OBSERVED_OR_GIVEN, ids=repr)
@pytest.mark.parametrize("budget", [4, 9, 14])
def test_section_7_3_choices_within_categories_are_the_optimal_ones(
    survival: Survival | None, budget: int
) -> None:
    narrow, wide = 4, 9
    rng = np.random.default_rng(1)
    keys: dict[Side, Array] = {
        "left": np.arange(400) + rng.integers(-narrow, narrow + 1, 400),
        "right": np.arange(400) + rng.integers(-wide, wide + 1, 400),
    }
    policy = Heeb(LinearTrend(1, 0, Noise(narrow)), LinearTrend(1, 0, Noise(wide)), survival)
    compared: Counter[tuple[str, str]] = Counter()
    for now, stay, go in decisions(keys, policy, budget):

        def category(side: Side, value: int, now: int = now) -> str:
            if side == "left":
                return "none" if value <= now - wide else "R2"
            return "none" if value <= now - narrow else "S2" if value <= now + narrow + 1 else "S3"

        for kept, gone in product(stay, go):
            pair = category(*kept), category(*gone)
            compared[pair] += 1
            if pair in (("R2", "R2"), ("S2", "S2")):
                assert gone[1] <= kept[1]
            elif pair == ("S3", "S3"):
                assert gone[1] >= kept[1]
            elif pair == ("R2", "S2"):
                # Had the S2 row dominated, it would have stayed.
                total = (gone[1] - now + narrow) / (2 * narrow + 1)
                assert total < (kept[1] - now + wide) / (2 * wide + 1)
            elif pair == ("S3", "S2"):
                assert gone[1] <= now + narrow
            else:
                assert pair[0] != "none" or pair[1] == "none"
    assert compared["R2", "R2"]
    assert compared["S2", "S2"] or budget > 4


@pytest.mark.parametrize("survival", OBSERVED_OR_GIVEN, ids=repr)
@pytest.mark.parametrize("step", [Noise(sigma=1.0), Noise(3, sigma=2.0), Noise(2)], ids=repr)
def test_section_7_5_of_walks_without_drift_what_is_farthest_from_the_other_goes(
    step: Noise, survival: Survival | None
) -> None:
    walk, rng = RandomWalk(0, step), np.random.default_rng(3)
    keys: dict[Side, Array] = {side: walk.sample(120, rng) for side in SIDES}
    for now, stay, go in decisions(keys, Heeb(walk, walk, survival), 6):
        near, far = (
            [abs(key - int(keys["right" if side == "left" else "left"][now])) for side, key in rows]
            for rows in (stay, go)
        )
        assert max(near) <= min(far, default=np.inf)


def test_section_7_3_alpha_follows_the_lifetime_observed() -> None:
    """All rows are worth the same, so the newest stay: each as long as the budget lasts at the present rate."""
    rates = [1] * 400 + [5] * 400 + [2] * 400
    time = np.repeat(np.arange(1200), rates)
    stream = Trace.of({"key": time * 0, "time": time})
    window = Window(None, None)
    one = Stationary({0: 1.0})
    operator = Operator(Join(window, Budget(rows=40), Heeb(one, one, horizon=20)))
    arrivals = encode(stream, stream, window, "=", None).arrivals
    alphas = []
    for step in arrivals.steps(arrivals.cuts("instant"), whole_instants=True):
        collected(operator.step(*step))
        alphas.append(policy_of(operator).survival().alpha)  # type: ignore[attr-defined]
    for end, lifetime in ((400, 20), (800, 4), (1200, 10)):
        expected = Exponential.from_lifetime(1 + lifetime).alpha
        assert alphas[end - 1] == pytest.approx(expected, rel=0.03)
    # On its way it is between.
    assert alphas[799] < alphas[420] < alphas[399]
    assert alphas[799] < alphas[820] < alphas[1199]


def held_by_left(processes: tuple[LinearTrend, LinearTrend]) -> float:
    """The fraction of memory that left rows take."""
    rng = np.random.default_rng(3)
    left, right = (Trace.of(trending(process, 600, rng)) for process in processes)
    window = Window(None, None)
    arrivals = encode(left, right, window, "=", None).arrivals
    operator = Operator(Join(window, Budget(rows=10), Heeb(*processes)))
    held = []
    for step in arrivals.steps(arrivals.cuts(2), whole_instants=False):
        collected(operator.step(*step))
        held.append(len(operator.buffers["left"].rows) / max(operator.rows, 1))
    return float(np.mean(held[50:]))


def test_section_8_less_memory_goes_to_what_lags_and_to_what_scatters() -> None:
    leading = LinearTrend(1, 0, Noise(15, 2.0))
    shares = [held_by_left((LinearTrend(1, -lag, Noise(15, 2.0)), leading)) for lag in (0, 2, 4)]
    assert 0.4 < shares[0] < 0.6
    assert shares[0] > shares[1] > shares[2]
    scattered = [held_by_left((leading, LinearTrend(1, 0, Noise(15, 2.0 * wide)))) for wide in (1, 2, 4)]
    assert scattered[0] < min(scattered[1:])


@dataclass(frozen=True)
class Watching(Policy):
    """Keeps the newest or the oldest, and watches how long rows stay."""

    sign: int
    lifetime: Lifetime = field(default_factory=Lifetime)

    def observe(self, step: Step) -> None:
        self.lifetime.learn(step)

    def scores(self, rows: Rows, now: Time) -> Array:
        return self.sign * rows.id.astype(np.float64)


@pytest.mark.parametrize("step", [1, "instant", 10])
def test_lifetimes_are_observed(step: Any) -> None:  # noqa: ANN401 - a size of steps
    stream = {"key": np.arange(1000), "time": np.arange(1000)}
    newest = Watching(1)
    assert newest.lifetime.mean() is None
    tg.simulate(stream, stream, window=(None, None), budget=20, policy=newest, step=step)
    assert newest.lifetime.mean() == pytest.approx(10, rel=0.05)
    oldest = Watching(-1)
    tg.simulate(stream, stream, window=(30, 30), budget=20, policy=oldest, step=step)
    assert oldest.lifetime.mean() == pytest.approx(31, rel=0.35)


@pytest.mark.parametrize(("alpha", "like"), [(1e-3, "prob"), (1e6, "life")])
def test_learned_shares_rank_between_prob_and_life(alpha: float, like: str) -> None:
    policy = Heeb(survival=Exponential(alpha))
    actions, errors = tg.streams.Correlated("direct", skew=1.0).both(2_000, seed=1)
    bounded: dict[str, Any] = {"window": (300, 200), "budget": 60, "step": 10}
    found = tg.simulate(actions, errors, policy=policy, **bounded).results
    assert found == pytest.approx(tg.simulate(actions, errors, policy=like, **bounded).results, rel=0.01)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Heeb("x", "y"), "heeb was given left='x', which is not a process; give one of"),  # type: ignore[arg-type]
        (lambda: Heeb(STILL, 3), "heeb was given right=3, which is not a process"),  # type: ignore[arg-type]
        (lambda: Heeb(survival="exp"), r"survival is 'exp'; give one such as Exponential\("),  # type: ignore[arg-type]
        (lambda: Heeb(STILL, STILL, survival=3.0), r"survival is 3.0; give one such as Exponential\("),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_process_and_no_survival_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize("survival", [Infinite(), Inverse()], ids=repr)
def test_without_end_a_survival_without_bound_is_refused_at_the_start(survival: Survival) -> None:
    ending = LinearTrend(1, 0, Noise(3))
    for windows, left, right, side in (
        (Window(None, 9), STILL, STILL, "left"),
        (Window(9, None), STILL, STILL, "right"),
        (Window(None, None), STILL, ending, "right"),
        (Window(Last(5), 9), STILL, STILL, "left"),
    ):
        with pytest.raises(
            InputError, match=f"the {side}'s window has no end in time, .* use Exponential or Fixed"
        ):
            Heeb(left, right, survival).start(Setting(windows))
    for windows, left, right in ((Window(9, 9), STILL, STILL), (Window(None, 9), STILL, ending)):
        Heeb(left, right, survival).start(Setting(windows))
    for bounded in (Exponential(3), Fixed(3), None):
        Heeb(STILL, STILL, bounded).start(Setting(Window(None, None)))


def test_arguments_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="no process on the right; give both"):
        Heeb(left=STILL)
    with pytest.raises(InputError, match=r"needs processes for Fixed\(steps=3\)"):
        Heeb(survival=Fixed(3))
    with pytest.raises(InputError, match="ahead is 0"):
        Heeb(ahead=0)


@pytest.mark.parametrize(("begin", "compiled"), [(2**53 - 200, True), (2**53 - 20, False), (2**53, False)])
def test_times_that_floats_round_are_not_ranked_beforehand(begin: int, compiled: bool) -> None:  # noqa: FBT001 - a case
    """The compiled loop computes positions from times as floats, so it must not run at times that they round."""
    rng = np.random.default_rng(2)
    time = begin + np.arange(60)
    left, right = ({"time": time, "key": time + rng.integers(-6, 7, 60)} for _ in range(2))
    trend = LinearTrend(1, 0, Noise(6))
    policy, ran = Heeb(left=trend, right=trend, survival=Exponential(5.0)), list[bool]()

    def observed(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - as it is called
        ran.append((found := one_loop_run(*args, **options)) is not None)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidegate.engine.one_loop.run", observed)
        settings_: dict[str, Any] = {"window": (None, None), "budget": 6, "step": "instant", "policy": policy}
        results = tg.simulate(left, right, **settings_).results
        patch.setattr("tidegate.engine.one_loop.run", lambda *_, **__: None)
        assert tg.simulate(left, right, **settings_).results == results
    assert ran == [compiled]
