"""Results offered to reservoirs, for tests of several of them."""

from __future__ import annotations

import numpy as np

from tidegate.experiments.reservoir_joins.printed import RunningPrintedProgressiveJoin
from tidegate.models import sample_rows
from tidegate.sampling import ProgressiveJoinReservoir, expected_results
from tidegate.sampling.reservoirs.progressive_join import RunningProgressiveJoin
from tidegate.sampling.reservoirs.ranked import RunningJoinReservoir
from tidegate.sampling.reservoirs.slots import Slots
from tidegate.types import Array

KEYS = [1 / 50] * 50


def watched(
    seed: int, results: int, running: RunningJoinReservoir, fractions: Array, parts: int = 1
) -> tuple[Array, Array]:
    """Which of `results` results are offered, each with its own probability, and which are then in the reservoir."""
    shown = np.flatnonzero(np.random.default_rng(seed).random(results) < fractions)
    slots = Slots()
    for some in np.array_split(shown, parts):
        slots.put({"x": some}, running.offer(fractions[some], some))
    assert slots.filled == len(running)
    return shown, slots.columns().get("x", np.empty(0, np.int64))


def config(*, use_at: float = 10_000, size: int = 100) -> ProgressiveJoinReservoir:
    """The sizes of the paper's section 5: windows of 500, rates 1 and 5, half of the memory for the join."""
    return ProgressiveJoinReservoir(
        size,
        1600,
        use_at,
        (KEYS, KEYS),
        (1, 5),
        (500, 500),
    )


def run(
    running: RunningProgressiveJoin | RunningPrintedProgressiveJoin, seed: int, until: int, span: int
) -> Array:
    """Offer as many results as the model expects; returns the numbers of the held results."""
    rng, slots, number = np.random.default_rng(seed), Slots(), 0
    each = round(expected_results((KEYS, KEYS), span, rates=(1, 5), window=(500, 500)))
    for now in range(0, until, span):
        slots.put({"x": np.empty(0, np.int64)}, running.advance(now))
        wants = running.demand()
        # What the join holds and the reservoir's size are never more than the budget.
        assert wants.rows + running.size == running.budget
        if running.size > running.config.size:
            assert sample_rows((KEYS, KEYS), wants.fraction, rates=(1, 5), window=(500, 500)) <= wants.rows
        shown = number + np.flatnonzero(rng.random(each) < min(wants.fraction, 0.1))
        fraction = min(wants.fraction, 0.1)
        slots.put({"x": shown}, running.offer(np.full(len(shown), fraction), shown, lowest=fraction))
        number += each
        assert slots.filled == len(running) <= running.size
    return slots.columns()["x"]
