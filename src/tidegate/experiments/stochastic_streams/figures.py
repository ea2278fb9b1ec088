"""The figures of sections 5, 7 and 8."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tidegate.experiments.claims import Claim
from tidegate.experiments.experiment import Experiment, Grid, Settings
from tidegate.experiments.figure_text import read_texts
from tidegate.experiments.plots import BarPlot, LinePlot
from tidegate.experiments.stochastic_streams import benefit_claims, claims, measures
from tidegate.experiments.stochastic_streams.setups import (
    CALM,
    COMPARED,
    DIVIDED,
    MEMORIES,
    MEMORY,
    NOISY,
    POLICIES,
    RIVALS,
    ROWS,
    RUNS,
    WARMUP,
    possible,
)
from tidegate.experiments.table_layout import TableLayout

TEXTS: Final = read_texts(Path(__file__).with_suffix(".md"), "stochastic-streams")

_LENGTH: Final = {"rows": (ROWS,), "warmup": (WARMUP,)}
_QUICK: Final = {"rows": (600,)}
_SOME: Final = (5, 10, 20, 50)
_MEMORY: Final = {"x": "memory, rows", "y": "results from memory"}


def _is_possible(settings: Settings) -> bool:
    return possible(str(settings["stream"]), str(settings["policy"]))


def _by_memory(number: int, stream: str) -> Experiment:
    return Experiment(
        TEXTS[f"figure{number}"],
        Grid(
            {"stream": (stream,), "memory": MEMORIES, "policy": ("offline", "heeb", *RIVALS), **_LENGTH},
            RUNS,
            {"memory": _SOME, **_QUICK},
            3,
            _is_possible,
        ),
        measures.results,
        TableLayout(("stream", "memory"), ("results",), columns="policy"),
        plots=(LinePlot("memory", "results", "policy", labels=_MEMORY),),
        claims=claims.by_memory(stream),
    )


def _histograms(number: int, stream: str) -> Experiment:
    noisy = stream == NOISY
    return Experiment(
        TEXTS[f"figure{number}"],
        Grid(
            {
                "stream": (NOISY, CALM) if noisy else (CALM,),
                "memory": MEMORIES,
                "policy": ("heeb", "heeb_histogram", "random"),
                **_LENGTH,
            },
            RUNS,
            {"memory": _SOME, **_QUICK},
            3,
            lambda settings: settings["stream"] == stream or settings["memory"] == MEMORY,
        ),
        measures.results,
        TableLayout(("stream", "memory"), ("results",), columns="policy"),
        plots=(LinePlot("memory", "results", "policy", "stream" if noisy else None, labels=_MEMORY),),
        claims=claims.by_histograms(noisy=noisy),
    )


def _benefits(number: int, declared: tuple[Claim, ...]) -> Experiment:
    figure = f"figure{number}"
    rows = tuple(name.partition("/")[2] for name in measures.EXAMPLES if name.startswith(f"{figure}/"))
    return Experiment(
        TEXTS[figure],
        Grid({"row": rows, "figure": (figure,)}),
        measures.benefit,
        TableLayout(("ahead",), ("benefit",), columns="row"),
        plots=(
            LinePlot(
                "ahead",
                "benefit",
                "row",
                markers=False,
                labels={"x": "steps ahead", "y": "expected cumulative benefit"},
            ),
        ),
        claims=declared,
    )


EXPERIMENTS: Final = (
    _benefits(2, benefit_claims.EXAMPLE),
    _benefits(4, benefit_claims.CACHING),
    _benefits(5, benefit_claims.JOINING),
    Experiment(
        TEXTS["figure6"],
        Grid({"drift": (0, 2, 4), "alpha": (MEMORY,)}),
        measures.walk_benefit,
        TableLayout(("distance",), ("benefit",), columns="drift"),
        plots=(LinePlot("distance", "benefit", "drift", labels={"x": "distance from the last value"}),),
        claims=benefit_claims.WALKS,
    ),
    Experiment(
        TEXTS["figure8"],
        Grid(
            {
                "stream": COMPARED,
                "memory": (MEMORY,),
                "policy": tuple(POLICIES),
                **_LENGTH,
            },
            RUNS,
            _QUICK,
            3,
            _is_possible,
        ),
        measures.results,
        TableLayout(("stream", "memory"), ("results",), columns="policy"),
        plots=(BarPlot("stream", "results", "policy", labels={"y": "results from memory"}),),
        claims=claims.COMPARISON,
    ),
    *(_by_memory(number, stream) for number, stream in enumerate(COMPARED, start=9)),
    _histograms(13, CALM),
    _histograms(14, NOISY),
    Experiment(
        TEXTS["figure15"],
        Grid(
            {"memory": (10, 25, 50, 100, 150, 200, 250, 300), "policy": measures.CACHED},
            runs=20,
            quick_runs=5,
        ),
        measures.hits,
        TableLayout(("memory", *claims.MODEL), ("hits",), columns="policy"),
        plots=(LinePlot("memory", "hits", "policy", labels={"x": "cache, rows"}),),
        claims=claims.CACHING,
        needs_data=True,
    ),
    Experiment(
        TEXTS["figure16"],
        Grid({"streams": tuple(DIVIDED), "memory": (5, MEMORY, 20), **_LENGTH}, RUNS, _QUICK, 3),
        measures.divided,
        TableLayout(("streams", "memory"), ("share of R",)),
        plots=(BarPlot("streams", "share of R", "memory", labels={"y": "share of R, %", "x": ""}),),
        claims=claims.DIVISION,
    ),
)
