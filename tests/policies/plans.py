"""The most that any sequence of decisions can get, by trying them all."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, pairwise
from typing import TypeAlias

from tidegate.types import StepSize

Row: TypeAlias = tuple[int, int]
"""A time and a key."""
Held: TypeAlias = frozenset[tuple[int, int, int]]
"""Rows in memory: side, time, and a number of their own."""


def most_results(
    left: list[Row],
    right: list[Row],
    window: tuple[int, int],
    rooms: tuple[int, ...],
    step: StepSize,
    start: int,
    worth: Callable[[int, int], int] = lambda left, right: 1,  # noqa: ARG005 - a result counts alike
) -> int:
    """Every way to keep rows after each step, by dynamic programming over what is held.

    Only keeping as much as there is room for is tried: more in memory never costs a result. `worth` says what a
    result counts for, from the numbers of its partners in their streams.
    """
    arrivals = sorted(
        (time, side, number, key)
        for side, rows in enumerate((left, right))
        for number, (time, key) in enumerate(rows)
    )
    key = {(side, time, number): key for time, side, number, key in arrivals}
    if step == "instant":
        moments = sorted({time for time, *_ in arrivals})
        steps = [[row for row in arrivals if row[0] == moment] for moment in moments]
    else:
        early = sum(time < start for time, *_ in arrivals)
        ends = sorted({*range(step, len(arrivals), step), early, len(arrivals)} | {0})
        steps = [arrivals[a:b] for a, b in pairwise(ends)]

    def gain(a: tuple[int, int, int], b: tuple[int, int, int]) -> int:
        if a[0] == b[0] or key[a] != key[b]:
            return 0
        one, other = (a, b) if a[0] == 0 else (b, a)
        return worth(one[2], other[2]) if -window[1] <= other[1] - one[1] <= window[0] else 0

    best: dict[Held, int] = {frozenset(): 0}
    for rows in steps:
        new = [(side, time, number) for time, side, number, _ in rows]
        counted = rows[0][0] >= start
        after: dict[Held, int] = {}
        for held, before in best.items():
            found = sum(gain(a, b) for a in held for b in new) + sum(
                gain(a, b) for a, b in combinations(new, 2)
            )
            for kept in _choices([*held, *new], rooms):
                after[kept] = max(after.get(kept, 0), before + found * counted)
        best = after
    return max(best.values())


def _choices(rows: list[tuple[int, int, int]], rooms: tuple[int, ...]) -> list[Held]:
    pools = [rows] if len(rooms) == 1 else [[row for row in rows if row[0] == side] for side in (0, 1)]
    chosen: list[Held] = [frozenset()]
    for pool, room in zip(pools, rooms, strict=True):
        chosen = [c | frozenset(some) for c in chosen for some in combinations(pool, min(room, len(pool)))]
    return chosen
