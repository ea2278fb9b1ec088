"""An unlimited budget gives the exact join, whatever the condition, the window, the step or the order."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidegate as tg
from tests.engine.brute_force import COMBINE, Spans, exact_rows
from tests.engine.cases import (
    CONDITIONS,
    COUNTED_WINDOWS,
    STEPS,
    TIME_WINDOWS,
    WINDOWS,
    KeyKind,
    Stream,
    Streams,
    TimeKind,
    drawn_streams,
    pairs_of,
    streams,
)
from tidegate import Band, Last
from tidegate.types import Combine, Condition, Order, StepSize

TIME_KINDS: tuple[TimeKind, ...] = get_args(TimeKind)
ORDERS: tuple[Order, ...] = get_args(Order)
ORDERED_KEYS: tuple[KeyKind, ...] = ("int", "float")
ALL_KEYS: tuple[KeyKind, ...] = ("int", "float", "text", "several")


def agrees(given_streams: Streams, window: Spans, condition: Condition, step: StepSize, order: Order) -> bool:
    report = given_streams.simulate(window, condition=condition, step=step, order=order)
    found, expected = pairs_of(report), given_streams.exact(window, condition)
    counts = {len(expected), report.results, report.exact}
    parts = report.from_left + report.from_right + report.from_step
    return found == expected and counts == {parts} and report.evicted == 0


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("condition", CONDITIONS, ids=str)
def test_probe_first_equals_brute_force(condition: Condition, window: Spans) -> None:
    keys = ALL_KEYS if condition == "=" else ORDERED_KEYS
    seed = 0
    for times in TIME_KINDS:
        for step in STEPS:
            for kind in keys:
                seed += 1
                case = drawn_streams(seed, kind, times)
                assert agrees(case, window, condition, step, "probe-first"), (seed, kind, times, step)


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("step", STEPS)
def test_shed_first_equals_brute_force(step: StepSize, window: Spans) -> None:
    for seed, condition in enumerate(CONDITIONS):
        case = drawn_streams(seed, "int", TIME_KINDS[seed % 2])
        assert agrees(case, window, condition, step, "shed-first"), (seed, condition)


@settings(max_examples=300)
@given(
    streams(keys=ALL_KEYS),
    st.sampled_from(list(WINDOWS.values())),
    st.sampled_from(STEPS),
)
def test_equality_on_any_keys(case: Streams, window: Spans, step: StepSize) -> None:
    assert agrees(case, window, "=", step, "probe-first")


@settings(max_examples=300)
@given(
    streams(keys=ORDERED_KEYS),
    st.sampled_from(CONDITIONS),
    st.sampled_from(list(WINDOWS.values())),
    st.sampled_from(STEPS),
    st.sampled_from(ORDERS),
)
def test_any_condition(
    case: Streams, condition: Condition, window: Spans, step: StepSize, order: Order
) -> None:
    assert agrees(case, window, condition, step, order)


@settings(max_examples=150)
@given(
    streams(keys=ALL_KEYS, nulls=True),
    st.sampled_from(list(TIME_WINDOWS.values())),
    st.sampled_from(STEPS),
)
def test_null_keys_never_match_and_are_counted(case: Streams, window: Spans, step: StepSize) -> None:
    report = case.simulate(window, step=step)
    assert pairs_of(report) == case.exact(window)
    assert report.null_keys == case.arrived().null_keys
    assert (report.rows_left, report.rows_right) == (len(case.left.times), len(case.right.times))


@settings(max_examples=200)
@given(
    streams(),
    st.tuples(st.integers(-40, 40), st.integers(0, 60)),
    st.sampled_from(STEPS),
)
def test_any_time_window(case: Streams, ends: tuple[int, int], step: StepSize) -> None:
    window: Spans = (ends[0] / 4, (ends[1] - ends[0]) / 4)
    try:
        tg.Window.of(window).whole()
    except tg.InputError:
        return  # nothing between two whole times
    assert agrees(case, window, "=", step, "probe-first")


@settings(max_examples=100)
@given(streams(), st.integers(1, 6), st.integers(1, 6), st.sampled_from(STEPS), st.sampled_from(CONDITIONS))
def test_any_counted_window(
    case: Streams, left: int, right: int, step: StepSize, condition: Condition
) -> None:
    assert agrees(case, (Last(left), Last(right)), condition, step, "probe-first")


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, 40), min_size=17, max_size=40),
    st.lists(st.integers(0, 40), min_size=1, max_size=40),
    st.sampled_from([(5, 5), (0, 20), (20, -10), (Last(9), Last(20)), (7.5, None)]),
    st.sampled_from(STEPS),
)
def test_hot_key(left: list[int], right: list[int], window: Spans, step: StepSize) -> None:
    case = Streams(Stream([7] * len(left), list(left)), Stream([7] * len(right), list(right)))
    assert agrees(case, window, "=", step, "probe-first")


@settings(max_examples=60)
@given(streams(keys=("int",)), st.sampled_from(list(WINDOWS.values())), st.sampled_from(CONDITIONS))
def test_step_does_not_change_the_results(case: Streams, window: Spans, condition: Condition) -> None:
    found = [pairs_of(case.simulate(window, condition=condition, step=step)) for step in (1, 2, 7, "instant")]
    assert all(pairs == found[0] for pairs in found)


@pytest.mark.parametrize("step", STEPS)
def test_band_on_floats_is_a_difference(step: StepSize) -> None:
    # In tenths, `l + low` and `r - l` round differently: only one of them is the definition.
    tenths = [n / 10 for n in range(30)]
    case = Streams(Stream(list(tenths), [0] * 30), Stream(list(tenths), [1] * 30))
    assert agrees(case, (5, 5), Band(-0.3, 0.7), step, "probe-first")


def test_band_on_integers_takes_fractions_and_large_numbers() -> None:
    near = Streams(Stream([0], [0]), Stream([-1, 0, 1, 2], [0, 1, 2, 3]))
    assert pairs_of(near.simulate((9, 9), condition=Band(-0.5, 1.5))) == [(0, 1), (0, 2)]
    assert pairs_of(near.simulate((9, 9), condition=Band(0.25, 0.75))) == []
    far = Streams(Stream([0], [0]), Stream([2**53, 2**53 + 1, 2**53 + 2], [0, 1, 2]))
    assert pairs_of(far.simulate((9, 9), condition=Band(2**53 + 1, 2**53 + 1))) == [(0, 1)]


@pytest.mark.parametrize("step", STEPS)
def test_no_end_means_no_end(step: StepSize) -> None:
    far = 2**61 - 1
    case = Streams(Stream([1], [far]), Stream([1], [-far]))
    assert pairs_of(case.simulate((None, None), step=step)) == [(0, 0)]


def test_keys_of_all_64_bits() -> None:
    ends = [-(2**63), -1, 0, 1, 2**63 - 1]
    case = Streams(Stream(list(ends), [0] * 5), Stream(list(ends), [0] * 5))
    for condition in CONDITIONS[:6]:
        assert agrees(case, (0, 0), condition, 1000, "probe-first")


def test_zero_has_one_sign() -> None:
    case = Streams(Stream([0.0, -0.0], [0, 0]), Stream([-0.0], [0]))
    assert pairs_of(case.simulate((0, 0))) == [(0, 0), (1, 0)]


@settings(max_examples=200)
@given(
    streams(importance=True),
    st.sampled_from(get_args(Combine)),
    st.sampled_from(STEPS),
    st.sampled_from(CONDITIONS),
    st.booleans(),
)
def test_importance(
    case: Streams,
    combine: Combine,
    step: StepSize,
    condition: Condition,
    collect: bool,  # noqa: FBT001
) -> None:
    report = case.simulate((4, 3), combine=combine, step=step, condition=condition, collect=collect)
    found = exact_rows(case.arrived(), (4, 3), condition)
    expected = sum(COMBINE[combine](a.importance, b.importance) for a, b in found)
    assert report.importance == pytest.approx(expected)
    assert report.exact_importance == pytest.approx(expected)


def test_importance_of_one_side_only_is_weighed_against_one() -> None:
    left = {"key": [1, 1], "time": [0, 0], "importance": [0.25, 5.0]}
    report = tg.simulate(left, {"key": [1], "time": [0]}, window=(0, 0))
    assert (report.importance, report.exact_importance) == (1.25, 1.25)
    assert tg.simulate(left, {"key": [1], "time": [0]}, window=(0, 0), combine="sum").importance == 7.25


def test_without_importance_there_is_none() -> None:
    case = Streams(Stream([1], [0]), Stream([1], [0]))
    assert case.simulate((0, 0)).importance == 0.0


LATENESS_WINDOWS: list[Spans] = [(5, 5), (2, 0), (0, 0), (6, -2), (-1, 8), (None, 1)]


@settings(max_examples=300)
@given(
    streams(keys=ORDERED_KEYS, times=("int", "float")),
    st.sampled_from([0, 1, 3, 8, 100]),
    st.sampled_from(LATENESS_WINDOWS),
    st.sampled_from(STEPS),
    st.sampled_from(["=", "=", "<", Band(-1, 1)]),
    st.sampled_from(ORDERS),
)
def test_rows_within_the_lateness_join_as_if_in_order(
    case: Streams, lateness: int, window: Spans, step: StepSize, condition: Condition, order: Order
) -> None:
    report = case.simulate(window, lateness=lateness, step=step, condition=condition, order=order)
    expected = case.exact(window, condition, lateness)
    assert pairs_of(report) == expected
    assert report.exact == len(expected)
    assert report.late == case.arrived(lateness).late


@pytest.mark.parametrize("step", STEPS)
def test_hot_key_out_of_order(step: StepSize) -> None:
    # More rows of one key than are looked through one by one, and their times jump.
    times: list[int | float] = [100, *(80 + (7 * i) % 20 for i in range(40))]
    case = Streams(Stream([1] * len(times), times), Stream([1], [101]))
    report = case.simulate((8, 0), lateness=50, step=step)
    assert pairs_of(report) == case.exact((8, 0), "=", 50)
    assert report.exact == report.results == 15


def test_late_rows_are_dropped_and_counted() -> None:
    case = Streams(Stream([1, 1, 1], [10, 7, 6]), Stream([1], [10]))
    report = case.simulate((9, 9), lateness=3)
    assert (pairs_of(report), report.late) == ([(0, 0), (1, 0)], 1)
    assert (report.rows_left, report.rows_right) == (3, 1)


@settings(max_examples=100)
@given(
    streams(importance=True),
    st.integers(0, 20),
    st.sampled_from(STEPS),
    st.sampled_from([(5, 5), (0, 3), (Last(2), Last(2))]),
    st.sampled_from(["=", "<="]),
)
def test_warmup_counts_only_what_arrives_after_it(
    case: Streams, warmup: int, step: StepSize, window: Spans, condition: Condition
) -> None:
    report = case.simulate(window, warmup=warmup, step=step, condition=condition)
    arrived = case.arrived()
    start = min((row.time for row in arrived.rows), default=0) + warmup
    counted = [
        (a, b)
        for a, b in exact_rows(arrived, window, condition)
        if not warmup or max(a.time, b.time) >= start
    ]
    assert pairs_of(report) == sorted((a.place, b.place) for a, b in counted)
    assert report.results == report.exact == len(counted)
    assert report.importance == pytest.approx(sum(min(a.importance, b.importance) for a, b in counted))


@settings(max_examples=100)
@given(
    st.permutations(range(24)),
    st.integers(1, 23),
    st.sampled_from([None, 1, 3, 10]),
    st.sampled_from(STEPS),
    st.sampled_from(["=", "<"]),
)
def test_curves_count_the_results_up_to_each_time(
    times: list[int], lefts: int, budget: int | None, step: StepSize, condition: Condition
) -> None:
    left = Stream([t % 3 for t in times[:lefts]], list(times[:lefts]))
    right = Stream([t % 2 for t in times[lefts:]], list(times[lefts:]))
    case = Streams(left, right)
    report = case.simulate((9, 4), budget=budget, step=step, condition=condition)
    for curve, pairs in (
        (report.exact_over_time, case.exact((9, 4), condition)),
        (report.results_over_time, pairs_of(report)),
    ):
        at = np.array([max(left.times[a], right.times[b]) for a, b in pairs])
        assert curve.tolist() == [int((at <= now).sum()) for now in report.times]
    assert (np.diff(report.times) > 0).all()


@settings(max_examples=100)
@given(streams(), st.sampled_from([0, 2, 8, 50]), st.sampled_from([None, 2]), st.sampled_from(STEPS))
def test_curves_end_at_the_totals_and_never_fall(
    case: Streams, warmup: int, budget: int | None, step: StepSize
) -> None:
    report = case.simulate((5, 5), warmup=warmup, budget=budget, step=step)
    assert len(report.times) == len(report.results_over_time) <= 51
    assert (np.diff(report.times) >= 0).all()
    for curve, total in (
        (report.results_over_time, report.results),
        (report.exact_over_time, report.exact),
    ):
        assert (np.diff(curve) >= 0).all()
        if len(curve):
            assert curve[-1] == total


def test_counted_and_collected_agree() -> None:
    case = drawn_streams(5, "int", "int", rows=60)
    for step in STEPS:
        counted = case.simulate((5, 5), step=step, collect=False)
        assert counted.pairs is None
        assert counted.results == len(pairs_of(case.simulate((5, 5), step=step)))


@pytest.mark.parametrize("window", COUNTED_WINDOWS.values(), ids=COUNTED_WINDOWS)
def test_counted_windows_keep_what_they_count(window: Spans) -> None:
    case = drawn_streams(11, "int", "int", rows=40)
    report = case.simulate(window)
    bounds = [span.rows if isinstance(span, Last) else len(case.left.times) + 40 for span in window]
    assert report.peak_rows <= sum(bounds)
