"""What rows brought is learned as they leave, wherever the streams go; and that pays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tidegate as tg
from tests.policies.test_heeb import SECTION_8, results, trending
from tidegate import InputError
from tidegate.checks import LAWS, Law
from tidegate.policies import HeebHistogram
from tidegate.policies.departures import Departures
from tidegate.types import Array, Rows

CONFIGS = [HeebHistogram(offset="last", buckets=3, memory=50), HeebHistogram(offset="none", term=2)]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("policy", CONFIGS, ids=repr)
def test_every_law_holds(policy: HeebHistogram, law: Law) -> None:
    law(policy)


def rows_of(ids: list[int], matches: list[int]) -> Rows:
    nothing = np.zeros(len(ids), np.int64)
    return Rows("left", nothing, nothing, np.array(ids, np.int64), np.array(matches, np.int64))


def told_of(departures: Departures, step: int, ids: list[int], matches: list[int], fresh: int) -> list[Any]:
    """What is told after a step; a row's place is 10 times its number."""
    gone = departures.observe(rows_of(ids, matches), fresh, 10.0 * np.array(ids), step, term=5)
    return list(zip(*(column.tolist() for column in gone), strict=True))


def test_rows_are_followed_from_their_entry_to_their_departure() -> None:
    departures = Departures(limit=99, salt=0)
    assert told_of(departures, 0, [1, 2, 3], [4, 0, 0], fresh=0) == []
    # 3 was dropped when it came; 1 has matched once more.
    assert told_of(departures, 1, [2, 1, 4], [0, 5, 0], fresh=2) == []
    # 1 has left after a step, with a result; the buffer's order means nothing.
    assert told_of(departures, 2, [4, 2, 5], [0, 2, 0], fresh=2) == [(10.0, 1, 1)]
    assert told_of(departures, 3, [2], [3], fresh=1) == [(40.0, 0, 1)]
    assert told_of(departures, 4, [], [], fresh=0) == [(20.0, 3, 3)]


def test_a_row_that_stays_teaches_after_every_term() -> None:
    departures = Departures(limit=99, salt=0)
    found = [told_of(departures, step, [7], [step], fresh=int(step > 0)) for step in range(12)]
    assert [step for step, some in enumerate(found) if some] == [5, 10]
    assert found[10] == [(70.0, 5, 5)]


def test_of_many_rows_a_sample_is_followed() -> None:
    departures = Departures(limit=100, salt=3)
    ids = list(range(10_000))
    told_of(departures, 0, ids, ids, fresh=0)
    told_of(departures, 1, ids, ids, fresh=10_000)
    found = told_of(departures, 2, [], [], fresh=0)
    assert 40 < len(found) <= 100
    assert all(place == 10 * round(place / 10) and steps == 1 for place, _, steps in found)
    for step in range(3, 12):
        told_of(departures, step, [], [], fresh=0)
    told_of(departures, 12, [1, 2, 3], [0, 0, 0], fresh=0)
    told_of(departures, 13, [3, 2, 1], [0, 0, 0], fresh=3)
    assert len(told_of(departures, 14, [], [], fresh=0)) == 3


@pytest.mark.parametrize("name", SECTION_8)
def test_trends_of_section_8_without_knowing_them(name: str) -> None:
    rng = np.random.default_rng(8)
    left, right = (trending(process, 1000, rng) for process in SECTION_8[name])
    learned = results(left, right, "heeb_histogram", warmup=300)
    # Uniform noise hardly tells one place from another, and takes longer to learn.
    ahead = 0.9 if name == "FLOOR" else 1.1
    assert learned > ahead * results(left, right, "random", warmup=300)
    assert learned > 1.5 * results(left, right, "prob", warmup=300)


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
    with pytest.raises(InputError, match="histogram of 0 buckets"):
        HeebHistogram(buckets=0)
    for setting in ({"rows": 0.5}, {"memory": 0}, {"memory": np.inf}, {"term": 0}):
        with pytest.raises(InputError, match=f"{next(iter(setting))} is .*; give a finite number"):
            HeebHistogram(**setting)
    with pytest.raises(InputError, match="observed nothing to score 1 rows by"):
        HeebHistogram().scores(rows_of([1], [0]), 1)
