"""Random, prob and life where keys move: what the other side has passed goes first, and life ends there."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidegate as tg
from tests.policies.heeb.test_heeb import SECTION_8, results, trending
from tests.running_policy import observe
from tidegate import InputError, Window
from tidegate.checks import LAWS, Law
from tidegate.models import Frequency, History, LinearTrend, Noise, Stationary
from tidegate.policies import Life, Policy, Prob, Random, RunningPolicy
from tidegate.types import SIDES, Clocks, Rows, Setting, Side, Step, Time

SPEEDS = st.sampled_from([-3.0, -1.0, -0.25, 0.5, 1.0, 2.0])
TRENDS = st.builds(
    LinearTrend, SPEEDS, st.integers(-4, 4) | st.just(0.5), st.builds(Noise, st.integers(1, 6))
)
SLOW = LinearTrend(0.125, 0, Noise(5))
SHARES = dict.fromkeys(range(9), 1 / 9)
CONFIGS = [
    Random(left=SLOW, right=SLOW),
    Random(5, SLOW, LinearTrend(0.25, 2, Noise(3, 1.5))),
    Prob(left=SLOW, right=SLOW),
    Prob(Frequency(SHARES, SHARES), left=SLOW, right=SLOW),
    Life(left=SLOW, right=LinearTrend(-0.125, 9, Noise(4)), horizon=50.0),
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("policy", CONFIGS, ids=repr)
def test_every_law_holds_where_keys_move(policy: Policy, law: Law) -> None:
    law(policy)


def last_by_looking(trend: LinearTrend, value: int, until: int) -> float:
    """The last time up to then at which a value has a chance."""
    times = np.arange(-200, until + 1)
    chances = trend.probability(History(0), times, np.array([value]))[0]
    found = times[chances > 0]
    return float(found[-1]) if len(found) else -math.inf


@given(TRENDS, st.integers(-20, 20))
def test_the_last_time_of_a_value(trend: LinearTrend, value: int) -> None:
    assert trend.last(np.array([value]))[0] == last_by_looking(trend, value, 200)


def test_a_line_that_leaps_over_a_value_has_passed_it_then() -> None:
    assert LinearTrend(3, 0, Noise(0)).last(np.array([5, 6])).tolist() == [1, 2]


def test_what_stands_still_or_has_no_bound_has_no_last_time() -> None:
    values = np.array([-3, -2, 0, 2, 3])
    forever, never = math.inf, -math.inf
    still = LinearTrend(0, 0, Noise(2)).last(values)
    assert still.tolist() == [never, forever, forever, forever, never]
    assert LinearTrend(1, 0, Noise(sigma=1.0)).last(values).tolist() == [forever] * 5


def rows_of(side: Side, keys: list[int], times: list[Time]) -> Rows:
    count = len(keys)
    return Rows(side, np.array(keys, np.int64), np.array(times), np.arange(count), np.zeros(count, np.int64))


def after(
    policy: Policy, now: int, came: dict[Side, list[int]], window: Window | None = None
) -> RunningPolicy:
    """The policy at work, after a step of this time that brought these keys."""
    setting = Setting(window or Window(None, None))
    running = policy.start(setting)
    rows = {side: rows_of(side, came[side], [now] * len(came[side])) for side in SIDES}
    hits = {side: np.zeros(len(rows[side]), np.int64) for side in SIDES}
    observe(
        running, setting, Step(0, Clocks.both(now), Clocks.both(now), rows, dict.fromkeys(SIDES, 0), hits)
    )
    return running


MOVING = LinearTrend(1, 0, Noise(2))
GIVEN = Frequency({8: 0.5, 9: 0.3, 13: 0.2}, {8: 0.5, 9: 0.3, 13: 0.2})


def test_by_hand() -> None:
    """At time 10 rows of both sides have come, so the next bring 9 to 13, then 10 to 14."""
    rows = rows_of("left", [8, 9, 13, 14], [10] * 4)
    both: dict[Side, list[int]] = {"left": [9], "right": [9]}
    prob = after(Prob(GIVEN, left=MOVING, right=MOVING), 10, both)
    assert prob.scores(rows, 10).tolist() == [-1, 0.3, 0.2, 0]
    life = after(Life(GIVEN, left=MOVING, right=MOVING), 10, both)
    assert life.scores(rows, 10).tolist() == [-1, 0.3 * 1, 0.2 * 5, 0]
    short = after(Life(GIVEN, left=MOVING, right=MOVING), 10, both, Window(3, 3))
    assert short.scores(rows, 10).tolist() == pytest.approx([-1, 0.3 * 1, 0.2 * 3, 0])
    drawn = after(Random(1, MOVING, MOVING), 10, both).scores(rows, 10)
    assert drawn[0] == -1
    assert drawn[1:].tolist() == Random(1).scores(rows, 10)[1:].tolist()


def test_the_other_sides_row_of_the_same_time_is_still_to_come() -> None:
    rows = rows_of("left", [7, 8, 9], [10] * 3)
    life = after(Life(GIVEN, left=MOVING, right=MOVING), 10, {"left": [9], "right": []})
    assert life.scores(rows, 10).tolist() == [-1, 0.5 * 1, 0.3 * 2]


@given(TRENDS, st.lists(st.integers(-15, 15), min_size=1, max_size=8), st.integers(0, 9), st.integers(0, 12))
def test_scores_are_what_looking_ahead_finds(
    trend: LinearTrend, keys: list[int], age: int, span: int
) -> None:
    now, shares = 9, dict.fromkeys(range(-15, 16), 1 / 31)
    rows = rows_of("left", keys, [now - age] * len(keys))
    model = Frequency(shares, shares)
    came: dict[Side, list[int]] = {"left": [0], "right": [0]}
    life = after(Life(model, left=MOVING, right=trend), now, came, Window(span, 0)).scores(rows, now)
    prob = after(Prob(model, left=MOVING, right=trend), now, came, Window(span, 0)).scores(rows, now)
    for key, by_life, by_prob in zip(keys, life.tolist(), prob.tolist(), strict=True):
        lasting = last_by_looking(trend, key, 300) - now
        assert by_prob == pytest.approx(1 / 31 if lasting > 0 else -1)
        assert by_life == pytest.approx(max(min(lasting, span - age), 0) / 31 if lasting > 0 else -1)


@pytest.mark.parametrize("name", SECTION_8)
def test_knowing_what_has_passed_helps(name: str) -> None:
    left_trend, right_trend = SECTION_8[name]
    rng = np.random.default_rng(8)
    left, right = (trending(trend, 600, rng) for trend in SECTION_8[name])
    for blind in (Random(), Prob()):
        aware = replace(blind, left=left_trend, right=right_trend)
        assert results(left, right, aware) > results(left, right, blind)
    assert results(left, right, Life(left=left_trend, right=right_trend)) > results(left, right, Prob())


def test_steps_of_one_row_are_not_run_by_the_loop_that_knows_no_trend() -> None:
    rng = np.random.default_rng(1)
    left, right = (trending(MOVING, 300, rng) for _ in range(2))
    run: dict[str, Any] = {"window": (None, None), "budget": 4}
    aware = tg.simulate(left, right, policy=Random(1, MOVING, MOVING), **run).results
    assert aware > 1.2 * tg.simulate(left, right, policy=Random(1), **run).results


def test_what_is_wrong_is_named() -> None:
    still: Any = Stationary({1: 1.0})
    for kind in (Random, Prob, Life):
        with pytest.raises(InputError, match="right=None is not a trend; give both sides"):
            kind(left=MOVING)
        with pytest.raises(InputError, match=r"left=Stationary.* is not a trend"):
            kind(left=still, right=MOVING)
    endless = LinearTrend(1, 0, Noise(sigma=1.0))
    with pytest.raises(InputError, match="left= and right= that move and are bounded"):
        Life(left=endless, right=MOVING).start(Setting(Window(None, None)))
