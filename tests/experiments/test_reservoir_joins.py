"""Section 5 of the reservoir paper in small, and its claims judged by made-up numbers."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.experiments import EXPERIMENTS
from tidegate.experiments.reservoir_joins import claims, measured
from tidegate.experiments.results import Results


def test_a_progressive_reservoir_holds_more_within_the_same_budget() -> None:
    last = {
        algorithm: measured.sizes(algorithm=algorithm, units=600, every=300, seed=0)[-1]
        for algorithm in measured.ALGORITHMS
    }
    for form in ("", measured.PRINTED):
        assert last[f"PRJS{form}"]["held"] > 2 * last[f"RJS{form}"]["held"]
        assert last[f"RJS{form}"]["size"] == measured.SIZE
        assert last[f"PRJS{form}"]["peak"] <= measured.HALF + measured.SIZE


def test_the_printed_growth_prefers_recent_results_and_ranks_do_not() -> None:
    """Chi-square of ten parts of the past has nine degrees of freedom: its mean by them is 1, with 0.47 to a run."""
    found = {
        algorithm: np.mean(
            [
                measured.over_time(algorithm=algorithm, units=400, every=400, fanout=0, seed=seed)[-1][
                    "by time"
                ]
                for seed in range(3)
            ]
        )
        for algorithm in ("PRJS", "PRJS as printed")
    }
    assert found["PRJS"] < 1 + 4 * 0.47 / 3**0.5
    assert found["PRJS as printed"] > 4


def made_up(**numbers: dict[str, float]) -> Results:
    """Three runs that differ by a little: a number of each algorithm after 100 and after 200 units of time."""
    return Results(
        {"algorithm": algorithm, "seed": seed, "time": time, "grew": 90.0}
        | {number: runs[algorithm.split()[0]] + seed / 1e4 for number, runs in numbers.items()}
        for algorithm in measured.ALGORITHMS
        for seed in range(3)
        for time in (100.0, 200.0)
    )


def test_claims_on_sizes() -> None:
    def verdicts(prjs: float, rjs: float) -> list[str]:
        held, size = {"RJS": rjs, "PRJS": prjs}, {"RJS": 100.0, "PRJS": 500.0}
        return [claim.verdict for claim in claims.claims_of_sizes(made_up(held=held, size=size))]

    assert verdicts(499, 100) == ["holds", "holds", "holds"]
    assert verdicts(99, 110) == ["does not hold"] * 3


def test_claims_on_averages() -> None:
    def verdicts(prjs: float, rjs: float) -> list[str]:
        return [claim.verdict for claim in claims.claims_of_averages(made_up(off={"RJS": rjs, "PRJS": prjs}))]

    assert verdicts(2, 1) == ["holds", "does not hold"]
    assert verdicts(1, 2) == ["does not hold", "holds"]


def test_claims_on_confidence() -> None:
    experiment = EXPERIMENTS["reservoir-joins/figure2"]
    rows = [
        {"m": m, "seed": 0} | measured.confidence(m=m, k=10_000, r=100, delta=50, seed=0)
        for m in (4000, 6000, 8000)
    ]
    assert [claim.verdict for claim in experiment.claims(Results(rows))] == ["holds", "holds"]


def test_chi_square_of_a_uniform_sample_is_1_in_the_mean() -> None:
    rng = np.random.default_rng(3)
    share = np.array([0.5, 0.3, 0.15, 0.05])
    runs = [measured.chi_square(rng.multinomial(40, share), 40 * share) for _ in range(2000)]
    assert np.mean(runs) == pytest.approx(1, abs=4 * np.std(runs) / 2000**0.5)
