"""Expected benefits equal an enumeration of all futures, and dominated rows can be discarded."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.processes.tabulated import TabulatedProcess
from tidegate import InputError
from tidegate.experiments.stochastic_streams.dominance import cumulative_benefit, dominates, safe_to_discard
from tidegate.models import AR1, History, LinearTrend, Noise, Oracle, Process, RandomWalk, Stationary, gains
from tidegate.types import Array

STILL = Stationary({0: 0.5, 1: 0.3, 2: 0.2})
TREND = LinearTrend(1, 0, Noise(1))
WALK = RandomWalk(0, Noise(2, sigma=0.8))


def futures(process: Process, history: History, ahead: int) -> Iterator[tuple[tuple[int, ...], float]]:
    """Every sequence of the next values, with its probability."""
    if not ahead:
        yield (), 1.0
        return
    span = np.arange(-12, 13)
    chances = process.probability(history, np.array([1]), span)[:, 0]
    for value, chance in zip(span.tolist(), chances.tolist(), strict=True):
        if chance > 0:
            for rest, given_this in futures(process, History(history.now + 1, value), ahead - 1):
                yield (value, *rest), chance * given_this


@pytest.mark.parametrize("process", [STILL, TREND, WALK], ids=repr)
@pytest.mark.parametrize("value", [-1, 0, 2])
def test_benefits_equal_an_enumeration_of_futures(process: Process, value: int) -> None:
    history = History(0, 0)
    visits, first = np.zeros(4), np.zeros(4)
    for path, chance in futures(process, history, 4):
        came = np.array(path) == value
        visits += chance * np.cumsum(came)
        first += chance * np.minimum(np.cumsum(came), 1)
    assert cumulative_benefit(process, history, [value], 4)[0] == pytest.approx(visits)
    cached = cumulative_benefit(process, history, [value], 4, problem="caching")[0]
    assert cached == pytest.approx(first)


@given(st.floats(-3, 3), st.floats(-0.9, 0.9), st.floats(0.5, 5), st.lists(st.integers(-9, 9), min_size=1))
def test_first_uses_are_uses_and_happen_at_most_once(
    phi0: float, phi1: float, sigma: float, values: list[int]
) -> None:
    level = AR1(phi0, phi1, sigma)
    every = gains(level, History(0, 1), values, 40)
    first = gains(level, History(0, 1), values, 40, problem="caching")
    assert (first >= 0).all()
    assert (first <= every).all()
    assert (first[:, 0] == every[:, 0]).all()


@given(st.lists(st.integers(0, 9), min_size=1, max_size=5), st.integers(1, 12))
def test_there_is_no_benefit_after_the_window(lasting: list[int], ahead: int) -> None:
    values = [1] * len(lasting)
    benefit = cumulative_benefit(STILL, History(0), values, ahead, lasting=lasting)
    assert benefit[:, -1] == pytest.approx(0.3 * np.minimum(lasting, ahead))


def test_invalid_arguments_are_refused() -> None:
    for ahead in (0, -1, 1.5, True, None):
        with pytest.raises(InputError, match=f"ahead is {ahead!r}; give a whole number of steps, at least 1"):
            gains(STILL, History(0), [1], ahead)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="problem 'paging' is not known"):
        gains(STILL, History(0), [1], 1, problem="paging")  # type: ignore[arg-type]


BENEFITS = st.integers(1, 6).flatmap(
    lambda count: st.lists(
        st.lists(st.integers(0, 2), min_size=3, max_size=3).map(np.cumsum), min_size=count, max_size=count
    ).map(np.array)
)


@given(BENEFITS, st.integers(0, 7))
def test_the_largest_dominated_subset_is_found(benefits: Array, room: int) -> None:
    count = len(benefits)

    def is_dominated(subset: set[int]) -> bool:
        pairs = product(set(range(count)) - subset, subset)
        return all(dominates(benefits[stays], benefits[goes]) for stays, goes in pairs)

    found = set(np.flatnonzero(safe_to_discard(benefits, room, [STILL, TREND])).tolist())
    sizes = range(max(count - room, 0) + 1)
    largest = max(
        size for size in sizes if any(is_dominated(set(some)) for some in combinations(range(count), size))
    )
    assert is_dominated(found)
    assert len(found) == largest


@pytest.mark.parametrize("process", [WALK, AR1(0, 0.5, 1)], ids=repr)
def test_dominance_needs_independent_processes(process: Process) -> None:
    with pytest.raises(InputError, match="is not independent"):
        safe_to_discard(np.array([[1.0], [2.0]]), 1, [STILL, process])
    with pytest.raises(InputError, match="needs the processes of all streams to judge 2 rows"):
        safe_to_discard(np.array([[1.0], [2.0]]), 1, [])


# The paper's worked cases.


def test_section_4() -> None:
    left = TabulatedProcess(({}, {2: 1.0}, {3: 1.0}, {2: 0.5}))
    right = TabulatedProcess(({2: 1.0}, {3: 0.5}, {1: 0.8}, {1: 0.8}))
    keep_one = cumulative_benefit(right, History(0), [1], 3)[0]
    take_two = cumulative_benefit(left, History(0), [2], 3)[0]
    assert keep_one.tolist() == [0, 0.8, 1.6]
    assert take_two.tolist() == [1, 1, 1.5]
    assert not dominates(keep_one, take_two)
    assert not dominates(take_two, keep_one)
    # A strategy that depends on the observations: change to 3 if it arrives, otherwise keep 2.
    then_three = cumulative_benefit(left, History(1), [3], 2)[0, -1]
    then_two = cumulative_benefit(left, History(1), [2], 2)[0, -1]
    assert 1 + 0.5 * then_three + 0.5 * then_two == 1.75


def test_section_7_1_caching_discards_what_is_needed_last() -> None:
    oracle = Oracle([0, 1, 2, 3, 1, 0])
    benefits = cumulative_benefit(oracle, History(0), [3, 1, 2, 9], 5, problem="caching")
    assert benefits.tolist() == [[0, 0, 1, 1, 1], [1, 1, 1, 1, 1], [0, 1, 1, 1, 1], [0, 0, 0, 0, 0]]
    for room, gone in ((3, [9]), (2, [3, 9]), (1, [3, 2, 9])):
        goes = safe_to_discard(benefits, room, [oracle])
        assert np.array([3, 1, 2, 9])[goes].tolist() == gone


@given(st.integers(1, 30))
def test_section_7_2(ahead: int) -> None:
    steps = np.arange(1, ahead + 1)
    [joined] = cumulative_benefit(STILL, History(4), [1], ahead)
    [cached] = cumulative_benefit(STILL, History(4), [1], ahead, problem="caching")
    assert joined == pytest.approx(0.3 * steps)
    assert cached == pytest.approx(1 - 0.7**steps)
    both = cumulative_benefit(STILL, History(4), [1, 0, 2], ahead)
    assert safe_to_discard(both, 1, [STILL]).tolist() == [True, False, True]


@given(st.integers(0, 6), st.integers(-20, 20), st.integers(0, 20))
def test_section_7_3_caching(bound: int, value: int, now: int) -> None:
    window = LinearTrend(1, 0, Noise(bound))
    if value > now + bound:
        return  # it cannot have been fetched
    [benefit] = cumulative_benefit(window, History(now), [value], 30, problem="caching")
    left_at = value + bound + 1  # the first time at which the window is beyond it
    steps = np.minimum(np.arange(1, 31), max(left_at - now - 1, 0))
    assert benefit == pytest.approx(1 - (1 - 1 / (2 * bound + 1)) ** steps, abs=1e-12)


def test_section_7_3_printed_range_is_one_step_too_long() -> None:
    [benefit] = cumulative_benefit(LinearTrend(1, 0, Noise(1)), History(0), [0], 3, problem="caching")
    leaves = (
        2  # the window of time 2 is 1 to 3, so nothing arrives at step 2, although the printed benefit grows
    )
    assert benefit[leaves - 1] == benefit[leaves - 2] == pytest.approx(1 / 3)


@given(st.integers(0, 5), st.integers(1, 5), st.integers(0, 9))
def test_section_7_3_joining(narrow: int, more: int, now: int) -> None:
    wide = narrow + more
    narrow_side, wide_side = LinearTrend(1, 0, Noise(narrow)), LinearTrend(1, 0, Noise(wide))
    steps = np.arange(1, 41)
    history = History(now)
    lefts, rights = np.arange(now - wide - 3, now + narrow + 1), np.arange(now - wide, now + wide + 1)
    left = cumulative_benefit(wide_side, history, lefts, 40)
    right = cumulative_benefit(narrow_side, history, rights, 40)
    assert left == pytest.approx(
        np.clip(np.minimum(steps, (lefts + wide - now)[:, None]), 0, None) / (2 * wide + 1)
    )
    begins = np.maximum(rights - narrow - now, 1)[:, None]
    ends = (rights + narrow - now)[:, None]
    assert right == pytest.approx(np.clip(np.minimum(steps, ends) - begins + 1, 0, None) / (2 * narrow + 1))

    # The printed inequality is reversed: only an S2 row can dominate an R2 row; it does if its total is no less.
    slack = 1e-12
    for x, one in zip(lefts.tolist(), left, strict=True):
        for y, other in zip(rights.tolist(), right, strict=True):
            if x > now - wide and now - narrow < y <= now + narrow + 1:
                assert not dominates(one, other)
                enough = (y - now + narrow) / (2 * narrow + 1) >= (x - now + wide) / (2 * wide + 1) - slack
                assert dominates(other + slack, one) == enough


def categories(narrow: int, wide: int, now: int) -> dict[str, Array]:
    """Cumulative benefits of section 7.3's rows by category, each in the order of values: R is the narrow stream."""
    history, ahead = History(now), 3 * (narrow + wide) + 3
    ranges = {
        "R1": (now - wide - 3, now - wide),
        "R2": (now - wide + 1, now + narrow),
        "S1": (now - wide, now - narrow),
        "S2": (now - narrow + 1, now + narrow + 1),
        "S3": (now + narrow + 2, now + wide),
    }
    met = {"R": LinearTrend(1, 0, Noise(wide)), "S": LinearTrend(1, 0, Noise(narrow))}
    return {
        name: cumulative_benefit(met[name[0]], history, np.arange(low, high + 1), ahead).round(12)
        for name, (low, high) in ranges.items()
    }


@given(st.integers(0, 5), st.integers(1, 6), st.integers(0, 9))
def test_section_7_3_joining_within_and_across_categories(narrow: int, more: int, now: int) -> None:
    wide = narrow + more
    of = categories(narrow, wide, now)
    assert not of["R1"].any()
    assert not of["S1"].any()
    for name in ("R2", "S2"):
        assert all(dominates(larger, smaller) for smaller, larger in pairwise(of[name]))
    # All of S3 have equally many matches, the nearest value first.
    assert (of["S3"][:, -1] == 1).all()
    assert all(dominates(smaller, larger) for smaller, larger in pairwise(of["S3"]))
    for name, others in of.items():
        if name not in ("R1", "S1"):
            for one, other in product(others, [*of["R1"], *of["S1"]]):
                assert dominates(one, other)
                assert not dominates(other, one)
    # The last of S2 has its whole window from the next step on; S3 has to wait for it.
    assert all(dominates(of["S2"][-1], other) for other in of["S3"])
    for one, other in [*product(of["S2"][:-1], of["S3"]), *product(of["R2"], of["S3"])]:
        assert not dominates(one, other)
        assert not dominates(other, one)
    # No row of R2 dominates one of S2, contrary to the paper; some of S2 dominate some of R2.
    assert not any(dominates(one, other) for one, other in product(of["R2"], of["S2"]))
    assert dominates(of["S2"][-1], of["R2"][-1])


@given(st.integers(0, 5), st.integers(1, 6), st.integers(0, 9), st.data())
def test_section_7_3_joining_discards_by_category(
    narrow: int, more: int, now: int, data: st.DataObject
) -> None:
    wide = narrow + more
    of = categories(narrow, wide, now)
    streams = [LinearTrend(1, 0, Noise(narrow)), LinearTrend(1, 0, Noise(wide))]
    for name in ("R2", "S2", "S3"):
        room = data.draw(st.integers(0, len(of[name])))
        stays = np.flatnonzero(~safe_to_discard(of[name], room, streams))
        values = np.arange(len(of[name]))
        assert stays.tolist() == (values[:room] if name == "S3" else values[len(values) - room :]).tolist()
    everyone = np.concatenate(list(of.values()))
    none = len(of["R1"]) + len(of["S1"])
    goes = safe_to_discard(everyone, len(everyone) - none, streams)
    assert (goes == (everyone[:, -1] == 0)).all()


@given(st.integers(1, 5), st.floats(0.3, 3), st.integers(-5, 5))
def test_section_7_5_without_drift_the_nearest_value_is_the_best(bound: int, sigma: float, last: int) -> None:
    walk = RandomWalk(0, Noise(bound, sigma))
    away = np.arange(9)
    for signs in (1, -1):
        benefit = cumulative_benefit(walk, History(0, last), last + signs * away, 25)
        assert (np.diff(benefit, axis=0) <= 1e-12).all()
