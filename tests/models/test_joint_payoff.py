"""The payoff of memory in a join, for every kind of model."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate import InputError, Last
from tidegate.models import AgeCurve, Payoff, joint_payoff

LATE, EARLY = AgeCurve([0, 1, 2], [0, 4]), AgeCurve([0, 1, 2], [4, 0])


class FakeModel:
    """A model of both sides that returns its arguments."""

    def payoff(self, rates: tuple[float, float], window: tuple[float, float]) -> tuple[Payoff, Payoff]:
        assert (rates, window) == ((2, 3), (5, 7))
        return Payoff([0, 1], [0, 5]), Payoff([0, 2], [0, 2])


def test_sides_share_one_memory() -> None:
    both = joint_payoff((LATE, EARLY), rates=(1, 1), window=(2, 2))
    assert both.at(np.array([1, 2, 3])).tolist() == [4, 6, 8]
    assert joint_payoff(LATE, rates=(1, 1), window=(2, 2)) == LATE.payoff(1)
    assert joint_payoff((None, EARLY), rates=(1, 5), window=(2, 2)) == EARLY.payoff(5)


def test_a_window_limits_the_payoff() -> None:
    assert joint_payoff((EARLY, LATE), rates=(1, 1), window=(1, 0)).at(9) == 4
    assert joint_payoff(LATE, rates=(1, 1), window=(1.5, 0)).full == 2
    assert joint_payoff(LATE, rates=(1, 1), window=(None, 0)).full == 4


def test_two_sided_models_are_given_rates_and_window() -> None:
    payoff = Payoff([0, 1], [0, 1])
    assert joint_payoff(payoff, rates=(1, 1), window=(1, 1)) is payoff
    assert joint_payoff(FakeModel(), rates=(2, 3), window=(5, 7)).at(np.array([1, 3])).tolist() == [5, 7]


def test_other_objects_are_refused() -> None:
    with pytest.raises(InputError, match="'age' is not a model of a join"):
        joint_payoff("age", rates=(1, 1), window=(1, 1))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="not a pair of age curves"):
        joint_payoff((LATE, LATE, LATE), rates=(1, 1), window=(1, 1))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="rates 3 are not a pair"):
        joint_payoff(LATE, rates=3, window=(1, 1))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="counts rows, but models need durations"):
        joint_payoff(LATE, rates=(1, 1), window=(Last(3), 0))
