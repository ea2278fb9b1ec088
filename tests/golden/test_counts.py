"""Golden counts of all policies on one small trace: a change here is a change of behaviour."""

from typing import Any

import pytest

import tidegate as tg
from tidegate.types import Order, StepSize

EXACT = 1994


def trace(seed: int, rows: int = 300) -> dict[str, list[int]]:
    """Keys with hot ones among them and times with ties, from a recurrence that depends on no library."""
    keys, times, now = [], [], 0
    for _ in range(rows):
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        draw = seed >> 33
        keys.append(min(draw % 23, draw % 17, draw % 7 + 3))
        now += draw % 3
        times.append(now)
    return {"key": keys, "time": times}


LEFT, RIGHT = trace(1), trace(2)


def report(policy: str | tg.policies.Policy, budget: int | None, **settings: Any) -> tg.Report:  # noqa: ANN401 - those of simulate
    return tg.simulate(LEFT, RIGHT, window=(40, 25), policy=policy, budget=budget, seed=11, **settings)


def counts(found: tg.Report) -> tuple[int, ...]:
    return found.results, found.from_left, found.from_right, found.evicted, found.expired


GOLDEN: dict[tuple[str, int], tuple[int, ...]] = {
    ("random", 1): (43, 24, 19, 599, 0),
    ("random", 4): (144, 68, 76, 596, 0),
    ("random", 16): (553, 309, 244, 567, 17),
    ("random", 32): (1048, 614, 434, 438, 132),
    ("random", 64): (1909, 1147, 762, 54, 501),
    ("fifo", 1): (38, 17, 21, 599, 0),
    ("fifo", 4): (152, 73, 79, 596, 0),
    ("fifo", 16): (544, 280, 264, 584, 0),
    ("fifo", 32): (1045, 503, 542, 567, 2),
    ("fifo", 64): (1937, 1151, 786, 155, 400),
    ("until_expiry", 1): (44, 29, 15, 590, 9),
    ("until_expiry", 4): (167, 113, 54, 560, 36),
    ("until_expiry", 16): (547, 322, 225, 438, 147),
    ("until_expiry", 32): (1024, 650, 374, 290, 281),
    ("until_expiry", 64): (1895, 1141, 754, 36, 520),
    ("size", 1): (44, 4, 40, 597, 2),
    ("size", 4): (169, 23, 146, 579, 17),
    ("size", 16): (617, 350, 267, 482, 102),
    ("size", 32): (1185, 687, 498, 343, 227),
    ("size", 64): (1933, 1167, 766, 50, 505),
    ("prob", 1): (41, 2, 39, 597, 2),
    ("prob", 4): (175, 19, 156, 577, 19),
    ("prob", 16): (619, 351, 268, 477, 107),
    ("prob", 32): (1186, 675, 511, 334, 236),
    ("prob", 64): (1940, 1175, 765, 48, 507),
    ("life", 1): (46, 36, 10, 599, 0),
    ("life", 4): (178, 153, 25, 596, 0),
    ("life", 16): (590, 442, 148, 584, 0),
    ("life", 32): (1101, 754, 347, 568, 0),
    ("life", 64): (1947, 1180, 767, 256, 299),
    ("age", 1): (28, 28, 0, 599, 0),
    ("age", 4): (138, 135, 3, 594, 2),
    ("age", 16): (538, 197, 341, 496, 90),
    ("age", 32): (1062, 523, 539, 413, 160),
    ("age", 64): (1918, 1153, 765, 87, 468),
    ("heeb", 1): (37, 2, 35, 599, 0),
    ("heeb", 4): (174, 67, 107, 596, 0),
    ("heeb", 16): (619, 410, 209, 584, 0),
    ("heeb", 32): (1133, 750, 383, 568, 0),
    ("heeb", 64): (1944, 1176, 768, 247, 308),
}


@pytest.mark.parametrize(("policy", "budget"), GOLDEN)
def test_counts(policy: str, budget: int) -> None:
    assert counts(report(policy, budget)) == GOLDEN[policy, budget]


PAST_MATCHES = {16: (585, 304, 281, 460, 125), 64: (1915, 1149, 766, 45, 510)}


@pytest.mark.parametrize("budget", PAST_MATCHES)
def test_counts_by_past_matches(budget: int) -> None:
    assert counts(report(tg.policies.Size(counts="matches"), budget)) == PAST_MATCHES[budget]


def test_exact_count() -> None:
    assert report("fifo", None).results == report("fifo", 5).exact == EXACT


IN_STEPS: dict[tuple[str, StepSize, Order], int] = {
    ("random", 7, "probe-first"): 591,
    ("random", 7, "shed-first"): 309,
    ("random", "instant", "probe-first"): 569,
    ("random", "instant", "shed-first"): 422,
    ("fifo", 7, "probe-first"): 630,
    ("fifo", 7, "shed-first"): 442,
    ("fifo", "instant", "probe-first"): 562,
    ("fifo", "instant", "shed-first"): 508,
    ("until_expiry", 7, "probe-first"): 585,
    ("until_expiry", 7, "shed-first"): 123,
    ("until_expiry", "instant", "probe-first"): 515,
    ("until_expiry", "instant", "shed-first"): 123,
}


@pytest.mark.parametrize(("policy", "step", "order"), IN_STEPS)
def test_counts_in_steps(policy: str, step: StepSize, order: Order) -> None:
    assert report(policy, 16, split="even", step=step, order=order).results == IN_STEPS[policy, step, order]
