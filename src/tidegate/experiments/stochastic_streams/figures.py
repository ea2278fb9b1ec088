"""The figures of sections 5, 7 and 8."""

from __future__ import annotations

from functools import partial
from typing import Final

from tidegate.experiments.experiment import Experiment, Grid, Settings
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

_LENGTH: Final = {"rows": (ROWS,), "warmup": (WARMUP,)}
_QUICK: Final = {"rows": (600,)}
_SOME: Final = (5, 10, 20, 50)
_CHOSEN: Final = (
    "Only results with a row in memory are counted, after 200 steps, four times the largest memory. Five "
    "memories from 1 to 50 rows are run. Section 7 leaves HEEB's survival for normal noise to a report; here it "
    "is that of uniform noise. `fifo` and, except in Figures 13 and 14, `heeb_histogram` are not in the paper. "
    "Figure 8 shows them, but no claim depends on them."
)
_MEMORY: Final = {"x": "memory, rows", "y": "results from memory"}


def _is_possible(settings: Settings) -> bool:
    return possible(str(settings["stream"]), str(settings["policy"]))


def _by_memory(number: int, stream: str) -> Experiment:
    drifts = stream != "WALK"
    return Experiment(
        f"stochastic-streams/figure{number}",
        f"{stream} by memory",
        "With more memory all policies do better"
        + (
            " and catch up with OPT-offline; HEEB does so sooner than the others."
            if drifts
            else ", but none catches up with OPT-offline."
        ),
        Grid(
            {"stream": (stream,), "memory": MEMORIES, "policy": ("offline", "heeb", *RIVALS), **_LENGTH},
            RUNS,
            {"memory": _SOME, **_QUICK},
            3,
            _is_possible,
        ),
        measures.results,
        TableLayout(("stream", "memory"), ("results",), columns="policy"),
        (LinePlot("memory", "results", "policy", labels=_MEMORY),),
        partial(claims.claims_of_memory, stream=stream),
        _CHOSEN,
        "In a short run, differences between memories are within chance for some policies."
        if drifts
        else "WALK's runs differ so much that few runs do not decide.",
    )


def _histograms(number: int, stream: str, finding: str) -> Experiment:
    noisy = stream == NOISY
    return Experiment(
        f"stochastic-streams/figure{number}",
        f"HEEB by histograms, {stream}",
        finding,
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
        (LinePlot("memory", "results", "policy", "stream" if noisy else None, labels=_MEMORY),),
        partial(claims.claims_of_histograms, noisy=noisy),
        _CHOSEN
        + " Both streams have this deviation, and the bounds and lag of TOWER; histograms have 30 buckets."
        + (" Low variance is run again at ten rows, for comparison." if noisy else ""),
        "Histograms need some hundred steps to learn, which matters in a short run.",
    )


def _benefits(
    number: int, title: str, finding: str, judge: claims.Judge, choices: str, deviation: str = ""
) -> Experiment:
    figure = f"figure{number}"
    rows = tuple(name.partition("/")[2] for name in measures.EXAMPLES if name.startswith(f"{figure}/"))
    return Experiment(
        f"stochastic-streams/{figure}",
        title,
        finding,
        Grid({"row": rows, "figure": (figure,)}),
        measures.benefit,
        TableLayout(("ahead",), ("benefit",), columns="row"),
        (
            LinePlot(
                "ahead",
                "benefit",
                "row",
                markers=False,
                labels={"x": "steps ahead", "y": "expected cumulative benefit"},
            ),
        ),
        judge,
        choices + " Nothing is random.",
        deviation,
    )


EXPERIMENTS: Final = (
    _benefits(
        2,
        "expected benefits of three rows",
        "x is always above y; x and z cross.",
        benefit_claims.claims_of_example,
        "The rows' values are not stated: 2 and 10 ahead of S's centre, and 8 behind it. S is that of ROOF.",
    ),
    _benefits(
        4,
        "expected benefits in caching, uniform noise",
        "Among rows in the window, the one with the smallest value can be evicted.",
        benefit_claims.claims_of_caching_benefits,
        "The bound is 10, and five values are shown.",
    ),
    _benefits(
        5,
        "expected benefits in joining, uniform noise",
        "Benefits are comparable within a category, but not always across categories.",
        benefit_claims.claims_of_joining_benefits,
        "Bounds are 10 for R and 15 for S. There is a row of each category, or two if the paper compares them.",
        "The printed inequality is reversed. R's window is narrower, so S2 gains faster, and only S2 can dominate.",
    ),
    Experiment(
        "stochastic-streams/figure6",
        "HEEB's benefit with a walk",
        "Without drift the nearest value is best. With drift it is a value ahead, most of all by a multiple of "
        "the drift.",
        Grid({"drift": (0, 2, 4), "alpha": (MEMORY,)}),
        measures.walk_benefit,
        TableLayout(("distance",), ("benefit",), columns="drift"),
        (LinePlot("distance", "benefit", "drift", labels={"x": "distance from the last value"}),),
        benefit_claims.claims_of_walks,
        choices="The cache's size, alpha, is not stated: 10. Nothing is random.",
        deviation="With a drift of 2 and steps that vary by 1, the peaks two and three steps ahead overlap.",
    ),
    Experiment(
        "stochastic-streams/figure8",
        "results from memory of ten rows",
        "OPT-offline wins. HEEB beats RAND, PROB and LIFE, and even FlowExpect in most cases; its lead is "
        "largest for TOWER and smallest for FLOOR.",
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
        (BarPlot("stream", "results", "policy", labels={"y": "results from memory"}),),
        claims.claims_of_comparison,
        _CHOSEN + " FlowExpect runs where OR-tools is installed.",
        "`flow_expect` solves its plan exactly and is as good as HEEB in TOWER and ROOF, and better in FLOOR. "
        "`life`: a key that the other side has not had yet has a share of 0, whatever its lifetime. "
        "WALK's runs differ so much that few runs do not decide.",
    ),
    *(_by_memory(number, stream) for number, stream in enumerate(COMPARED, start=9)),
    _histograms(13, CALM, "Histograms are almost as good as computed HEEB, and much better than RAND."),
    _histograms(
        14,
        NOISY,
        "Histograms reach roughly 90 % of computed HEEB. Both beat RAND by less than with low variance.",
    ),
    Experiment(
        "stochastic-streams/figure15",
        "hits on Melbourne's temperatures",
        "All policies do reasonably well. HEEB leads, and beats LRU and LFU by as much as 20 % at some sizes.",
        Grid(
            {"memory": (10, 25, 50, 100, 150, 200, 250, 300), "policy": measures.CACHED},
            runs=20,
            quick_runs=5,
        ),
        measures.hits,
        TableLayout(("memory", *claims.MODEL), ("hits",), columns="policy"),
        (LinePlot("memory", "hits", "policy", labels={"x": "cache, rows"}),),
        claims.claims_of_caching,
        "There is one recorded stream, so runs differ only for `random`. `heeb, a tenth` looks a tenth as far ahead.",
        deviation="Temperatures have seasons, which the AR(1) does not model. With it, an alpha of the cache's "
        "size looks too far ahead.",
        needs_data=True,
    ),
    Experiment(
        "stochastic-streams/figure16",
        "memory that HEEB gives to R",
        "HEEB gives less memory to a stream that lags behind, or varies more.",
        Grid({"streams": tuple(DIVIDED), "memory": (5, MEMORY, 20), **_LENGTH}, RUNS, _QUICK, 3),
        measures.divided,
        TableLayout(("streams", "memory"), ("share of R",)),
        (BarPlot("streams", "share of R", "memory", labels={"y": "share of R, %", "x": ""}),),
        claims.claims_of_division,
        "It begins with TOWER's R on both sides. The memories are not stated: 5, 10 and 20 rows.",
    ),
)
