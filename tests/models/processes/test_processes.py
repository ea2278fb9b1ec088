"""Processes give probabilities, are recovered by fits, and are rejected by `goodness` if they are wrong."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate import InputError
from tidegate.models import AR1, History, LinearTrend, Noise, Oracle, Process, RandomWalk, Stationary
from tidegate.types import Array

AHEAD = np.arange(1, 7)
NOISES = st.builds(Noise, st.integers(0, 6), st.none() | st.floats(0.3, 5)) | st.builds(
    Noise, st.none(), st.floats(0.3, 4)
)
TRENDS = st.builds(LinearTrend, st.floats(-3, 3), st.floats(-50, 50), NOISES)
WALKS = st.builds(RandomWalk, st.floats(-3, 3), NOISES)
LEVELS = st.builds(AR1, st.floats(-5, 5), st.floats(-0.9, 0.9), st.floats(0.3, 5))
SHARES = st.dictionaries(st.integers(-9, 9), st.integers(1, 9), min_size=1).map(
    lambda counts: Stationary({key: count / sum(counts.values()) for key, count in counts.items()})
)
ORACLES = st.lists(st.integers(-9, 9), min_size=30, max_size=40).map(Oracle)
PROCESSES = TRENDS | WALKS | LEVELS | SHARES | ORACLES


def draw(process: Process, count: int, seed: int) -> Array:
    """Values of a process, one after the other, each by its probabilities given the last."""
    rng, span, values = np.random.default_rng(seed), np.arange(-60, 61), [0]
    for now in range(-1, count - 1):
        around = np.int64(process.centre(now + 1).item() if isinstance(process, LinearTrend) else values[-1])
        chances = process.probability(History(now, values[-1]), np.array([1]), span + around)[:, 0]
        values.append(int(rng.choice(span + around, p=chances / chances.sum())))
    return np.array(values[1:])


@given(PROCESSES, st.integers(0, 20), st.integers(-9, 9))
def test_probabilities_of_all_values_add_up_to_one(process: Process, now: int, last: int) -> None:
    chances = process.probability(History(now, last), AHEAD, np.arange(-600, 601))
    assert chances.shape == (1201, 6)
    assert chances.min() >= 0
    assert chances.sum(axis=0) == pytest.approx(np.ones(6))


@given(PROCESSES | st.builds(LinearTrend, st.just(0), st.floats(-50, 50), NOISES), st.integers(0, 20))
def test_a_share_is_the_probability_at_any_time(process: Process, now: int) -> None:
    values = np.arange(-60, 61)
    shares = process.share(values)
    if shares is None:
        assert not isinstance(process, Stationary)
        assert not isinstance(process, LinearTrend) or process.speed
    else:
        chances = process.probability(History(now, 3), AHEAD, values)
        assert np.array_equal(chances, np.repeat(shares[:, None], len(AHEAD), axis=1))


@given(PROCESSES, st.lists(st.integers(-20, 20), max_size=6), st.lists(st.integers(1, 9), max_size=6))
def test_each_time_and_value_is_independent_of_the_others(
    process: Process, values: list[int], ahead: list[int]
) -> None:
    together = process.probability(History(3, 2), np.array(ahead, np.int64), np.array(values, np.int64))
    assert together.shape == (len(values), len(ahead))
    for row, value in enumerate(values):
        for column, steps in enumerate(ahead):
            alone = process.probability(History(3, 2), np.array([steps]), np.array([value]))
            assert together[row, column] == alone[0, 0]


@given(PROCESSES)
def test_parameters_round_trip(process: Process) -> None:
    made = Process.from_parameters(json.loads(json.dumps(process.to_parameters())))
    assert made == process
    assert hash(made) == hash(process)


@given(PROCESSES, st.integers(-20, 20))
def test_values_do_not_arrive_after_the_end(process: Process, value: int) -> None:
    if process.ends() and not (isinstance(process, LinearTrend) and abs(process.speed) < 0.01):
        late = process.probability(History(0, 0), np.arange(20_000, 20_010), np.array([value]))
        assert not late.any()


@given(st.integers(0, 9), st.integers(-30, 30))
def test_uniform_noise_around_a_whole_centre_has_equal_shares(bound: int, away: int) -> None:
    assert Noise(bound).mass(np.array([away]))[0] == pytest.approx(
        1 / (2 * bound + 1) if abs(away) <= bound else 0
    )


@given(WALKS, st.integers(-3, 3), st.integers(-30, 30))
def test_walks_and_returns_equal_step_by_step_sums(walk: RandomWalk, last: int, value: int) -> None:
    span = np.arange(-200, 201)
    one = walk.probability(History(0, 0), np.array([1]), span)[:, 0]
    there = walk.probability(History(0, last), np.array([1, 2, 3]), np.array([value]))[0]
    by_hand = one.copy()
    for steps in range(3):
        assert there[steps] == pytest.approx(by_hand[value - last + 200], abs=1e-12)
        assert walk.returns(np.array([steps + 1]), np.array([value]))[0, 0] == pytest.approx(
            by_hand[200], abs=1e-12
        )
        by_hand = np.convolve(by_hand, one, mode="same")


@given(st.floats(-5, 5), st.floats(-0.9, 0.9), st.floats(3, 6), st.integers(-9, 9), st.integers(-9, 9))
def test_ar1_over_two_steps_equals_one_step_twice(
    phi0: float, phi1: float, sigma: float, last: int, value: int
) -> None:
    level = AR1(phi0, phi1, sigma)
    between = np.arange(-150, 151)
    first = level.probability(History(0, last), np.array([1]), between)[:, 0]
    second = np.array(
        [level.probability(History(1, at), np.array([1]), np.array([value]))[0, 0] for at in between.tolist()]
    )
    both = level.probability(History(0, last), np.array([2]), np.array([value]))[0, 0]
    assert both == pytest.approx(float(first @ second), abs=2e-3)
    back = level.returns(np.array([2]), np.array([last]))[0, 0]
    assert back == level.probability(History(0, last), np.array([2]), np.array([last]))[0, 0]


TRUE: list[Process] = [
    Stationary({1: 0.5, 2: 0.3, 9: 0.2}),
    LinearTrend(1.0, -1.0, Noise(10)),
    LinearTrend(0.3, 5.0, Noise(10, sigma=3.3)),
    RandomWalk(0.0, Noise(sigma=1.0)),
    RandomWalk(2.0, Noise(3)),
    AR1(5.59, 0.72, 4.22),
]


@pytest.mark.parametrize("process", TRUE, ids=repr)
def test_a_true_process_is_rarely_rejected(process: Process) -> None:
    chances = np.array([process.goodness(draw(process, 200, seed)) for seed in range(60)])
    assert (chances < 0.05).mean() <= 0.12
    assert np.median(chances) > 0.3


@pytest.mark.parametrize("process", TRUE, ids=repr)
def test_other_kinds_are_rejected_even_when_fitted(process: Process) -> None:
    values = draw(process, 1500, 5)
    assert type(process).fit(values).goodness(values) > 0.01
    # A trend is not a walk, a walk is not a trend, and stationary independent values are neither.
    kinds: list[type[Process]] = (
        [LinearTrend, RandomWalk] if not isinstance(process, LinearTrend) else [RandomWalk]
    )
    if not process.independent or isinstance(process, LinearTrend):
        kinds.append(Stationary)
    for kind in kinds:
        if kind is not type(process):
            assert kind.fit(values).goodness(values) < 0.001, kind


@pytest.mark.parametrize(
    ("true", "assumed"),
    [
        (LinearTrend(1.0, 0.0, Noise(15, sigma=5.0)), LinearTrend(1.0, 0.0, Noise(20, sigma=3.0))),
        (RandomWalk(0.0, Noise(3)), RandomWalk(0.0, Noise(sigma=4.0))),
        (Stationary({0: 0.25, 1: 0.5, 2: 0.25}), Stationary({0: 0.4, 1: 0.2, 2: 0.4})),
    ],
    ids=repr,
)
def test_a_wrong_scatter_around_the_right_centre_is_rejected(true: Process, assumed: Process) -> None:
    values = draw(true, 1000, 2)
    assert true.goodness(values) > 0.01
    assert assumed.goodness(values) < 0.001


def test_parameters_are_recovered() -> None:
    trend = LinearTrend.fit(draw(LinearTrend(1.0, -1.0, Noise(10)), 2000, 1))
    assert trend == LinearTrend(1.0, -1.0, Noise(10.0))
    bell = LinearTrend.fit(draw(LinearTrend(0.3, 5.0, Noise(15, sigma=3.3)), 2000, 1))
    assert bell.speed == pytest.approx(0.3, abs=1e-3)
    assert bell.noise.sigma == pytest.approx(3.3, rel=0.05)
    walk = RandomWalk.fit(draw(RandomWalk(0.4, Noise(sigma=1.5)), 2000, 1))
    assert walk.drift == pytest.approx(0.4, abs=0.1)
    assert walk.step.sigma == pytest.approx(1.5, rel=0.05)
    assert RandomWalk.fit(draw(RandomWalk(2.0, Noise(3)), 2000, 1)) == RandomWalk(2.0, Noise(3.0))
    level = AR1.fit(draw(AR1(5.59, 0.72, 4.22), 3650, 1))
    assert (level.phi0, level.phi1, level.sigma) == pytest.approx((5.59, 0.72, 4.22), rel=0.07)


@given(TRENDS | WALKS, st.integers(0, 99))
def test_the_fit_has_nearly_the_highest_likelihood(process: Process, seed: int) -> None:
    values = draw(process, 60, seed)

    def likelihood(of: Process) -> float:
        below, upto = of.intervals(values)
        return float(np.log(np.maximum(upto - below, 1e-300)).sum())

    # For the centre, least squares approximate the likelihood within a few units, or somewhat more if noise is so
    # narrow that rounding to whole keys decides (a bound of 1 at a speed of a half: up to 7.4 below).
    assert likelihood(type(process).fit(values)) >= likelihood(process) - 0.2 * len(values)


def test_an_oracle_is_right_or_wrong() -> None:
    oracle = Oracle.fit([1, 2, 3])
    assert oracle.goodness([1, 2, 3]) == oracle.goodness([1]) == 1
    assert oracle.goodness([1, 3]) == oracle.goodness([0]) == 0
    with pytest.raises(InputError, match="4 values were observed, but the oracle has 3"):
        oracle.goodness([1, 2, 3, 4])


def test_impossible_values_are_rejected() -> None:
    assert Stationary({1: 1.0}).goodness([1, 2]) == 0
    assert LinearTrend(1, 0, Noise(1)).goodness([0, 1, 9]) == 0


def test_histories_are_the_time_and_the_last_value() -> None:
    assert History.of([5, 6]) == (1, 6)
    assert History.of([]) == (-1, None)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Noise, "noise needs a bound or a sigma"),
        (lambda: Noise(-1), "bound of the noise is -1; give a finite number"),
        (lambda: Noise((3, -3)), r"bound of the noise is \(3, -3\); give a finite number"),  # type: ignore[arg-type]
        (lambda: Noise("a"), "bound of the noise is 'a'; give a finite number"),  # type: ignore[arg-type]
        (lambda: Noise(sigma="a"), "sigma of the noise is 'a'; give a number above 0"),  # type: ignore[arg-type]
        (lambda: Noise(1, 0.0), "sigma of the noise is 0.0"),
        (lambda: Stationary({1: 0.5}), "add up to 0.5"),
        (lambda: Stationary(([1, 1], [0.5, 0.5])), "name 1 twice"),
        (lambda: Stationary(([1, 2], [1.0])), "2 values have 1 shares"),
        (lambda: Stationary(3), "3 must be a mapping"),  # type: ignore[arg-type]
        (lambda: LinearTrend(np.inf, 0, Noise(1)), "speed of the trend is inf; give a finite number"),
        (lambda: LinearTrend(1, "b", Noise(1)), "offset of the trend is 'b'"),  # type: ignore[arg-type]
        (lambda: LinearTrend(1, 0, 3), r"noise of the trend is 3; give a Noise: Noise\(bound"),  # type: ignore[arg-type]
        (lambda: LinearTrend.fit([1]), "1 values show no trend"),
        (lambda: RandomWalk(np.nan, Noise(1)), "drift of the walk is nan; give a finite number"),
        (lambda: RandomWalk("up", Noise(1)), "drift of the walk is 'up'"),  # type: ignore[arg-type]
        (lambda: RandomWalk(0, 3), r"step of the walk is 3; give a Noise: Noise\(bound"),  # type: ignore[arg-type]
        (lambda: RandomWalk.fit([1]), "1 values show no step"),
        (lambda: AR1(0, 1.0, 1), "phi1 is 1.0"),
        (lambda: AR1(0, "a", 1), "phi1 is 'a'"),  # type: ignore[arg-type]
        (lambda: AR1.fit([1, 2, 4, 8, 16]), "no AR1 fits these 5 values: phi1 would be 2.* RandomWalk"),
        (lambda: AR1.fit([-1, 1, -2, 2, -4]), "no AR1 fits .* phi1 would be -1.* RandomWalk"),
        (lambda: AR1.fit([16, 8, 4, 2, 1]), "no AR1 fits these 5 values: .* without noise"),
        (lambda: AR1(np.inf, 0.5, 1), "phi0 is inf"),
        (lambda: AR1.fit([3, 3, 3]), "do not vary"),
        (lambda: Oracle([0.5]), "values contain 0.5"),
        (lambda: Oracle(["a"]), "are not numbers, such as a; give whole numbers$"),
        (lambda: Oracle(["1"]), "are not numbers, such as 1; give whole numbers$"),
        (
            lambda: Oracle([1, None] * 9_999),  # type: ignore[arg-type]
            r"are not all numbers of 64 bits \(.{,80}\); give whole numbers$",
        ),
        (lambda: Oracle([2**70]), "are not all numbers of 64 bits"),
        (lambda: Oracle([[1]]), "shape"),
        (lambda: Process.from_parameters({"process": "Psychic"}), "'Psychic' is not known; use one of AR1"),
        (lambda: Stationary({1: 1.0}).goodness([]), "goodness needs at least one value"),
        (lambda: AR1(0, 0.5, 1).probability(History(0), AHEAD, AHEAD), "needs the last observed value"),
    ],
)
def test_errors_name_the_value(make: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()  # type: ignore[operator]


@given(st.integers(0, 40))
def test_uniform_noise_is_the_same_to_the_last_digit(bound: int) -> None:
    assert set(Noise(bound).mass(np.arange(-bound, bound + 1))) == {1 / (2 * bound + 1)}
    assert Noise(bound).mass(np.array([-bound - 1, bound + 1])).tolist() == [0, 0]
    between = bound + np.array([0.25, 0.5, 0.75])
    assert Noise(bound).mass(between) * (2 * bound + 1) == pytest.approx(np.array([0.75, 0.5, 0.25]))


@given(TRENDS | ORACLES, st.integers(0, 20), st.lists(st.integers(-20, 20), min_size=1, max_size=5))
def test_until_is_the_last_step_with_a_value(process: Process, now: int, values: list[int]) -> None:
    over = process.until(History(now), np.array(values))
    if over is not None:
        later = process.probability(History(now), over + np.arange(1, 50), np.array(values))
        assert later.max() < 1e-15


def test_most_processes_have_no_end() -> None:
    for process in (
        Stationary({1: 1.0}),
        RandomWalk(1, Noise(1)),
        AR1(0, 0.5, 1),
        LinearTrend(0, 1, Noise(1)),
    ):
        assert process.until(History(0, 1), np.array([1])) is None


@given(WALKS, st.integers(1, 20))
def test_the_span_of_a_walk_has_nearly_all_probability(walk: RandomWalk, ahead: int) -> None:
    low, high = walk.span(ahead)
    beyond = np.array([*range(low - 9, low), *range(high + 1, high + 10)])
    assert walk.probability(History(0, 0), np.arange(1, ahead + 1), beyond).max() == 0
    assert (
        walk.probability(History(0, 0), np.arange(1, ahead + 1), np.array([low, high])).max(axis=1).min() > 0
    )


def test_shares_by_value_and_speeds_that_are_whole() -> None:
    assert Stationary(([2, 1], [0.25, 0.75])).by_value() == {1: 0.75, 2: 0.25}
    speeds = (1, -3.0, 0, 0.5)
    assert [LinearTrend(speed, 0, Noise(1)).moves_whole() for speed in speeds] == [True, True, False, False]


def test_of_equally_narrow_trends_the_one_with_a_whole_speed_is_fitted() -> None:
    rng = np.random.default_rng(0)
    for speed, bound, rows in [(1, 0, 7), (2, 1, 30), (3, 3, 50), (-2, 2, 40), (7, 1, 200)]:
        noise = rng.integers(-bound, bound + 1, rows)
        noise[[0, -1]] = bound
        noise[[1, -2]] = -bound
        fitted = LinearTrend.fit(speed * np.arange(rows) + noise)
        assert fitted.moves_whole(), fitted
        assert fitted.speed == speed
        assert fitted.noise.bound == pytest.approx(bound)
