"""The policy that goes by importance alone, and who stays of equals."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import tidegate as tg
from tests.engine.test_bounded import both_ways
from tidegate.experiments.ijoin.greedy import Greedy
from tidegate.policies import Importance, Policy

BY_EQUALS: dict[str, Importance] = {"newest": Importance(), "oldest": Greedy()}
STREAM: dict[str, Any] = {"key": [1, 2, 3, 4], "time": [0, 1, 2, 3], "importance": [1.0, 2.0, 1.0, 2.0]}


@pytest.mark.parametrize(
    ("equals", "room", "kept"),
    [
        ("newest", 3, [2, 3, 4]),
        ("oldest", 3, [1, 2, 4]),
        ("newest", 1, [4]),
        ("oldest", 1, [2]),
        ("oldest", 2, [2, 4]),
    ],
)
@pytest.mark.parametrize("step", [1, 4])
def test_which_of_equally_important_rows_are_buffered(
    equals: str, room: int, kept: list[int], step: int
) -> None:
    probes = {"key": [1, 2, 3, 4], "time": [9] * 4, "importance": [1.0] * 4}
    policy, split = BY_EQUALS[equals], (room, 0)
    report = tg.simulate(
        STREAM, probes, window=(9, 0), budget=room, split=split, policy=policy, step=step, collect=True
    )
    assert report.pairs is not None
    assert sorted(STREAM["key"][place] for place in report.pairs.left) == kept


def streams(levels: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(levels)
    return [
        {
            "key": rng.integers(0, 12, 500),
            "time": np.sort(rng.integers(0, 400, 500)),
            "importance": rng.integers(0, levels, 500).astype(float),
        }
        for _ in range(2)
    ]


@pytest.mark.parametrize("equals", ["newest", "oldest"])
@pytest.mark.parametrize("levels", [1, 3, 100])
@pytest.mark.parametrize(("split", "step"), [("shared", 1), ((12, 5), 3), ("even", "instant")])
def test_the_compiled_loop_is_the_operator(equals: Any, levels: int, split: Any, step: Any) -> None:  # noqa: ANN401 - as simulate takes them
    left, right = streams(levels)
    settings: dict[str, Any] = {"window": (60, 40), "budget": 20, "split": split, "step": step}
    run = partial(tg.simulate, left, right, policy=BY_EQUALS[equals], **settings, collect=True)
    compiled, general = both_ways(run)
    assert compiled == general


@pytest.mark.parametrize("order", ["probe-first", "shed-first"])
@pytest.mark.parametrize(("equals", "alike"), [("newest", "fifo"), ("oldest", "until_expiry")])
def test_of_equally_important_rows_time_decides(equals: Any, alike: str, order: Any) -> None:  # noqa: ANN401 - choices
    left, right = streams(1)
    settings: dict[str, Any] = {"window": (60, 40), "budget": 20, "order": order, "split": "even"}
    policies: tuple[Policy | str, ...] = (BY_EQUALS[equals], alike)
    first, second = (tg.simulate(left, right, policy=policy, **settings) for policy in policies)
    assert (first.results, first.evicted) == (second.results, second.evicted)


def test_in_bytes() -> None:
    left, right = streams(2)
    report = tg.simulate(left, right, window=(60, 40), budget="700 B", policy=Greedy())
    assert 0 < report.peak_bytes <= 700


@pytest.mark.parametrize("policy", [Importance(), Greedy()], ids=repr)
def test_both_keep_every_law(policy: Importance) -> None:
    tg.checks.check_policy(policy)
