"""Frequencies of keys on two sides are correlated directly, inversely, or not at all."""

import numpy as np
import pytest

import tidegate as tg
from tidegate import InputError
from tidegate.streams import Correlated
from tidegate.streams.correlated import Correlation
from tidegate.streams.gaps import Gaps

CASES: list[Correlation] = ["direct", "inverse", "uncorrelated"]


@pytest.mark.parametrize("correlation", CASES)
def test_keys_have_their_shares(correlation: Correlation) -> None:
    pair = Correlated(correlation, skew=1.0)
    for trace, shares in zip(pair.both(20_000, seed=1), pair.shares, strict=True):
        keys = trace.keys[0].to_numpy()
        assert np.abs(np.bincount(keys, minlength=50) / len(keys) - shares).max() < 0.01


def test_orders_of_frequency() -> None:
    left, right = Correlated("direct").shares
    assert right.tolist() == left.tolist()
    left, right = Correlated("inverse").shares
    assert right.tolist() == left[::-1].tolist()
    left, right = Correlated("uncorrelated").shares
    assert sorted(right) == sorted(left)
    rank = np.argsort(np.argsort(right))
    assert abs(np.corrcoef(rank, np.arange(50))[0, 1]) < 0.3


@pytest.mark.parametrize("correlation", CASES)
def test_the_number_of_results_follows_the_shares(correlation: Correlation) -> None:
    pair = Correlated(correlation, skew=1.0)
    left, right = pair.both(5000, seed=2)
    exact = tg.simulate(left, right, window=(500, 0), warmup=500).exact
    chance = (pair.shares[0] * pair.shares[1]).sum()
    rate_left, rate_right = pair.true_rates
    expected = chance * rate_left * 500 * rate_right * (left.time[-1] - 500)
    assert exact == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("gaps", ["even", "poisson", "uniform"])
def test_true_rates_are_the_rates_of_the_traces(gaps: Gaps) -> None:
    pair = Correlated(gaps=gaps)
    left, right = pair.both(20_000)
    assert right.time[-1] <= left.time[-1]
    for trace, rate in zip((left, right), pair.true_rates, strict=True):
        assert len(trace) / left.time[-1] == pytest.approx(rate, rel=0.03)


def test_the_same_seed_makes_the_same_rows() -> None:
    one, same, other = (Correlated().both(100, seed)[1] for seed in (1, 1, 2))
    assert one.keys[0].equals(same.keys[0])
    assert one.time.tolist() == same.time.tolist()
    assert one.time.tolist() != other.time.tolist()


def test_the_sides_are_independent() -> None:
    left, right = Correlated("direct", skew=1.0, rate_right=1.0, gaps="even").both(20_000)
    one, other = (trace.keys[0].to_numpy() for trace in (left, right))
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.03


def test_no_rows() -> None:
    assert [len(trace) for trace in Correlated().both(0)] == [0, 0]


def test_invalid_parameters_are_refused() -> None:
    with pytest.raises(InputError, match="correlation 'none' is not known"):
        Correlated("none")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="rate > 0"):
        Correlated(rate_right=0.0)
