"""Every sampler returns the same sample as a slow reference, in steps of any size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidegate as tg
from tests.sampling.samplers.reference import Reference
from tests.sampling.workload import MODEL, SHARES, stream
from tidegate.experiments.windowed_joins.printed_uniform import PrintedUniform

WINDOW = (30, 20)
Method: TypeAlias = Literal["uniform", "eq_cluster", "pps_cluster"]
METHODS: dict[str, Callable[..., tg.sampling.Sampler]] = {
    "uniform": tg.sampling.Uniform,
    "eq_cluster": tg.sampling.EqCluster,
    "pps_cluster": tg.sampling.PpsCluster,
    "printed": PrintedUniform,
}


def expected(side: str, key: int) -> float:
    """Of two rows of the same time the left one comes first, so that it owns their match."""
    return (WINDOW[0] + 1 if side == "left" else WINDOW[1]) * SHARES[key]


def sampled(
    method: str, step: int, seed: int, n: int, **settings: float
) -> list[tuple[int, int, float, int]]:
    sampler = METHODS[method](model=MODEL, rates=(1, 1), **settings)
    found = tg.simulate_sample(
        stream(n, seed), stream(n, seed + 1), window=WINDOW, sampler=sampler, step=step, seed=seed
    ).pairs
    columns = (found.left, found.right, found.probability, found.owner)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("method", ["uniform", "eq_cluster", "pps_cluster"])
@pytest.mark.parametrize("step", [1, 7, 1000])
@pytest.mark.parametrize("p", [1.0, 0.3, 0.02])
def test_samples_equal_the_reference_in_steps_of_any_size(method: Method, step: int, p: float) -> None:
    n, seed = 120, 5
    reference = Reference(method, p, expected, seed=seed).run(stream(n, seed), stream(n, seed + 1), WINDOW)
    found = sampled(method, step, seed, n, p=p)
    assert [row[:2] + row[3:] for row in found] == [row[:2] + row[3:] for row in reference]
    assert np.allclose([row[2] for row in found], [row[2] for row in reference], rtol=1e-12)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 60),
    st.integers(0, 2**40),
    st.floats(0.05, 1),
    st.booleans(),
    st.integers(0, 60),
)
def test_uniform_and_printed_uniform_equal_the_reference(
    step: int,
    seed: int,
    p: float,
    printed: bool,  # noqa: FBT001 - a case
    n: int,
) -> None:
    reference = Reference("uniform", p, expected, printed, seed).run(
        stream(n, seed), stream(n, seed + 1), WINDOW
    )
    assert sampled("printed" if printed else "uniform", step, seed, n, p=p) == reference
