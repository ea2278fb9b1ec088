"""Match probabilities equal sums over all values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.processes.test_processes import PROCESSES
from tidegate import InputError
from tidegate.models import AR1, History, Noise, Oracle, Process, RandomWalk
from tidegate.models.processes.arrival_forecast import ArrivalForecast
from tidegate.types import Array

WIDE = np.arange(-600, 601)


@given(PROCESSES, st.integers(0, 20), st.integers(-9, 9), st.lists(st.integers(1, 7), min_size=1, max_size=4))
def test_likely_values_have_nearly_all_probability(
    process: Process, now: int, last: int, ahead: list[int]
) -> None:
    likely = process.likely(History(now, last), np.array(ahead))
    assert len(np.unique(likely)) == len(likely)
    assert process.probability(History(now, last), np.array(ahead), likely).sum(axis=0) == pytest.approx(1)


@given(PROCESSES, PROCESSES, st.integers(-9, 9), st.integers(-9, 9))
def test_match_probabilities_equal_sums_over_values(
    left: Process, right: Process, one: int, two: int
) -> None:
    first = ArrivalForecast.after(left, (4, one), np.array([5, 6, 9]))
    second = ArrivalForecast.after(right, (3, two), np.array([4, 8]))
    summed = first.probabilities(WIDE).T @ second.probabilities(WIDE)
    assert first.match_probabilities(second) == pytest.approx(summed, abs=1e-9)
    assert second.match_probabilities(first) == pytest.approx(summed.T, abs=1e-9)


@pytest.mark.parametrize("process", [RandomWalk(0, Noise(2)), AR1(0, 0.5, 1)], ids=repr)
def test_a_walk_without_a_last_value_has_probability_0(process: Process) -> None:
    unseen, times = ArrivalForecast.after(process, None, np.array([0, 1])), np.array([0, 1, 2])
    assert not unseen.probabilities(np.array([0, 1])).any()
    assert (
        unseen.match_probabilities(ArrivalForecast.after(Oracle([0, 0, 0]), None, times)).tolist()
        == [[0, 0, 0]] * 2
    )


class WithoutLikelyValues(Oracle):
    """A process without a list of likely values."""

    likely = Process.likely


def test_a_process_must_list_likely_values() -> None:
    times: Array = np.array([0])
    with pytest.raises(InputError, match=r"give it a method likely\(history, ahead\)"):
        ArrivalForecast.after(WithoutLikelyValues([1]), None, times).match_probabilities(
            ArrivalForecast.after(Oracle([1]), None, times)
        )
