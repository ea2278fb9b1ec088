"""What rows at a place match is learned from all that arrive, wherever the streams go; and that pays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tidegate as tg
from tests.policies.heeb.test_heeb import SECTION_8, results, trending
from tidegate import InputError
from tidegate.checks import LAWS, Law
from tidegate.models import AR1, LinearTrend, Noise
from tidegate.policies import Heeb, HeebHistogram
from tidegate.policies.heeb.tracked_rows import TrackedArrivals
from tidegate.types import Array, Rows

CONFIGS = [HeebHistogram(offset="last", buckets=3, memory=50), HeebHistogram(offset="none", term=2)]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("policy", CONFIGS, ids=repr)
def test_every_law_holds(policy: HeebHistogram, law: Law) -> None:
    law(policy)


def rows_of(ids: list[int], keys: list[int], time: int = 0) -> Rows:
    count = len(ids)
    columns = np.array(keys, np.int64), np.full(count, time), np.array(ids, np.int64)
    return Rows("left", *columns, np.zeros(count, np.int64))


def taught(
    followed: TrackedArrivals, step: int, come: list[tuple[int, int]], met: list[int], origin: float = 0.0
) -> list[Any]:
    """The lessons of a step in which rows (number, key) came on this side and keys on the other."""
    rows = rows_of([number for number, _ in come], [key for _, key in come], step)
    found = followed.observe(rows, np.array(met, np.int64), origin, step=step, now=step, kept=0.5)
    return list(zip(*(column.tolist() for column in found), strict=True))


def test_rows_are_followed_whether_they_are_kept_or_not() -> None:
    followed = TrackedArrivals(limit=99, salt=0, term=3, span=np.inf)
    # The match of its own step does not count.
    assert taught(followed, 0, [(1, 7), (2, 9)], [7]) == []
    assert taught(followed, 1, [], [7, 7, 8]) == []
    assert taught(followed, 2, [], [9]) == []
    # 2 / 2 for the first row, 1 / 4 for the second, seen from where the other stream was; an eighth is left.
    lessons = taught(followed, 3, [], [], origin=5.0)
    assert lessons == [(7.0, 1.0, 2.0, 0.125), (9.0, 0.25, 4.0, 0.125)]
    assert taught(followed, 4, [], [9], origin=6.0) == []
    assert taught(followed, 6, [], [], origin=6.0) == [(2.0, 0.0, 1.0, 0.125), (4.0, 0.5, 3.0, 0.125)]


def test_a_row_whose_window_has_passed_teaches_the_last_time() -> None:
    followed = TrackedArrivals(limit=99, salt=0, term=9, span=2)
    taught(followed, 0, [(1, 7)], [])
    assert taught(followed, 2, [], [7]) == []
    assert taught(followed, 3, [], [7]) == [(7.0, 0.25, 7.0, 0.0)]
    assert taught(followed, 12, [], [7]) == []


def test_rows_are_not_followed_for_ever() -> None:
    followed = TrackedArrivals(limit=99, salt=0, term=5, span=np.inf)
    found = [taught(followed, step, [(1, 7)] if step == 0 else [], []) for step in range(100)]
    assert [step for step, some in enumerate(found) if some] == [5, 10, 15, 20, 25, 30]


def test_of_many_rows_a_sample_is_followed() -> None:
    followed = TrackedArrivals(limit=100, salt=3, term=1, span=np.inf)
    many = [(number, number) for number in range(10_000)]
    taught(followed, 0, many, [])
    assert 40 < len(taught(followed, 1, [], [])) <= 100


@pytest.mark.parametrize("name", SECTION_8)
def test_trends_of_section_8_without_knowing_them(name: str) -> None:
    rng = np.random.default_rng(8)
    left, right = (trending(process, 1000, rng) for process in SECTION_8[name])
    learned = results(left, right, "heeb_histogram", warmup=300)
    assert learned > 1.1 * results(left, right, "random", warmup=300)
    assert learned > 1.5 * results(left, right, "prob", warmup=300)


LINES: dict[str, LinearTrend | AR1] = {
    "slow line": LinearTrend(0.3, 0, Noise(sigma=12.0)),
    "level": AR1(20, 0.9, 8.0),
    "uniform noise": LinearTrend(1, 0, Noise(15)),
}


@pytest.mark.parametrize("name", LINES)
def test_what_was_never_kept_is_learned_from_too(name: str) -> None:
    process = LINES[name]
    learned = known = 0
    for seed in range(1):
        left, right = tg.streams.StochasticPair(process, process).both(2000, seed)
        run: dict[str, Any] = {"window": (None, None), "budget": 40, "step": "instant", "warmup": 300}
        learned += tg.simulate(left, right, policy="heeb_histogram", **run).results
        known += tg.simulate(left, right, policy=Heeb(process, process), **run).results
    assert learned > (0.88 if name == "level" else 0.95) * known


def test_heavy_tails() -> None:
    rng, time = np.random.default_rng(0), np.arange(2000)
    left, right = (
        {"key": np.round(time + 4 * rng.standard_t(1.5, 2000)).astype(np.int64), "time": time} for _ in "lr"
    )
    best = max(results(left, right, rival, warmup=300) for rival in ("random", "fifo", "prob"))
    assert results(left, right, "heeb_histogram", warmup=300) > 1.05 * best


def walks(count: int, seed: int) -> list[dict[str, Array]]:
    """Two walks that are drawn to each other, so that they meet again and again."""
    rng = np.random.default_rng(seed)
    here, keys = np.zeros(2), []
    for _ in range(count):
        here = here + rng.normal(size=2) - 0.05 * (here - here.mean())
        keys.append(np.round(here).astype(np.int64))
    return [{"key": column, "time": np.arange(count)} for column in np.array(keys).T]


def test_walks() -> None:
    learned, drawn, counted = 0, 0, 0
    for seed in range(3):
        left, right = walks(800, seed)
        learned += results(left, right, HeebHistogram(offset="last"))
        drawn += results(left, right, "random")
        counted += results(left, right, "prob")
    assert learned > 1.1 * max(drawn, counted)


def test_it_follows_when_the_streams_change() -> None:
    """The left leads at first, then the right: what is worth holding changes sides."""
    rng, time = np.random.default_rng(4), np.arange(3000)
    lead = np.where(time < 1500, 6, -6)
    left = {"key": time + lead + rng.integers(-2, 3, 3000), "time": time}
    right = {"key": time + rng.integers(-2, 3, 3000), "time": time}
    run: dict[str, Any] = {"window": (None, None), "budget": 10, "step": "instant", "warmup": 2200}
    learned = tg.simulate(left, right, policy=HeebHistogram(memory=200), **run)
    assert learned.from_right > 2 * learned.from_left
    assert learned.results > 1.1 * tg.simulate(left, right, policy="random", **run).results


def test_large_steps() -> None:
    rng, time = np.random.default_rng(5), np.arange(40_000)
    left, right = ({"key": (time + rng.normal(0, 400, 40_000)).astype(int), "time": time} for _ in range(2))
    run: dict[str, Any] = {"window": (None, None), "budget": 1_000, "step": 500}
    learned = tg.simulate(left, right, policy="heeb_histogram", **run).results
    assert learned > tg.simulate(left, right, policy="random", **run).results


def test_what_is_wrong_is_named() -> None:
    wrong: Any
    for wrong in ("median", None):
        with pytest.raises(InputError, match=r"offset .* is not known; use one of 'mean', 'last', 'none'"):
            HeebHistogram(offset=wrong)
    with pytest.raises(InputError, match="buckets must be a positive whole number; got 0"):
        HeebHistogram(buckets=0)
    for setting in ({"rows": 0.5}, {"memory": 0}, {"memory": np.inf}, {"term": 0}):
        with pytest.raises(InputError, match=f"{next(iter(setting))} is .*; give a finite number"):
            HeebHistogram(**setting)
