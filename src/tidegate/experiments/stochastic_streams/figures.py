"""The figures of sections 5, 7 and 8."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import Final

from tidegate.experiments.experiment import Experiment, Grid, Settings
from tidegate.experiments.plots import Bars, Lines
from tidegate.experiments.shown import Shown
from tidegate.experiments.stochastic_streams import claims, measured
from tidegate.experiments.stochastic_streams.setups import (
    CALM,
    COMPARED,
    DIVIDED,
    FAST,
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

_LENGTH: Final = {"rows": (ROWS,), "warmup": (WARMUP,)}
_QUICK: Final = {"rows": (600,)}
_SOME: Final = (5, 10, 20, 50)
_CHOSEN: Final = (
    "Counted are results with a row in memory, after 200 steps, four times the largest memory; of the memories from "
    "1 to 50 rows five are run. Section 7 leaves HEEB's survival for normal noise to a report: here it is that of "
    "uniform noise. `fifo` and, but for Figures 13 and 14, `heeb_histogram` are not the paper's: Figure 8 shows "
    "them, and they decide no claim."
)
_MEMORY: Final = {"x": "memory, rows", "y": "results from memory"}


def _there(settings: Settings) -> bool:
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
            _there,
        ),
        measured.results,
        Shown(("stream", "memory"), ("results",), across="policy"),
        (Lines("memory", "results", "policy", says=_MEMORY),),
        partial(claims.claims_of_memory, stream=stream),
        _CHOSEN,
        "In a short run, growth with memory and the catching up are within chance for some."
        if drifts
        else "WALK's runs differ so much that a few decide nothing.",
    )


def _histograms(number: int, stream: str, says: str) -> Experiment:
    noisy = stream == NOISY
    return Experiment(
        f"stochastic-streams/figure{number}",
        f"HEEB by histograms, {stream}",
        says,
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
        measured.results,
        Shown(("stream", "memory"), ("results",), across="policy"),
        (Lines("memory", "results", "policy", "stream" if noisy else None, says=_MEMORY),),
        partial(claims.claims_of_histograms, noisy=noisy),
        _CHOSEN
        + " Both streams have this deviation, and the bounds and lag of TOWER; histograms have 30 buckets."
        + (" Low variance is run again at ten rows, to be compared." if noisy else ""),
        "Histograms learn for some hundred steps, which weighs in a short run.",
    )


def _benefits(
    number: int, title: str, says: str, judge: claims.Judge, chosen: str, deviates: str = ""
) -> Experiment:
    figure = f"figure{number}"
    rows = tuple(name.partition("/")[2] for name in measured.EXAMPLES if name.startswith(f"{figure}/"))
    return Experiment(
        f"stochastic-streams/{figure}",
        title,
        says,
        Grid({"row": rows, "figure": (figure,)}),
        measured.benefit,
        Shown(("ahead",), ("benefit",), across="row"),
        (
            Lines(
                "ahead",
                "benefit",
                "row",
                dots=False,
                says={"x": "steps ahead", "y": "expected cumulative benefit"},
            ),
        ),
        judge,
        chosen + " Nothing is drawn at random.",
        deviates,
    )


EXPERIMENTS: Final = (
    _benefits(
        2,
        "expected benefits of three rows",
        "x is above y over any time; x and z cross.",
        claims.claims_of_example,
        "The rows' places are not told: 2 and 10 ahead of S's centre, and 8 behind it; S is ROOF's.",
    ),
    _benefits(
        4,
        "expected benefits in caching, uniform noise",
        "Of rows in the window, the one with the smallest value may go.",
        claims.claims_of_caching_benefits,
        "The bound is 10, five values are shown.",
    ),
    _benefits(
        5,
        "expected benefits in joining, uniform noise",
        "Within a category benefits are comparable, across categories not always.",
        claims.claims_of_joining_benefits,
        "Bounds are 10 of R and 15 of S; a row of each category, two where the paper compares them.",
        "The printed inequality is reversed: R's window is narrower, so that S2 gains faster, and only it can "
        "dominate.",
    ),
    Experiment(
        "stochastic-streams/figure6",
        "HEEB's benefit with a walk",
        "Without drift the nearest is best; with drift, what lies ahead, most of all by a multiple of it.",
        Grid({"drift": (0, 2, 4), "alpha": (MEMORY,)}),
        measured.walk_benefit,
        Shown(("distance",), ("benefit",), across="drift"),
        (Lines("distance", "benefit", "drift", says={"x": "distance from the last value"}),),
        claims.claims_of_walks,
        chosen="The cache's size, alpha, is not told: 10. Nothing is drawn at random.",
        deviates="With a drift of 2 and steps that vary by 1, what comes two and three steps ahead runs together.",
    ),
    Experiment(
        "stochastic-streams/figure8",
        "results from memory of ten rows",
        "OPT-offline wins; HEEB beats RAND, PROB and LIFE, and even FlowExpect in most cases; most so for TOWER, "
        "least for FLOOR.",
        Grid(
            {
                "stream": COMPARED,
                "memory": (MEMORY,),
                "policy": tuple(POLICIES) if find_spec("ortools") else FAST,
                **_LENGTH,
            },
            RUNS,
            _QUICK,
            3,
            _there,
        ),
        measured.results,
        Shown(("stream", "memory"), ("results",), across="policy"),
        (Bars("stream", "results", "policy", says={"y": "results from memory"}),),
        claims.claims_of_comparison,
        _CHOSEN + " FlowExpect runs where OR-tools is installed.",
        "`flow_expect` solves its plan exactly and is as good as HEEB in TOWER and ROOF, and better in FLOOR. "
        "`life`: a key that the other side has not brought has no share, and a long life makes no difference to 0. "
        "WALK's runs differ so much that a few decide nothing.",
    ),
    *(_by_memory(number, stream) for number, stream in enumerate(COMPARED, start=9)),
    _histograms(13, CALM, "Histograms are almost as good as computed HEEB, and much better than RAND."),
    _histograms(
        14,
        NOISY,
        "Histograms reach roughly 90 % of computed HEEB, and beat RAND; both by less than with low variance.",
    ),
    Experiment(
        "stochastic-streams/figure15",
        "hits on Melbourne's temperatures",
        "All do reasonably well; HEEB leads and beats LRU and LFU by as much as 20 % at some sizes.",
        Grid(
            {"memory": (10, 25, 50, 100, 150, 200, 250, 300), "policy": measured.CACHED},
            runs=20,
            quick_runs=5,
        ),
        measured.hits,
        Shown(("memory", *claims.MODEL), ("hits",), across="policy"),
        (Lines("memory", "hits", "policy", says={"x": "cache, rows"}),),
        claims.claims_of_caching,
        "One recorded stream: runs differ in the draws of `random` only. `heeb, a tenth` looks a tenth as far ahead.",
        deviates="Temperatures have seasons, which the AR(1) does not know; an alpha of the cache's size looks too "
        "far ahead with it.",
        recorded=True,
    ),
    Experiment(
        "stochastic-streams/figure16",
        "memory that HEEB gives to R",
        "HEEB gives less memory to a stream that lags behind, or varies more.",
        Grid({"streams": tuple(DIVIDED), "memory": (5, MEMORY, 20), **_LENGTH}, RUNS, _QUICK, 3),
        measured.divided,
        Shown(("streams", "memory"), ("share of R",)),
        (Bars("streams", "share of R", "memory", says={"y": "share of R, %", "x": ""}),),
        claims.claims_of_division,
        "It begins with TOWER's R on both sides; the memories are not told: 5, 10 and 20 rows.",
    ),
)
