"""Examples 3.3 and 3.4 of the windowed-joins paper: the buffered rows at each time, and the results."""

from __future__ import annotations

import numpy as np
import pytest

import tidegate as tg
from tidegate.engine.encode import encode
from tidegate.engine.join import Join
from tidegate.engine.operator import Operator, collected
from tidegate.streams import Trace

ARRIVALS = 60


def streams(matches: list[int]) -> tuple[Trace, Trace]:
    """One left row per unit of time; right rows give each the matches between one age and the next."""
    opened = np.arange(1, ARRIVALS + 1)
    right = [
        (row, row + age + 0.5) for row in opened for age, count in enumerate(matches) for _ in range(count)
    ]
    keys, times = zip(*sorted(right, key=lambda pair: pair[1]), strict=True)
    return Trace.of({"key": opened, "time": opened.astype(float)}), Trace.of({"key": keys, "time": times})


def run(matches: list[int], memory: int, policy: object) -> tuple[list[set[int]], list[int]]:
    """The left rows in memory after each arrival, and the results until the next."""
    window = tg.Window(len(matches), 0)
    arrivals = encode(*streams(matches), window, "=", None).arrivals
    operator = Operator(Join(window, tg.Budget(rows=memory), policy, split=(memory, 0)))  # type: ignore[arg-type]
    held: list[set[int]] = []
    results: list[int] = []
    for left, right, moment in arrivals.steps(arrivals.cuts(1), whole_instants=False):
        _, outcome = collected(operator.step(left, right, moment))
        if len(left):
            held.append(set(operator.buffers["left"].rows.key.tolist()))
            results.append(0)
        results[-1] += outcome.results
    return held, results


def age(matches: list[int]) -> tg.policies.Policy:
    return tg.policies.Age(tg.models.AgeCurve(edges=range(len(matches) + 1), rates=matches))


def test_example_3_3() -> None:
    held, results = run([1, 1, 2, 1], 1, age([1, 1, 2, 1]))
    assert held[:7] == [{1}, {1}, {1}, {4}, {4}, {4}, {7}]
    assert results[:7] == [1, 1, 2, 1, 1, 2, 1]
    assert sum(results[:54]) / 54 == pytest.approx(4 / 3)


def test_example_3_3_with_two_cells() -> None:
    held, _ = run([1, 1, 2, 1], 2, age([1, 1, 2, 1]))
    assert held[:7] == [{1}, {1, 2}, {1, 2}, {4, 2}, {4, 5}, {4, 5}, {7, 5}]


def test_example_3_4() -> None:
    held, results = run([3, 0, 2], 2, age([3, 0, 2]))
    assert held[:7] == [{1}, {1, 2}, {1, 3}, {4, 3}, {5, 3}, {5, 6}, {5, 7}]
    assert results[:7] == [3, 3, 5, 3, 5, 3, 5]
    assert sum(results[1:55]) / 54 == pytest.approx(4)


def test_example_3_4_with_every_row_held_for_two() -> None:
    _, results = run([3, 0, 2], 2, "fifo")
    assert set(results[1:55]) == {3}
