"""The operator itself: what it holds after a step, what it tells, and what it remembers."""

from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.brute_force import Arrived, Bounded, Name, Row, Spans, cut
from tests.engine.cases import Stream, Streams, is_part, streams
from tests.running_policy import policy_of
from tidegate import Band, Budget, InputError, Last, Window
from tidegate.engine import Join, Operator, StepOutcome, collected
from tidegate.engine.arrivals import Arrivals, EarliestTimes, Moment, arrange
from tidegate.engine.buffer import kept
from tidegate.engine.index import Axes, Index
from tidegate.engine.snapshot import pack
from tidegate.policies import Policy
from tidegate.types import (
    SIDES,
    Array,
    Clocks,
    Condition,
    Order,
    Pairs,
    Rows,
    Setting,
    Side,
    Split,
    Step,
    StepSize,
    Time,
    other_side,
)

WINDOWS: list[Spans] = [(5, 5), (6, 0), (8, -3), (None, 2), (Last(3), Last(2))]
POLICIES = ("random", "fifo", "until_expiry")


def arrivals_of(case: Streams, window: Spans, lateness: Time | None = None) -> Arrivals:
    """Integer keys and times, as the operator takes them."""
    sides = []
    for stream in (case.left, case.right):
        columns = {"key": np.array(stream.keys, np.int64), "time": np.array(stream.times, np.int64)}
        if stream.worth:
            columns["importance"] = np.array(stream.worth, np.float64)
        sides.append(columns)
    return arrange(sides[0], sides[1], Window.of(window), lateness)


def steps_of(
    case: Streams, window: Spans, step: StepSize, lateness: Time | None = None
) -> list[tuple[Rows, Rows, Moment]]:
    arrivals = arrivals_of(case, window, lateness)
    return list(arrivals.steps(arrivals.cuts(step), whole_instants=step == "instant"))


def with_payload(rows: Rows, draw: np.random.Generator) -> Rows:
    return replace(rows, payload=draw.integers(0, 200, len(rows)))


def state(operator: Operator[Pairs]) -> dict[str, Any]:
    """All that can be seen of an operator."""
    columns = {
        (side, name): sorted(zip(buffer.rows.id.tolist(), column.tolist(), strict=True))
        for side, buffer in operator.buffers.items()
        for name, column in buffer.rows.columns().items()
    }
    return {"rows": columns, "tally": vars(operator.tally).copy(), "number": operator.state.number}


def ids(operator: Operator[Pairs]) -> dict[Side, list[int]]:
    return {side: operator.buffers[side].rows.id.tolist() for side in SIDES}


integers = streams(times=("int",), importance=True)


@settings(max_examples=200)
@given(
    integers,
    st.sampled_from(WINDOWS),
    st.sampled_from(POLICIES),
    st.integers(2, 9),
    st.sampled_from(["rows", "bytes"]),
    st.sampled_from(["shared", "even", (1, 1), (2, 0)]),
    st.sampled_from(get_args(Order)),
    st.sampled_from([1, 4, "instant"]),
    st.integers(0, 2**32),
)
def test_the_budget_holds_after_every_step(
    case: Streams,
    window: Spans,
    policy: str,
    limit: int,
    unit: str,
    split: Split,
    order: Order,
    step: StepSize,
    seed: int,
) -> None:
    scale = 1 if unit == "rows" else 67
    shares = (split[0] * scale, split[1] * scale) if isinstance(split, tuple) else split
    budget = Budget(**{unit: limit * scale})
    operator = Operator(Join(Window.of(window), budget, policy, shares, order, seed=seed))
    draw = np.random.default_rng(seed)
    for left, right, moment in steps_of(case, window, step):
        _, outcome = collected(operator.step(with_payload(left, draw), with_payload(right, draw), moment))
        sizes = [len(b) if unit == "rows" else int(b.rows.sizes().sum()) for b in operator.buffers.values()]
        assert sum(sizes) <= budget.limit
        assert operator.rows == sum(map(len, operator.buffers.values()))
        assert operator.nbytes == sum(int(b.rows.sizes().sum()) for b in operator.buffers.values())
        if split == "even":
            assert sizes[0] <= -(-budget.limit // 2)
            assert sizes[1] <= budget.limit // 2
        elif isinstance(shares, tuple):
            assert sizes[0] <= shares[0]
            assert sizes[1] <= shares[1]
        assert operator.tally.peak_rows >= operator.rows
        assert operator.tally.peak_bytes >= operator.nbytes
        assert outcome.results >= 0
    left_over = operator.tally.evicted + operator.tally.expired + operator.rows
    assert left_over == len(case.left.times) + len(case.right.times)


@settings(max_examples=100)
@given(
    integers,
    st.sampled_from([(5, 5), (None, 2)]),
    st.sampled_from(get_args(Name)),
    st.integers(30, 400),
    st.sampled_from(get_args(Order)),
    st.sampled_from([1, 4, "instant"]),
    st.integers(0, 2**32),
)
def test_rows_of_many_sizes_stay_best_first_while_they_fit(
    case: Streams, window: Spans, policy: Name, limit: int, order: Order, step: StepSize, seed: int
) -> None:
    draw = np.random.default_rng(seed)
    operator = Operator(Join(Window.of(window), Budget(bytes=limit), policy, order=order))
    arrived = case.arrived()
    buffers, results = [], []
    for left, right, moment in steps_of(case, window, step):
        new = [with_payload(left, draw), with_payload(right, draw)]
        for rows in new:
            for number, size in zip(rows.id.tolist(), rows.sizes().tolist(), strict=True):
                arrived.rows[number].size = size
        results.append(collected(operator.step(new[0], new[1], moment))[1].results)
        buffers.append({side: set(numbers) for side, numbers in ids(operator).items()})
    run = Bounded(window, limit, policy, order=order, step=step, in_bytes=True).run(arrived)
    places = {(row.side, row.place): row.arrival for row in arrived.rows}
    assert results == [len(pairs) for pairs in run.by_step]
    assert buffers == [
        {side: {places[side, place] for place in held[side]} for side in SIDES} for held in run.buffers
    ]


def numbered(arrived: Arrived) -> dict[int, Row]:
    return {row.arrival: row for row in arrived.rows}


@settings(max_examples=150)
@given(
    integers,
    st.sampled_from(WINDOWS),
    st.sampled_from(get_args(Name)),
    st.integers(1, 6),
    st.sampled_from([1, 4, "instant"]),
)
def test_buffers_and_matches_step_by_step(
    case: Streams, window: Spans, policy: Name, limit: int, step: StepSize
) -> None:
    operator = Operator(Join(Window.of(window), Budget(rows=limit), policy))
    arrived = case.arrived()
    run = Bounded(window, limit, policy, step=step).run(arrived)
    rows = numbered(arrived)
    gone: dict[int, int] = {}
    for (left, right, moment), held, pairs in zip(
        steps_of(case, window, step), run.buffers, run.by_step, strict=True
    ):
        _, outcome = collected(operator.step(left, right, moment))
        assert outcome.results == len(pairs)
        for side in SIDES:
            assert {rows[number].place for number in ids(operator)[side]} == held[side]
            for departed in (outcome.expired[side], outcome.evicted[side]):
                gone |= dict(zip(departed.rows.id.tolist(), departed.rows.matches.tolist(), strict=True))
    # By the end the reference has counted every row's matches, and each row has left or is held.
    for buffer in operator.buffers.values():
        gone |= dict(zip(buffer.rows.id.tolist(), buffer.rows.matches.tolist(), strict=True))
    assert gone == {number: row.matches for number, row in rows.items()}


@settings(max_examples=150)
@given(
    integers,
    st.sampled_from(WINDOWS),
    st.sampled_from(POLICIES),
    st.integers(1, 6),
    st.sampled_from(get_args(Order)),
    st.sampled_from([1, 4, 9, "instant"]),
)
def test_outcomes_list_the_rows_that_left(
    case: Streams, window: Spans, policy: str, limit: int, order: Order, step: StepSize
) -> None:
    operator = Operator(Join(Window.of(window), Budget(rows=limit), policy, order=order))
    held: dict[Side, Array] = {side: np.empty(0, np.int64) for side in SIDES}
    found: list[tuple[int, int]] = []
    for left, right, moment in steps_of(case, window, step):
        candidates = {
            side: np.concatenate((held[side], rows.id))
            for side, rows in zip(SIDES, (left, right), strict=True)
        }
        chunks, outcome = collected(operator.step(left, right, moment, pairs=True))
        for chunk in chunks:
            found += zip(
                candidates["left"][chunk.left].tolist(),
                candidates["right"][chunk.right].tolist(),
                strict=True,
            )
        for side in SIDES:
            assert outcome.candidates[side] == len(candidates[side])
            for departed in (outcome.expired[side], outcome.evicted[side]):
                assert candidates[side][departed.places].tolist() == departed.rows.id.tolist()
            gone = np.concatenate([outcome.expired[side].places, outcome.evicted[side].places])
            held[side] = candidates[side][kept(len(candidates[side]), np.sort(gone))]
            assert held[side].tolist() == operator.buffers[side].rows.id.tolist()
    assert len(found) == operator.tally.results
    rows = numbered(case.arrived())
    places = [(rows[a].place, rows[b].place) for a, b in found]
    assert is_part(places, case.exact(window))


@settings(max_examples=150)
@given(
    integers,
    st.sampled_from(WINDOWS),
    st.sampled_from(POLICIES),
    st.integers(1, 6),
    st.sampled_from(get_args(Order)),
    st.sampled_from([1, 4, "instant"]),
    st.integers(0, 100),
)
def test_snapshot_and_restore_change_nothing(
    case: Streams, window: Spans, policy: str, limit: int, order: Order, step: StepSize, at: int
) -> None:
    join = Join(Window.of(window), Budget(rows=limit), policy, order=order, seed=3)
    operator, restored = Operator(join), Operator(join)
    steps = steps_of(case, window, step)
    at %= len(steps) + 1
    for left, right, moment in steps[:at]:
        collected(operator.step(left, right, moment))
    data = operator.snapshot()
    assert isinstance(data, bytes)
    restored.restore(data)
    assert state(restored) == state(operator)
    assert restored.snapshot() == data
    for left, right, moment in steps[at:]:
        first, second = (
            collected(each.step(left, right, moment, pairs=True)) for each in (operator, restored)
        )
        assert [tuple(map(np.ndarray.tolist, chunk)) for chunk in first[0]] == [
            tuple(map(np.ndarray.tolist, chunk)) for chunk in second[0]
        ]
        assert state(restored) == state(operator)


@pytest.mark.parametrize("step", [1, 5])
def test_a_smaller_budget_takes_effect_at_the_step_after_restoring(step: int) -> None:
    case = Streams(Stream(list(range(20)), list(range(20))), Stream(list(range(20)), list(range(20))))
    steps = steps_of(case, (None, None), step)
    large = Operator(Join(Window(None, None), Budget(rows=20), "fifo"))
    for left, right, moment in steps[:-1]:
        collected(large.step(left, right, moment))
    assert large.rows == 20
    small = Operator(Join(Window(None, None), Budget(rows=3), "fifo"))
    small.restore(large.snapshot())
    assert small.rows == 20
    collected(small.step(*steps[-1]))
    assert sorted(chain(*ids(small).values())) == [37, 38, 39]


def test_snapshots_of_float_times_and_of_nothing() -> None:
    window = Window(2.5, 2.5)
    columns = {"key": np.array([1, 2, 1]), "time": np.array([0.5, 1.25, 9.75])}
    arrivals = arrange(columns, columns, window, None)
    steps = list(arrivals.steps(arrivals.cuts(1), whole_instants=False))
    plain, stopped = Operator(Join(window)), Operator(Join(window))
    for left, right, moment in steps:
        fresh = Operator(Join(window))
        fresh.restore(stopped.snapshot())
        stopped = fresh
        for each in (plain, stopped):
            collected(each.step(left, right, moment))
    assert state(plain) == state(stopped)
    assert plain.tally.results == 3


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "0 bytes are not a snapshot.*give what snapshot"),
        (b"nonsense", "8 bytes are not a snapshot.*give what snapshot"),
    ],
)
def test_bytes_that_are_no_snapshot(data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Operator(Join(Window(1, 1))).restore(data)


def test_snapshot_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.engine.snapshot.VERSION", 99)
    data = pack({"a": np.arange(3)})
    monkeypatch.undo()
    with pytest.raises(InputError, match=r"version 99.* 1; restore it with the release"):
        Operator(Join(Window(1, 1))).restore(data)


class Learned(Policy):
    """Keeps the keys that were seen most, and writes down what it is shown."""

    def __init__(self) -> None:
        self.seen: dict[int, int] = {}
        self.steps: list[Step] = []
        self.setting: Setting | None = None

    def start(self, setting: Setting) -> "Learned":
        running = Learned()
        running.setting = setting
        return running

    def observe(self, step: Step) -> None:
        # What is shown are views, good for this step only.
        copies = {side: rows.take(np.arange(len(rows))) for side, rows in step.rows.items()}
        self.steps.append(replace(step, rows=copies))
        for side in SIDES:
            for key in step.arrivals(side).key.tolist():
                self.seen[key] = self.seen.get(key, 0) + 1

    def scores(self, rows: Rows, now: Time) -> Array:
        return np.array([self.seen.get(key, 0) for key in rows.key.tolist()], np.float64)

    def snapshot(self) -> dict[str, Array]:
        return {"key": np.array(list(self.seen), np.int64), "count": np.array(list(self.seen.values()))}

    def restore(self, state: dict[str, Array]) -> "Learned":
        self.seen = dict(zip(state["key"].tolist(), state["count"].tolist(), strict=True))
        return self


@settings(max_examples=60)
@given(integers, st.sampled_from([1, 4, "instant"]), st.integers(1, 5), st.integers(0, 100))
def test_what_a_policy_learned_is_restored(case: Streams, step: StepSize, limit: int, at: int) -> None:
    join = Join(Window(6, 6), Budget(rows=limit), Learned(), seed=4, partition=2)
    operator, restored = Operator(join), Operator(join)
    steps = steps_of(case, (6, 6), step)
    at %= len(steps) + 1
    for left, right, moment in steps[:at]:
        collected(operator.step(left, right, moment))
    restored.restore(operator.snapshot())
    for left, right, moment in steps[at:]:
        for each in (operator, restored):
            collected(each.step(left, right, moment))
        assert state(restored) == state(operator)


@settings(max_examples=60)
@given(integers, st.sampled_from([1, 4, "instant"]), st.integers(1, 5))
def test_a_policy_is_shown_every_step(case: Streams, step: StepSize, limit: int) -> None:
    operator = Operator(Join(Window(6, 6), Budget(rows=limit), Learned(), seed=4, partition=2))
    policy = policy_of(operator)
    assert isinstance(policy, Learned)
    assert policy.setting == Setting(Window(6, 6), 4, 2, Budget(rows=limit), (Budget(rows=limit),))
    rows = numbered(case.arrived())
    cuts = cut([rows[n] for n in sorted(rows)], step)
    for number, ((left, right, moment), new) in enumerate(
        zip(steps_of(case, (6, 6), step), cuts, strict=True)
    ):
        held = ids(operator)
        chunks, _ = collected(operator.step(left, right, moment, pairs=True))
        shown = policy.steps[-1]
        assert (shown.number, shown.now) == (number, max(row.time for row in new))
        for side, arrivals in zip(SIDES, (left, right), strict=True):
            hits = shown.hits[side]
            assert shown.fresh[side] == len(held[side])
            assert shown.arrivals(side).id.tolist() == arrivals.id.tolist()
            assert len(shown.rows[side]) == len(held[side]) + len(arrivals) == len(hits)
            at = [place for chunk in chunks for place in getattr(chunk, side)]
            assert hits.tolist() == np.bincount(at, minlength=len(hits)).tolist()
            # Results of two arrivals, and of an arrival and a buffered row.
            other = other_side(side)
            both = [
                place - len(held[side])
                for chunk in chunks
                for place, partner in zip(getattr(chunk, side), getattr(chunk, other), strict=True)
                if place >= len(held[side]) and partner >= len(held[other])
            ]
            in_step = np.bincount(both, minlength=len(arrivals))
            assert shown.step_hits[side].tolist() == in_step.tolist()
    assert len(policy.steps) == len(cuts)


@pytest.mark.parametrize("comparisons", [0, 1 << 12])
@settings(max_examples=30)
@given(case=integers, step=st.sampled_from([1, 4, "instant"]), limit=st.integers(1, 5))
def test_hits_are_the_same_whether_results_are_formed_or_counted(
    comparisons: int, case: Streams, step: StepSize, limit: int
) -> None:
    join = Join(Window(6, 6), Budget(rows=limit), Learned())
    forming, counting = Operator(join), Operator(join)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidegate.engine.nested_loop.MAX_COMPARISONS", comparisons)
        for left, right, moment in steps_of(case, (6, 6), step):
            shown = []
            for operator, pairs in ((forming, True), (counting, False)):
                collected(operator.step(left, right, moment, pairs=pairs))
                policy = policy_of(operator)
                assert isinstance(policy, Learned)
                shown.append(policy.steps[-1])
            for side in SIDES:
                assert shown[0].hits[side].tolist() == shown[1].hits[side].tolist()
                assert shown[0].step_hits[side].tolist() == shown[1].step_hits[side].tolist()


@dataclass(frozen=True)
class Ties(Policy):
    """All rows are alike."""

    def scores(self, rows: Rows, now: Time) -> Array:
        return np.zeros(len(rows))


@settings(max_examples=60)
@given(integers, st.sampled_from([1, 4, "instant"]), st.integers(1, 5))
def test_among_equals_the_newest_stays(case: Streams, step: StepSize, limit: int) -> None:
    operator = Operator(Join(Window(None, None), Budget(rows=limit), Ties()))
    arrived = 0
    for left, right, moment in steps_of(case, (None, None), step):
        collected(operator.step(left, right, moment))
        arrived += len(left) + len(right)
        assert sorted(chain(*ids(operator).values())) == list(range(max(0, arrived - limit), arrived))


def test_a_large_step_keeps_the_best() -> None:
    draw = np.random.default_rng(1)
    n = 30_000
    columns = {"key": np.arange(n), "time": draw.integers(0, 500, n)}
    nothing = {"key": np.empty(0, np.int64), "time": np.empty(0, np.int64)}
    for limit in (1, 100, n // 2, n - 1):
        arrivals = arrange(columns, nothing, Window(None, None), None)
        operator = Operator(Join(Window(None, None), Budget(rows=limit), "fifo"))
        [step] = arrivals.steps(arrivals.cuts(n), whole_instants=False)
        collected(operator.step(*step))
        # In order of arrival the newest come last.
        assert sorted(operator.buffers["left"].rows.id.tolist()) == list(range(n - limit, n))


def hot(n: int) -> Axes:
    times = np.arange(n)
    return Axes(np.full(n, 7), times, times)


CONDITIONS: list[Condition] = ["=", "<=", "!=", Band(-1, 1)]


@pytest.mark.parametrize("indexed", SIDES)
@pytest.mark.parametrize("chunk", [1, 7, 64, 5000])
@pytest.mark.parametrize("condition", CONDITIONS, ids=str)
def test_pairs_leave_in_bounded_chunks(condition: Condition, chunk: int, indexed: Side) -> None:
    draw = np.random.default_rng(2)
    times = np.arange(40)
    sides = [Axes(draw.integers(0, 3, 40), times, times) for _ in range(2)]
    mine, other = sides if indexed == "left" else sides[::-1]
    index = Index(indexed, mine, condition, 9, 4)
    chunks = list(index.pairs(other, chunk))
    assert all(0 < len(found.left) == len(found.right) <= chunk for found in chunks)
    assert all(len(found.left) == chunk for found in chunks[:-1])
    found = sorted((a, b) for pairs in chunks for a, b in zip(*map(np.ndarray.tolist, pairs), strict=True))
    case = Streams(*(Stream(axes.key.tolist(), axes.left.tolist()) for axes in sides))
    assert found == case.exact((9, 4), condition)
    hits = np.zeros(40, np.int64), np.zeros(40, np.int64)
    assert index.count(other, hits) == (len(found), 0.0)
    assert hits[0].tolist() == np.bincount([p[indexed == "right"] for p in found], minlength=40).tolist()
    assert hits[1].tolist() == np.bincount([p[indexed == "left"] for p in found], minlength=40).tolist()


def test_a_hot_key_leaves_the_operator_in_chunks() -> None:
    n = 200
    case = Streams(Stream([1] * n, [0] * n), Stream([1] * n, [0] * n))
    operator = Operator(Join(Window(0, 0)))
    [(left, right, moment)] = steps_of(case, (0, 0), "instant")
    chunks, _ = collected(operator.step(left, right, moment, pairs=True, chunk=1000))
    assert [len(chunk.left) for chunk in chunks] == [1000] * (n * n // 1000)


def test_the_chunks_of_the_operator_are_bounded_by_default() -> None:
    n = 600
    pairs = [len(found.left) for found in Index("left", hot(n), "=", n, n).pairs(hot(n))]
    assert sum(pairs) == n * n
    assert max(pairs) <= 1 << 18
    assert len(pairs) > 1


@settings(max_examples=60)
@given(integers, st.sampled_from([1, 4, "instant"]), st.integers(1, 6))
def test_a_residual_is_a_further_condition(case: Streams, step: StepSize, limit: int) -> None:
    operator = Operator(Join(Window(6, 6), Budget(rows=limit), "fifo"))
    bare = Operator(Join(Window(6, 6), Budget(rows=limit), "fifo"))
    importance = 0.0
    for left, right, moment in steps_of(case, (6, 6), step):
        there = {
            side: np.concatenate((operator.buffers[side].rows.id, rows.id))
            for side, rows in zip(SIDES, (left, right), strict=True)
        }

        def odd(pairs: Pairs, there: dict[Side, Array] = there) -> Array:
            mask: Array = (there["left"][pairs.left] + there["right"][pairs.right]) % 2 == 1
            return mask

        _, all_of_it = collected(bare.step(left, right, moment))
        counted, outcome = collected(operator.step(left, right, moment, residual=odd))
        assert sum(len(chunk.left) for chunk in counted) == outcome.results <= all_of_it.results
        assert all(odd(chunk).all() for chunk in counted)
        importance += outcome.results
    assert operator.tally.results == importance


def test_counting_and_forming_agree_on_importance() -> None:
    draw = np.random.default_rng(5)
    worth = [draw.random(50).tolist() for _ in range(2)]
    case = Streams(*(Stream((np.arange(50) % 5).tolist(), list(range(50)), w) for w in worth))
    for combine in ("min", "max", "sum", "product", "mean"):
        operators = [Operator(Join(Window(9, 3), combine=combine)) for _ in range(2)]
        for left, right, moment in steps_of(case, (9, 3), 6):
            for operator, pairs in zip(operators, (False, True), strict=True):
                collected(operator.step(left, right, moment, pairs=pairs))
        assert operators[0].tally.importance == pytest.approx(operators[1].tally.importance)
        assert operators[0].tally.importance > 0


def test_a_step_without_arrivals_lets_rows_expire() -> None:
    operator = Operator(Join(Window(5, 5)))
    [(left, right, moment)] = steps_of(Streams(Stream([1, 2], [0, 3]), Stream([], [])), (5, 5), 10)
    collected(operator.step(left, right, moment))
    assert ids(operator) == {"left": [0, 1], "right": []}
    nothing = left.take(slice(0, 0)), right.take(slice(0, 0))
    _, outcome = collected(
        operator.step(*nothing, Moment(Clocks.both(6), EarliestTimes(6, 6), EarliestTimes(6, 6)))
    )
    assert ids(operator) == {"left": [1], "right": []}
    assert outcome.expired["left"].rows.id.tolist() == [0]


def test_lifetimes_end_with_the_window() -> None:
    # Both left rows are dead by 100; the one lived its 5, the other was evicted at 1 after 0.
    case = Streams(Stream([1, 2], [0, 1]), Stream([3], [100]))
    operator = Operator(Join(Window(5, 5), Budget(rows=1), "until_expiry"))
    for left, right, moment in steps_of(case, (5, 5), 1):
        collected(operator.step(left, right, moment))
    tally = operator.tally
    assert (tally.lives, tally.life_sum, tally.life_squares) == (2, 5.0, 25.0)
    assert tally.fairness == 0.5


def test_an_outcome_tells_departures_apart() -> None:
    case = Streams(Stream([1, 2, 3], [0, 1, 50]), Stream([], []))
    operator = Operator(Join(Window(5, 5), Budget(rows=1), "until_expiry"))
    outcomes: list[StepOutcome] = []
    for left, right, moment in steps_of(case, (5, 5), 1):
        outcomes.append(collected(operator.step(left, right, moment))[1])
    assert [o.evicted["left"].rows.id.tolist() for o in outcomes] == [[], [1], []]
    assert [o.expired["left"].rows.id.tolist() for o in outcomes] == [[], [], [0]]
