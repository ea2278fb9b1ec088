"""`life`: expected results in the time that a row has left."""

from __future__ import annotations

import numpy as np
import pytest

import tidegate as tg


@pytest.mark.parametrize("window", [(30, -2), (-2, 30)])
def test_one_limit_of_the_window_may_be_negative(window: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    left, right = ({"key": rng.zipf(1.5, 3000) % 50, "time": np.arange(3000)} for _ in "lr")
    life, random = (
        tg.simulate(left, right, window=window, budget=20, policy=policy, step=10)
        for policy in ("life", "random")
    )
    assert life.peak_rows == 20
    assert life.recall > random.recall
