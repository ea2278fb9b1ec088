"""Given frequencies: lookup, checks, and the payoff of memory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate import InputError
from tidegate.models import Frequency

COUNTS = st.dictionaries(st.integers(-5, 5), st.integers(1, 20), min_size=1)


def shares(counts: dict[int, int]) -> dict[int, float]:
    total = sum(counts.values())
    return {key: count / total for key, count in counts.items()}


@given(COUNTS, COUNTS)
def test_a_mapping_equals_a_pair_of_arrays(left: dict[int, int], right: dict[int, int]) -> None:
    given_left, given_right = shares(left), shares(right)
    pair = (np.array(list(given_right)), np.array(list(given_right.values())))
    model = Frequency(given_left, pair)
    keys = np.arange(-7, 8)
    assert model.share("left", keys).tolist() == [given_left.get(int(key), 0.0) for key in keys]
    assert model.share("right", keys).tolist() == [given_right.get(int(key), 0.0) for key in keys]


@given(COUNTS, COUNTS, st.floats(0.1, 10), st.floats(0.1, 10), st.floats(0, 100), st.floats(0, 1))
def test_payoff_keeps_the_most_frequent_keys_first(
    left: dict[int, int], right: dict[int, int], r_left: float, r_right: float, length: float, part: float
) -> None:
    model = Frequency(shares(left), shares(right))
    payoff = model.payoff(rates=(r_left, r_right), window=(length, 0))[0]
    memory = part * r_left * length
    room, expected = memory, 0.0
    for key in sorted(left, key=lambda key: -right.get(key, 0)):
        kept = min(room, r_left * length * shares(left)[key])
        room -= kept
        expected += kept * r_right * shares(right).get(key, 0.0)
    assert payoff.at(np.array([memory]))[0] == pytest.approx(expected, abs=1e-9)


@given(COUNTS, COUNTS)
def test_full_memory_yields_all_results_and_the_sides_are_symmetric(
    left: dict[int, int], right: dict[int, int]
) -> None:
    model, mirrored = Frequency(shares(left), shares(right)), Frequency(shares(right), shares(left))
    ours = model.payoff(rates=(2, 3), window=(10, 20))
    theirs = mirrored.payoff(rates=(3, 2), window=(20, 10))
    met = sum(share * shares(right).get(key, 0.0) for key, share in shares(left).items())
    for payoff, mirror, rows, length in zip(ours, theirs[::-1], (20, 60), (10, 20), strict=True):
        assert payoff.at(np.array([rows]))[0] == pytest.approx(2 * 3 * length * met)
        memory = np.linspace(0, rows, 7)
        assert payoff.at(memory) == pytest.approx(mirror.at(memory))


def test_a_key_kept_in_part_counts_with_that_part() -> None:
    """Section 3.3 as printed yields nothing here, since no key fits completely."""
    hot = {0: 0.9, 1: 0.1}
    left, _ = Frequency(hot, hot).payoff(rates=(1, 1), window=(100, 100))
    assert left.at(np.array([45.0]))[0] == pytest.approx(45 * 0.9)


@pytest.mark.parametrize(
    ("left", "message"),
    [
        ({1: 0.5, 2: 0.6}, r"add up to 1\.1, not to 1; divide each by 1\.1"),
        ({1: -0.5, 2: 1.5}, r"gives key 1 the share -0\.5"),
        ({1: float("nan")}, "gives key 1 the share nan"),
        ({}, "has no keys"),
        (([3, 3], [0.5, 0.5]), "names key 3 more than once"),
        (([3], [0.5, 0.5]), "or a pair of arrays of equal length"),
        (0.5, "must be a mapping"),
        ({"a": 1.0}, "give one array of integers"),
    ],
)
def test_invalid_shares_are_refused(left: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Frequency(left, {1: 1.0})  # type: ignore[arg-type]


def test_shares_may_be_off_by_rounding() -> None:
    assert Frequency({1: 1 - 1e-7}, {1: 1.0}).share("left", np.array([1]))[0] == 1 - 1e-7


@pytest.mark.parametrize("pair", [(1, -1), (1, float("inf")), (1,)])
def test_a_payoff_needs_finite_rates_and_windows(pair: tuple[float, float]) -> None:
    model = Frequency({1: 1.0}, {1: 1.0})
    with pytest.raises(InputError, match=r"rates=.* must be two finite numbers"):
        model.payoff(rates=pair, window=(1, 1))
    with pytest.raises(InputError, match=r"window=.* must be two finite numbers"):
        model.payoff(rates=(1, 1), window=pair)


def test_an_unknown_side_is_refused() -> None:
    with pytest.raises(InputError, match="side 'middle' is not known"):
        Frequency({1: 1.0}, {1: 1.0}).share("middle", np.array([1]))  # type: ignore[arg-type]
