"""The best predetermined sequence is found, and followed; what it cannot see is what section 4 says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ortools.graph.python import min_cost_flow

import tidegate as tg
from tests.models.processes.tabulated import TabulatedProcess
from tests.policies.heeb.test_heeb import SECTION_8, results, trending
from tests.running_policy import observe
from tidegate import Budget, InputError, Window
from tidegate.checks import LAWS, Law
from tidegate.models import AR1, Frequency, LinearTrend, Noise, Oracle, RandomWalk, Stationary
from tidegate.policies import FlowExpect, Heeb, Policy, Prob
from tidegate.policies.flow_expect import RunningFlowExpect, plan
from tidegate.types import SIDES, Array, Clocks, Rows, Setting, Side, Step, StepSize, Time

CONFIGS = [
    FlowExpect(horizon=30.0, ahead=3),
    FlowExpect(LinearTrend(0.1, 0, Noise(4)), LinearTrend(0.1, 1, Noise(4, 2.0)), ahead=3),
    FlowExpect(RandomWalk(0, Noise(sigma=2)), AR1(2, 0.5, 2), ahead=3),
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("policy", CONFIGS, ids=repr)
def test_every_law_holds_with_every_process(policy: FlowExpect, law: Law) -> None:
    law(policy)


class Held(NamedTuple):
    """A row here or to come: which side, when, what it may be, and after which step it can be held."""

    side: int
    time: int
    may_be: tuple[tuple[int, float], ...]
    enters: int

    def meets(self, other: Held, window: tuple[int, int]) -> float:
        one, two = (self, other) if self.side == 0 else (other, self)
        if self.side == other.side or not -window[1] <= two.time - one.time <= window[0]:
            return 0.0
        chances = dict(other.may_be)
        return sum(chance * chances.get(value, 0.0) for value, chance in self.may_be)


def sequences(rows: list[Held], steps: int, room: int) -> Iterator[tuple[frozenset[int], ...]]:
    """Every way to hold rows after each step, decided beforehand; each set is of places in `rows`."""

    def onward(held: frozenset[int], after: int) -> Iterator[tuple[frozenset[int], ...]]:
        if after == steps:
            yield ()
            return
        there = held | {i for i, row in enumerate(rows) if row.enters == after}
        for count in range(min(room, len(there)) + 1):
            for some in combinations(sorted(there), count):
                for rest in onward(frozenset(some), after + 1):
                    yield frozenset(some), *rest

    yield from onward(frozenset(), 0)


def expected(rows: list[Held], held: tuple[frozenset[int], ...], window: tuple[int, int]) -> float:
    """The results that a sequence may be expected to get from memory."""
    return sum(
        rows[i].meets(row, window)
        for after, some in enumerate(held)
        for i in some
        for row in rows
        if row.enters == after + 1
    )


# Section 4.

LEFT = TabulatedProcess(({}, {2: 1.0}, {3: 1.0}, {2: 0.5}))
RIGHT = TabulatedProcess(({2: 1.0}, {3: 0.5}, {1: 0.8}, {1: 0.8}))


def rows_of(side: Side, keys: list[int], times: list[Time]) -> Rows:
    count = len(keys)
    return Rows(side, np.array(keys, np.int64), np.array(times), np.arange(count), np.zeros(count, np.int64))


def after(
    policy: Policy, window: Window, rows: dict[Side, Rows], fresh: dict[Side, int], now: Time
) -> RunningFlowExpect:
    """The policy at work, after a step that brought the rows from `fresh` on."""
    setting = Setting(window)
    running = policy.start(setting)
    assert isinstance(running, RunningFlowExpect)
    clocks, hits = Clocks.both(now), {s: np.zeros(len(rows[s]), np.int64) for s in SIDES}
    observe(running, setting, Step(0, clocks, clocks, rows, fresh, hits))
    return running


def test_section_4_what_the_sequences_bring() -> None:
    rows = [Held(0, -1, ((1, 1.0),), 0), Held(0, 0, (), 0), Held(1, 0, ((2, 1.0),), 0)]
    rows += [
        Held(side, time, tuple(process.at(time).items()), time)
        for time in (1, 2, 3)
        for side, process in enumerate((LEFT, RIGHT))
    ]
    window = (99, 99)
    found = {held: expected(rows, held, window) for held in sequences(rows, 3, 1)}
    three = next(i for i, row in enumerate(rows) if row.side == 1 and row.time == 1)
    always_one, always_two = ((frozenset([i]),) * 3 for i in (0, 2))
    two_then_three = (frozenset([2]), frozenset([three]), frozenset([three]))
    benefits = [found[some] for some in (always_one, always_two, two_then_three)]
    assert benefits == [1.6, 1.5, 1.5]
    # Many sequences differ only in when they let go of what brings nothing more.
    assert sorted({round(value, 9) for value in found.values()})[-2:] == [1.5, 1.6]


def test_section_4_it_keeps_what_the_best_sequence_keeps() -> None:
    rows: dict[Side, Rows] = {"left": rows_of("left", [1, -1], [-1, 0]), "right": rows_of("right", [2], [0])}
    policy = FlowExpect(LEFT, RIGHT, ahead=3)
    running = after(policy, Window(None, None), rows, {"left": 1, "right": 0}, 0)
    stays = running.keep(rows, Budget(rows=1), Clocks.both(0))
    assert stays["left"].tolist() == [True, False]
    assert stays["right"].tolist() == [False]
    # Looking ahead less it sees only the sure match of 2.
    short = after(FlowExpect(LEFT, RIGHT, ahead=1), Window(None, None), rows, {"left": 1, "right": 0}, 0)
    stays = short.keep(rows, Budget(rows=1), Clocks.both(0))
    assert stays["right"].tolist() == [True]


@dataclass(frozen=True)
class Adaptive(Policy):
    """What no sequence fixed beforehand can do: take 2, and then 3 if it comes."""

    def scores(self, rows: Rows, now: Time) -> Array:
        return np.where(rows.side == "right", rows.key, 0.0)


def average(policy: Policy) -> float:
    """The results to be expected of the example, over all that may happen; it begins at time 1."""
    total = 0.0
    for three, one, again, two in product((True, False), repeat=4):
        chance = 0.5 * (0.8 if one else 0.2) * (0.8 if again else 0.2) * 0.5
        left = {"key": [1, -1, 2, 3, 2 if two else -2], "time": range(5)}
        right = {"key": [-9, 2, 3 if three else -3, 1 if one else -4, 1 if again else -5], "time": range(5)}
        run: dict[str, Any] = {"window": (None, None), "budget": 1, "step": "instant"}
        total += chance * tg.simulate(left, right, policy=policy, **run).results
    return total


def test_section_4_a_strategy_that_adapts_brings_more() -> None:
    left, right = (TabulatedProcess(({}, *process.chances)) for process in (LEFT, RIGHT))
    assert average(FlowExpect(left, right, ahead=4)) == pytest.approx(1.6)
    assert average(Adaptive()) == pytest.approx(1.75)


# All predetermined sequences.

GAINS = st.lists(st.lists(st.sampled_from([0.0, 0.2, 0.5, 0.7, 1.0]), min_size=3, max_size=3), max_size=5)


@settings(deadline=None)
@given(GAINS, st.data(), st.integers(1, 3))
def test_the_plan_is_the_best_of_all(gains: list[list[float]], data: st.DataObject, room: int) -> None:
    enters = [data.draw(st.integers(0, 2)) for _ in gains]
    table = np.array(gains).reshape(len(gains), 3)
    table[np.arange(3)[None, :] < np.array(enters, np.int64)[:, None]] = 0
    rows = [Held(0, 0, (), step) for step in enters]
    most = max(
        sum(table[i, after] for after, some in enumerate(held) for i in some)
        for held in sequences(rows, 3, room)
    )
    taken, brings = plan(table, np.array(enters, np.int64), room)
    assert brings == pytest.approx(most)
    assert np.count_nonzero(taken & (np.array(enters) == 0)) <= room


@pytest.mark.parametrize("seed", range(20))
def test_the_plan_is_as_good_as_that_of_or_tools(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, steps, room = rng.integers(1, 60), rng.integers(1, 20), int(rng.integers(1, 30))
    enters = rng.integers(0, steps, rows) * rng.integers(0, 2, rows)
    gains = np.rint(rng.random((rows, steps)) * 64) / 64 * (rng.random((rows, steps)) < 0.6)
    gains[np.arange(steps)[None, :] < enters[:, None]] = 0
    assert plan(gains, enters, room)[1] == pytest.approx(best_by_or_tools(gains * 64, enters, room) / 64)


def best_by_or_tools(gains: Array, enters: Array, room: int) -> float:
    """The most that can be gained, with a node for each row and step."""
    rows, steps = gains.shape
    solver = min_cost_flow.SimpleMinCostFlow()
    for step in range(steps):
        solver.add_arc_with_capacity_and_unit_cost(step, step + 1, room, 0)
    for row in range(rows):
        before = int(enters[row])
        for step in range(before, steps):
            node = (row + 1) * steps + 1 + step
            solver.add_arc_with_capacity_and_unit_cost(before, node, 1, -int(gains[row, step]))
            solver.add_arc_with_capacity_and_unit_cost(node, step + 1, 1, 0)
            before = node
    solver.set_node_supply(0, room)
    solver.set_node_supply(steps, -room)
    assert solver.solve() == solver.OPTIMAL
    return -float(solver.optimal_cost())


CHANCES = st.dictionaries(st.integers(1, 3), st.sampled_from([0.1, 0.25, 0.3]), max_size=3)
PROCESS = st.lists(CHANCES, min_size=4, max_size=4).map(lambda chances: TabulatedProcess(tuple(chances)))
HERE = st.lists(st.tuples(st.integers(1, 3), st.integers(-2, 0)), max_size=2)


@settings(max_examples=40, deadline=None)
@given(PROCESS, PROCESS, HERE, HERE, st.integers(1, 2), st.integers(1, 3), st.booleans())
def test_it_keeps_what_one_of_the_best_sequences_keeps(
    left: TabulatedProcess,
    right: TabulatedProcess,
    on_left: list[tuple[int, Time]],
    on_right: list[tuple[int, Time]],
    room: int,
    ahead: int,
    pending: bool,  # noqa: FBT001 - drawn
) -> None:
    """In steps of an instant; or of one row, of which the left's came and the right's is still to come."""
    window, steps = (3, 2), 2 * ahead + 1 if pending else ahead
    here = {"left": [*on_left, (2, 0)], "right": on_right if pending else [*on_right, (3, 0)]}
    rows: dict[Side, Rows] = {
        side: rows_of(side, [key for key, _ in here[side]], [time for _, time in here[side]])
        for side in SIDES
    }
    fresh: dict[Side, int] = {"left": len(on_left), "right": len(on_right)}
    stays = after(FlowExpect(left, right, ahead=ahead), Window(*window), rows, fresh, 0).keep(
        rows, Budget(rows=room), Clocks.both(0)
    )
    all_rows = [
        Held(i, int(time), ((key, 1.0),), 0) for i, side in enumerate(SIDES) for key, time in here[side]
    ]
    kept = frozenset(np.flatnonzero(np.concatenate([stays[side] for side in SIDES])).tolist())
    coming = [(time, i) for time in range(1, ahead + 1) for i in range(2)]
    if pending:
        coming = [(0, 1), *coming]
    for number, (time, i) in enumerate(coming):
        may_be = tuple((left, right)[i].at(time).items())
        all_rows.append(Held(i, time, may_be, number + 1 if pending else time))
    found = [(held[0], expected(all_rows, held, window)) for held in sequences(all_rows, steps, room)]
    most = max(value for _, value in found)
    assert max(value for first, value in found if first <= kept) == pytest.approx(most, abs=1e-7)


# Against other policies.

KEYS = st.lists(st.integers(0, 2), min_size=5, max_size=9)


@settings(max_examples=30, deadline=None)
@given(
    KEYS, KEYS, st.integers(1, 3), st.sampled_from([1, 3, "instant"]), st.sampled_from([(None, None), (3, 1)])
)
def test_section_7_1_who_knows_all_gets_the_offline_optimum(
    left: list[int],
    right: list[int],
    budget: int,
    step: StepSize,
    window: Any,  # noqa: ANN401
) -> None:
    count = min(len(left), len(right))
    streams = [{"key": keys[:count], "time": range(count)} for keys in (left, right)]
    run: dict[str, Any] = {"window": window, "budget": budget, "step": step}
    knowing = FlowExpect(Oracle(left[:count]), Oracle(right[:count]), ahead=count)
    best = tg.simulate(*streams, policy="offline", **run).results
    assert tg.simulate(*streams, policy=knowing, **run).results == best


@pytest.mark.parametrize("split", ["even", (1, 3)])
def test_a_pool_of_its_own_for_each_side(split: Any) -> None:  # noqa: ANN401 - a split
    rng = np.random.default_rng(2)
    streams = [{"key": rng.integers(0, 4, 40), "time": np.arange(40)} for _ in range(2)]
    run: dict[str, Any] = {"window": (9, 5), "budget": 4, "step": "instant", "split": split}
    left, right = (Oracle(stream["key"]) for stream in streams)
    knowing = FlowExpect(left, right, ahead=40)
    best = tg.simulate(*streams, policy="offline", **run).results
    assert tg.simulate(*streams, policy=knowing, **run).results == best


@pytest.mark.parametrize("name", SECTION_8)
def test_trends_of_section_8(name: str) -> None:
    processes = SECTION_8[name]
    rng = np.random.default_rng(8)
    left, right = (trending(process, 200, rng) for process in processes)
    planned = results(left, right, FlowExpect(*processes))
    assert planned > 1.2 * results(left, right, "random")
    assert planned == pytest.approx(results(left, right, Heeb(*processes)), rel=0.1)


def test_section_7_2_stationary_streams_without_window_are_ranked_like_prob() -> None:
    rng = np.random.default_rng(5)
    shares = rng.dirichlet(np.ones(8), 2)
    left, right = ({"key": rng.choice(8, 80, p=share), "time": np.arange(80)} for share in shares)
    given_shares = [dict(enumerate(share.tolist())) for share in shares]
    prob = Prob(Frequency(given_shares[0], given_shares[1]))
    flow = FlowExpect(Stationary(given_shares[0]), Stationary(given_shares[1]), ahead=6)
    assert results(left, right, flow, budget=4) == pytest.approx(
        results(left, right, prob, budget=4), rel=0.03
    )


def test_without_processes_it_learns() -> None:
    rng = np.random.default_rng(3)
    left, right = ({"key": rng.geometric(0.2, 300), "time": np.arange(300)} for _ in range(2))
    run: dict[str, Any] = {"window": (60, 60), "budget": 10, "step": "instant"}
    learned = tg.simulate(left, right, policy="flow_expect", **run).results
    assert learned > 1.2 * tg.simulate(left, right, policy="random", **run).results


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(InputError, match="no process on the left; give both"):
        FlowExpect(right=Oracle([1]))
    with pytest.raises(
        InputError, match="flow_expect was given left='x', which is not a process; give one of"
    ):
        FlowExpect("x", "y")  # type: ignore[arg-type]
    for ahead in (0, 1.5, True):
        with pytest.raises(InputError, match=f"ahead is {ahead!r}; give a whole number of steps, at least 1"):
            FlowExpect(ahead=ahead)  # type: ignore[arg-type]
