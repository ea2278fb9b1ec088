"""Small runs of section 5 of the reservoir paper, and its claims judged by invented numbers."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.experiments import EXPERIMENTS
from tidegate.experiments.claims import judge_all
from tidegate.experiments.reservoir_joins import claims, measures
from tidegate.experiments.results import Results


def test_a_progressive_reservoir_holds_more_within_the_same_budget() -> None:
    last = {
        algorithm: measures.sizes(algorithm=algorithm, units=600, use_at=300, every=300, step=10, seed=0)[-1]
        for algorithm in measures.ALGORITHMS
    }
    for form in ("", measures.PRINTED):
        assert last[f"PRJS{form}"]["held"] > 2 * last[f"RJS{form}"]["held"]
        assert last[f"RJS{form}"]["size"] == measures.SIZE
        assert last[f"PRJS{form}"]["peak"] <= measures.HALF + measures.SIZE


def test_the_printed_growth_prefers_recent_results_and_ranks_do_not() -> None:
    """Chi-square of ten parts of the past has nine degrees of freedom: its mean by them is 1, with 0.47 to a run."""
    found = {
        algorithm: np.mean(
            [
                measures.over_time(algorithm=algorithm, units=400, every=400, fanout=0, seed=seed)[-1][
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
        for algorithm in measures.ALGORITHMS
        for seed in range(3)
        for time in (100.0, 200.0)
    )


def test_claims_on_sizes() -> None:
    def verdicts(prjs: float, rjs: float) -> list[str]:
        held, size = {"RJS": rjs, "PRJS": prjs}, {"RJS": 100.0, "PRJS": 500.0}
        return [claim.verdict for claim in judge_all(claims.SIZES, made_up(held=held, size=size))]

    assert verdicts(499, 100) == ["holds", "holds", "holds"]
    assert verdicts(99, 110) == ["does not hold"] * 3


def test_claims_on_averages() -> None:
    def verdicts(prjs: float, rjs: float) -> list[str]:
        return [
            claim.verdict for claim in judge_all(claims.AVERAGES, made_up(off={"RJS": rjs, "PRJS": prjs}))
        ]

    # The error does not fall here, whichever is larger.
    assert verdicts(2, 1) == ["holds", "does not hold", "does not hold", "does not hold"]
    assert verdicts(1, 2) == ["does not hold", "holds", "holds", "does not hold"]


def test_an_average_is_judged_soon_after_the_growth_and_before_the_use() -> None:
    """PRJS grows after 90 to 92 units of time, is then far off, crosses below RJS at 300, and is used at 500."""
    rows = [
        {"algorithm": algorithm, "seed": seed, "time": time, "grew": 90 + seed, "off": off + seed / 1e4}
        for algorithm in measures.ALGORITHMS
        for seed in range(3)
        for time in range(50, 1001, 50)
        for off in [5.0 if algorithm.startswith("RJS") or time < 90 else 1000 / time]
    ]
    lost = [row for row in rows if row["seed"] != 1 or row["algorithm"] != "RJS"]
    for some in (rows, lost):
        verdicts = [claim.verdict for claim in judge_all(claims.AVERAGES, Results(some))]
        assert verdicts == ["holds"] * 4


def test_claims_on_uniformity() -> None:
    def verdicts(prjs: float, rjs: float) -> list[str]:
        numbers = ("chi-square", "of its size", "by time")
        found = made_up(**{number: {"RJS": rjs, "PRJS": prjs} for number in numbers})
        return [claim.verdict for claim in judge_all(claims.UNIFORMITY, found)]

    assert verdicts(3, 1) == ["holds", "holds", "does not hold", "holds"] * 3
    assert verdicts(1, 3) == ["does not hold", "does not hold", "does not hold", "holds"] * 3


def test_claims_on_results_allow_for_saturation() -> None:
    def verdicts(*sizes: float) -> list[str]:
        rows = [
            {"algorithm": algorithm, "use_at": 300 * (place + 1), "seed": seed, "size": size + seed}
            for algorithm in ("PRJS", "PRJS as printed")
            for seed in range(3)
            for place, size in enumerate(sizes)
        ]
        return [claim.verdict for claim in judge_all(claims.RESULTS, Results(rows[1:]))]

    assert verdicts(300, 600, 900, 900) == ["holds"] * 3
    assert verdicts(900, 600, 300, 200) == ["does not hold"] * 3


def test_a_reservoir_grows_unless_it_is_too_large_for_the_time_left() -> None:
    small, large = (
        measures.by_results(algorithm="PRJS", use_at=150, initial=initial, seed=0)["size"]
        for initial in (50, 400)
    )
    assert small > 50
    assert large == 400


def test_claims_on_confidence() -> None:
    experiment = EXPERIMENTS["reservoir-joins/figure2"]
    rows = [
        {"m": m, "seed": 0} | measures.confidence(m=m, k=10_000, r=100, delta=50, seed=0)
        for m in (4000, 6000, 8000, 10_000, 12_000)
    ]
    assert [claim.verdict for claim in judge_all(experiment.claims, Results(rows))] == ["holds"] * 3


def test_chi_square_of_a_uniform_sample_is_1_in_the_mean() -> None:
    rng = np.random.default_rng(3)
    share = np.array([0.5, 0.3, 0.15, 0.05])
    runs = [measures.chi_square(rng.multinomial(40, share), 40 * share) for _ in range(2000)]
    assert np.mean(runs) == pytest.approx(1, abs=4 * np.std(runs) / 2000**0.5)
