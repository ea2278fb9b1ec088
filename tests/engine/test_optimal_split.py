"""A budget that the model divides does at least as well as halves, and about as well as the best division."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import tidegate as tg
from tidegate.models import AgeCurve, Frequency
from tidegate.policies import Age, Prob
from tidegate.streams import Trace

if TYPE_CHECKING:
    from tidegate.policies import Policy
    from tidegate.types import Split

BUDGET = 60
SWEEP = tuple(range(0, BUDGET + 1, 15))
LEFT = AgeCurve([0, 50, 100], [1.5, 0.5])
"""A left row finds two partners later on the right, most of them soon."""
RIGHT = AgeCurve([0, 80, 100], [0.0, 0.25])
"""A right row seldom finds a partner on the left, and late."""
SHARES = Frequency(left={0: 0.45, 1: 0.55}, right={0: 0.95, 1: 0.05})
"""Worth most are left rows of key 0, then the few right rows of key 1."""


def aged(rows: int, seed: int = 0) -> tuple[Trace, Trace]:
    """Rows of both sides a unit of time apart, and the partners that the curves promise each."""
    rng = np.random.default_rng(seed)
    sides: list[list[tuple[float, int]]] = [[], []]
    key = 0
    for curve, own in ((LEFT, 0), (RIGHT, 1)):
        for first in np.arange(rows) + rng.random(rows):
            key += 1
            sides[own].append((first, key))
            for low, high, rate in zip(curve.edges[:-1], curve.edges[1:], curve.rates, strict=True):
                ages = rng.uniform(low, high, rng.poisson(rate))
                sides[1 - own] += [(first + age, key) for age in ages]
    left, right = (sorted(side) for side in sides)
    return tuple(  # type: ignore[return-value]
        Trace.of({"key": [k for _, k in side], "time": [t for t, _ in side]}) for side in (left, right)
    )


def diluted(own: AgeCurve, other: AgeCurve) -> AgeCurve:
    """The mean over a side's rows, of which some are but the partners of others."""
    return AgeCurve(own.edges, own.rates / (1 + other.total))


def frequent(rows: int, seed: int = 0) -> tuple[Trace, Trace]:
    rng = np.random.default_rng(seed)
    left, right = (
        Trace.of({"key": rng.choice(2, many, p=np.asarray(shares)), "time": np.sort(rng.random(many)) * rows})
        for many, shares in ((rows, SHARES.left[1]), (3 * rows, SHARES.right[1]))
    )
    return left, right


def results(traces: tuple[Trace, Trace], policy: Policy, split: Split) -> int:
    return tg.simulate(
        *traces, window=(100, 100), budget=BUDGET, policy=policy, split=split, step=8, warmup=400
    ).results


def check(traces: tuple[Trace, Trace], given: Policy, learned: Policy) -> None:
    best = max(results(traces, given, (mine, BUDGET - mine)) for mine in SWEEP)
    even = results(traces, given, "even")
    optimal = results(traces, given, "optimal")
    assert optimal >= even
    assert optimal >= 0.97 * best
    assert best > 1.03 * even  # else the division would not matter
    assert results(traces, learned, "optimal") >= 0.94 * optimal


def test_age_curves_divide_the_budget() -> None:
    check(aged(1200), Age(diluted(LEFT, RIGHT), diluted(RIGHT, LEFT)), Age())


def test_frequencies_divide_the_budget() -> None:
    check(frequent(1200), Prob(SHARES), Prob())


@pytest.mark.parametrize("policy", ["age", "prob"])
def test_the_budget_holds_while_the_split_changes(policy: str) -> None:
    report = tg.simulate(
        *frequent(500), window=(100, 100), budget=BUDGET, policy=policy, split="optimal", step=8
    )
    assert report.peak_rows <= BUDGET
