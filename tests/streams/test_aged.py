"""Left rows find their partners at the ages of the curve."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidegate as tg
from tidegate import InputError
from tidegate.streams import Aged, Trace
from tidegate.streams.aged import AgeShape
from tidegate.streams.gaps import Gaps
from tidegate.types import Array

GAPS: list[Gaps] = ["even", "poisson", "uniform"]
CURVES: list[AgeShape] = ["increasing", "decreasing", "bell", (3.0, 0.0, *[1.0] * 18)]


def ages(pair: tuple[Trace, Trace], since: float = 0.0) -> Array:
    """The age at which each result is made, of the right rows since a time."""
    left, right = pair
    key = right.keys[0].to_numpy()
    recorded = (key >= 0) & (right.time >= since)
    found: Array = right.time[recorded] - left.time[key[recorded]]
    return found


@pytest.mark.parametrize("gaps", GAPS)
@pytest.mark.parametrize("shape", CURVES, ids=str)
def test_ages_follow_the_curve(shape: AgeShape, gaps: Gaps) -> None:
    aged = Aged(shape, gaps=gaps)
    found = ages(aged.both(20_000, seed=3), since=aged.window)
    seen = np.histogram(found, aged.curve_edges)[0]
    expected = aged.curve_shares * len(found)
    assert seen[expected == 0].sum() == 0
    some = expected > 0
    chi_square = ((seen - expected)[some] ** 2 / expected[some]).sum()
    assert chi_square < 44  # exceeded once in a thousand by 19 degrees of freedom


def test_ages_are_even_within_a_bucket() -> None:
    found = ages(Aged((1.0,), buckets=1).both(20_000, seed=2), since=500.0)
    assert np.abs(np.histogram(found, 10, (0.0, 500.0))[0] / len(found) - 0.1).max() < 0.005


@pytest.mark.parametrize("gaps", GAPS)
def test_the_number_of_partners_follows_the_rates(gaps: Gaps) -> None:
    aged = Aged("bell", gaps=gaps, rate_left=2.0, rate_right=6.0)
    left, right = aged.both(20_000, seed=5)
    assert aged.matches == pytest.approx(3.0)
    assert aged.curve_rates.sum() == pytest.approx(3.0)
    lived = left.time < left.time[-1] - aged.window
    key = right.keys[0].to_numpy()
    found = np.bincount(key[key >= 0], minlength=len(left))[lived]
    assert found.mean() == pytest.approx(3.0, rel=0.03)
    assert found.var() == pytest.approx(3.0, rel=0.25)  # not constant: nearly Poisson


@pytest.mark.parametrize("gaps", GAPS)
def test_true_rates_are_the_rates_of_the_traces(gaps: Gaps) -> None:
    aged = Aged(gaps=gaps, rate_left=1.0, rate_right=5.0)
    for trace, rate in zip(aged.both(20_000), aged.true_rates, strict=True):
        assert len(trace) / trace.time[-1] == pytest.approx(rate, rel=0.03)


def test_the_papers_curves() -> None:
    weights = {
        "increasing": [1, 4, 9, 16],
        "decreasing": [9, 4, 1, 0],
        "bell": [1, 4, 1, 0],
    }
    for shape, expected in weights.items():
        rates = Aged(shape, buckets=4).curve_rates  # type: ignore[arg-type]
        assert rates == pytest.approx(5 * np.array(expected) / sum(expected))
    assert Aged("increasing", power=3, buckets=2).curve_shares == pytest.approx([1 / 9, 8 / 9])


def test_the_exact_join_finds_every_partner() -> None:
    aged = Aged()
    left, right = aged.both(2000)
    report = tg.simulate(left, right, window=(aged.window, 0))
    assert report.exact == report.from_left == (right.keys[0].to_numpy() >= 0).sum()


def test_a_window_holds_as_many_rows_as_the_true_rate() -> None:
    aged = Aged()
    left, right = aged.both(4000)
    report = tg.simulate(left, right, window=(aged.window, 0))
    assert report.peak_rows == pytest.approx(aged.true_rates[0] * aged.window, rel=0.05)


def test_the_curve_switches() -> None:
    aged = Aged("increasing", then=(4000.0, "decreasing"))
    left, right = aged.both(8000, seed=1)
    key = right.keys[0].to_numpy()
    for early, curve in ((True, aged), (False, aged.later)):
        rows = (key >= 0) & (right.time >= aged.window) & ((right.time < 4000) == early)
        found = right.time[rows] - left.time[key[rows]]
        seen = np.histogram(found, aged.curve_edges)[0] / len(found)
        assert np.abs(seen - curve.curve_shares).max() < 0.02


@given(
    st.sampled_from(CURVES),
    st.sampled_from(GAPS),
    st.floats(0.1, 300),
    st.floats(0.01, 3),
    st.integers(0, 200),
    st.integers(0, 2**32),
)
def test_partners_are_within_the_window_even_where_buckets_are_empty(
    shape: AgeShape, gaps: Gaps, window: float, rate: float, rows: int, seed: int
) -> None:
    aged = Aged(shape, window=window, rate_left=rate, gaps=gaps)
    left, right = aged.both(rows, seed)
    found = ages((left, right))
    assert len(left) == rows
    assert (np.diff(left.time) >= 0).all()
    assert (np.diff(right.time) >= 0).all()
    assert not len(right) or right.time[-1] <= left.time[-1]
    assert ((found >= 0) & (found <= window)).all()
    weightless = np.flatnonzero(aged.curve_shares == 0)
    bucket = np.searchsorted(aged.curve_edges, found, side="right") - 1
    inside = np.abs(found[:, None] - aged.curve_edges).min(axis=1) > 1e-6
    assert not np.isin(bucket[inside], weightless).any()


@pytest.mark.parametrize("shape", ["increasing", (0.0, *[1.0] * 19)], ids=str)
def test_a_right_row_without_a_bucket_does_not_arrive(shape: AgeShape) -> None:
    sparse = Aged(shape, window=1.0, rate_left=0.01, rate_right=50.0, gaps="even")
    left, right = sparse.both(100)
    found = ages((left, right))
    assert len(found) == len(right)  # every right row that is left has a partner
    assert found.max() <= 1.0
    youngest = 0.05 if sparse.curve_shares[0] == 0 else 0.0
    assert found.min() >= youngest - 1e-9


@given(st.sampled_from(GAPS), st.integers(0, 150), st.integers(0, 150), st.integers(0, 2**32))
def test_more_rows_of_a_seed_begin_with_the_same_rows(gaps: Gaps, few: int, more: int, seed: int) -> None:
    aged = Aged(gaps=gaps, window=20.0)
    for short, long in zip(aged.both(few, seed), aged.both(few + more, seed), strict=True):
        assert long.time[: len(short)].tolist() == short.time.tolist()
        assert long.keys[0][: len(short)].equals(short.keys[0])


def test_seeds_differ() -> None:
    assert Aged().both(50, 1)[1].time.tolist() != Aged().both(50, 2)[1].time.tolist()


def test_a_trace_is_the_left() -> None:
    assert Aged().trace(50, 1).time.tolist() == Aged().both(50, 1)[0].time.tolist()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"shape": "rising"}, "shape 'rising' is not known"),
        ({"shape": (1.0, 2.0)}, "2 weights do not fit buckets=20"),
        ({"shape": (0.0, 0.0), "buckets": 2}, "not an age curve"),
        ({"shape": (1.0, -1.0), "buckets": 2}, "not an age curve"),
        ({"shape": (1.0, float("nan")), "buckets": 2}, "not an age curve"),
        ({"shape": "decreasing", "buckets": 1}, "not an age curve"),
        ({"power": -1.0}, "power -1.0"),
        ({"window": float("inf")}, "window and rates above 0"),
        ({"power": float("inf")}, "power inf"),
        ({"window": 0.0}, "window and rates above 0"),
        ({"rate_right": float("nan")}, "window and rates above 0"),
        ({"buckets": 0}, "buckets >= 1"),
        ({"gaps": "odd"}, "gaps 'odd' is not known"),
        ({"then": (5.0, "rising")}, "shape 'rising' is not known"),
    ],
)
def test_invalid_parameters_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Aged(**wrong)  # type: ignore[arg-type]
