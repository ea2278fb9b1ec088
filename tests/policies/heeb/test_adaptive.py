"""Heeb without given processes finds out how keys come, and then does about as well as with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.models.processes.test_running_fits import sampled_by_hash
from tests.running_policy import policy_of
from tidegate import Budget, InputError, Window
from tidegate.engine.encode import encode
from tidegate.engine.join import Join
from tidegate.engine.operator import Operator, collected
from tidegate.models import LinearTrend, Noise, RandomWalk
from tidegate.policies import Exponential, Heeb, Policy
from tidegate.policies.abilities import learned_by
from tidegate.policies.heeb.adaptive import AdaptiveHeeb
from tidegate.streams import Trace
from tidegate.types import SIDES, Array, Setting

Stream = dict[str, Array]
NO_END: dict[str, Any] = {"window": (None, None), "budget": 10, "step": "instant"}
SECONDS = 1_000_000


def trending(count: int, sigma: float, *, lag: float = 0.0, seed: int = 0) -> Stream:
    time = np.arange(count)
    noise = np.random.default_rng(seed).normal(0, sigma, count)
    return {"time": time, "key": np.round(time - lag + noise).astype(np.int64)}


def walking(count: int, seed: int) -> Stream:
    steps = np.round(np.random.default_rng(seed).normal(size=count)).astype(np.int64)
    return {"time": np.arange(count), "key": np.cumsum(steps)}


def orders(count: int, *, lag: float = 0.0, seed: int = 0) -> Stream:
    """Keys that rise by a hundred a second, of rows that come at any microsecond."""
    rng = np.random.default_rng(seed)
    time = np.sort(rng.uniform(0, count / 100, count))
    key = np.round(100 * (time - lag) + rng.normal(0, 100, count)).astype(np.int64)
    return {"time": 1_700_000_000 * SECONDS + (time * SECONDS).astype(np.int64), "key": key}


def results(left: Stream, right: Stream, policy: str | Policy, **settings: Any) -> int:  # noqa: ANN401 - as simulate's
    return tg.simulate(left, right, policy=policy, **settings).results


@pytest.mark.parametrize("window", [(None, None), (10, 15)])
def test_on_a_drifting_trend_it_equals_heeb_with_the_given_process(
    window: tuple[int | None, int | None],
) -> None:
    left, right = trending(500, 1.0, lag=1, seed=1), trending(500, 2.0, seed=2)
    bounded = NO_END | {"window": window}
    given = Heeb(LinearTrend(1, -1, Noise(sigma=1.0)), LinearTrend(1, 0, Noise(sigma=2.0)))
    found = results(left, right, "heeb", **bounded)
    assert found > 0.93 * results(left, right, given, **bounded)
    assert found > 1.2 * max(results(left, right, rival, **bounded) for rival in ("prob", "random"))


def test_walks_are_followed() -> None:
    walk = RandomWalk(0, Noise(sigma=1.0))
    found = {"given": 0, "heeb": 0, "prob": 0}
    for seed in range(3):
        left, right = walking(300, 2 * seed), walking(300, 2 * seed + 1)
        for name in found:
            found[name] += results(left, right, Heeb(walk, walk) if name == "given" else name, **NO_END)
    # Walks are nearest to each other where they begin, before anything is believed.
    assert found["heeb"] > 0.7 * found["given"]
    assert found["heeb"] > 1.1 * found["prob"]


@pytest.mark.parametrize("parts", [1, 4])
def test_in_microseconds_large_steps_and_a_part_of_the_stream(parts: int) -> None:
    left, right = orders(8_000, seed=1), orders(8_000, lag=5, seed=2)
    if parts > 1:
        left, right = (
            {name: column[sampled_by_hash(some["key"], parts, 1)] for name, column in some.items()}
            for some in (left, right)
        )
    bounded: dict[str, Any] = {
        "window": (60 * SECONDS, 60 * SECONDS),
        "budget": 320 // parts,
        "step": 800 // parts,
    }
    found = results(left, right, "heeb", **bounded)
    assert found > 1.15 * max(
        results(left, right, rival, **bounded) for rival in ("prob", "life", "fifo", "age")
    )


def test_the_unit_of_time_does_not_matter() -> None:
    left, right = trending(300, 3.0, lag=2, seed=1), trending(300, 3.0, seed=2)
    fast_left, fast_right = (some | {"time": 1000 * some["time"]} for some in (left, right))
    for policies in ((Heeb(), Heeb()), (Heeb(survival=Exponential(4.0)), Heeb(survival=Exponential(4000.0)))):
        slow = results(left, right, policies[0], **NO_END)
        assert results(fast_left, fast_right, policies[1], **NO_END) == pytest.approx(slow, rel=0.01)


def test_keys_that_are_no_numbers_have_shares() -> None:
    left, right = trending(300, 1.0, lag=1, seed=1), trending(300, 2.0, seed=2)
    text_left, text_right = (some | {"key": some["key"].astype(str)} for some in (left, right))
    assert not isinstance(Heeb().start(Setting(Window(5, 5), integer_keys=False)), AdaptiveHeeb)
    assert results(text_left, text_right, "heeb", **NO_END) < 0.8 * results(left, right, "heeb", **NO_END)
    trend = LinearTrend(1, 0, Noise(sigma=1.0))
    with pytest.raises(InputError, match="keys are not whole numbers"):
        results(text_left, text_right, Heeb(trend, trend), **NO_END)


def test_keys_of_which_some_are_null_are_numbers() -> None:
    left, right = trending(300, 1.0, lag=1, seed=1), trending(300, 2.0, seed=2)
    lacking = np.arange(300) % 50 == 49
    with_nulls = left | {"key": pa.array(left["key"], mask=lacking)}
    found = tg.simulate(with_nulls, right, policy="heeb", **NO_END)
    assert found.null_keys == lacking.sum()
    without = {name: column[~lacking] for name, column in left.items()}
    assert found.results == results(without, right, "heeb", **NO_END)


def running(join: Join, lags: tuple[int, int] = (1, 2)) -> Iterator[tuple[Any, ...]]:
    sides = [Trace.of(trending(150, 2.0, lag=lag, seed=lag)) for lag in lags]
    arrivals = encode(sides[0], sides[1], join.window, "=", None).arrivals
    return arrivals.steps(arrivals.cuts(6), whole_instants=False)


@pytest.mark.parametrize("window", [Window(None, None), Window(20, 12), Window(30, tg.Last(20))])
def test_a_restart_changes_nothing_and_asking_neither(window: Window) -> None:
    join = Join(window, Budget(rows=8), Heeb())
    through, again = Operator(join), Operator(join)
    for step in running(join):
        collected(through.step(*step))
        collected(again.step(*step))
        state = again.snapshot()
        assert state == through.snapshot()
        again = Operator(join)
        again.restore(state)
        for buffer in again.buffers.values():
            first, second = (policy_of(again).scores(buffer.rows, step[2].now) for _ in range(2))
            backwards = policy_of(again).scores(buffer.rows.take(slice(None, None, -1)), step[2].now)[::-1]
            assert np.array_equal(first, second)
            assert np.array_equal(first, policy_of(through).scores(buffer.rows, step[2].now))
            assert np.allclose(first, backwards)
    assert {one.model for one in again.retention.learned()} > {"LinearTrend.speed", "LinearTrend.noise.sigma"}


def test_strides_see_as_far_and_count_as_much_as_steps() -> None:
    found = []
    for ahead in (32, 256):
        join = Join(Window(None, None), Budget(rows=400), Heeb(survival=Exponential(40.0), ahead=ahead))
        operator = Operator(join)
        for step in running(join, lags=(0, 60)):
            collected(operator.step(*step))
        # These the right will reach in more steps than it looks ahead the first time.
        rows = operator.buffers["left"].rows.take(slice(-12, None))
        found.append(policy_of(operator).scores(rows, step[2].now).sum())
    assert found[1] == pytest.approx(12 * np.exp(-54 / 40), rel=0.1)
    assert found[0] == pytest.approx(found[1], rel=0.25)


def test_it_tells_what_it_believes() -> None:
    join = Join(Window(None, None), Budget(rows=8), Heeb())
    operator = Operator(join)
    for step in running(join):
        collected(operator.step(*step))
    learned = {(some.model, some.side): some for some in operator.retention.learned() if some.key is None}
    for side in SIDES:
        assert learned["LinearTrend.speed", side].value == pytest.approx(1, rel=0.05)
        assert learned["LinearTrend.noise.sigma", side].value == pytest.approx(2, rel=0.3)
        assert learned["LinearTrend.speed", side].sample == pytest.approx(140, abs=20)


def test_a_state_from_before_processes_were_learned_is_taken_up() -> None:
    setting = Setting(Window(20, 12))
    shares = Heeb().start(Setting(Window(20, 12), integer_keys=False))
    assert learned_by(Heeb().start(setting).restore(shares.snapshot())) == learned_by(shares)
