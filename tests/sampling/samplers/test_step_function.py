"""The table lookup of a step function equals a direct count."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.sampling.samplers.step_function import step_function, steps_below

PLACES = st.floats(0, 8) | st.sampled_from([0.0, 1 / 128, 1.0, 8.0])


@given(st.lists(PLACES, max_size=30), st.lists(PLACES, min_size=1, max_size=30))
def test_lookup_equals_a_direct_count(rises: list[float], numbers: list[float]) -> None:
    steps = step_function(np.sort(np.array(rises)), top=8.0)
    for number in numbers + rises:
        assert steps_below(steps, number) == sum(rise < number for rise in rises)
