"""The probability of new draws is lowered when memory overflows, and recovers one window later."""

from __future__ import annotations

import pytest

from tidegate.sampling.samplers.probability_control import ProbabilityControl

SPAN = 10.0


def updated_level(control: ProbabilityControl, now: float) -> int:
    """The level after a step of a sampler with a given probability."""
    control.update(now, held=50, room=100, span=SPAN, model=lambda: None)
    return control.level


@pytest.mark.parametrize("interval", [SPAN / 8, SPAN / 2, SPAN, 5 * SPAN])
def test_the_probability_recovers_one_window_after_an_overflow(interval: float) -> None:
    control = ProbabilityControl(highest=0, overflow=0.01)
    updated_level(control, 0.0)
    control.lower(held=200, room=100, certain=0)
    lowered = control.level
    assert lowered > 0
    now = interval
    assert updated_level(control, now) == lowered, "at the end of the step in which memory overflowed"
    while (now := now + interval) < interval + SPAN:
        assert updated_level(control, now) == lowered
    assert updated_level(control, now) < lowered


def test_the_probability_recovers_after_an_overflow_in_the_first_step() -> None:
    control = ProbabilityControl(highest=0, overflow=0.01)
    control.lower(held=200, room=100, certain=0)
    lowered = control.level
    assert updated_level(control, 100.0) == lowered == updated_level(control, 109.0)
    assert updated_level(control, 110.5) < lowered
