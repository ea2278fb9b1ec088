"""The join, told a second time: plain Python, nested loops, one object a row.

Written from the vocabulary and sharing nothing with the package but the names of its types. Slow, and
meant to be read: what the operator does by columns must come out the same here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from tidegate import Band, Last
from tidegate.types import Combine, Condition, Order, Side, Split, StepSize, Time

Span: TypeAlias = Time | Last | None
Spans: TypeAlias = tuple[Span, Span]
Pair: TypeAlias = tuple[int, int]
Name: TypeAlias = Literal["fifo", "until_expiry"]

COMPARE = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}
COMBINE: dict[Combine, Callable[[float, float], float]] = {
    "min": min,
    "max": max,
    "sum": operator.add,
    "product": operator.mul,
    "mean": lambda a, b: (a + b) / 2,
}


@dataclass(eq=False)
class Row:
    """One row: where it was given, and how it arrived."""

    side: Side
    place: int
    key: Any
    time: Time
    importance: float = 1.0
    size: int = 0
    clock: Time = 0
    arrival: int = -1
    lefts: int = 0
    rights: int = 0
    matches: int = 0

    @property
    def of_its_side(self) -> int:
        return self.lefts if self.side == "left" else self.rights


@dataclass
class Arrived:
    rows: list[Row]
    late: int
    null_keys: int


def rows_of(side: Side, keys: Iterable[Any], times: Iterable[Time], worth: Iterable[float] = ()) -> list[Row]:
    worths = list(worth)
    return [
        Row(side, place, key, time, worths[place] if worths else 1.0)
        for place, (key, time) in enumerate(zip(keys, times, strict=True))
    ]


def is_null(key: Any) -> bool:  # noqa: ANN401 - a key may be anything
    return any(part is None for part in key) if isinstance(key, tuple) else key is None


def arrive(left: Sequence[Row], right: Sequence[Row], lateness: Time | None = None) -> Arrived:
    """Put rows in order of arrival (time, left before right), leaving out null keys and late rows."""
    there: list[Row] = []
    late = 0
    for side in (left, right):
        valid = [row for row in side if not is_null(row.key)]
        largest: Time | None = None
        for row in valid:
            largest = row.time if largest is None else max(largest, row.time)
            row.clock = row.time if lateness is None else largest
            if lateness is not None and row.time < largest - lateness:
                late += 1
            else:
                there.append(row)
    there.sort(key=lambda row: (row.clock, row.side != "left"))
    counts = {"left": 0, "right": 0}
    for number, row in enumerate(there):
        counts[row.side] += 1
        row.arrival, row.lefts, row.rights = number, counts["left"], counts["right"]
    nulls = sum(is_null(row.key) for row in (*left, *right))
    return Arrived(there, late, nulls)


def keys_match(condition: Condition, left: Any, right: Any) -> bool:  # noqa: ANN401 - a key may be anything
    if isinstance(condition, Band):
        return bool(condition.low <= right - left <= condition.high)
    return bool(COMPARE[condition](left, right))


def within(span: Span, row: Row, other: Row) -> bool:
    """Whether `row` is still joinable, by its own side's window, when `other` comes."""
    if span is None:
        return True
    if isinstance(span, Last):
        # Among the last n of its side when `other` arrives; one that comes itself later is.
        of_its_side = other.lefts if row.side == "left" else other.rights
        return of_its_side - row.of_its_side < span.rows
    return other.time - row.time <= span


def joins(window: Spans, condition: Condition, left: Row, right: Row) -> bool:
    return (
        keys_match(condition, left.key, right.key)
        and within(window[0], left, right)
        and within(window[1], right, left)
    )


def exact_rows(arrived: Arrived, window: Spans, condition: Condition = "=") -> list[tuple[Row, Row]]:
    lefts = [row for row in arrived.rows if row.side == "left"]
    rights = [row for row in arrived.rows if row.side == "right"]
    return [(a, b) for a in lefts for b in rights if joins(window, condition, a, b)]


def exact(arrived: Arrived, window: Spans, condition: Condition = "=") -> list[Pair]:
    """All results, as places in the given streams, in order."""
    return sorted((a.place, b.place) for a, b in exact_rows(arrived, window, condition))


def jain(lifetimes: Sequence[float]) -> float:
    squares = sum(life * life for life in lifetimes)
    return sum(lifetimes) ** 2 / (len(lifetimes) * squares) if squares else 1.0


@dataclass
class Run:
    """What a bounded join did."""

    pairs: list[Pair] = field(default_factory=list)
    by_step: list[list[Pair]] = field(default_factory=list)
    origins: dict[str, int] = field(default_factory=lambda: {"from_left": 0, "from_right": 0, "from_step": 0})
    buffers: list[dict[Side, set[int]]] = field(default_factory=list)
    lifetimes: list[float] = field(default_factory=list)
    evicted: int = 0
    expired: int = 0
    peak_rows: int = 0


def cut(rows: Sequence[Row], step: StepSize) -> list[list[Row]]:
    """The rows that are handled together."""
    steps: list[list[Row]] = []
    for row in rows:
        if step == "instant":
            joined = bool(steps) and steps[-1][-1].clock == row.clock
        else:
            joined = bool(steps) and len(steps[-1]) < step
        if joined:
            steps[-1].append(row)
        else:
            steps.append([row])
    return steps


@dataclass
class Bounded:
    """A join within a budget, a step after the other.

    `limit` is in rows, or in the rows' `size` when `in_bytes`.
    """

    window: Spans
    limit: int | None
    policy: Name = "fifo"
    split: Split = "shared"
    order: Order = "probe-first"
    step: StepSize = 1
    condition: Condition = "="
    lateness: Time = 0
    in_bytes: bool = False

    def run(self, arrived: Arrived) -> Run:
        done = Run()
        held: list[Row] = []
        self.latest: dict[Side, Time | None] = {"left": None, "right": None}
        counts: dict[Side, int] = {"left": 0, "right": 0}
        for new in cut(arrived.rows, self.step):
            now, first = max(row.clock for row in new), min(row.clock for row in new)
            there = held + new
            for row in new:
                seen = self.latest[row.side]
                self.latest[row.side] = row.time if seen is None else max(seen, row.time)
            if self.order == "shed-first":
                # Before the step anything from its first instant on may come, of either side.
                begin = first - self.lateness
                there = self._expire(there, now, begin, counts, done, after={"left": False, "right": False})
                there = self._shed(there, now, done)
            results = self._match([r for r in there if r in held], [r for r in there if r in new], done)
            done.pairs += results
            done.by_step.append(results)
            # Left comes before right: once a right row of this instant came, its lefts have all come.
            rights_came = any(row.side == "right" and row.clock == now for row in new)
            whole = self.step == "instant"
            after: dict[Side, bool] = {"left": whole or rights_came, "right": whole}
            counts = {"left": new[-1].lefts, "right": new[-1].rights}
            there = self._expire(there, now, now - self.lateness, counts, done, after=after)
            held = self._shed(there, now, done)
            done.buffers.append(
                {side: {row.place for row in held if row.side == side} for side in ("left", "right")}
            )
            done.peak_rows = max(done.peak_rows, len(held))
        return done

    def _match(self, held: list[Row], new: list[Row], done: Run) -> list[Pair]:
        found = []
        for old, origin in ((held, "from_left"), (held, "from_right"), (new, "from_step")):
            lefts, rights = (old, new) if origin != "from_right" else (new, old)
            for a in lefts:
                for b in rights:
                    if a.side == "left" and b.side == "right" and joins(self.window, self.condition, a, b):
                        found.append((a.place, b.place))
                        done.origins[origin] += 1
                        a.matches += 1
                        b.matches += 1
        return found

    def _expire(
        self,
        there: list[Row],
        now: Time,
        floor: Time,
        counts: dict[Side, int],
        done: Run,
        *,
        after: dict[Side, bool],
    ) -> list[Row]:
        """Let go of rows that nothing yet to come may join: the other side's rows come from `floor` on.

        From later than `floor` on where `after` says so.
        """
        stay = []
        for row in there:
            span = self.window[row.side == "right"]
            other: Side = "right" if row.side == "left" else "left"
            if span is None:
                dead = False
            elif isinstance(span, Last):
                dead = counts[row.side] - row.of_its_side >= span.rows
            else:
                age = floor - row.time
                dead = age >= span if after[other] else age > span
            if dead:
                life = now - row.time
                if not isinstance(span, Last) and span is not None:
                    life = min(life, span)
                done.lifetimes.append(float(max(life, 0)))
                done.expired += 1
            else:
                stay.append(row)
        return stay

    def _shed(self, there: list[Row], now: Time, done: Run) -> list[Row]:
        keep: list[Row] = []
        for sides, limit in self._shares():
            pool = [row for row in there if row.side in sides]
            used = 0
            for row in sorted(pool, key=self._rank, reverse=True):
                cost = row.size if self.in_bytes else 1
                if limit is None or used + cost <= limit:
                    used += cost
                    keep.append(row)
                else:
                    done.lifetimes.append(float(max(now - row.time, 0)))
                    done.evicted += 1
        return sorted(keep, key=lambda row: row.arrival)

    def _rank(self, row: Row) -> tuple[bool, Time, int]:
        """The best has the highest; of equals the newest is better.

        Last come rows whose window is over at the other side's largest time, once the step's rows have been
        matched: they only wait for rows out of order.
        """
        span = self.window[0] if row.side == "left" else self.window[1]
        seen = self.latest["right" if row.side == "left" else "left"]
        timely = True
        if (
            span is not None
            and not isinstance(span, Last)
            and seen is not None
            and self.order == "probe-first"
        ):
            timely = seen - row.time <= span
        if not timely:
            return (timely, 0, row.arrival)
        return (timely, row.time if self.policy == "fifo" else -row.arrival, row.arrival)

    def _shares(self) -> list[tuple[tuple[Side, ...], int | None]]:
        if self.limit is None or self.split == "shared":
            return [(("left", "right"), self.limit)]
        if self.split == "even":
            half = self.limit // 2
            return [(("left",), self.limit - half), (("right",), half)]
        assert isinstance(self.split, tuple), self.split
        return [(("left",), self.split[0]), (("right",), self.split[1])]
