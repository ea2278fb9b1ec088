"""The level of new draws falls when memory overflows, and rises again once that lies a window back."""

from __future__ import annotations

import pytest

from tidegate.sampling.samplers.probability_control import ProbabilityControl

SPAN = 10.0


def settled(control: ProbabilityControl, now: float) -> int:
    """The level after a step of a sampler whose probability was given."""
    control.settle(now, held=50, room=100, span=SPAN, theory=lambda: None)
    return control.level


@pytest.mark.parametrize("apart", [SPAN / 8, SPAN / 2, SPAN, 5 * SPAN])
def test_an_overflow_is_not_forgotten_before_it_lies_a_window_back(apart: float) -> None:
    control = ProbabilityControl(highest=0, overflow=0.01)
    settled(control, 0.0)
    control.lower(held=200, room=100, certain=0)
    lowered = control.level
    assert lowered > 0
    now = apart
    assert settled(control, now) == lowered, "at the end of the step in which memory overflowed"
    while (now := now + apart) < apart + SPAN:
        assert settled(control, now) == lowered
    assert settled(control, now) < lowered


def test_an_overflow_in_the_first_step_is_not_forgotten_either() -> None:
    control = ProbabilityControl(highest=0, overflow=0.01)
    control.lower(held=200, room=100, certain=0)
    lowered = control.level
    assert settled(control, 100.0) == lowered == settled(control, 109.0)
    assert settled(control, 110.5) < lowered
