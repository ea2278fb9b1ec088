"""Payoffs: breakpoints, inverse, and two payoffs that share memory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.payoffs import payoffs
from tidegate import InputError
from tidegate.models import Payoff

NOTHING = Payoff([0], [0])


def test_it_is_linear_between_breakpoints_and_constant_after_them() -> None:
    payoff = Payoff([0, 2, 4, 9], [0, 4, 6, 6])
    assert payoff.at(np.array([0, 1, 2, 3, 4, 100])).tolist() == [0, 2, 4, 5, 6, 6]
    assert isinstance(payoff.at(1), float)
    assert (payoff.full, payoff.ample) == (6, 4)
    assert payoff.needed(np.array([0, 1, 5, 6, 6.1])).tolist() == [0, 0.5, 3, 4, np.inf]
    assert payoff.memory_for(np.array([0, 0.5, 1, 1.1])).tolist() == [0, 1.5, 4, np.inf]
    assert payoff.recall(3) == 5 / 6


def test_without_results_the_recall_is_1() -> None:
    assert (NOTHING.full, NOTHING.ample, NOTHING.recall(0), NOTHING.memory_for(1.0)) == (0, 0, 1, 0)
    assert NOTHING.recall(np.zeros(2)).tolist() == [1, 1]
    assert NOTHING.shared(NOTHING) == NOTHING
    assert NOTHING.split(3, NOTHING) == (1.5, 1.5)
    assert NOTHING.split(3, Payoff([0, 2], [0, 1])) == (0, 3)


def test_it_is_compared_by_value() -> None:
    one, same, other = Payoff([0, 1], [0, 2]), Payoff((0.0, 1.0), np.array([0, 2])), Payoff([0, 1], [0, 3])
    assert (one == same, hash(one) == hash(same), one == other, one == "payoff") == (True, True, False, False)
    with pytest.raises(ValueError, match="read-only"):
        one.memory[1] = 5


@given(payoffs(), st.floats(0, 1))
def test_the_inverse(payoff: Payoff, recall: float) -> None:
    memory = payoff.memory_for(recall)
    assert 0 <= memory <= payoff.ample
    assert payoff.recall(memory) >= recall - 1e-9
    if payoff.full:
        assert payoff.at(memory) == pytest.approx(recall * payoff.full, rel=1e-9, abs=1e-9)
        assert payoff.at(payoff.ample) == payoff.full


@given(payoffs(), st.lists(st.floats(0, 200), min_size=3, max_size=3))
def test_it_is_concave_and_never_falls(payoff: Payoff, memory: list[float]) -> None:
    low, middle, high = sorted(memory)
    share = (middle - low) / (high - low) if high > low else 0.0
    ends = payoff.at(low), payoff.at(high)
    assert ends[0] <= ends[1]
    assert payoff.at(middle) >= ends[0] + share * (ends[1] - ends[0]) - 1e-9 * payoff.full


@given(payoffs(), payoffs(), st.floats(0, 1))
def test_sharing_equals_the_best_division(one: Payoff, other: Payoff, share: float) -> None:
    memory = share * 1.2 * (one.ample + other.ample)
    tries = np.linspace(0, memory, 501)
    divided = (one.at(tries) + other.at(memory - tries)).max()
    both = one.shared(other)
    mine, theirs = one.split(memory, other)
    assert mine + theirs == pytest.approx(memory)
    assert min(mine, theirs) >= -1e-9
    slack = 1e-7 * max(both.full, 1)
    assert both.at(memory) >= divided - slack
    assert one.at(mine) + other.at(theirs) == pytest.approx(both.at(memory), rel=1e-7, abs=slack)


def test_equal_slopes_and_excess_memory_are_divided_in_proportion() -> None:
    one, other = Payoff([0, 10], [0, 20]), Payoff([0, 1, 31], [0, 3, 63])
    assert one.split(1, other) == (0, 1)
    assert one.split(21, other) == (5, 16)
    assert Payoff([0, 10], [0, 1]).split(60, Payoff([0, 20], [0, 5])) == (20, 40)


@pytest.mark.parametrize(
    ("memory", "results", "message"),
    [
        ([1, 2], [0, 1], "memory start at 1; start at 0"),
        ([0, 2, 2], [0, 1, 2], "memory go from 2 to 2"),
        ([0, 1], [1, 2], "without memory the payoff is 1"),
        ([0, 1, 2], [0, 3, 2], "falls after memory 1"),
        ([0, 1, 2], [0, 1, 3], "faster after memory 1; it must be concave.*from_segments"),
        ([0, 1], [0, 1, 2], "2 breakpoints of memory have 3 results"),
        ([0, 1], [0, float("nan")], "results contain nan"),
        ([], [], "shape"),
        (["a"], [0], "not numbers"),
    ],
)
def test_invalid_payoffs_are_refused(memory: list[float], results: list[float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Payoff(memory, results)


def test_invalid_segments_and_splits_are_refused() -> None:
    with pytest.raises(InputError, match="1 lengths have 2 slopes"):
        Payoff.from_segments([1], [1, 2])
    with pytest.raises(InputError, match="a segment has -1; lengths and slopes are 0 or more"):
        Payoff.from_segments([1, 2], [1, -1])
    with pytest.raises(InputError, match="memory to split is -1"):
        NOTHING.split(-1, NOTHING)
