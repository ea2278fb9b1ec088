"""Steps of few rows give what the index gives: counts, importance to the last digit, and ages."""

from dataclasses import asdict
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.brute_force import Spans
from tests.engine.cases import WINDOWS, Streams, drawn_streams, streams
from tidegate.engine import nested_loop
from tidegate.engine.report import Report
from tidegate.types import Order, Split, StepSize


def fields_of(report: Report) -> dict[str, object]:
    plain = asdict(report)
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in plain.items()}


def both_ways(
    case: Streams, window: Spans, policy: str, step: StepSize, order: Order, split: Split = "shared"
) -> list[dict[str, object]]:
    ways = []
    for most in (nested_loop.MAX_COMPARISONS, -1):
        with patch.object(nested_loop, "MAX_COMPARISONS", most):
            report = case.simulate(
                window, policy=policy, budget=4, split=split, step=step, order=order, collect=False
            )
        ways.append(fields_of(report))
    return ways


@settings(max_examples=60)
@given(
    streams(importance=True, times=("int", "float")),
    st.sampled_from(list(WINDOWS.values())),
    st.sampled_from(["size", "prob"]),
    st.sampled_from([3, 1000, "instant"]),
)
def test_few_rows_count_as_many_do(case: Streams, window: Spans, policy: str, step: StepSize) -> None:
    one, other = both_ways(case, window, policy, step, "probe-first")
    assert one == other


@pytest.mark.parametrize("order", ["probe-first", "shed-first"])
@pytest.mark.parametrize("policy", ["age", "ijoin"])
def test_ages_and_worths_of_longer_streams(policy: str, order: Order) -> None:
    draw = np.random.default_rng(3)
    case = drawn_streams(1, "int", "float", rows=0)
    for stream in (case.left, case.right):
        stream.keys = draw.integers(0, 6, 300).tolist()
        stream.times = np.sort(draw.uniform(0, 90, 300)).tolist()
        stream.worth = draw.uniform(0, 1, 300).tolist()
    one, other = both_ways(case, (7, 3), policy, 2, order, "shared" if order == "probe-first" else "even")
    assert one == other
    assert one["results"]
