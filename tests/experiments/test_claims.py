"""A claim is judged by the confidence intervals of its margins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate import InputError
from tidegate.experiments.claims import Case, Claim, MeanInterval, judge, judge_all
from tidegate.experiments.results import Results

ABOVE, BELOW, EITHER = MeanInterval(2, 1, 3), MeanInterval(-2, -3, -1), MeanInterval(0.5, -1, 2)


@pytest.mark.parametrize(
    ("margins", "verdict"),
    [
        ([ABOVE, ABOVE], "holds"),
        ([ABOVE, BELOW], "holds in part"),
        ([ABOVE, EITHER], "holds in part"),
        ([BELOW, EITHER], "does not hold"),
        ([EITHER, MeanInterval(-0.5, -2, 1)], "open"),
        ([MeanInterval.exactly(0.0)], "does not hold"),
    ],
)
def test_all_cases_must_be_above_0(margins: list[MeanInterval], verdict: str) -> None:
    assert judge("so it is", {str(i): margin for i, margin in enumerate(margins)}).verdict == verdict


@pytest.mark.parametrize(
    ("margins", "verdict"),
    [
        ([ABOVE, ABOVE, BELOW], "holds"),
        ([ABOVE, EITHER], "holds in part"),
        ([EITHER, BELOW], "does not hold"),
    ],
)
def test_or_most_cases_if_the_claim_requires_no_more(margins: list[MeanInterval], verdict: str) -> None:
    cases = {str(i): margin for i, margin in enumerate(margins)}
    assert judge("so it is mostly", cases, required="most").verdict == verdict


def test_numbers_have_intervals_unless_they_are_exact() -> None:
    claim = judge("so it is", {"here": ABOVE, "there": MeanInterval.exactly(-1.5)}, unit="rows")
    assert claim.numbers == "here +2 rows (+1 to +3); there -1.5 rows"


def test_a_claim_without_measurements_is_left_out() -> None:
    results = Results.from_runs({(1,): [3, 5], (2,): [2, 2]}, axes=("memory",), number="results")
    many, few = (
        Claim(text, lambda case: case("results"), {"memory": memory}, "{memory} rows", "results")
        for text, memory in (("with much memory", (9,)), ("with little", (1, 9)))
    )
    [judged] = judge_all([many, few], results)
    assert judged == ("with little", "open", "1 rows +4 results (-8.71 to +16.7)")


def test_a_measurement_that_is_missing_is_named() -> None:
    results = Results.from_runs({(1,): [3, 5]}, axes=("memory",), number="results")
    with pytest.raises(InputError, match="no finished run with memory 2 has measured 'results'"):
        Case(results, {})("results", memory=2)
    with pytest.raises(InputError, match="no runs"):
        MeanInterval.of([])


def test_one_run_leaves_a_claim_open() -> None:
    assert judge("so it is", {"once": MeanInterval.of([1e9])}).verdict == "open"


@pytest.mark.parametrize(
    ("freedom", "printed"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (29, 2.045), (49, 2.010)],
)
def test_interval_lengths_match_tables_of_student_s_distribution(freedom: int, printed: float) -> None:
    runs = np.arange(freedom + 1)
    error = runs.std(ddof=1) / len(runs) ** 0.5
    assert MeanInterval.of(runs).half == pytest.approx(printed * error, rel=3e-4)


@given(st.integers(0, 2**32))
def test_equal_runs_give_an_exact_mean(seed: int) -> None:
    assert MeanInterval.of([seed] * 5) == MeanInterval.exactly(seed)


def test_intervals_miss_the_true_mean_once_in_twenty() -> None:
    rng = np.random.default_rng(1)
    intervals = [MeanInterval.of(rng.normal(3, 2, 6)) for _ in range(4000)]
    assert np.mean([not low <= 3 <= high for _, low, high in intervals]) == pytest.approx(0.05, abs=0.015)
