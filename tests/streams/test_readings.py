"""Readings have the values, the times and the disorder of their parameters."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate import InputError
from tidegate.streams import Readings


def test_uniform_readings_are_distinct_whole_times_in_order() -> None:
    trace = Readings().trace(10_000, seed=1)
    assert trace.time.dtype == np.int64
    assert (np.diff(trace.time) > 0).all()
    assert 0 <= trace.time[0] < trace.time[-1] < 100_000
    assert trace.value is not None
    # A mean of uniform values has the standard error 0.289 / sqrt(rows); four of them.
    assert trace.value.mean() == pytest.approx(0.5, abs=4 * 0.289 / 100)


def test_the_variance_of_a_wiener_process_grows_with_time() -> None:
    trace = Readings("wiener", "gamma", spacing=3.0, form=2.0).trace(40_000, seed=2)
    assert trace.value is not None
    gaps, steps = np.diff(trace.time), np.diff(trace.value)
    # Four standard errors: of the gaps 3 / sqrt(2 rows), of squares of normal numbers sqrt(2 / rows).
    assert gaps.mean() == pytest.approx(3.0, abs=4 * 3 / np.sqrt(2 * 40_000))
    assert (steps**2 / gaps).mean() == pytest.approx(1.0, abs=4 * np.sqrt(2 / 40_000))


def test_disorder_inverts_as_many_pairs_as_in_table_1() -> None:
    """A sigma of a hundredth of the range: 1.1 % of all pairs."""
    time = Readings(disorder=300).trace(3000, seed=3).time
    inverted = sum(int((time[:at] > time[at]).sum()) for at in range(3000))
    assert inverted / (3000 * 2999 / 2) == pytest.approx(0.0113, rel=0.1)
    assert sorted(time.tolist()) == sorted(set(time.tolist()))


def test_the_same_seed_gives_the_same_rows() -> None:
    stream = Readings("wiener", disorder=50.0)
    one, two, other = stream.trace(100, 5), stream.trace(100, 5), stream.trace(100, 6)
    assert one.time.tolist() == two.time.tolist() != other.time.tolist()
    assert len(stream.trace(0)) == 0


@pytest.mark.parametrize("bad", [{"spacing": 0}, {"spacing": 2.5}, {"form": 0.0}, {"disorder": -1.0}])
def test_invalid_parameters_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(InputError, match=r"is not a stream|is not whole"):
        Readings(**bad)  # type: ignore[arg-type]
