"""A store keeps exactly the rows that are extreme in some interval."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations, product
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.alerts.brute_force import Row, extreme_rows, extremes_unchanged
from tidegate import InputError
from tidegate.alerts import BracketStore, ClosedEnds, Shape

SHAPES: tuple[Shape, ...] = ("quasiconvex", "increasing", "decreasing")
CLOSED = get_args(ClosedEnds)
TIMES = st.integers(0, 12) | st.sampled_from([0.5, 0.1, 0.30000000000000004, 2.5, 7.25])
SETS = st.lists(st.tuples(TIMES, st.integers(0, 6).map(float)), max_size=14)
OMEGAS = st.sampled_from([1, 2, 3, 5, 0.5, 0.3, 2.5])


def kept(
    rows: Sequence[Row], omega: float, shape: Shape = "quasiconvex", closed: ClosedEnds = "both"
) -> list[Row]:
    store = BracketStore(omega, shape, closed)
    store.extend([time for time, _ in rows], [value for _, value in rows])
    return pairs(store)


def pairs(store: BracketStore) -> list[Row]:
    time, value = store.retained()
    assert (np.diff(time) >= 0).all()
    return sorted(zip(time.tolist(), value.tolist(), strict=True))


@settings(max_examples=300, deadline=None)
@given(SETS, OMEGAS, st.sampled_from(SHAPES), st.sampled_from(CLOSED))
def test_extremes_of_intervals_are_kept_if_values_are_distinct(
    rows: list[Row], omega: float, shape: Shape, closed: ClosedEnds
) -> None:
    distinct = [(time, value + place / 64) for place, (time, value) in enumerate(rows)]
    assert kept(distinct, omega, shape, closed) == extreme_rows(distinct, omega, shape, closed)


@settings(max_examples=300, deadline=None)
@given(SETS, OMEGAS, st.sampled_from(SHAPES), st.sampled_from(CLOSED))
def test_no_extreme_changes_and_no_row_is_kept_twice(
    rows: list[Row], omega: float, shape: Shape, closed: ClosedEnds
) -> None:
    stays = kept(rows, omega, shape, closed)
    assert extremes_unchanged(rows, stays, omega, shape, closed)
    assert len(set(stays)) == len(stays)
    assert set(stays) <= set(rows)


@settings(max_examples=150, deadline=None)
@given(SETS, OMEGAS, st.sampled_from(SHAPES), st.sampled_from(CLOSED), st.data())
def test_the_order_of_arrival_and_the_steps_do_not_matter(
    rows: list[Row], omega: float, shape: Shape, closed: ClosedEnds, data: st.DataObject
) -> None:
    whole = kept([(float(time), value) for time, value in rows], omega, shape, closed)
    store = BracketStore(omega, shape, closed)
    mixed = data.draw(st.permutations(rows))
    while mixed:
        size = data.draw(st.integers(1, len(mixed)))
        store.extend([float(time) for time, _ in mixed[:size]], [value for _, value in mixed[:size]])
        mixed = mixed[size:]
    assert pairs(store) == whole


def test_every_order_of_a_trace_with_ties_one_row_at_a_time() -> None:
    rows = [(0, 1.0), (1, 1.0), (1, 2.0), (2, 1.0), (3, 1.0), (4, 0.0)]
    for shape, omega in product(SHAPES, (1, 2, 3)):
        found = set()
        for order in permutations(rows):
            store = BracketStore(omega, shape)
            for row in order:
                store.extend([row[0]], [row[1]])
            found.add(tuple(pairs(store)))
        assert found == {tuple(kept(rows, omega, shape))}


def test_rows_of_the_erratum_are_kept() -> None:
    """The printed algorithm loses (1, 1)."""
    rows = [(0, 0.0), (1, 1.0), (2, 2.0)]
    for order in permutations(rows):
        assert kept(list(order), 1) == rows


def test_figure_1() -> None:
    rows = [(0, 3.0), (1, 1.0), (2, 2.0)]
    assert kept(rows, 2, "increasing") == [rows[0], rows[2]]
    assert kept(rows, 1.5, "increasing") == rows
    assert kept(rows, 2) == rows  # it is the lowest


def test_figure_5_half_open_intervals() -> None:
    rows = [(0, 3.0), (1, 1.0), (2, 0.0), (3, 2.0), (4, 4.0)]
    for closed in ("left", "right", "both"):
        assert kept(rows, 3, "increasing", closed) == [rows[0], rows[3], rows[4]]
        assert extreme_rows(rows, 3, "increasing", closed) == [rows[0], rows[3], rows[4]]
    assert kept(rows, 3, "increasing", "neither") == [rows[0], rows[1], rows[3], rows[4]]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_constant_stream_keeps_few_rows(shape: Shape) -> None:
    whole = kept([(time, 7.0) for time in range(10_000)], 100, shape)
    assert len(whole) <= 115
    fine = kept([(time / 100, 7.0) for time in range(10_000)], 1.0, shape)
    assert len(fine) <= 200


def test_equal_rows_are_kept_once() -> None:
    store = BracketStore(5)
    store.extend([3] * 1000, [1.0] * 1000)
    assert pairs(store) == [(3, 1.0)]
    assert store.ids.tolist() == [0]


def test_single_rows_give_the_result_of_one_step() -> None:
    rng = np.random.default_rng(3)
    times, values = rng.integers(0, 5000, 3000), rng.integers(0, 50, 3000).astype(float)
    store = BracketStore(40)
    for time, value in zip(times.tolist(), values.tolist(), strict=True):
        store.add(time, value)
    assert len(store) < 1500
    assert pairs(store) == kept(list(zip(times.tolist(), values.tolist(), strict=True)), 40)


def test_trimming_drops_exactly_the_rows_before() -> None:
    store, whole = BracketStore(10), BracketStore(10)
    rng = np.random.default_rng(5)
    for begin in range(0, 2000, 100):
        times, values = begin + rng.integers(0, 100, 80), rng.random(80)
        store.extend(times, values)
        whole.extend(times, values)
        store.trim(begin - 50)
        assert pairs(store) == [row for row in pairs(whole) if row[0] >= begin - 50]


def test_a_snapshot_continues_unchanged() -> None:
    rng = np.random.default_rng(6)
    one, times, values = BracketStore(20, budget=60), rng.random(900) * 1000, rng.random(900)
    one.extend(times[:500], values[:500])
    two = BracketStore(20, budget=60).restore(one.snapshot())
    for store in (one, two):
        store.extend(times[500:], values[500:])
    assert pairs(one) == pairs(two)
    assert one.ids.tolist() == two.ids.tolist()
    assert (one.evicted, one.miss_probability, one.arrived) == (
        two.evicted,
        two.miss_probability,
        two.arrived,
    )


def test_a_store_resumes_with_the_rows_that_another_has_kept() -> None:
    rng = np.random.default_rng(6)
    one, two, times, values = BracketStore(20), BracketStore(20), rng.random(900) * 1000, rng.random(900)
    one.extend(times[:500], values[:500])
    two.resume(*(column.copy() for column in one.retained()))
    assert two.ids.tolist() == list(range(len(one)))
    for store in (one, two):
        store.extend(times[500:], values[500:])
    assert pairs(one) == pairs(two)
    assert two.arrived > two.ids.max()


def test_mixed_times_and_timestamps() -> None:
    store = BracketStore(2)
    store.extend([0, 1], [0.0, 1.0])
    store.extend([0.5], [2.0])
    assert pairs(store) == [(0.0, 0.0), (0.5, 2.0), (1.0, 1.0)]
    calendar = BracketStore(2_000_000)
    calendar.extend(np.array(["2020-01-01T00:00:01", "2020-01-01T00:00:03"], "M8[s]"), [1.0, 2.0])
    assert np.diff(calendar.retained().time).tolist() == [2_000_000]


def test_the_shape_any_keeps_all_rows() -> None:
    rows = [(1, 1.0), (0, 2.0), (1, 1.0), (1, 5.0), (1, 3.0)]
    assert kept(rows, 5, "any") == sorted(rows)


def test_a_budget_sheds_the_extremes_of_the_shortest_time() -> None:
    rng = np.random.default_rng(7)
    times, values = np.arange(5000), rng.random(5000)
    free = BracketStore(50)
    free.extend(times, values)
    assert free.miss_probability == 0
    probabilities = []
    for budget in (len(free), 300, 150, 60):
        store = BracketStore(50, budget=budget)
        store.extend(times, values)
        assert len(store) <= budget
        assert store.evicted == len(free) - len(store)
        probabilities.append(store.miss_probability)
    assert probabilities[0] == 0
    assert probabilities == sorted(probabilities)
    # Rows dropped at random change more intervals than the same number chosen by the time they are extremes.
    shares = []
    for keep in (np.sort(rng.choice(len(free), 150, replace=False)), None):
        when, value = free.retained()
        if keep is None:
            store = BracketStore(50, budget=150)
            store.extend(times, values)
            when, value = store.retained()
        else:
            when, value = when[keep], value[keep]
        shares.append(share_of_changed_intervals(times, values, when, value, 50))
    assert shares[1] < shares[0]
    assert probabilities[2] == pytest.approx(shares[1], abs=0.15)


def test_with_the_shape_any_all_shed_rows_count() -> None:
    rng = np.random.default_rng(8)
    store = BracketStore(50, "any", budget=200)
    for some in np.split(np.arange(1000), 10):
        store.extend(some, rng.random(100))
    assert (len(store), store.evicted) == (200, 800)
    assert store.miss_probability == 0.8


def test_pending_rows_are_counted() -> None:
    for name, expected in (("arrived", 10), ("evicted", 7), ("miss_probability", 0.7)):
        store = BracketStore(5, "any", budget=3)
        for at in range(10):
            store.add(at, float(at))
        assert getattr(store, name) == expected


def share_of_changed_intervals(
    times: np.ndarray, values: np.ndarray, when: np.ndarray, value: np.ndarray, omega: int
) -> float:
    """The share of intervals whose highest or lowest value differs."""
    changed = 0
    ends = range(int(times[-1]) - omega)
    for begin in ends:
        inside = values[(times >= begin) & (times <= begin + omega)]
        remaining = value[(when >= begin) & (when <= begin + omega)]
        changed += not len(remaining) or inside.max() != remaining.max() or inside.min() != remaining.min()
    return changed / len(ends)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: BracketStore(0), "omega is 0; give a number above 0"),
        (lambda: BracketStore(float("nan")), "omega is nan"),
        (lambda: BracketStore(-1.0), "omega is -1.0"),
        (lambda: BracketStore(omega=True), "omega is True"),
        (lambda: BracketStore(1, "convex"), "shape 'convex' is not known"),  # type: ignore[arg-type]
        (lambda: BracketStore(1, closed="no"), "closed 'no' is not known"),  # type: ignore[arg-type]
        (lambda: BracketStore(1, budget=0), "budget is 0; give a positive whole number"),
        (lambda: BracketStore(1).extend([1], [float("nan")]), "a value is NaN"),
        (lambda: BracketStore(1).extend([1, 2], [1.0]), r"times have shape \(2,\) and values \(1,\)"),
        (lambda: BracketStore(1).extend([float("inf")], [1.0]), "give finite times"),
        (lambda: BracketStore(1).extend([float("nan")], [1.0]), "give finite times"),
        (lambda: BracketStore(1).extend(["a"], [1.0]), "times of type"),
        (
            lambda: BracketStore(1).extend(np.array(["NaT", "2020-01-01"], "M8[s]"), [1.0, 2.0]),
            "a time is NaT",
        ),
        (
            lambda: BracketStore(1).extend(np.array([1, 2**64 - 1], np.uint64), [1.0, 2.0]),
            "from 1 to 18446744",
        ),
        (lambda: BracketStore(1).extend([-(2**63)], [1.0]), "give finite times"),
        (lambda: BracketStore(1).extend([1], ["high"]), "values of type <U4 are not supported; give numbers"),
        (lambda: BracketStore(1).extend([1], ["1.5"]), "values of type <U3 are not supported"),
        (lambda: BracketStore(1).extend([1], [object()]), "a value is not a number"),  # type: ignore[arg-type]
        (lambda: BracketStore(1).extend([1, 2], [[1.0], [1.0, 2.0]]), "the values are not a column"),
        (lambda: BracketStore(1).extend([[1], [1, 2]], [1.0, 2.0]), "the times are not a column"),
        (lambda: BracketStore(1).extend([1], [1.0], [1, 2]), "there are 2 ids for 1 rows"),
    ],
)
def test_invalid_input_is_refused(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize("omega", [7, 300, 40_000])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("trend", [0.0, 1e-3, -1e-3])
def test_long_streams_keep_the_rows_of_the_definition(omega: int, shape: Shape, trend: float) -> None:
    """Long enough to remove old rows from the stack several times; intervals have two, many or almost all rows."""
    rng = np.random.default_rng(9)
    times = np.sort(rng.choice(50_000, 5000, replace=False))
    values = rng.normal(size=5000) + trend * times
    ways = {"increasing": (1,), "decreasing": (-1,), "quasiconvex": (1, -1)}[shape]
    rows = list(zip(times.tolist(), values.tolist(), strict=True))
    assert kept(rows, omega, shape) == [
        row for at, row in enumerate(rows) if any(apart(rows, at, way) > omega for way in ways)
    ]


def apart(rows: Sequence[Row], at: int, way: int) -> float:
    """The distance between the nearest rows above this one (below it, if the way is -1), before and after it."""
    time, value = rows[at]
    ends = []
    for others in (rows[at - 1 :: -1] if at else [], rows[at + 1 :]):
        higher = (abs(when - time) for when, other in others if way * other > way * value)
        ends.append(next(higher, np.inf))
    return sum(ends)


def test_infinite_values_are_extreme() -> None:
    rows = [(0, 1.0), (1, np.inf), (2, np.inf), (3, -np.inf), (4, 0.0), (5, -np.inf), (6, np.inf)]
    for omega, shape, closed in product((1, 2, 5), SHAPES, CLOSED):
        assert extremes_unchanged(rows, kept(rows, omega, shape, closed), omega, shape, closed)


@pytest.mark.parametrize("disorder", [0, 40, 400])
@pytest.mark.parametrize("closed", CLOSED)
def test_several_steps_keep_the_rows_of_one_step(disorder: int, closed: ClosedEnds) -> None:
    """A row may be bracketed from above by rows of much earlier steps, and from below by those of the step."""
    rng = np.random.default_rng(8)
    times = np.sort(rng.integers(0, 30_000, 6000))
    times = times[np.argsort(times + rng.normal(0, disorder, 6000), kind="stable")]
    values = rng.normal(size=6000).round(2)
    whole, parts = BracketStore(50, closed=closed), BracketStore(50, closed=closed)
    whole.extend(times, values)
    for some in np.array_split(np.arange(6000), 300):
        parts.extend(times[some], values[some])
    assert pairs(parts) == pairs(whole)


@pytest.mark.parametrize(
    ("time", "value", "message"),
    [
        (7, np.nan, "the value at time 7 is NaN"),
        (7, np.float32(np.nan), "the value at time 7 is NaN"),
        (7, None, "the value at time 7 is None; give a number"),
        (7, "high", "the value at time 7 is 'high'; give a number"),
        (np.nan, 1.0, "the time is nan"),
        (np.datetime64("NaT"), 1.0, "a time is NaT"),
        (2**61, 1.0, "the time is 2305843009213693952"),
        ("noon", 1.0, "the time is 'noon'"),
        (True, 1.0, "the time is True"),
    ],
)
def test_an_invalid_row_is_refused_at_once_without_loss_of_others(
    time: float, value: float, message: str
) -> None:
    store = BracketStore(5, "any")
    for at in range(100):
        store.add(at, 1.0)
    with pytest.raises(InputError, match=message):
        store.add(time, value)
    store.add(np.int64(100), np.float32(2.5))  # type: ignore[arg-type]
    store.add(np.datetime64(101, "us"), 3)  # type: ignore[arg-type]
    assert pairs(store) == [*((at, 1.0) for at in range(100)), (100, 2.5), (101, 3.0)]


@pytest.mark.filterwarnings("error")
def test_an_empty_store_of_floats_accepts_integer_times() -> None:
    store = BracketStore(5, "any")
    store.extend([0.5, 1.5], [1.0, 2.0])
    store.trim(9)
    store._columns["time"][:] = np.nan  # unused space may contain anything
    store.extend([2**60, 2**60 + 1], [1.0, 2.0])
    assert pairs(store) == [(2**60, 1.0), (2**60 + 1, 2.0)]
