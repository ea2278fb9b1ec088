"""A claim is judged by what was measured, and by how sure that is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate import InputError
from tidegate.experiments.claims import Interval, judged

ABOVE, BELOW, EITHER = Interval(2, 1, 3), Interval(-2, -3, -1), Interval(0.5, -1, 2)


@pytest.mark.parametrize(
    ("margins", "verdict"),
    [
        ([ABOVE, ABOVE], "holds"),
        ([ABOVE, BELOW], "holds in part"),
        ([ABOVE, EITHER], "holds in part"),
        ([BELOW, EITHER], "does not hold"),
        ([EITHER, Interval(-0.5, -2, 1)], "open"),
        ([Interval.exactly(0.0)], "does not hold"),
    ],
)
def test_all_cases_must_be_above_0(margins: list[Interval], verdict: str) -> None:
    assert judged("so it is", {str(i): margin for i, margin in enumerate(margins)}).verdict == verdict


@pytest.mark.parametrize(
    ("margins", "verdict"),
    [
        ([ABOVE, ABOVE, BELOW], "holds"),
        ([ABOVE, EITHER], "holds in part"),
        ([EITHER, BELOW], "does not hold"),
    ],
)
def test_or_most_of_them(margins: list[Interval], verdict: str) -> None:
    cases = {str(i): margin for i, margin in enumerate(margins)}
    assert judged("so it is mostly", cases, needed="most").verdict == verdict


def test_numbers_are_told_with_what_is_known_of_them() -> None:
    claim = judged("so it is", {"here": ABOVE, "there": Interval.exactly(-1.5)}, unit="rows")
    assert claim.numbers == "here +2 rows (+1 to +3); there -1.5 rows"


def test_nothing_measured_judges_nothing() -> None:
    with pytest.raises(InputError, match="no case was measured for 'so it is'"):
        judged("so it is", {})
    with pytest.raises(InputError, match="no runs"):
        Interval.of([])


def test_one_run_decides_nothing() -> None:
    assert judged("so it is", {"once": Interval.of([1e9])}).verdict == "open"


@pytest.mark.parametrize(
    ("freedom", "printed"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (29, 2.045), (49, 2.010)],
)
def test_intervals_are_as_long_as_tables_of_student_s_distribution_say(freedom: int, printed: float) -> None:
    runs = np.arange(freedom + 1)
    error = runs.std(ddof=1) / len(runs) ** 0.5
    assert Interval.of(runs).half == pytest.approx(printed * error, rel=3e-4)


@given(st.integers(0, 2**32))
def test_runs_that_are_alike_give_their_mean(seed: int) -> None:
    assert Interval.of([seed] * 5) == Interval.exactly(seed)


def test_the_true_mean_is_missed_once_in_twenty() -> None:
    rng = np.random.default_rng(1)
    intervals = [Interval.of(rng.normal(3, 2, 6)) for _ in range(4000)]
    assert np.mean([not low <= 3 <= high for _, low, high in intervals]) == pytest.approx(0.05, abs=0.015)
