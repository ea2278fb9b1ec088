"""The experiments of sections 2.2 and 5."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tidegate.experiments.experiment import Experiment, Grid
from tidegate.experiments.figure_text import read_texts
from tidegate.experiments.plots import LinePlot
from tidegate.experiments.reservoir_joins import claims, measures
from tidegate.experiments.table_layout import TableLayout

TEXTS: Final = read_texts(Path(__file__).with_suffix(".md"), "reservoir-joins")

_TIME: Final = {"x": "time units"}

_UNSORTED: Final = Grid(
    {"algorithm": measures.ALGORITHMS, "units": (10_000,), "every": (100,), "fanout": (0,)},
    runs=50,
    quick={"units": (1500,), "every": (50,)},
    quick_runs=5,
)


def _confidence(figure: str, counts: tuple[int, ...]) -> Experiment:
    return Experiment(
        TEXTS[figure],
        Grid({"m": counts, "k": (10_000,), "r": (100,), "delta": (50,)}),
        measures.confidence,
        TableLayout(("m",), ("confidence",)),
        plots=(LinePlot("m", "confidence", "delta", labels={"y": "uniformity confidence, %"}),),
        claims=claims.CONFIDENCE,
    )


EXPERIMENTS: Final = (
    _confidence("figure2", tuple(range(1000, 12_001, 500))),
    _confidence("figure3", tuple(range(9000, 12_001, 250))),
    Experiment(
        TEXTS["figure5"],
        Grid(
            {
                "algorithm": measures.ALGORITHMS,
                "units": (10_000,),
                "use_at": (5000,),
                "every": (10,),
                "step": (measures.STEP,),
            },
            runs=50,
            quick={"units": (1500,), "use_at": (750,), "every": (50,)},
            quick_runs=3,
        ),
        measures.sizes,
        TableLayout(("algorithm",), ("grew", "size", "held", "peak")),
        plots=(
            LinePlot("time", "held", "algorithm", markers=False, labels=_TIME | {"y": "results held"}),
            LinePlot(
                "time", "size", "algorithm", markers=False, labels=_TIME | {"y": "size of the reservoir"}
            ),
        ),
        claims=claims.SIZES,
    ),
    Experiment(
        TEXTS["figure6"],
        Grid(
            {
                "algorithm": ("PRJS", "PRJS as printed"),
                "units": (1000,),
                "use_at": (5000,),
                "every": (5,),
                "step": (1,),
            },
            runs=10,
            quick={"every": (10,)},
            quick_runs=3,
        ),
        measures.sizes,
        TableLayout(("algorithm", "seed"), ("grew", "fell by", "size")),
        plots=(
            LinePlot(
                "time", "held", "seed", "algorithm", markers=False, labels=_TIME | {"y": "results held"}
            ),
        ),
        claims=claims.ONE_RUN,
    ),
    Experiment(
        TEXTS["figure7"],
        Grid(
            {
                "algorithm": ("PRJS", "PRJS as printed"),
                "use_at": (300, 600, 1000, 2000, 3000, 5000, 7500, 10_000),
            },
            runs=10,
            quick={"use_at": (300, 600, 1200)},
            quick_runs=3,
        ),
        measures.by_results,
        TableLayout(("algorithm", "use_at"), ("l", "size", "held")),
        plots=(
            LinePlot("l", "size", "algorithm", labels={"x": "l, expected results"}),
            LinePlot("l", "held", "algorithm", labels={"x": "l, expected results"}),
        ),
        claims=claims.RESULTS,
    ),
    Experiment(
        TEXTS["initial-size"],
        Grid(
            {
                "algorithm": ("PRJS", "PRJS as printed"),
                "use_at": (5000,),
                "initial": (50, 100, 200, 400),
            },
            runs=5,
            quick={"use_at": (750,), "initial": (50, 100)},
            quick_runs=3,
        ),
        measures.by_results,
        TableLayout(("algorithm", "initial"), ("size", "held")),
        plots=(LinePlot("initial", "size", "algorithm", labels={"x": "initial size"}),),
        claims=claims.INITIAL_SIZES,
    ),
    Experiment(
        TEXTS["figure8"],
        _UNSORTED,
        measures.over_time,
        TableLayout(("algorithm",), ("chi-square", "of its size", "by time", "held")),
        plots=tuple(
            LinePlot("time", number, "algorithm", markers=False, labels=_TIME | {"y": label})
            for number, label in (
                ("chi-square", "chi-square by keys"),
                ("of its size", "chi-square by keys, of a full reservoir"),
                ("by time", "chi-square by arrival of results"),
            )
        ),
        claims=claims.UNIFORMITY,
    ),
    Experiment(
        TEXTS["figure9"],
        Grid(
            {
                "algorithm": measures.ALGORITHMS,
                "units": (10_000,),
                "every": (100,),
                "fanout": (2, 3, 4),
            },
            runs=50,
            quick={"units": (1500,), "every": (50,)},
            quick_runs=3,
        ),
        measures.over_time,
        TableLayout(("algorithm", "fanout"), ("chi-square", "by time", "held")),
        plots=(LinePlot("time", "chi-square", "fanout", "algorithm", markers=False, labels=_TIME),),
        claims=claims.ORDER,
    ),
    Experiment(
        TEXTS["figure10"],
        _UNSORTED,
        measures.over_time,
        TableLayout(("time",), ("off",), columns="algorithm"),
        plots=(LinePlot("time", "off", "algorithm", labels=_TIME | {"y": "mean absolute error of AVG"}),),
        claims=claims.AVERAGES,
    ),
)
