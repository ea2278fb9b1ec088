"""Reference implementations of the samplers, row by row, that share only the draws with the package."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Stream = dict[str, list[int]]
Expected = Callable[[str, int], float]
_BITS = 2**64 - 1


def splitmix(number: int) -> int:
    z = (number + 0x9E3779B97F4A7C15) & _BITS
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _BITS
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _BITS
    return z ^ (z >> 31)


HOLD_SALT, BEYOND_SALT = 0x2545F4914F6CDD1D, 0x1D872B41A8E1A2B3


def draw(seed: int, row: int, nth: int, stream: int = 0) -> float:
    salt = (splitmix(splitmix(seed)) >> 1) ^ stream
    return (splitmix(splitmix(row ^ salt) ^ nth) >> 11) / 2**53


def skip(drawn: float, p: float) -> int:
    return 1 + (int(math.log1p(-drawn) / math.log1p(-p)) if p < 1 else 0)


@dataclass
class Row:
    side: str
    place: int
    number: int
    key: int
    time: int
    num: int = 0
    next: int = 0
    held: float = 0.0


@dataclass
class Reference:
    method: Literal["uniform", "eq_cluster", "pps_cluster"]
    p: float
    expected: Expected
    printed: bool = False
    seed: int = 0

    def run(self, left: Stream, right: Stream, window: tuple[int, int]) -> list[tuple[int, int, float, int]]:
        """The sample, as (left, right, probability, owner)."""
        lives = {"left": window[0], "right": window[1]}
        arrivals = sorted(
            (time, side, place, key)
            for side, stream in (("left", left), ("right", right))
            for place, (key, time) in enumerate(zip(stream["key"], stream["time"], strict=True))
        )
        held: list[Row] = []
        sample = []
        for number, (time, side, place, key) in enumerate(arrivals):
            row = Row(side, place, number, key, time)
            held = [old for old in held if time - old.time <= lives[old.side]]
            for old in list(held):
                if old.side != side and old.key == key:
                    old.num += 1
                    if self.method != "uniform" or old.num == old.next:
                        places = (old.place, place) if side == "right" else (place, old.place)
                        sample.append((*places, self.chance(old), old.number))
                        if self.method == "uniform" and not self.decide(old):
                            held.remove(old)
            if self.decide(row):
                held.append(row)
        return sorted(sample)

    def chance(self, row: Row) -> float:
        if self.method != "pps_cluster":
            return self.p
        sixteenths = round(16 * math.log2(max(self.expected(row.side, row.key), 1 / 128) * self.p))
        return float(min(1.0, 2.0 ** (sixteenths / 16)))

    def decide(self, row: Row) -> bool:
        """Whether a row must be held."""
        if self.method != "uniform":
            return draw(self.seed, row.number, 0) < self.chance(row)
        mean = self.expected(row.side, row.key)
        last = int(mean) if self.printed else round(mean)
        start = row.num
        if not row.held:
            row.next = row.num + skip(draw(self.seed, row.number, row.num), self.p)
            if row.next <= last or self.printed:
                return row.next <= last
            times = 2 ** (round(16 * math.log2(max(last / 4, 1))) / 16)
            row.held = self.p * times
            if round(16 * math.log2(times)) >= math.floor(16 * math.log2(1 / self.p)):
                row.held = 1.0
            if draw(self.seed, row.number, 0, HOLD_SALT) >= row.held:
                return False
            start = max(last, row.num)
        row.next = start + skip(draw(self.seed, row.number, start, BEYOND_SALT), self.p / row.held)
        return True
