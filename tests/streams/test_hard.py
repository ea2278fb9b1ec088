"""Sessions, rush hours and partners follow their parameters."""

from __future__ import annotations

import numpy as np
import pytest

import tidegate as tg
from tidegate.streams import HeavyTails, OneToOne, Pair, RushHours, Sessions

PAIRS: list[Pair] = [Sessions(), RushHours(), OneToOne(), HeavyTails()]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: type(pair).__name__)
def test_they_are_ordered_reproducible_and_of_the_given_length(pair: Pair) -> None:
    for rows in (0, 1, 7, 3000):
        left, right = pair.both(rows, seed=4)
        assert len(left) == rows
        for trace, again in zip((left, right), pair.both(rows, seed=4), strict=True):
            assert (np.diff(trace.time) >= 0).all()
            assert np.array_equal(trace.time, again.time)
            assert trace.keys[0].equals(again.keys[0])
    assert not np.array_equal(left.time, pair.both(3000, seed=5)[0].time)


def test_keys_of_sessions_end() -> None:
    left, _ = Sessions(length=100.0).both(10_000, seed=2)
    keys = left.keys[0].to_numpy()
    lives = [np.ptp(left.time[keys == key]) for key in np.unique(keys)]
    assert np.quantile(lives, 0.99) < 1000
    shares = np.sort(np.bincount(keys))[::-1] / len(keys)
    assert shares[: len(shares) // 20].sum() > 0.3


def test_rush_hours_have_the_given_rate() -> None:
    left, right = RushHours(period=100.0, part=0.1, factor=5.0).both(50_000, seed=2)
    for trace in (left, right):
        busy = trace.time % 100 < 10
        assert busy.mean() / 0.1 / ((~busy).mean() / 0.9) == pytest.approx(5, rel=0.05)
        assert len(trace) / trace.time[-1] == pytest.approx(1, rel=0.05)


def test_partners_have_the_given_number() -> None:
    orders, deliveries = OneToOne(delay=50.0, matched=0.7).both(10_000, seed=2)
    keys = deliveries.keys[0].to_numpy()
    assert len(np.unique(keys)) == len(keys)
    assert len(keys) == pytest.approx(7000, rel=0.05)
    assert (deliveries.time - orders.time[keys]).mean() == pytest.approx(50, rel=0.05)
    left, right = HeavyTails(partners=4.0, tail=2.5).both(20_000, seed=2)
    assert len(right) / len(left) == pytest.approx(4, rel=0.1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Sessions(tail=1.0),
        lambda: RushHours(part=1.0),
        lambda: OneToOne(matched=0.0),
        lambda: HeavyTails(partners=0),
    ],
)
def test_invalid_parameters_are_refused(make: type[Pair]) -> None:
    with pytest.raises(tg.InputError, match="is not a stream"):
        make()
