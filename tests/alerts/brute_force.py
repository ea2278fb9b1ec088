"""The definitions, implemented directly and without regard to speed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise, product

from tidegate.alerts import ClosedEnds, Shape

Row = tuple[float, float]


def holds(begin: Fraction, omega: Fraction, closed: ClosedEnds, time: float) -> bool:
    """Whether the interval that starts at `begin` contains the time."""
    at, end = Fraction(time), begin + omega
    after = at >= begin if closed in ("both", "left") else at > begin
    return after and (at <= end if closed in ("both", "right") else at < end)


def begins(times: Iterable[float], omega: float) -> list[Fraction]:
    """Starts of intervals: every set of rows that an interval can contain is contained in one of these."""
    ends = sorted({Fraction(t) - shift for t in times for shift in (Fraction(0), Fraction(omega))})
    between = [(a + b) / 2 for a, b in pairwise(ends)]
    return sorted([*ends, *between])


def extreme_rows(rows: Sequence[Row], omega: float, shape: Shape, closed: ClosedEnds) -> list[Row]:
    """The rows that are highest or lowest in some interval; for distinct values."""
    found = set()
    for begin in begins([time for time, _ in rows], omega):
        inside = [row for row in rows if holds(begin, Fraction(omega), closed, row[0])]
        if inside and shape != "decreasing":
            found.add(max(inside, key=lambda row: row[1]))
        if inside and shape != "increasing":
            found.add(min(inside, key=lambda row: row[1]))
    return sorted(found)


def extremes_unchanged(
    rows: Sequence[Row], kept: Sequence[Row], omega: float, shape: Shape, closed: ClosedEnds
) -> bool:
    """Whether every interval has the same highest and lowest value in the kept rows as in all rows."""
    for begin in begins([time for time, _ in rows], omega):
        every, some = (
            [value for time, value in these if holds(begin, Fraction(omega), closed, time)]
            for these in (rows, kept)
        )
        if every and not some:
            return False
        if every and shape != "decreasing" and max(every) != max(some):
            return False
        if every and shape != "increasing" and min(every) != min(some):
            return False
    return True


Joined = Callable[[Mapping[str, float]], bool]


def best_of_arrivals(
    arrivals: Sequence[tuple[str, float, float]],
    names: Sequence[str],
    joined: Joined,
    f: Callable[..., float],
) -> list[float | None]:
    """For each arrival, the largest f over all combinations that it completes, if no row is omitted."""
    seen: dict[str, list[Row]] = {name: [] for name in names}
    best: list[float | None] = []
    for name, time, value in arrivals:
        pools = [[(time, value)] if other == name else seen[other] for other in names]
        levels = [
            f(*(row[1] for row in rows))
            for rows in product(*pools)
            if joined({other: row[0] for other, row in zip(names, rows, strict=True)})
        ]
        best.append(max(levels) if levels else None)
        seen[name].append((time, value))
    return best
