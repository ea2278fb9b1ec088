"""Dividing memory between joins and their reservoirs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidegate as tg
from tidegate import InputError
from tidegate.models import AgeCurve, sample_rows
from tidegate.sampling import ProgressiveJoinReservoir, best_size, reservoir_memory, sample_error
from tidegate.sampling.reservoirs.memory import _fraction

KEYS = [1 / 20] * 20
RATES, WINDOW = (1, 2), (50, 50)


@settings(max_examples=8)
@given(st.integers(2, 90), st.sampled_from([50, 400, 5000, 100_000]))
def test_no_other_size_has_a_smaller_error(budget: int, results: int) -> None:
    def error(size: int) -> float:
        return sample_error(size, budget, (KEYS, KEYS), rates=RATES, window=WINDOW, results=results)

    best = best_size(budget, (KEYS, KEYS), rates=RATES, window=WINDOW, results=results)
    assert error(best) <= min(map(error, range(1, budget))) * (1 + 1e-12)


def test_the_best_reservoir_is_just_filled() -> None:
    window = (500, 500)
    size = best_size(1600, (KEYS, KEYS), rates=RATES, window=window, results=100_000)
    fraction = _fraction(1600 - size, (KEYS, KEYS), RATES, window)
    assert sample_rows((KEYS, KEYS), fraction, rates=RATES, window=window) == pytest.approx(1600 - size)
    assert size == pytest.approx(fraction * 100_000, rel=0.05)


def test_the_error_equals_that_of_simulated_samples() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(10, 3, 2000)
    cv = float(values.std() / values.mean())
    fraction = _fraction(50, (KEYS, KEYS), RATES, WINDOW)
    means = []
    for _ in range(3000):
        shown = values[rng.random(2000) < fraction]
        means.append(rng.permutation(shown)[:40].mean())
    found = float(np.sqrt(np.mean((np.array(means) / values.mean() - 1) ** 2)))
    computed = sample_error(40, 90, (KEYS, KEYS), rates=RATES, window=WINDOW, results=2000, cv=cv)
    # A standard deviation of 3000 draws is known to 1/sqrt(6000).
    assert found == pytest.approx(computed, rel=4 / 6000**0.5)


def test_a_progressive_reservoir_approaches_the_best_size() -> None:
    span, results = 1000, 1000 * 2 * 100 / 20
    config = ProgressiveJoinReservoir(5, 80, span, (KEYS, KEYS), RATES, WINDOW)
    running, rng = config.start(1), np.random.default_rng(1)
    for now in range(0, span, 10):
        running.advance(now)
        fraction = min(running.demand().fraction, _fraction(75, (KEYS, KEYS), RATES, WINDOW))
        shown = int((rng.random(100) < fraction).sum())
        running.offer(np.full(shown, fraction), lowest=fraction)
    best = best_size(80, (KEYS, KEYS), rates=RATES, window=WINDOW, results=results)
    assert 0.85 * best < len(running) <= running.size < 1.15 * best


def test_two_queries_share_memory_so_that_the_larger_error_is_minimal() -> None:
    curve = AgeCurve([0, 100], [20])
    queries = [
        {"model": (KEYS, KEYS), "rates": RATES, "window": WINDOW, "results": 20_000, "cv": 0.5},
        {"model": curve, "rates": (1, 1), "window": (100, 0), "results": 2000, "cv": 2.0},
    ]
    shared = tg.allocate([reservoir_memory(**query) for query in queries], total=300, metric="error")  # type: ignore[arg-type]
    assert sum(shared.memory) == 300

    def error(query: int, rows: int) -> float:
        query_model = {name: value for name, value in queries[query].items() if name != "cv"}
        size = best_size(rows, **query_model)  # type: ignore[arg-type]
        return sample_error(size, rows, **queries[query])  # type: ignore[arg-type]

    errors = [error(query, rows) for query, rows in enumerate(shared.memory)]
    assert errors == pytest.approx(shared.achieved, rel=0.06)
    assert errors[0] == pytest.approx(errors[1], rel=0.06)
    for less in (30, 60):
        others = [shared.memory[0] - less, shared.memory[1] + less]
        others = others if others[0] > 1 else [shared.memory[0] + less, shared.memory[1] - less]
        assert max(error(0, others[0]), error(1, others[1])) > max(errors)


def test_with_enough_memory_the_error_is_zero() -> None:
    assert sample_error(500, 2000, (KEYS, KEYS), rates=RATES, window=WINDOW, results=500) == 0
    assert best_size(2000, (KEYS, KEYS), rates=RATES, window=WINDOW, results=500) == 500


def test_invalid_input_is_refused() -> None:
    join = {"model": (KEYS, KEYS), "rates": RATES, "window": WINDOW}
    with pytest.raises(InputError, match="size must be below the budget of join and reservoir, which is 10"):
        sample_error(10, 10, results=5, **join)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"budget must be at least 2 rows.*; got 1"):
        best_size(1, results=5, **join)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="results is 0"):
        best_size(10, results=0, **join)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="cv is -1"):
        reservoir_memory(results=5, cv=-1, **join)  # type: ignore[arg-type]
