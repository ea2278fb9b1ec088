"""At which ages rows are found, however a stream is cut into steps."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate import Band, simulate
from tidegate.policies import Fifo
from tidegate.types import SIDES, Buckets

if TYPE_CHECKING:
    from tidegate.types import Array, Condition, Side, Step, StepSize

WINDOW = (12, 7)


@dataclass(frozen=True)
class Watching(Fifo):
    """Writes down the ages that it is told."""

    seen: dict[Side, Array] = field(default_factory=lambda: {s: np.zeros(13, np.int64) for s in SIDES})

    def watches(self) -> dict[Side, Buckets]:
        return {"left": Buckets(1.0, 13), "right": Buckets(1.0, 8)}

    def observe(self, step: Step) -> None:
        for side, counts in step.ages.items():
            self.seen[side][: len(counts)] += counts

    def is_fixed(self) -> bool:
        return False  # so that every step is shown


def expected(
    left: dict[str, Array], right: dict[str, Array], condition: Condition
) -> dict[Side, Counter[int]]:
    found: dict[Side, Counter[int]] = {"left": Counter(), "right": Counter()}
    for key_left, t_left in zip(*left.values(), strict=True):
        for key_right, t_right in zip(*right.values(), strict=True):
            apart = int(t_right - t_left)
            matches = (
                condition.low <= key_right - key_left <= condition.high
                if isinstance(condition, Band)
                else key_left == key_right
            )
            if matches and -WINDOW[1] <= apart <= WINDOW[0]:
                found["left" if apart >= 0 else "right"][abs(apart)] += 1
    return found


@st.composite
def sides(draw: st.DrawFn) -> dict[str, Array]:
    times = sorted(draw(st.lists(st.integers(0, 40), max_size=30)))
    keys = draw(st.lists(st.integers(0, 4), min_size=len(times), max_size=len(times)))
    return {"key": np.array(keys, np.int64), "time": np.array(times, np.int64)}


@pytest.mark.parametrize("step", [1, 4, "instant", 1000])
@pytest.mark.parametrize("collect", [False, True])
@pytest.mark.parametrize("condition", ["=", Band(-1, 1)], ids=["equal", "band"])
@given(left=sides(), right=sides())
def test_every_result_is_counted_at_the_age_of_its_older_row(
    step: StepSize, collect: object, condition: Condition, left: dict[str, Array], right: dict[str, Array]
) -> None:
    policy = Watching()
    simulate(left, right, window=WINDOW, policy=policy, step=step, condition=condition, collect=bool(collect))
    for side, counts in expected(left, right, condition).items():
        assert policy.seen[side].tolist() == [counts[bucket] for bucket in range(13)]


def test_a_partner_out_of_order_finds_a_row_at_the_age_that_it_has_by_then() -> None:
    left = {"key": [1, 2], "time": [0, 5]}
    right = {"key": [9, 1], "time": [6, 3]}
    policy = Watching()
    simulate(left, right, window=WINDOW, policy=policy, lateness=4)
    # At 3 the left row of time 0 was due, but it had to be held until time 6 was known.
    assert np.flatnonzero(policy.seen["left"]).tolist() == [6]
