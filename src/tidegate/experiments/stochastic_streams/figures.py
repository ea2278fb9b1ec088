"""The figures of section 8, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from tidegate.experiments import recorded
from tidegate.experiments.claims import Claim, Interval
from tidegate.experiments.reproduced import Reproduced
from tidegate.experiments.stochastic_streams.claims import (
    claims_of_caching,
    claims_of_comparison,
    claims_of_division,
    claims_of_memory,
)
from tidegate.experiments.stochastic_streams.measured import Measured, divided, hits, results
from tidegate.experiments.stochastic_streams.setups import FAST, MEMORIES, POLICIES, SETUPS
from tidegate.models import AR1


def figure8(*, rows: int = 2000, runs: int = 4) -> Reproduced:
    """Figure 8: all policies and streams in a memory of ten rows; flow_expect only where OR-tools is installed."""
    policies = tuple(POLICIES) if find_spec("ortools") else FAST
    found = results(policies=policies, rows=rows, runs=runs)
    return _table(f"Figure 8: {_size(rows, runs)}", found, claims_of_comparison(found))


def by_memory(
    stream: str, figure: str, *, memories: Sequence[int] = MEMORIES, rows: int = 2000, runs: int = 3
) -> Reproduced:
    """Figures 9 to 12: one of the streams, by memory."""
    found = results({stream: SETUPS[stream]}, memories, rows=rows, runs=runs)
    return _table(f"{figure}: {_size(rows, runs)}", found, claims_of_memory(found, stream))


def figure16(*, rows: int = 1000, runs: int = 4) -> Reproduced:
    """Figure 16: how HEEB divides memory between two streams."""
    found = divided(rows=rows, runs=runs)
    cells: list[tuple[str, ...]] = [
        (one.streams, str(one.memory), f"{over.mean:.1f} ± {over.half:.1f} %")
        for one in found
        for over in [Interval.of(one.shares)]
    ]
    title = f"Stochastic streams, Figure 16: memory that heeb gives to R, mean of {runs} runs of {rows} rows a side"
    return Reproduced(title, ("streams", "memory", "of R"), cells, claims_of_division(found))


def figure15(folder: str | Path) -> Reproduced:
    """Figure 15: the temperatures of Melbourne, against a cache."""
    temperatures = recorded.temperatures(folder)
    level = AR1.fit(temperatures)
    found = hits(temperatures)
    return _table(
        f"Figure 15: hits of {len(temperatures)} references; X = {level.phi1:.2f} X' + {level.phi0 / 10:.2f} "
        f"+ noise of deviation {level.sigma / 10:.2f}, of goodness {level.goodness(temperatures):.1g}",
        found,
        claims_of_caching(found),
    )


def _size(rows: int, runs: int) -> str:
    return f"results from memory, mean of {runs} runs of {rows} rows a side (95 % confidence)"


def _table(title: str, found: list[Measured], claims: tuple[Claim, ...]) -> Reproduced:
    policies = list(dict.fromkeys(one.policy for one in found))
    cells: dict[tuple[str, int], dict[str, str]] = {}
    for one in found:
        over = Interval.of(one.results)
        text = f"{over.mean:.0f} ± {over.half:.0f}" if np.ptp(one.results) else f"{over.mean:.0f}"
        cells.setdefault((one.stream, one.memory), {})[one.policy] = text
    rows = [
        (stream, str(memory), *(cell.get(policy, "-") for policy in policies))
        for (stream, memory), cell in cells.items()
    ]
    return Reproduced(f"Stochastic streams, {title}", ("stream", "memory", *policies), rows, claims)
