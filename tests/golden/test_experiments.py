"""A few small cells of every experiment have golden counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tidegate.experiments import EXPERIMENTS

GOLDEN: list[tuple[str, dict[str, Any], str, list[float]]] = [
    ("windowed-joins/figure5", {"seconds": 150}, "best age", [68.7, 68.9, 69]),
    (
        "windowed-joins/figure6",
        {"policy": "age", "percent": 40, "seconds": 260},
        "recall",
        [0.387073, 0.375563, 0.382685],
    ),
    (
        "windowed-joins/figure7",
        {"shape": "INC", "percent": 30, "policy": "age", "rows": 1900},
        "recall",
        [0.240028, 0.282332, 0.261459],
    ),
    (
        "windowed-joins/figure10",
        {"skew": 2.0, "scheme": "alloc", "joins": "DC+IC", "rows": 1500},
        "least recall",
        [0.1477516, 0.1296296, 0.3765182],
    ),
    (
        "windowed-joins/figure10-more",
        {"joins": "DC+IC+DC", "skew": 2.0, "scheme": "prop", "rows": 1500},
        "least recall",
        [0.294609, 0.2, 0.2986968],
    ),
    (
        "windowed-joins/figure11",
        {"power": 2.0, "scheme": "alloc", "rows": 1500},
        "least recall",
        [0.6955891, 0.706127, 0.6896552],
    ),
    (
        "windowed-joins/prob",
        {
            "correlation": "UC",
            "skew": 2.0,
            "percent": 20,
            "policy": "prob",
            "rows": 2000,
            "learned_rows": 1000,
        },
        "recall",
        [0.8606939, 0.5090508, 0.9094861],
    ),
    (
        "windowed-joins/learning",
        {"curve": "DEC", "monitoring": "sample", "windows": 1, "memory": 80},
        "off",
        [0.107389, 0.255395, 0.250725],
    ),
    ("ijoin/table1", {"stream": "R"}, "importance", [3, 3, 3]),
    ("ijoin/table2", {"join": "fifo"}, "importance", [6, 6, 6]),
    ("ijoin/table3", {"join": "size"}, "importance", [11, 11, 11]),
    ("ijoin/table4", {"join": "greedy"}, "importance", [13, 13, 13]),
    (
        "ijoin/figure2",
        {"memory": 6, "skew": 1.0, "scheme": "IJOIN", "seconds": 10.0},
        "importance",
        [452, 2123, 1726],
    ),
    (
        "ijoin/figure3",
        {"window": 10.0, "skew": 1.0, "scheme": "GREEDY", "seconds": 10.0},
        "importance",
        [326, 3123, 1307],
    ),
    (
        "ijoin/figure4",
        {"domain": 10, "skew": 0.0, "scheme": "RAND", "seconds": 10.0, "level": True},
        "importance",
        [38, 36, 31],
    ),
    (
        "ijoin/figure5",
        {"unproductive": 2.0, "skew": 1.0, "scheme": "IJOIN as printed", "seconds": 10.0},
        "importance",
        [1048, 3204, 1922],
    ),
    ("ijoin/table6", {"skew": 1.0, "scheme": "adaptive", "seconds": 10.0}, "importance", [1196, 3702, 2926]),
    (
        "ijoin/beyond",
        {"skew": 1.0, "scheme": "OPTIMUM", "memory": 20, "order": "probe-first", "seconds": 10.0},
        "importance",
        [3821, 9560, 6582],
    ),
    (
        "ijoin/frontier",
        {"skew": 1.0, "scheme": "ijoin 0.500", "memory": 20, "seconds": 10.0},
        "importance",
        [1923, 5502, 4288],
    ),
    ("stochastic-streams/figure2", {"row": "x", "figure": "figure2"}, "benefit", [0.61814, 0.61814, 0.61814]),
    (
        "stochastic-streams/figure4",
        {"row": "v = f(t0) +0", "figure": "figure4"},
        "benefit",
        [0.386087, 0.386087, 0.386087],
    ),
    ("stochastic-streams/figure5", {"row": "S3", "figure": "figure5"}, "benefit", [1.0, 1.0, 1.0]),
    ("stochastic-streams/figure6", {"drift": 2, "alpha": 10}, "benefit", [0.104452, 0.104452, 0.104452]),
    (
        "stochastic-streams/figure8",
        {"stream": "TOWER", "memory": 10, "policy": "heeb", "rows": 150, "warmup": 20},
        "results",
        [99, 102, 102],
    ),
    (
        "stochastic-streams/figure9",
        {"stream": "TOWER", "memory": 5, "policy": "random", "rows": 150, "warmup": 20},
        "results",
        [49, 60, 57],
    ),
    (
        "stochastic-streams/figure10",
        {"stream": "ROOF", "memory": 5, "policy": "prob", "rows": 150, "warmup": 20},
        "results",
        [29, 29, 23],
    ),
    (
        "stochastic-streams/figure11",
        {"stream": "FLOOR", "memory": 5, "policy": "life", "rows": 150, "warmup": 20},
        "results",
        [23, 20, 25],
    ),
    (
        "stochastic-streams/figure12",
        {"stream": "WALK", "memory": 5, "policy": "offline", "rows": 150, "warmup": 20},
        "results",
        [172, 210, 206],
    ),
    (
        "stochastic-streams/figure13",
        {"stream": "low variance", "memory": 10, "policy": "heeb_histogram", "rows": 150, "warmup": 20},
        "results",
        [80, 75, 81],
    ),
    (
        "stochastic-streams/figure14",
        {"stream": "high variance", "memory": 10, "policy": "heeb", "rows": 150, "warmup": 20},
        "results",
        [70, 68, 79],
    ),
    (
        "tournament/synthetic",
        {"workload": "walks", "percent": 10, "policy": "prob", "rows": 150},
        "importance",
        [58, 106, 91],
    ),
    (
        "stochastic-streams/figure16",
        {"streams": "R lags by 2", "memory": 5, "rows": 150, "warmup": 20},
        "share of R",
        [18.461538, 15.230769, 16.307692],
    ),
    (
        "threshold-functions/table1",
        {"stream": "s-wiener", "density": 10, "rows": 2000},
        "kept %",
        [66.45, 66.05, 64.35],
    ),
    (
        "threshold-functions/table1-times",
        {"stream": "s-wiener", "sigma": 1_000, "store": "skip list", "rows": 5_000},
        "kept %",
        [66.6, 64.3, 66.16],
    ),
    (
        "threshold-functions/figure9",
        {"stream": "Gamma-Wiener", "density": 16, "rows": 4_000},
        "kept %",
        [54.5, 60.0, 52.5],
    ),
    (
        "threshold-functions/figure10",
        {"stream": "Gamma-Wiener", "density": 16, "rows": 2000},
        "kept %",
        [54.3, 53.5, 53.95],
    ),
    (
        "windowed-joins/figure8",
        {"method": "PPS-CLUSTER", "correlation": "IC", "percent": 40, "rows": 1200, "of": "S1", "cvs": "1"},
        "error",
        [0.0891781, 0.03056571, 0.1196494],
    ),
    (
        "windowed-joins/figure9",
        {"method": "UNIFORM", "correlation": "UC", "percent": 10, "rows": 1200, "of": "S1", "cvs": "0.5"},
        "error",
        [0.03283533, 0.4512334, 0.01762939],
    ),
    (
        "windowed-joins/figure9-s2",
        {"method": "EQ-CLUSTER", "correlation": "UC", "percent": 10, "rows": 1200, "of": "S2", "cvs": "0.5"},
        "error",
        [0.02436491, 0.03914096, 0.005388106],
    ),
    (
        "windowed-joins/wrong-model",
        {"method": "UNIFORM as printed", "factor": 0.5, "fraction": 0.1, "rows": 800},
        "bias",
        [-39.84217, -42.08289, -40.9798],
    ),
    (
        "reservoir-joins/figure2",
        {"m": 5000, "k": 10000, "r": 100, "delta": 50},
        "confidence",
        [53.0905, 53.0905, 53.0905],
    ),
    (
        "reservoir-joins/figure3",
        {"m": 9000, "k": 10000, "r": 100, "delta": 50},
        "confidence",
        [99.98274, 99.98274, 99.98274],
    ),
    (
        "reservoir-joins/figure5",
        {"algorithm": "PRJS", "units": 400, "use_at": 200, "every": 400, "step": 10},
        "held",
        [367.0, 367.0, 367.0],
    ),
    (
        "reservoir-joins/figure6",
        {"algorithm": "PRJS as printed", "units": 300, "use_at": 150, "every": 300, "step": 1},
        "fell by",
        [14.0, 17.0, 1.0],
    ),
    (
        "reservoir-joins/figure7",
        {"algorithm": "PRJS as printed", "use_at": 300},
        "size",
        [313.0, 354.0, 337.0],
    ),
    (
        "reservoir-joins/initial-size",
        {"algorithm": "PRJS as printed", "use_at": 300, "initial": 100},
        "size",
        [313.0, 354.0, 337.0],
    ),
    (
        "reservoir-joins/figure8",
        {"algorithm": "PRJS as printed", "units": 300, "every": 300, "fanout": 0},
        "by time",
        [3.221396, 7.933162, 15.61758],
    ),
    (
        "reservoir-joins/figure9",
        {"algorithm": "RJS", "units": 300, "every": 300, "fanout": 2},
        "chi-square",
        [0.9235958, 0.8990736, 1.516668],
    ),
    (
        "reservoir-joins/figure10",
        {"algorithm": "RJS as printed", "units": 300, "every": 300, "fanout": 0},
        "off",
        [15.16583, 17.41961, 7.250159],
    ),
]
"""Experiment, settings of a cell, measured number (of a curve, its last), and the numbers of seeds 0 to 2."""


@pytest.mark.parametrize(("name", "settings", "number", "expected"), GOLDEN, ids=[row[0] for row in GOLDEN])
def test_small_cells_have_golden_counts(
    name: str, settings: dict[str, Any], number: str, expected: list[float]
) -> None:
    experiment = EXPERIMENTS[name]
    assert set(settings) == set(experiment.grid.axes)
    measured = []
    for seed in range(3):
        found = experiment.measure(**settings, seed=seed)
        measured.append((found if isinstance(found, Mapping) else found[-1])[number])
    assert measured == pytest.approx(expected, rel=1e-5)


def test_every_experiment_without_data_has_golden_counts() -> None:
    assert {name for name, one in EXPERIMENTS.items() if not one.needs_data} == {row[0] for row in GOLDEN}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_is_described(name: str) -> None:
    one = EXPERIMENTS[name]
    assert one.name == name
    assert one.text.title
    assert one.text.finding.endswith(".")
    full, quick = len(one.cells()), len(one.cells(quick=True))
    assert 0 < quick <= full
    assert one.measure.__module__.startswith("tidegate.experiments.")  # where workers find it
