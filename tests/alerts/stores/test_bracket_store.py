"""A store keeps the rows that are extreme in some interval, and no others."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations, product
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.alerts.brute_force import Row, extreme, unmoved
from tidegate import InputError
from tidegate.alerts import BracketStore, Closed, Shape

SHAPES: tuple[Shape, ...] = ("quasiconvex", "increasing", "decreasing")
CLOSED = get_args(Closed)
TIMES = st.integers(0, 12) | st.sampled_from([0.5, 0.1, 0.30000000000000004, 2.5, 7.25])
SETS = st.lists(st.tuples(TIMES, st.integers(0, 6).map(float)), max_size=14)
OMEGAS = st.sampled_from([1, 2, 3, 5, 0.5, 0.3, 2.5])


def kept(
    rows: Sequence[Row], omega: float, shape: Shape = "quasiconvex", closed: Closed = "both"
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
def test_rows_extreme_in_some_interval_stay_if_values_are_distinct(
    rows: list[Row], omega: float, shape: Shape, closed: Closed
) -> None:
    distinct = [(time, value + place / 64) for place, (time, value) in enumerate(rows)]
    assert kept(distinct, omega, shape, closed) == extreme(distinct, omega, shape, closed)


@settings(max_examples=300, deadline=None)
@given(SETS, OMEGAS, st.sampled_from(SHAPES), st.sampled_from(CLOSED))
def test_no_extreme_moves_and_nothing_is_kept_twice_over(
    rows: list[Row], omega: float, shape: Shape, closed: Closed
) -> None:
    stays = kept(rows, omega, shape, closed)
    assert unmoved(rows, stays, omega, shape, closed)
    assert len(set(stays)) == len(stays)
    assert set(stays) <= set(rows)


@settings(max_examples=150, deadline=None)
@given(SETS, OMEGAS, st.sampled_from(SHAPES), st.sampled_from(CLOSED), st.data())
def test_the_order_of_arrival_and_the_grouping_do_not_matter(
    rows: list[Row], omega: float, shape: Shape, closed: Closed, data: st.DataObject
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


def test_rows_of_the_erratum_stay() -> None:
    """The printed algorithm loses (1, 1)."""
    rows = [(0, 0.0), (1, 1.0), (2, 2.0)]
    for order in permutations(rows):
        assert kept(list(order), 1) == rows


def test_figure_1() -> None:
    rows = [(0, 3.0), (1, 1.0), (2, 2.0)]
    assert kept(rows, 2, "increasing") == [rows[0], rows[2]]
    assert kept(rows, 1.5, "increasing") == rows
    assert kept(rows, 2) == rows  # it is the lowest


def test_figure_5_needs_no_detour() -> None:
    rows = [(0, 3.0), (1, 1.0), (2, 0.0), (3, 2.0), (4, 4.0)]
    for closed in ("left", "right", "both"):
        assert kept(rows, 3, "increasing", closed) == [rows[0], rows[3], rows[4]]
        assert extreme(rows, 3, "increasing", closed) == [rows[0], rows[3], rows[4]]
    assert kept(rows, 3, "increasing", "neither") == [rows[0], rows[1], rows[3], rows[4]]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_constant_stream_keeps_next_to_nothing(shape: Shape) -> None:
    whole = kept([(time, 7.0) for time in range(10_000)], 100, shape)
    assert len(whole) <= 115
    fine = kept([(time / 100, 7.0) for time in range(10_000)], 1.0, shape)
    assert len(fine) <= 200


def test_rows_alike_are_one() -> None:
    store = BracketStore(5)
    store.extend([3] * 1000, [1.0] * 1000)
    assert pairs(store) == [(3, 1.0)]
    assert store.ids.tolist() == [0]


def test_one_row_at_a_time_is_as_all_at_once() -> None:
    rng = np.random.default_rng(3)
    times, values = rng.integers(0, 5000, 3000), rng.integers(0, 50, 3000).astype(float)
    store = BracketStore(40)
    for time, value in zip(times.tolist(), values.tolist(), strict=True):
        store.add(time, value)
    assert len(store) < 1500
    assert pairs(store) == kept(list(zip(times.tolist(), values.tolist(), strict=True)), 40)


def test_payloads_follow() -> None:
    rng = np.random.default_rng(4)
    store, payload = BracketStore(30), np.empty(0)
    for _ in range(40):
        times, values = rng.integers(0, 1000, 50), rng.random(50)
        store.extend(times, values)
        payload = np.concatenate((payload, values * 2))[store.kept()]
        assert payload.tolist() == (store.retained().value * 2).tolist()
    assert store.arrived == 2000


def test_trimming_drops_what_is_before_and_only_that() -> None:
    store, whole = BracketStore(10), BracketStore(10)
    rng = np.random.default_rng(5)
    for begin in range(0, 2000, 100):
        times, values = begin + rng.integers(0, 100, 80), rng.random(80)
        store.extend(times, values)
        whole.extend(times, values)
        store.trim(begin - 50)
        assert pairs(store) == [row for row in pairs(whole) if row[0] >= begin - 50]


def test_a_snapshot_goes_on_as_if_nothing_had_happened() -> None:
    rng = np.random.default_rng(6)
    one, times, values = BracketStore(20, budget=60), rng.random(900) * 1000, rng.random(900)
    one.extend(times[:500], values[:500])
    two = BracketStore(20, budget=60).restore(one.snapshot())
    for store in (one, two):
        store.extend(times[500:], values[500:])
    assert pairs(one) == pairs(two)
    assert one.ids.tolist() == two.ids.tolist()
    assert (one.shed, one.chance, one.arrived) == (two.shed, two.chance, two.arrived)


def test_mixed_and_calendar_times() -> None:
    store = BracketStore(2)
    store.extend([0, 1], [0.0, 1.0])
    store.extend([0.5], [2.0])
    assert pairs(store) == [(0.0, 0.0), (0.5, 2.0), (1.0, 1.0)]
    calendar = BracketStore(2_000_000)
    calendar.extend(np.array(["2020-01-01T00:00:01", "2020-01-01T00:00:03"], "M8[s]"), [1.0, 2.0])
    assert np.diff(calendar.retained().time).tolist() == [2_000_000]


def test_all_rows_stay_for_a_function_of_any_shape() -> None:
    rows = [(1, 1.0), (0, 2.0), (1, 1.0), (1, 5.0), (1, 3.0)]
    assert kept(rows, 5, "any") == sorted(rows)


def test_a_budget_sheds_what_reigns_shortest_and_tells() -> None:
    rng = np.random.default_rng(7)
    times, values = np.arange(5000), rng.random(5000)
    free = BracketStore(50)
    free.extend(times, values)
    assert free.chance == 0
    chances = []
    for budget in (len(free), 300, 150, 60):
        store = BracketStore(50, budget=budget)
        store.extend(times, values)
        assert len(store) <= budget
        assert store.shed == len(free) - len(store)
        chances.append(store.chance)
    assert chances[0] == 0
    assert chances == sorted(chances)
    # Rows dropped at random would spoil far more intervals than the same number chosen by their reign.
    shares = []
    for keep in (np.sort(rng.choice(len(free), 150, replace=False)), None):
        when, value = free.retained()
        if keep is None:
            store = BracketStore(50, budget=150)
            store.extend(times, values)
            when, value = store.retained()
        else:
            when, value = when[keep], value[keep]
        shares.append(moved(times, values, when, value, 50))
    assert shares[1] < shares[0]
    assert chances[2] == pytest.approx(shares[1], abs=0.15)


def test_what_is_shed_of_a_function_of_any_shape_counts_however_low_or_high() -> None:
    rng = np.random.default_rng(8)
    store = BracketStore(50, "any", budget=200)
    for some in np.split(np.arange(1000), 10):
        store.extend(some, rng.random(100))
    assert (len(store), store.shed) == (200, 800)
    assert store.chance == 0.8


def test_rows_that_wait_are_counted() -> None:
    for told, wanted in (("arrived", 10), ("shed", 7), ("chance", 0.7)):
        store = BracketStore(5, "any", budget=3)
        for at in range(10):
            store.add(at, float(at))
        assert getattr(store, told) == wanted


def moved(times: np.ndarray, values: np.ndarray, when: np.ndarray, value: np.ndarray, omega: int) -> float:
    """In what share of intervals the highest or the lowest value differs."""
    spoilt = 0
    ends = range(int(times[-1]) - omega)
    for begin in ends:
        inside = values[(times >= begin) & (times <= begin + omega)]
        rest = value[(when >= begin) & (when <= begin + omega)]
        spoilt += not len(rest) or inside.max() != rest.max() or inside.min() != rest.min()
    return spoilt / len(ends)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: BracketStore(0), "omega is 0; give a number above 0"),
        (lambda: BracketStore(float("nan")), "omega is nan"),
        (lambda: BracketStore(-1.0), "omega is -1.0"),
        (lambda: BracketStore(omega=True), "omega is True"),
        (lambda: BracketStore(1, "convex"), "shape 'convex' is not known"),  # type: ignore[arg-type]
        (lambda: BracketStore(1, closed="no"), "closed 'no' is not known"),  # type: ignore[arg-type]
        (lambda: BracketStore(1, budget=0), "budget 0 holds no rows"),
        (lambda: BracketStore(1).extend([1], [float("nan")]), "a value is NaN"),
        (lambda: BracketStore(1).extend([1, 2], [1.0]), r"times are \(2,\) and values \(1,\)"),
        (lambda: BracketStore(1).extend([float("inf")], [1.0]), "give finite ones"),
        (lambda: BracketStore(1).extend([float("nan")], [1.0]), "give finite ones"),
        (lambda: BracketStore(1).extend(["a"], [1.0]), "times of type"),
        (
            lambda: BracketStore(1).extend(np.array(["NaT", "2020-01-01"], "M8[s]"), [1.0, 2.0]),
            "a time is NaT",
        ),
        (
            lambda: BracketStore(1).extend(np.array([1, 2**64 - 1], np.uint64), [1.0, 2.0]),
            "from 1 to 18446744",
        ),
        (lambda: BracketStore(1).extend([-(2**63)], [1.0]), "give finite ones"),
        (lambda: BracketStore(1).extend([1], ["high"]), "values of type <U4 cannot be used; give numbers"),
        (lambda: BracketStore(1).extend([1], ["1.5"]), "values of type <U3 cannot be used"),
        (lambda: BracketStore(1).extend([1], [object()]), "a value is no number"),  # type: ignore[arg-type]
        (lambda: BracketStore(1).extend([1, 2], [[1.0], [1.0, 2.0]]), "the values are no column"),
        (lambda: BracketStore(1).extend([[1], [1, 2]], [1.0, 2.0]), "the times are no column"),
        (lambda: BracketStore(1).extend([1], [1.0], [1, 2]), "there are 2 ids for 1 rows"),
    ],
)
def test_what_cannot_be_used_is_named(call: object, told: str) -> None:
    assert callable(call)
    with pytest.raises(InputError, match=told):
        call()


@pytest.mark.parametrize("omega", [7, 300, 40_000])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("trend", [0.0, 1e-3, -1e-3])
def test_long_streams_keep_what_the_definition_says(omega: int, shape: Shape, trend: float) -> None:
    """So long that a stack is settled several times, with intervals of two rows, of many, and of all but some."""
    rng = np.random.default_rng(9)
    times = np.sort(rng.choice(50_000, 5000, replace=False))
    values = rng.normal(size=5000) + trend * times
    ways = {"increasing": (1,), "decreasing": (-1,), "quasiconvex": (1, -1)}[shape]
    rows = list(zip(times.tolist(), values.tolist(), strict=True))
    assert kept(rows, omega, shape) == [
        row for at, row in enumerate(rows) if any(apart(rows, at, way) > omega for way in ways)
    ]


def apart(rows: Sequence[Row], at: int, way: int) -> float:
    """How far apart the rows are that are next to this one of those above it (below, if the way is -1)."""
    time, value = rows[at]
    ends = []
    for others in (rows[at - 1 :: -1] if at else [], rows[at + 1 :]):
        higher = (abs(when - time) for when, other in others if way * other > way * value)
        ends.append(next(higher, np.inf))
    return sum(ends)


def test_values_without_end_are_extreme() -> None:
    rows = [(0, 1.0), (1, np.inf), (2, np.inf), (3, -np.inf), (4, 0.0), (5, -np.inf), (6, np.inf)]
    for omega, shape, closed in product((1, 2, 5), SHAPES, CLOSED):
        assert unmoved(rows, kept(rows, omega, shape, closed), omega, shape, closed)


@pytest.mark.parametrize("disorder", [0, 40, 400])
@pytest.mark.parametrize("closed", CLOSED)
def test_steps_keep_what_one_step_keeps(disorder: int, closed: Closed) -> None:
    """A row may be bracketed above by rows from long before a step, and below by those of the step."""
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
    ("time", "value", "told"),
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
def test_a_row_that_cannot_be_used_is_refused_at_once_and_alone(time: float, value: float, told: str) -> None:
    store = BracketStore(5, "any")
    for at in range(100):
        store.add(at, 1.0)
    with pytest.raises(InputError, match=told):
        store.add(time, value)
    store.add(np.int64(100), np.float32(2.5))  # type: ignore[arg-type]
    store.add(np.datetime64(101, "us"), 3)  # type: ignore[arg-type]
    assert pairs(store) == [*((at, 1.0) for at in range(100)), (100, 2.5), (101, 3.0)]


@pytest.mark.filterwarnings("error")
def test_an_empty_store_of_floats_takes_whole_times() -> None:
    store = BracketStore(5, "any")
    store.extend([0.5, 1.5], [1.0, 2.0])
    store.trim(9)
    store._columns["time"][:] = np.nan  # room holds anything
    store.extend([2**60, 2**60 + 1], [1.0, 2.0])
    assert pairs(store) == [(2**60, 1.0), (2**60 + 1, 2.0)]
