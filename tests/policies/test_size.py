"""The policy that counts keys, by hand and against a plain reading of its rule."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import pytest

import tidegate as tg
from tests.engine.test_bounded import both_ways
from tidegate.engine.report import Report
from tidegate.models import LearnedFrequency
from tidegate.policies import Prob, Size
from tidegate.types import InputError


def zipf(rows: int, seed: int, rate: float = 1.0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {"key": np.minimum(rng.zipf(1.3, rows), 500), "time": np.arange(rows) / rate}


def test_by_hand() -> None:
    """With room for one row: that of key 1, of which the other side brought two before, stays when others come."""
    left = {"key": [1, 2, 3], "time": [2, 3, 4]}
    right = {"key": [1, 1, 2, 1], "time": [0, 1, 2.5, 5]}
    found = {
        name: tg.simulate(left, right, window=(9, 0), budget=1, split=(1, 0), policy=name, collect=True).pairs
        for name in ("size", "fifo")
    }
    pairs = {
        name: list(zip(some.left.tolist(), some.right.tolist(), strict=True))
        for name, some in found.items()
        if some
    }
    assert pairs == {"size": [(0, 3)], "fifo": []}


def by_hand(left: dict[str, Any], right: dict[str, Any], room: int, window: float) -> int:
    """Each side has room of its own; room is made before rows are matched, by the counts of the steps before."""
    streams = {"left": left, "right": right}
    held: dict[str, list[tuple[float, int, int]]] = {"left": [], "right": []}
    seen: dict[str, Counter[int]] = {"left": Counter(), "right": Counter()}
    order = sorted(
        (float(time), place, name, int(key))
        for place, name in enumerate(streams)
        for key, time in zip(streams[name]["key"], streams[name]["time"], strict=True)
    )
    results = 0
    for number, (now, _, name, key) in enumerate(order):
        other = "right" if name == "left" else "left"
        for some in streams:
            held[some] = [row for row in held[some] if now - row[0] <= window]
        held[name].append((now, number, key))
        if len(held[name]) > room:
            held[name].remove(min(held[name], key=lambda row: (seen[other][row[2]], row[1])))
        if any(row[1] == number for row in held[name]):
            results += sum(row[2] == key for row in held[other])
        seen[name][key] += 1
    return results


@pytest.mark.parametrize("rates", [(1.0, 1.0), (1.0, 4.0)])
def test_the_results_are_those_of_the_rule(rates: tuple[float, float]) -> None:
    left, right = (zipf(int(400 * rate), seed, rate) for seed, rate in enumerate(rates))
    report = tg.simulate(
        left, right, window=(100, 100), budget=20, split="even", order="shed-first", policy="size"
    )
    assert report.results == by_hand(left, right, 10, 100)


def run(left: dict[str, Any], right: dict[str, Any], policy: str | Size | Prob, **changed: Any) -> Report:  # noqa: ANN401 - those of simulate
    settings: dict[str, Any] = {"window": (200, 200), "budget": 40, "split": "shared"}
    return tg.simulate(left, right, policy=policy, **settings | changed)


def test_it_finds_far_more_than_past_matches_do() -> None:
    left, right = zipf(3_000, 0), zipf(3_000, 1)
    keys, matches = (
        run(left, right, Size(counts=counts), order="shed-first", split="even").results
        for counts in ("keys", "matches")
    )
    assert keys > 3 * matches


def test_it_is_prob_where_nothing_changes() -> None:
    left, right = zipf(2_000, 0), zipf(6_000, 1, 3.0)
    counted, learned = (run(left, right, policy).results for policy in ("size", Prob(horizon=1e9)))
    assert counted == pytest.approx(learned, rel=0.03)


@pytest.mark.parametrize(("split", "step"), [("shared", 1), ("shared", "instant"), ((30, 10), 5)])
def test_the_compiled_loop_is_the_operator(split: Any, step: Any) -> None:  # noqa: ANN401 - as simulate takes them
    left, right = zipf(600, 2), zipf(1_200, 3, 2.0)
    compiled, general = both_ways(partial(run, left, right, "size", split=split, step=step, collect=True))
    assert compiled == general


def test_more_keys_than_are_counted() -> None:
    """Whoever is not counted one by one counts as the average of the others, and the run takes the operator."""
    rng = np.random.default_rng(5)
    left, right = ({"key": rng.permutation(3_000), "time": np.arange(3_000)} for _ in "lr")
    assert run(left, right, Size(capacity=50)).peak_rows == 40


def test_matches_count_where_keys_are_not_equal() -> None:
    left, right = zipf(100, 0), zipf(100, 1)
    with pytest.raises(InputError, match=r"Size\(counts='matches'\)"):
        run(left, right, "size", condition="<")
    assert run(left, right, Size(counts="matches"), condition="<").results


@pytest.mark.parametrize("policy", [Size(), Size(capacity=30), Size(counts="matches")], ids=repr)
def test_every_variant_keeps_every_law(policy: Size) -> None:
    tg.checks.check_policy(policy)


def test_counts_of_a_learner_are_rows() -> None:
    learner = LearnedFrequency().start()
    assert learner.count("left", np.array([1])).tolist() == [0]
    learner.observe("left", np.array([1, 1, 2, 1, 7]), 0)
    learner.observe("left", np.array([1, 7]), 1e9)
    assert learner.count("left", np.array([1, 2, 7, 8])).tolist() == [4, 1, 2, 0]
    fading = LearnedFrequency(horizon=10).start()
    fading.observe("left", np.array([1, 1]), 0)
    fading.observe("left", np.array([2]), 10)
    assert fading.count("left", np.array([1, 2])) == pytest.approx([1, 1])


@pytest.mark.parametrize(
    ("wrong", "message"), [({"counts": "rows"}, "counts"), ({"capacity": 0}, "capacity")]
)
def test_what_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Size(**wrong)
