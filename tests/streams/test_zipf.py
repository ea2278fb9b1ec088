"""Keys have the shares of Zipf's law, in the given order."""

import numpy as np
import pytest

from tidegate import InputError
from tidegate.streams import Zipf
from tidegate.streams.gaps import Gaps
from tidegate.streams.zipf import Hottest

ORDERS: list[Hottest] = ["first", "last", "anywhere"]


@pytest.mark.parametrize("hottest", ORDERS)
def test_keys_have_their_shares(hottest: Hottest) -> None:
    stream = Zipf(keys=20, skew=1.0, hottest=hottest)
    keys = stream.trace(50_000, seed=1).keys[0].to_numpy()
    assert np.abs(np.bincount(keys, minlength=20) / len(keys) - stream.shares).max() < 0.01
    assert stream.shares.sum() == pytest.approx(1.0)


def test_orders_of_the_shares() -> None:
    first, last, anywhere = (Zipf(keys=9, skew=1.0, hottest=hottest).shares for hottest in ORDERS)
    assert (np.diff(first) < 0).all()
    assert last.tolist() == first[::-1].tolist()
    assert sorted(anywhere) == sorted(first)
    assert anywhere.tolist() != first.tolist()


def test_the_random_order_has_a_seed_of_its_own() -> None:
    one, other = (Zipf(keys=50, skew=1.0, hottest="anywhere", shuffle=shuffle) for shuffle in (1, 2))
    assert one.shares.tolist() != other.shares.tolist()
    assert one.shares.tolist() == Zipf(50, 1.0, hottest="anywhere", shuffle=1).shares.tolist()


@pytest.mark.parametrize("gaps", ["even", "poisson", "uniform"])
def test_the_true_rate_is_the_rate_of_the_trace(gaps: Gaps) -> None:
    stream = Zipf(keys=2, rate=4.0, gaps=gaps)
    time = stream.trace(20_000).time
    assert time[0] == 0
    assert len(time) / time[-1] == pytest.approx(stream.true_rate, rel=0.03)


def test_the_same_seed_makes_the_same_rows() -> None:
    stream = Zipf(keys=50, skew=1.0, gaps="uniform")
    one, same, other = (stream.trace(100, seed) for seed in (1, 1, 2))
    assert one.keys[0].equals(same.keys[0])
    assert one.time.tolist() == same.time.tolist()
    assert not one.keys[0].equals(other.keys[0])


def test_invalid_parameters_are_refused() -> None:
    with pytest.raises(InputError, match="hottest 'middle' is not known"):
        Zipf(keys=2, hottest="middle")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="keys >= 1"):
        Zipf(keys=0)
