"""Learned frequencies are exact up to the capacity, close beyond it, and bounded in memory."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate import InputError
from tidegate.models import FrequencyLearner, LearnedFrequency
from tidegate.streams import Zipf
from tidegate.types import Array

HORIZONS = st.none() | st.floats(0.5, 50)
ROWS = st.lists(st.tuples(st.integers(-20, 20), st.floats(-50, 50)), min_size=1, max_size=60)
SMALL = LearnedFrequency(capacity=8, horizon=300)


def columns(rows: list[tuple[int, float]]) -> tuple[Array, Array]:
    return np.array([key for key, _ in rows]), np.array([time for _, time in rows])


def learner_of(config: LearnedFrequency, keys: Array, times: Array, cuts: list[int]) -> FrequencyLearner:
    learner = config.start()
    for begin, end in pairwise([0, *sorted(cuts), len(keys)]):
        learner.observe("left", keys[begin:end], times[begin:end])
    return learner


def assert_equal_states(one: FrequencyLearner, other: FrequencyLearner) -> bool:
    a, b = one.snapshot(), other.snapshot()
    return a.keys() == b.keys() and all(a[name].tobytes() == b[name].tobytes() for name in a)


@given(ROWS, HORIZONS)
def test_up_to_the_capacity_shares_are_exact(rows: list[tuple[int, float]], horizon: float | None) -> None:
    keys, times = columns(rows)
    learner = learner_of(LearnedFrequency(horizon=horizon), keys, times, [])
    weights = np.ones(len(keys)) if horizon is None else np.exp2((times - times.max()) / horizon)
    expected = [weights[keys == key].sum() / weights.sum() for key in range(-25, 25)]
    assert learner.share("left", np.arange(-25, 25)) == pytest.approx(expected)
    assert learner.total("left") == pytest.approx(weights.sum())
    assert learner.total("right") == 0


@given(ROWS, HORIZONS, st.lists(st.integers(0, 60)), st.sampled_from([1.0, 1e5]))
def test_up_to_the_capacity_steps_do_not_matter(
    rows: list[tuple[int, float]], horizon: float | None, cuts: list[int], stretch: float
) -> None:
    keys, times = columns(rows)
    config = LearnedFrequency(capacity=41, horizon=horizon)
    whole = learner_of(config, keys, times * stretch, [])
    cut = learner_of(config, keys, times * stretch, [min(place, len(keys)) for place in cuts])
    lookups = np.arange(-20, 21)
    assert cut.share("left", lookups).tobytes() == whole.share("left", lookups).tobytes()
    assert cut.total("left") == whole.total("left")


def test_weights_never_overflow() -> None:
    times = np.arange(100_000.0)
    learner = learner_of(LearnedFrequency(horizon=1), np.arange(100_000) % 2, times, [50_000])
    assert learner.share("left", np.array([1, 0])) == pytest.approx([2 / 3, 1 / 3])
    learner.observe("left", np.array([7]), 1e15)
    assert learner.share("left", np.array([7, 1])).tolist() == [1.0, 0.0]


def test_one_time_for_all_rows() -> None:
    keys = np.arange(10) % 3
    one, each = SMALL.start(), SMALL.start()
    one.observe("right", keys, 5)
    each.observe("right", keys, np.full(10, 5))
    assert assert_equal_states(one, each)


@given(st.integers(0, 2**32), st.integers(1, 500), st.sampled_from([None, 50.0, 2_000.0]), st.integers(0, 9))
def test_storing_changes_nothing(seed: int, step: int, horizon: float | None, stored_at: int) -> None:
    keys = np.random.default_rng(seed).zipf(1.3, 10 * step) % 2**50 - 10
    config = LearnedFrequency(capacity=8, horizon=horizon)
    through, stored = config.start(), config.start()
    for number in range(10):
        part = keys[number * step : (number + 1) * step]
        if number == stored_at:
            stored = config.start().restore(stored.snapshot())
        for learner in (through, stored):
            learner.observe("left", part, np.arange(len(part)) + number * step)
            learner.observe("right", part[::-1], number * step)
    assert assert_equal_states(through, stored)
    for side in ("left", "right"):
        assert stored.share(side, keys).tobytes() == through.share(side, keys).tobytes()


@given(st.integers(0, 2**32), st.integers(1, 700), st.sampled_from([None, 50.0, 2_000.0]))
def test_beyond_capacity_shares_remain_shares(seed: int, step: int, horizon: float | None) -> None:
    keys = np.random.default_rng(seed).zipf(1.3, 3_000) % 2**50
    learner = learner_of(LearnedFrequency(8, horizon), keys, np.arange(3_000.0), list(range(0, 3_000, step)))
    state = learner.snapshot()
    counted = learner.share("left", state["left_keys"])
    assert len(counted) <= 8
    assert counted.sum() <= 1 + 1e-9
    unknown = learner.share("left", np.array([-1]))[0]
    assert 0 < unknown <= counted.min(initial=1.0)
    _, total, rest, *_ = state["left_tally"]
    assert state["left_weights"].sum() + rest == pytest.approx(total)


@pytest.mark.parametrize("step", [100, 30_000])
def test_the_frequent_keys_are_found_among_many(step: int) -> None:
    keys = np.asarray(Zipf(keys=100_000, skew=1.0).trace(200_000, seed=1).keys[0])
    keys = keys * 0x9E3779B1 - 2**31
    learner = learner_of(
        LearnedFrequency(capacity=1_000), keys, np.zeros(len(keys)), list(range(0, len(keys), step))
    )
    hottest = np.arange(100) * 0x9E3779B1 - 2**31
    found = learner.share("left", hottest)
    observed = np.array([(keys == key).mean() for key in hottest])
    assert found == pytest.approx(observed, rel=0.1)


def test_a_rare_key_has_the_share_of_an_average_one() -> None:
    keys = np.random.default_rng(0).integers(0, 20_000, 100_000)
    learner = learner_of(
        LearnedFrequency(capacity=100), keys, np.zeros(100_000), list(range(0, 100_000, 1_000))
    )
    shares = learner.share("left", np.arange(20_000))
    assert np.median(shares) == pytest.approx(1 / 20_000, rel=0.2)


@pytest.mark.parametrize("capacity", [500, 5_000])
@pytest.mark.parametrize("step", [50, 5_000])
def test_shares_follow_when_the_keys_change(capacity: int, step: int) -> None:
    horizon, rng = 10_000, np.random.default_rng(2)
    before = rng.integers(0, 1_000, 50_000)
    after = np.where(rng.random(40_000) < 0.3, -1, rng.integers(5_000, 6_000, 40_000))
    keys = np.concatenate([before, after])
    learner = learner_of(
        LearnedFrequency(capacity, horizon), keys, np.arange(90_000.0), list(range(0, 90_000, step))
    )
    assert learner.share("left", np.array([-1]))[0] == pytest.approx(0.3, rel=0.1)
    old, new = learner.share("left", np.arange(1_000)), learner.share("left", np.arange(5_000, 6_000))
    assert np.median(new) == pytest.approx(0.7 / 1_000, rel=0.3)
    if capacity > len(set(keys.tolist())):
        assert np.median(old) == pytest.approx(2**-4 / 1_000, rel=0.3)
    else:
        assert set(old.tolist()) == {learner.share("left", np.array([10**9]))[0]}


def test_the_summary_of_other_keys_decays() -> None:
    learner = LearnedFrequency(capacity=1, horizon=1).start()
    learner.observe("left", np.array([0, 1]), 0)
    learner.observe("left", np.array([2, 3]), np.array([0.0, 300.0]))
    state = learner.snapshot()
    _, total, rest, *_ = state["left_tally"]
    assert (total, rest) == (1, 1)
    assert learner._sides["left"]._candidates.total == 1


def test_keys_that_become_rare_are_dropped_even_if_no_other_is_frequent() -> None:
    rng = np.random.default_rng(4)
    keys = np.concatenate([rng.integers(0, 2_000, 40_000), rng.integers(10**6, 10**6 + 20_000, 60_000)])
    learner = learner_of(
        LearnedFrequency(2_000, 10_000), keys, np.arange(100_000.0), list(range(0, 100_000, 1_000))
    )
    state = learner.snapshot()
    assert (state["left_keys"] >= 10**6).all()
    _, total, rest, *_ = state["left_tally"]
    assert state["left_weights"].sum() + rest == pytest.approx(total)
    assert learner.share("left", np.array([-5]))[0] == pytest.approx(1 / 20_000, rel=0.5)


def test_memory_is_bounded_for_any_number_of_keys() -> None:
    learner = LearnedFrequency(capacity=1_000).start()
    sizes = []
    for number in range(20):
        learner.observe("left", np.arange(number * 250_000, (number + 1) * 250_000), number)
        state = learner.snapshot()
        sizes.append(sum(array.nbytes for array in state.values()))
        assert sum(array.nbytes for array in learner._sides["left"].table) <= 128 * 1_000
    assert max(sizes) < 16 * 1_000 + 20_000
    assert learner.share("left", np.array([-1]))[0] == pytest.approx(1 / 5_000_000, rel=0.1)


def test_learned_frequencies_convert_to_a_model() -> None:
    learner = LearnedFrequency().start()
    learner.observe("left", np.array([1, 1, 2, 3]), 0)
    with pytest.raises(InputError, match="no row was observed on the right"):
        learner.frequency()
    learner.observe("right", np.array([1, 4]), 0)
    model = learner.frequency()
    assert model.share("left", np.arange(6)).tolist() == [0, 0.5, 0.25, 0.25, 0, 0]
    assert model.share("right", np.arange(6)).tolist() == [0, 0.5, 0, 0, 0.5, 0]


def test_a_key_counted_on_one_side_only_has_a_mean_share_on_the_other() -> None:
    rng = np.random.default_rng(3)
    learner = LearnedFrequency(capacity=100).start()
    learner.observe("left", rng.integers(0, 100, 10_000), 0)
    learner.observe("right", rng.integers(0, 1_000, 100_000), 0)
    shares = learner.frequency().share("right", np.arange(100))
    assert shares.min() > 0


def test_observing_no_rows_changes_nothing() -> None:
    learner = SMALL.start()
    learner.observe("left", np.array([], np.int64), 0)
    assert assert_equal_states(learner, SMALL.start())


@pytest.mark.parametrize("capacity", [0, -1, 1.5, True])
def test_an_invalid_capacity_is_refused(capacity: object) -> None:
    with pytest.raises(InputError, match=r"capacity=.* must be a positive whole number"):
        LearnedFrequency(capacity)  # type: ignore[arg-type]


def test_an_invalid_horizon_is_refused() -> None:
    with pytest.raises(InputError, match="horizon=0 must be a positive duration"):
        LearnedFrequency(horizon=0)


def test_bad_rows_are_refused() -> None:
    learner = SMALL.start()
    with pytest.raises(InputError, match="not all finite"):
        learner.observe("left", np.array([1]), float("nan"))
    with pytest.raises(InputError, match="side 'up' is not known"):
        learner.observe("up", np.array([1]), 0)  # type: ignore[arg-type]
