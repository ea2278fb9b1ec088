"""The experiments of sections 2.3, 3.3 and 6."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tidegate.experiments.claims import Claim
from tidegate.experiments.experiment import Experiment, Grid
from tidegate.experiments.figure_text import read_texts
from tidegate.experiments.plots import BarPlot, LinePlot
from tidegate.experiments.table_layout import TableLayout
from tidegate.experiments.windowed_joins import claims, measures, sampling_claims, sampling_measures

TEXTS: Final = read_texts(Path(__file__).with_suffix(".md"), "windowed-joins")

PERCENTS: Final = tuple(range(10, 100, 10))
_MEMORY: Final = {"x": "memory, % of a full window"}


def _averaged(figure: str, of: str, declared: tuple[Claim, ...]) -> Experiment:
    return Experiment(
        TEXTS[figure],
        Grid(
            {
                "method": sampling_measures.METHODS,
                "correlation": ("UC",),
                "percent": (10,),
                "rows": (10_000,),
                "of": (of,),
                "cvs": ("0.25 0.5 1 1.5 2",),
            },
            runs=10,
            quick={"rows": (4000,)},
            quick_runs=5,
        ),
        sampling_measures.errors,
        TableLayout(("cv",), ("error",), columns="method"),
        plots=(
            LinePlot("cv", "error", "method", labels={"x": "sigma / mu", "y": "relative error"}),
            LinePlot("cv", "of the mean", "method", labels={"x": "sigma / mu", "y": "error relative to mu"}),
        ),
        claims=declared,
    )


EXPERIMENTS: Final = (
    Experiment(
        TEXTS["figure5"],
        Grid({"seconds": (2400,)}, runs=3, quick={"seconds": (600,)}, quick_runs=2),
        measures.wan_curve,
        TableLayout(("seconds", "seed"), ("peak", "best age")),
        plots=(
            LinePlot(
                "age",
                "share",
                "seconds",
                markers=False,
                labels={"x": "age, s", "y": "share of matches per 0.1 s"},
            ),
        ),
        claims=claims.CURVE,
    ),
    Experiment(
        TEXTS["figure6"],
        Grid(
            {"policy": ("age", "until_expiry", "fifo"), "percent": PERCENTS, "seconds": (2400,)},
            runs=3,
            quick={"percent": (20, 40, 60, 80), "seconds": (600,)},
            quick_runs=2,
        ),
        measures.wan_recall,
        TableLayout(("percent",), ("recall",), columns="policy"),
        plots=(LinePlot("percent", "recall", "policy", predicted="predicted", labels=_MEMORY),),
        claims=claims.WAN,
    ),
    Experiment(
        TEXTS["figure7"],
        Grid(
            {
                "shape": tuple(measures.SHAPES),
                "percent": PERCENTS,
                "policy": ("age", "age, learned", "fifo", "until_expiry"),
                "rows": (4000,),
            },
            runs=10,
            quick={"percent": (30, 70), "rows": (3200,)},
            quick_runs=3,
        ),
        measures.age_recall,
        TableLayout(("shape", "percent"), ("recall",), columns="policy"),
        plots=(LinePlot("percent", "recall", "policy", "shape", predicted="predicted", labels=_MEMORY),),
        claims=claims.SHAPES,
    ),
    Experiment(
        TEXTS["figure10"],
        Grid(
            {
                "skew": (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0),
                "scheme": ("alloc", "prop"),
                "joins": ("DC+IC",),
                "rows": (50_000,),
            },
            runs=10,
            quick={"skew": (0.0, 1.0, 2.0), "rows": (8_000,)},
            quick_runs=3,
        ),
        measures.allocation_by_skew,
        TableLayout(("skew", "scheme"), ("least recall", "predicted", "memory of DC", "memory of IC")),
        plots=(
            LinePlot("skew", "least recall", "scheme", predicted="predicted", labels={"x": "skew Z"}),
            *(
                LinePlot(
                    "skew",
                    f"memory of {join}",
                    "scheme",
                    labels={"x": "skew Z", "y": f"memory of {join}, % of all"},
                )
                for join in ("DC", "IC")
            ),
        ),
        claims=claims.SKEW,
    ),
    Experiment(
        TEXTS["figure10-more"],
        Grid(
            {
                "joins": ("DC+IC", "DC+IC+DC", "DC+IC+IC"),
                "skew": (1.5, 2.0),
                "scheme": ("alloc", "prop"),
                "rows": (50_000,),
            },
            runs=10,
            quick={"skew": (2.0,), "rows": (8_000,)},
            quick_runs=3,
        ),
        measures.allocation_by_skew,
        TableLayout(("joins", "skew", "scheme"), ("least recall", "predicted")),
        plots=(BarPlot("joins", "least recall", "scheme", "skew"),),
        claims=claims.MORE_JOINS,
    ),
    Experiment(
        TEXTS["figure8"],
        Grid(
            {
                "method": sampling_measures.METHODS,
                "correlation": ("IC",),
                "percent": (10, 20, 30, 40, 50, 60, 70, 80, 90, 100),
                "rows": (10_000,),
                "of": ("S1",),
                "cvs": ("1",),
            },
            runs=10,
            quick={"percent": (10, 40, 100), "rows": (4000,)},
            quick_runs=4,
        ),
        sampling_measures.errors,
        TableLayout(("percent",), ("error",), columns="method"),
        plots=(
            LinePlot("percent", "error", "method", labels=_MEMORY | {"y": "relative error"}),
            LinePlot(
                "percent", "sampled", "method", labels=_MEMORY | {"y": "share of the results that is sampled"}
            ),
        ),
        claims=sampling_claims.MEMORY,
    ),
    _averaged("figure9", "S1", sampling_claims.VARIANCE),
    _averaged("figure9-s2", "S2", sampling_claims.RIGHT_VALUES),
    Experiment(
        TEXTS["wrong-model"],
        Grid(
            {
                "method": sampling_measures.METHODS,
                "factor": (0.5, 1.0, 2.0),
                "fraction": (0.1,),
                "rows": (10_000,),
            },
            runs=20,
            quick={"rows": (2500,)},
            quick_runs=6,
        ),
        sampling_measures.wrong_model,
        TableLayout(("method", "factor"), ("bias", "memory")),
        plots=(
            BarPlot("method", "bias", "factor", labels={"y": "bias of the number of results, %"}),
            BarPlot("method", "memory", "factor", labels={"y": "memory, % of a full window"}),
        ),
        claims=sampling_claims.WRONG_MODELS,
    ),
    Experiment(
        TEXTS["figure11"],
        Grid(
            {"power": (1.0, 2.0, 3.0, 4.0), "scheme": ("alloc", "prop"), "rows": (4000,)},
            runs=10,
            quick={"rows": (2000,)},
            quick_runs=3,
        ),
        measures.allocation_by_power,
        TableLayout(("power", "scheme"), ("least recall", "predicted", "memory of INC", "memory of DEC")),
        plots=(
            LinePlot("power", "least recall", "scheme", predicted="predicted", labels={"x": "exponent p"}),
            LinePlot(
                "power", "memory of DEC", "scheme", labels={"x": "exponent p", "y": "memory of DEC, % of all"}
            ),
        ),
        claims=claims.POWER,
    ),
    Experiment(
        TEXTS["prob"],
        Grid(
            {
                "correlation": tuple(measures.CORRELATIONS),
                "skew": (1.0, 2.0),
                "percent": (10, 20, 50),
                "policy": ("prob", "prob, learned"),
                "rows": (100_000,),
                "learned_rows": (4000,),
            },
            runs=10,
            quick={"rows": (20_000,), "learned_rows": (1600,), "percent": (20,), "skew": (2.0,)},
            quick_runs=3,
        ),
        measures.prob_recall,
        TableLayout(("correlation", "skew", "percent", "policy"), ("recall", "predicted", "as printed")),
        claims=claims.FREQUENCIES,
    ),
    Experiment(
        TEXTS["learning"],
        Grid(
            {
                "curve": (*measures.SHAPES, "INC to DEC", "DEC to INC"),
                "monitoring": ("sample", "memory"),
                "windows": (12,),
                "memory": (80,),
            },
            runs=5,
            quick={"windows": (4,), "curve": ("INC", "DEC", "INC to DEC")},
            quick_runs=3,
        ),
        measures.learned_curve,
        TableLayout(("curve", "monitoring"), ("off",), columns="window"),
        plots=(
            LinePlot("window", "off", "curve", "monitoring", labels={"y": "distance from the true curve"}),
            LinePlot("window", "recall", "curve", "monitoring"),
        ),
        claims=claims.LEARNING,
    ),
    Experiment(
        TEXTS["recorded"],
        Grid(
            {
                "stream": ("auctions", "tasks"),
                "percent": (10, 20, 40),
                "policy": ("age", "prob", "fifo", "until_expiry"),
            },
            quick={"percent": (20,)},
        ),
        measures.recorded_recall,
        TableLayout(("stream", "percent"), ("recall",), columns="policy"),
        plots=(BarPlot("percent", "recall", "policy", "stream", labels=_MEMORY),),
        needs_data=True,
    ),
)
