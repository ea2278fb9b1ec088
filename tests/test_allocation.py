"""Memory is divided among joins, and between the sides of a join."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.models.payoffs import payoffs
from tidegate import InputError, allocate, predict_recall
from tidegate.allocation import sampling_memory
from tidegate.models import AgeCurve, Payoff

JOINS = st.lists(payoffs(), min_size=1, max_size=5)
WEIGHTS = st.lists(st.floats(0.1, 10), min_size=5, max_size=5)
HUNDRED = Payoff([0, 100], [0, 1])


def shape(rates: np.ndarray) -> Payoff:
    """The payoff of an age curve of 20 buckets over 500, with 5 matches per row and one row per unit of time."""
    return AgeCurve(np.linspace(0, 500, 21), 5 * rates / rates.sum()).payoff(1)


def level(joins: list[Payoff], memory: list[int], weights: list[float]) -> float:
    return min(j.recall(m) / w for j, m, w in zip(joins, memory, weights, strict=True))


@given(JOINS, WEIGHTS, st.integers(5, 400), st.sampled_from(["alloc", "prop"]))
def test_rows_are_whole_and_never_exceed_the_total(
    joins: list[Payoff], weights: list[float], total: int, scheme: str
) -> None:
    found = allocate(joins, total, weights[: len(joins)], scheme=scheme)  # type: ignore[arg-type]
    assert all(type(rows) is int and rows >= 1 for rows in found.memory)
    assert sum(found.memory) == total
    assert found.achieved == [join.recall(rows) for join, rows in zip(joins, found.memory, strict=True)]
    assert found.level == level(joins, found.memory, weights[: len(joins)])


@given(JOINS, WEIGHTS, st.integers(5, 400))
def test_alloc_is_never_below_prop(joins: list[Payoff], weights: list[float], total: int) -> None:
    for given_weights in (None, weights[: len(joins)]):
        best = allocate(joins, total, given_weights)
        assert best.level >= allocate(joins, total, given_weights, scheme="prop").level - 1e-9


@pytest.mark.parametrize("results", [2.5e-323, 1e-310, 1.0, 1e300])
def test_recalls_do_not_depend_on_the_unit_of_results(results: float) -> None:
    joins = [Payoff([0, 1], [0, 0]), Payoff([0, 5], [0, results]), Payoff([0, 2, 7], [0, results, results])]
    for scheme, memory in (("alloc", [1, 4, 2]), ("prop", [1, 4, 2])):
        found = allocate(joins, 7, scheme=scheme)  # type: ignore[arg-type]
        assert (found.memory, found.level, found.achieved) == (memory, 0.8, [1, 0.8, 1])
    assert joins[1].recall(np.arange(6.0)) == pytest.approx(np.arange(6) / 5, rel=1e-12)
    assert joins[1].memory_for(np.array([0.1, 0.5, 1, 1.1])) == pytest.approx(
        [0.5, 2.5, 5, np.inf], rel=1e-12
    )


@given(st.lists(payoffs(6), min_size=2, max_size=3), WEIGHTS, st.integers(3, 9))
def test_no_division_has_a_higher_lowest_recall(
    joins: list[Payoff], weights: list[float], total: int
) -> None:
    chosen_weights = weights[: len(joins)]
    divisions = (m for m in product(range(1, total + 1), repeat=len(joins)) if sum(m) <= total)
    best = max(level(joins, list(memory), chosen_weights) for memory in divisions)
    assert allocate(joins, total, chosen_weights).level == pytest.approx(best, abs=1e-7)


@given(JOINS, WEIGHTS, st.floats(0.2, 0.9))
def test_recalls_below_1_are_in_proportion_to_weights(
    joins: list[Payoff], weights: list[float], share: float
) -> None:
    # In millions of rows, so that whole rows matter little.
    large = [Payoff(join.memory * 1_000_000, join.results) for join in joins if join.full]
    assume(large)
    for chosen_weights in ([1.0] * len(large), weights[: len(large)]):
        found = allocate(large, int(share * sum(join.ample for join in large)), chosen_weights)
        open_ended = [r / w for r, w in zip(found.achieved, chosen_weights, strict=True) if r < 1]
        if open_ended:
            assert max(open_ended) <= 1.01 * min(open_ended)
        if len(open_ended) == len(large):
            assert found.level == min(open_ended)


def test_a_function_of_recall_replaces_a_payoff() -> None:
    easy, hard = Payoff([0, 10, 100], [0, 90, 100]), Payoff([0, 100], [0, 100])
    by_payoff = allocate([easy, hard], 88)
    by_function = allocate([easy.memory_for, lambda q: 100 * q], 88)
    assert by_function.memory == by_payoff.memory == [9, 79]
    assert by_function.achieved == pytest.approx(by_payoff.achieved)


def test_memory_that_a_join_cannot_use_goes_to_others() -> None:
    small = Payoff([0, 10], [0, 1])
    assert allocate([small, HUNDRED], 60, weights=[4, 1]).memory == [10, 50]
    assert allocate([small, HUNDRED], 60, weights=[4, 1]).level == 0.25


def test_remaining_rows_go_to_the_lowest_recall_and_then_in_proportion() -> None:
    assert allocate([HUNDRED] * 3, 8).memory == [3, 3, 2]
    assert allocate([HUNDRED, HUNDRED, Payoff([0, 130], [0, 1])], 8).memory == [3, 2, 3]
    assert allocate([HUNDRED, Payoff([0, 300], [0, 1])], 800).memory == [200, 600]
    # More rows do not help these two, so each keeps its share.
    steps: list[Callable[[float], float]] = [lambda q: 100 * (q > 0.5), lambda q: 300 * (q > 0.5)]
    found = allocate(steps, 200)
    assert sum(found.memory) == 200
    assert found.level == pytest.approx(0.5)


def test_prop_is_in_proportion_to_the_needed_memory() -> None:
    joins = [HUNDRED, Payoff([0, 300, 900], [0, 1, 1])]
    assert allocate(joins, 40, scheme="prop").memory == [10, 30]
    assert allocate(joins, 2, scheme="prop").memory == [1, 1]
    assert allocate([HUNDRED, Payoff([0, 160], [0, 1])], 10, scheme="prop").memory == [4, 6]
    samples = [
        sampling_memory(AgeCurve([0, w], [2]), rates=(1, 1), window=(w, 0), results=w, cv=300 / w)
        for w in (100, 300)
    ]
    assert allocate(samples, 40, metric="error", scheme="prop").memory == [10, 30]
    assert allocate([Payoff([0], [0])] * 2, 10, scheme="prop").memory == [5, 5]


def test_rising_and_falling_age_curves_divide_memory_as_in_figure_11() -> None:
    k, levels, shares = np.arange(1, 21), [], []
    for exponent in (1, 2, 3, 4):
        joins = [shape(k**exponent), shape((20.0 - k) ** exponent)]
        found = allocate(joins, 500)
        levels.append(found.level)
        shares.append(found.memory[1])
        assert found.level > 0.5
        # INC needs memory in proportion to its recall for any exponent.
        assert allocate(joins, 500, scheme="prop").achieved[0] == pytest.approx(0.5, abs=0.02)
    assert levels == sorted(levels)
    assert shares == sorted(shares, reverse=True)


@given(
    st.lists(st.tuples(st.floats(0.2, 3), st.integers(10, 1000)), min_size=1, max_size=4),
    WEIGHTS,
    st.integers(40, 390),
)
def test_errors_are_in_proportion_to_weights_and_never_above_prop(
    populations: list[tuple[float, int]], weights: list[float], total: int
) -> None:
    curve = AgeCurve([0, 100], [2])
    joins = [sampling_memory(curve, rates=(1, 1), window=(100, 0), results=n, cv=cv) for cv, n in populations]
    chosen_weights = weights[: len(joins)]
    found = allocate(joins, total, chosen_weights, metric="error")
    assert sum(found.memory) == total
    assert found.level == max(e / w for e, w in zip(found.achieved, chosen_weights, strict=True))
    assert found.level <= allocate(joins, total, chosen_weights, metric="error", scheme="prop").level + 1e-9
    for join, rows, error in zip(joins, found.memory, found.achieved, strict=True):
        assert join(error) <= rows + 1e-6
        if error > 0:
            assert join(error * 0.99) > rows
    if total >= 100 * len(joins):
        assert found.achieved == [0] * len(joins)


def test_the_memory_for_an_error_is_that_of_the_sample() -> None:
    memory = sampling_memory(([1.0], [1.0]), rates=(1, 1), window=(50, 0), results=1000, cv=2)
    for fraction in (0.1, 0.5, 0.9):
        error = 2 * math.sqrt((1 - fraction) / (fraction * 1000))
        lifetime = 1 - (1 - fraction) * (1 - (1 - fraction) ** 50) / (50 * fraction)
        assert memory(error) == pytest.approx(50 * lifetime)
    assert memory(0) == 50


def test_recall_is_predicted_for_a_join_of_two_sides() -> None:
    early, late = AgeCurve([0, 1, 2], [4, 0]), AgeCurve([0, 1, 2], [0, 4])
    assert predict_recall((late, early), 2, rates=(1, 1), window=(2, 2)) == 6 / 8
    assert predict_recall((late, early), 2, rates=(1, 1), window=(2, 0)) == 1
    assert predict_recall((None, None), 2, rates=(1, 1), window=(2, 0)) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"joins": []}, "no joins"),
        ({"total": 1}, "total is 1, too little for 2 joins"),
        ({"total": 2.5}, "total is 2.5; give a whole number"),
        ({"weights": [1]}, "1 weights for 2 joins"),
        ({"weights": [1, 0]}, "a weight is 0"),
        ({"weights": [1, float("nan")]}, "a weight is nan"),
        ({"metric": "loss"}, "metric 'loss' is not known; use one of 'recall', 'error'"),
        ({"scheme": "fair"}, "scheme 'fair' is not known; use one of 'alloc', 'prop'"),
        ({"metric": "error"}, "a Payoff gives the recall"),
        ({"joins": [HUNDRED, 3]}, "3 is not a payoff"),
        ({"joins": [lambda _: 50.0, lambda _: 60.0]}, "total is 100, but recall 0 alone needs 110 rows"),
        ({"joins": [lambda _: math.nan]}, "NaN"),
        ({"joins": [lambda _: math.inf], "metric": "error"}, "no error is large enough"),
    ],
)
def test_invalid_arguments_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        allocate(**{"joins": [HUNDRED, HUNDRED], "total": 100, **arguments})  # type: ignore[arg-type]


def test_invalid_samples_are_refused() -> None:
    with pytest.raises(InputError, match="cv is 0"):
        sampling_memory(([1.0], [1.0]), rates=(1, 1), window=(1, 1), results=1, cv=0)
    with pytest.raises(InputError, match="2 keys on the left"):
        sampling_memory(([0.5, 0.5], [1.0]), rates=(1, 1), window=(1, 1), results=1, cv=1)
