"""Rates are right from the start, follow changes, and survive storage."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate import InputError
from tidegate.models import Rates

HORIZONS = st.none() | st.floats(0.5, 100)


@given(HORIZONS, st.integers(1, 50), st.floats(0.1, 10), st.integers(1, 30), st.floats(-1e6, 1e6))
def test_a_constant_rate_is_right_from_the_start(
    horizon: float | None, rows: int, gap: float, steps: int, start: float
) -> None:
    rates = Rates(horizon)
    for step in range(steps + 1):
        rates.observe("left", rows, start + step * gap)
        rates.observe("right", 2 * rows, start + step * gap)
    assert rates.rate("left") == pytest.approx(rows / gap, rel=1e-4)
    assert rates.rate("right") == pytest.approx(2 * rows / gap, rel=1e-4)


def test_a_change_counts_half_after_one_horizon() -> None:
    rates = Rates(10)
    for now in range(1000):
        rates.observe("left", 4, now)
    for now in range(1000, 1010):
        rates.observe("left", 8, now)
    assert rates.rate("left") == pytest.approx(6, rel=0.01)


def test_the_rate_of_an_idle_side_falls() -> None:
    rates = Rates(10)
    for now in range(100):
        rates.observe("left", 4, now)
        rates.observe("right", 4, now)
    for now in range(100, 120):
        rates.observe("right", 4, now)
    assert rates.rate("left") == pytest.approx(1.0, rel=0.1)
    assert rates.rate("right") == pytest.approx(4.0)


def test_before_time_passes_there_is_no_rate() -> None:
    rates = Rates()
    assert rates.rate("left") == 0
    rates.observe("left", 5, 3)
    rates.observe("left", 5, 3)
    assert rates.rate("left") == 0


@given(HORIZONS, st.lists(st.tuples(st.integers(0, 9), st.floats(-10, 1000))), st.integers(0, 10))
def test_storing_changes_nothing(
    horizon: float | None, steps: list[tuple[int, float]], stored_at: int
) -> None:
    through, stored = Rates(horizon), Rates(horizon)
    for number, (count, now) in enumerate(steps):
        if number == stored_at:
            stored = Rates(horizon).restore(stored.snapshot())
        for rates in (through, stored):
            rates.observe("left", count, now)
            rates.observe("right", 1, now)
    assert [stored.rate("left"), stored.rate("right")] == [through.rate("left"), through.rate("right")]
    assert stored.snapshot()["rates"].tobytes() == through.snapshot()["rates"].tobytes()


@pytest.mark.parametrize("horizon", [0, -1, float("nan"), float("inf"), "1 hour", True])
def test_an_invalid_horizon_is_refused(horizon: object) -> None:
    with pytest.raises(InputError, match=r"horizon=.* must be a positive duration"):
        Rates(horizon)  # type: ignore[arg-type]


@pytest.mark.parametrize(("count", "now"), [(-1, 0), (1, float("nan"))])
def test_invalid_observations_are_refused(count: int, now: float) -> None:
    with pytest.raises(InputError, match="cannot be observed; give at least 0"):
        Rates().observe("left", count, now)


def test_a_rate_relative_to_the_faster_side() -> None:
    rates = Rates()
    assert rates.relative("left") == rates.relative("right") == 1
    for now in range(9):
        rates.observe("left", 3, now)
        rates.observe("right", 1, now)
    assert rates.relative("left") == 1
    assert rates.relative("right") == pytest.approx(1 / 3)


@pytest.mark.parametrize("horizon", [None, 3.0, 50.0])
def test_sides_with_one_row_at_each_time_are_equal(horizon: float | None) -> None:
    rates = Rates(horizon)
    for now in range(200):
        for count in ((1, 0), (0, 1)):
            for side, rows in zip(("left", "right"), count, strict=True):
                rates.observe(side, rows, now)  # type: ignore[arg-type]
            assert rates.relative("left") == rates.relative("right") == 1


def test_a_side_without_rows_counts_as_one_row() -> None:
    rates = Rates()
    for now in range(9):
        rates.observe("left", 3, now)
    assert rates.relative("right") == pytest.approx(1 / 24)
