"""The age curve: its functions, its priority by brute force, and the theory of section 3.2 by simulation."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.models.one_row_a_step import best_age, priority, run
from tidegate import InputError
from tidegate.models import AgeCurve
from tidegate.models.age_curve import priorities
from tidegate.types import Array

EXAMPLE_3_3 = [1, 1, 2, 1]
EXAMPLE_3_4 = [3, 0, 2]


def unit(rates: list[int]) -> AgeCurve:
    """A curve with a bucket for each unit of age."""
    return AgeCurve(range(len(rates) + 1), rates)


@st.composite
def curves(draw: st.DrawFn) -> AgeCurve:
    """Equal or unequal buckets with any widths, including empty buckets and ties."""
    rates = draw(st.lists(st.integers(0, 4) | st.floats(0, 10), min_size=1, max_size=12).filter(any))
    if draw(st.booleans()):
        return AgeCurve(np.arange(len(rates) + 1) * draw(st.sampled_from([1, 0.1, 25, 1 / 3])), rates)
    widths = st.lists(st.floats(0.01, 100), min_size=len(rates), max_size=len(rates))
    return AgeCurve(np.append(0, np.cumsum(draw(widths))), rates)


@st.composite
def single_peaks(draw: st.DrawFn) -> list[int]:
    """Rates that rise, then fall."""
    rates = sorted(draw(st.lists(st.integers(0, 6), min_size=1, max_size=7)))
    falls = draw(st.lists(st.integers(0, 6), max_size=5))
    rates += sorted(falls, reverse=True)
    assume(any(rates))
    return rates


def fastest(curve: AgeCurve, ages: Array) -> Array:
    """The priority by trying every later edge."""
    found = np.zeros(len(ages))
    for bucket, (edge, height) in enumerate(zip(curve.edges[1:], curve.heights[1:], strict=True)):
        inside = (ages >= curve.edges[bucket]) & (ages < edge)
        before = ages < curve.edges[bucket]
        rise, run = height - curve.cumulative(ages[before]), edge - ages[before]
        found[before] = np.maximum(found[before], rise / run)
        # Within its own bucket the rate is the density; as a quotient of small differences it would be noise.
        found[inside] = np.maximum(found[inside], curve.density[bucket])
    return found


def test_matches_by_age_and_ages_by_matches() -> None:
    curve = AgeCurve([0, 1, 2, 4], [3, 0, 2])
    assert curve.cumulative(np.array([-1, 0, 0.5, 1.5, 3, 9])).tolist() == [0, 0, 1.5, 3, 4, 5]
    assert curve.inverse(np.array([-1, 0, 1.5, 3, 3.5, 5, 5.1])).tolist() == [0, 0, 0.5, 1, 2.5, 4, np.inf]
    assert (curve.total, curve.window, isinstance(curve.cumulative(1), float)) == (5, 4, True)


@given(curves(), st.floats(0, 1))
def test_the_inverse_is_the_least_age(curve: AgeCurve, share: float) -> None:
    matches = share * curve.total
    age = curve.inverse(matches)
    assert curve.cumulative(age) == pytest.approx(matches, rel=1e-9, abs=1e-9 * curve.total)
    assert curve.inverse(curve.total) <= curve.window
    earlier = age * (1 - 1e-6)
    if matches > 1e-6 * curve.total:
        assert curve.cumulative(earlier) < matches


@given(curves(), st.lists(st.floats(0, 1.1), min_size=1, max_size=50))
def test_the_priority_equals_brute_force(curve: AgeCurve, shares: list[float]) -> None:
    ages = np.concatenate([np.array(shares) * curve.window, curve.edges, np.nextafter(curve.edges[1:], 0)])
    expected = fastest(curve, ages)
    np.testing.assert_allclose(curve.priority(ages), expected, rtol=1e-9, atol=1e-12 * curve.density.max())


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30).filter(any))
def test_whole_ages_have_the_priority_of_the_paper(rates: list[int]) -> None:
    ages = np.arange(len(rates) + 1)
    expected = [float(priority(rates, age)) for age in range(len(ages))]
    np.testing.assert_allclose(unit(rates).priority(ages), expected, rtol=1e-12)
    assert unit(rates).best_age == best_age(rates)
    assert unit(rates).priority(0) == pytest.approx(max(np.cumsum(rates) / np.arange(1, len(rates) + 1)))


def test_equal_and_unequal_buckets_give_the_same_priority() -> None:
    rng = np.random.default_rng(0)
    curve = AgeCurve(np.arange(1001) * 0.1, rng.random(1000))
    ages = np.concatenate([rng.random(10_000) * 110, curve.edges, np.nextafter(curve.edges, 0)])
    assert curve.tables.buckets_per_age == pytest.approx(10)
    searched = priorities(ages, curve.tables._replace(buckets_per_age=0.0))
    assert (curve.priority(ages) == searched).all()


def test_the_priority_keeps_the_shape_of_its_argument() -> None:
    curve = unit(EXAMPLE_3_4)
    assert isinstance(curve.priority(1), float)
    assert curve.priority(np.array([[0, 1], [2, 3]])).tolist() == [[3, 1], [2, 0]]
    assert curve.priority(np.array([-5, 7, np.nan, np.inf])).tolist() == [5 / 8, 0, 0, 0]
    assert curve.priority(np.array([])).tolist() == []


@pytest.mark.parametrize(("width", "buckets"), [(0.1, 3), (0.1, 14), (0.7, 31), (1 / 3, 32), (25, 9)])
def test_a_row_exactly_at_an_edge_is_in_the_bucket_that_begins_there(width: float, buckets: int) -> None:
    # For some widths the number of the bucket, computed as a product, is rounded down there.
    curve = AgeCurve(np.arange(buckets + 1) * width, np.arange(buckets, 0, -1))
    assert curve.tables.buckets_per_age > 0
    assert curve.priority(curve.edges[:-1]) == pytest.approx(curve.density, rel=1e-9)


def test_rounding_does_not_change_the_best_age() -> None:
    widths = np.array([0.1, 0.3, 0.7, 0.1, 0.2])
    level = AgeCurve(np.append(0, np.cumsum(widths)), widths * 3)
    assert level.best_age == level.window


@given(single_peaks(), st.integers(1, 5), st.lists(st.floats(0, 1.2), min_size=1, max_size=20))
def test_without_a_minimum_the_payoff_is_equation_3(rates: list[int], rate: int, shares: list[float]) -> None:
    curve = unit(rates)
    memory = np.array(shares) * rate * curve.window
    age = curve.best_age
    by_equation = np.where(
        memory / rate <= age,
        memory * curve.cumulative(age) / age,
        rate * curve.cumulative(memory / rate),
    )
    np.testing.assert_allclose(curve.payoff(rate).at(memory), by_equation, rtol=1e-9, atol=1e-12)


@given(curves(), st.floats(0.1, 10), st.floats(0, 1.2))
def test_fifo_and_until_expiry_do_not_beat_the_payoff(curve: AgeCurve, rate: float, share: float) -> None:
    memory = np.array([share * rate * curve.window])
    best = curve.payoff(rate).at(memory) * (1 + 1e-9)
    assert curve.recent(rate)(memory) <= best
    assert curve.until_expiry(rate)(memory) <= best
    full = rate * curve.total
    assert curve.payoff(rate).full == pytest.approx(full)
    assert curve.recent(rate)(2 * rate * curve.window) == pytest.approx(full)
    assert curve.until_expiry(rate)(2 * rate * curve.window) == pytest.approx(full)


def test_payoffs_of_the_baselines() -> None:
    curve = unit(EXAMPLE_3_3)
    assert np.array_equal(curve.recent(2)(np.array([0, 2, 6, 99])), [0, 2, 8, 10])
    assert np.array_equal(curve.until_expiry(2)(np.array([0, 4, 8, 99])), [0, 5, 10, 10])


def test_example_3_3_with_one_cell() -> None:
    held, results = run(EXAMPLE_3_3, memory=1, steps=7)
    assert held == [{1}, {1}, {1}, {4}, {4}, {4}, {7}]
    assert results == [1, 1, 2, 1, 1, 2, 1]
    curve = unit(EXAMPLE_3_3)
    assert curve.best_age == 3
    assert curve.payoff(1).at(1) == 4 / 3 == sum(results[:6]) / 6


def test_example_3_3_with_two_cells() -> None:
    held, results = run(EXAMPLE_3_3, memory=2, steps=3002)
    assert held[:7] == [{1}, {1, 2}, {1, 2}, {2, 4}, {4, 5}, {4, 5}, {5, 7}]
    assert sum(results[2:]) / 3000 == unit(EXAMPLE_3_3).payoff(1).at(2) == 8 / 3


def test_example_3_4() -> None:
    held, results = run(EXAMPLE_3_4, memory=2, steps=3002)
    assert held[:7] == [{1}, {1, 2}, {1, 3}, {3, 4}, {3, 5}, {5, 6}, {5, 7}]
    assert results[:7] == [3, 3, 5, 3, 5, 3, 5]
    assert sum(results[2:]) / 3000 == unit(EXAMPLE_3_4).payoff(1).at(2) == 4
    assert unit(EXAMPLE_3_4).recent(1)(2) == 3


@given(single_peaks(), st.integers(1, 12))
def test_the_priority_rule_is_the_optimal_strategy_of_either_case(rates: list[int], memory: int) -> None:
    steps, curve = 400, unit(rates)
    held, results = run(rates, memory, steps)
    expected = curve.payoff(1).at(memory) * steps
    # Only the beginning, when all rows are young, and the end, when some matches are missing, differ.
    assert abs(sum(results) - expected) <= 2 * (memory + len(rates)) * sum(rates)
    assert sum(results) <= expected + memory * sum(rates)
    if curve.best_age < memory < len(rates):
        newest = set(range(steps - memory + 1, steps + 1))
        worthless = {row for row in newest - held[-1] if not any(rates[steps - row :])}
        assert held[-1] | worthless == newest


@given(curves(), st.floats(0.01, 1.5))
def test_a_window_cuts_the_curve(curve: AgeCurve, share: float) -> None:
    window = share * curve.window
    assume(curve.cumulative(window) > 0)
    cut = curve.within(window)
    ages = np.linspace(0, window, 20)
    assert cut.window == pytest.approx(min(window, curve.window))
    np.testing.assert_allclose(cut.cumulative(ages), curve.cumulative(ages), rtol=1e-9, atol=1e-9)


def test_the_sample_is_kept() -> None:
    curve = AgeCurve([0, 1, 2], [1, 2], sample=[10, 5])
    assert curve.within(1).sample == [10]
    assert curve != AgeCurve([0, 1, 2], [1, 2])
    assert curve == AgeCurve((0, 1, 2), np.array([1, 2]), sample=np.array([10.0, 5.0]))
    assert len({curve, AgeCurve([0, 1, 2], [1, 2], [10, 5])}) == 1


@pytest.mark.parametrize(
    ("edges", "rates", "message"),
    [
        ([1, 2], [1], "edges of the age curve start at 1; start at 0"),
        ([0, 2, 2], [1, 1], "go from 2 to 2; each must be above"),
        ([0, 1, 2], [1], "3 edges bound 2 buckets, but 1 rates"),
        ([0, 1], [-1], "a rate of the age curve is -1"),
        ([0, 1], [float("nan")], "rates of the age curve contain nan"),
        ([0, float("inf")], [1], "edges of the age curve contain inf"),
        ([0, 1, 2], [0, 0], "all rates of the age curve are 0.*'fifo'"),
        ([0, 1], "many", "not numbers"),
        ([0, 1], [[1]], "shape"),
    ],
)
def test_invalid_curves_are_refused(edges: list[float], rates: list[float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        AgeCurve(edges, rates)


@pytest.mark.parametrize("sample", [[1], [1, -1]])
def test_a_sample_that_does_not_fit_is_refused(sample: list[float]) -> None:
    with pytest.raises(InputError, match="give the number of rows in each of the 2 buckets"):
        AgeCurve([0, 1, 2], [1, 1], sample)


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf"), True, "fast"])
def test_invalid_rates_are_refused(rate: float) -> None:
    with pytest.raises(InputError, match="rate is"):
        unit([1]).payoff(rate)


def test_edges_may_be_timedeltas() -> None:
    edges = [timedelta(0), timedelta(milliseconds=1), timedelta(seconds=1)]
    assert AgeCurve(edges, [1, 2]) == AgeCurve([0, 1_000, 1_000_000], [1, 2])


def test_a_row_that_waits_has_the_best_rate_over_its_whole_time() -> None:
    rng = np.random.default_rng(4)
    for _ in range(50):
        rates = np.where(rng.random(6) < 0.3, 0.0, rng.random(6))
        rates[rng.integers(6)] = 1.0
        edges = np.cumsum(np.append(0.0, rng.integers(1, 5, 6)))
        curve = AgeCurve(edges, rates)
        for age in (-0.5, -3.0, -100.0):
            best = max(curve.heights[1:] / (edges[1:] - age))
            assert curve.priority(age) == pytest.approx(best)
        assert curve.priority(-3.0) < curve.priority(-2.0) < curve.priority(0.0)


def test_rows_ahead_match_as_the_rows_of_the_other_side() -> None:
    own, other = AgeCurve([0, 2, 5], [1, 2]), AgeCurve([0, 1, 4], [3, 1])
    both = own.after(other, ratio=2)
    assert both.edges.tolist() == [0, 3, 4, 6, 9]
    assert both.rates.tolist() == [2, 6, 1, 2]
    assert own.after(None, ratio=2) is own
    assert own.from_age(-3) == AgeCurve([0, 3, 5, 8], [0, 1, 2])
    assert own.from_age(3.5) == AgeCurve([0, 1.5], [1])
    assert own.from_age(5) is None
