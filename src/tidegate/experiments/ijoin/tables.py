"""Tables 1 to 4: a worked example of eight instants."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np

from tidegate.engine.encode import encode
from tidegate.engine.join import Join
from tidegate.engine.operator import Operator, collected
from tidegate.experiments.ijoin.greedy import Greedy
from tidegate.policies import Policy
from tidegate.streams import Trace
from tidegate.types import SIDES, Array, Budget, Rows, Split, Time, Window

R: Final = "abcddbac"
S: Final = "babbccda"
IMPORTANCE: Final = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}
WINDOW: Final = Window(7, 7)
"""A window of 8 time units holds rows of ages 0 to 7."""


def trace(values: str) -> Trace:
    """One stream of Table 1: one value per instant, from time 1."""
    return Trace.of(
        {
            "key": list(values),
            "time": np.arange(1, len(values) + 1),
            "importance": [IMPORTANCE[value] for value in values],
        }
    )


def run(policy: str | Policy, budget: Budget | None) -> list[tuple[str, ...]]:
    """Join the streams of Table 1. Each instant gives a row: time, both buffers, output, importance."""
    left, right = trace(R), trace(S)
    arrivals = encode(left, right, WINDOW, "=", None).arrivals
    split: Split = "shared" if budget is None else "even"
    operator = Operator(Join(WINDOW, budget, policy, split, order="shed-first"))
    rows = []
    for new_left, new_right, moment in arrivals.steps(arrivals.cuts("instant"), whole_instants=True):
        before = operator.tally.importance
        candidates = np.concatenate((operator.buffers["left"].rows.time, new_left.time))
        chunks, _ = collected(operator.step(new_left, new_right, moment, pairs=True))
        output = sorted(R[time - 1] for chunk in chunks for time in candidates[chunk.left].tolist())
        buffers = [
            _letters(operator.buffers[side].rows.time, text) for side, text in zip(SIDES, (R, S), strict=True)
        ]
        gained = operator.tally.importance - before
        rows.append((f"{moment.now}-{moment.now + 1}", *buffers, ",".join(output) or "-", f"{gained:g}"))
    return rows


@dataclass(frozen=True)
class ReplayedMemory(Policy):
    """Keeps the rows that a table of the paper shows in memory at each instant, for R and for S."""

    r: str
    s: str

    def scores(self, rows: Rows, now: Time) -> Array:
        """Score the rows that the table shows above the others; among rows of one value, the newest."""
        text, memory = (R, self.r) if rows.side == "left" else (S, self.s)
        shown = Counter(memory.split()[int(now) - 1])
        scores = np.zeros(len(rows))
        for place in np.argsort(-rows.time).tolist():
            value = text[rows.time[place] - 1]
            scores[place] = shown[value] > 0
            shown[value] -= 1
        return scores


RAND: Final = ReplayedMemory(r="a ab ac ad dd db ba bc", s="b ba ab bb bc bc bd ba")
SIZE: Final = ReplayedMemory(r="a ab ab ab ab bb bb bc", s="b ba ab bb bb bb bd ba")


def _letters(times: Array, text: str) -> str:
    return ",".join(text[time - 1] for time in sorted(times.tolist()))


_TWO_A_SIDE: Final = Budget(rows=4)
JOINS: Final[dict[str, tuple[str | Policy, Budget | None]]] = {
    "exact": ("fifo", None),
    "fifo": ("fifo", _TWO_A_SIDE),
    "rand": (RAND, _TWO_A_SIDE),
    "size": (SIZE, _TWO_A_SIDE),
    "greedy": (Greedy(), _TWO_A_SIDE),
}
TOTAL: Final = "total"


def instants(*, join: str, seed: int) -> list[dict[str, str | float]]:
    """Buffers, output and importance of a join at each instant, and the total importance. Nothing is random."""
    del seed
    policy, budget = JOINS[join]
    rows = run(policy, budget)[1:]
    rows_shown: list[dict[str, str | float]] = [
        {"time": time, "R": r, "S": s, "output": output, "importance": float(importance)}
        for time, r, s, output, importance in rows
    ]
    total = sum(float(row[-1]) for row in rows)
    return [*rows_shown, {"time": TOTAL, "R": "", "S": "", "output": "", "importance": total}]


def streams(*, stream: str, seed: int) -> list[dict[str, str | float]]:
    """Table 1: the arrivals. Nothing is random."""
    del seed
    values = {"R": R, "S": S}[stream]
    return [
        {"time": number, "value": value, "importance": IMPORTANCE[value]}
        for number, value in enumerate(values, start=1)
    ]
