"""The block filter finds the same rows as the stack."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.alerts.stores.block_filter import needed_rows
from tidegate.alerts.stores.brackets import needed_by_stack
from tidegate.types import FAR, Array

Draw: TypeAlias = Callable[[np.random.Generator, int], Array]
GAPS: dict[str, Draw] = {
    "whole": lambda rng, size: rng.integers(1, 20, size),
    "one": lambda _, size: np.ones(size, np.int64),
    "some equal": lambda rng, size: rng.integers(1, 20, size) * (rng.random(size) < 0.97),
    "many equal": lambda rng, size: rng.integers(0, 3, size),
    "real": lambda rng, size: rng.exponential(10, size),
    "bursts": lambda rng, size: np.where(rng.random(size) < 0.05, 500.0, rng.random(size)),
    "tenths": lambda rng, size: rng.integers(0, 9, size) * 0.1,
}
VALUES: dict[str, Draw] = {
    "normal": lambda rng, size: rng.normal(size=size),
    "walk": lambda rng, size: rng.normal(size=size).cumsum() + 1e6,
    "tenths": lambda rng, size: rng.normal(size=size).round(1),
    "thousandths": lambda rng, size: rng.normal(size=size).round(3),
    "spikes": lambda rng, size: rng.normal(size=size) + 1e12 * (rng.random(size) < 0.001),
    "infinite": lambda rng, size: np.where(rng.random(size) < 0.001, np.inf, rng.normal(size=size)),
    "tiny": lambda rng, size: rng.normal(size=size) * 1e-310,
    "huge": lambda rng, size: rng.normal(size=size) * 1e307,
    "a step": lambda _, size: (np.arange(size) > size // 2) * 1.0,
}


def rows(gaps: str, values: str, size: int, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return np.cumsum(GAPS[gaps](rng, size)), VALUES[values](rng, size)


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from(sorted(GAPS)),
    st.sampled_from(sorted(VALUES)),
    st.sampled_from([0, 1, 2, 17, 255, 256, 257, 300, 1500]),
    st.integers(0, 2**32),
    st.sampled_from([0.5, 1, 3, 10, 14, 25, 400]),
    st.tuples(st.booleans(), st.booleans(), st.booleans()).filter(lambda flags: any(flags[1:])),
)
def test_the_block_filter_finds_what_the_stack_finds(
    gaps: str, values: str, size: int, seed: int, held: float, flags: tuple[bool, bool, bool]
) -> None:
    times, heights = rows(gaps, values, size, seed)
    omega = held * (float(np.diff(times).mean()) if size > 1 else 1.0)
    omega = omega if times.dtype.kind == "f" else int(omega)
    assert (
        needed_rows(times, heights, omega, *flags).tolist()
        == needed_by_stack(times, heights, omega, *flags).tolist()
    )


@pytest.mark.parametrize("closer", [-1, 0, 1])
def test_distances_next_to_omega_are_exact(closer: int) -> None:
    """Times are large; every other row is bracketed by its neighbours, which are omega or one more or less apart."""
    times = FAR // 2 + 1_000_003 * np.arange(1001)
    heights = np.where(np.arange(1001) % 2, 0.5, np.arange(1001) + 1.0)
    found = needed_rows(times, heights, 2 * 1_000_003 + closer, False, True, False)  # noqa: FBT003 - a kernel's flags
    assert found[1::2].any() == (closer < 0)
    assert found[1:-1:2].all() == (closer < 0)
