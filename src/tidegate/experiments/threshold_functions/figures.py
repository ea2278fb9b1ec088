"""The experiments of section 6."""

from __future__ import annotations

from typing import Final

from tidegate.experiments.experiment import Experiment, Grid
from tidegate.experiments.plots import Lines
from tidegate.experiments.shown import Shown
from tidegate.experiments.threshold_functions import claims, measured, timed

DENSITIES: Final = tuple(2**power for power in range(12))
_NUMBERS: Final = ("kept %", "kept of an interval", "as printed %", "as printed of an interval")
_CURVES: Final = tuple(
    Lines(
        "density",
        number,
        "stream",
        predicted=printed,
        says={"x": "rows an interval", "y": number, "dashed": "as printed"},
        doubling=True,
    )
    for number, printed in zip(_NUMBERS[:2], _NUMBERS[2:], strict=True)
)
_GROWS: Final = (
    "On a Wiener process a row is the highest of some interval of n rows with a probability of about 1.13 / sqrt(n), "
    "so the rows kept of an interval grow as sqrt(n); a flat line at four is that of independent values, where the "
    "probability is 2 / n. Algorithm 1 as printed, which loses rows that are needed, does not give it either."
)

EXPERIMENTS: Final = (
    Experiment(
        "threshold-functions/table1",
        "rows kept at ten rows an interval",
        "About 40 % of the rows are kept, of both streams.",
        Grid(
            {"stream": ("s-unif", "s-wiener"), "density": (10,), "rows": (1_000_000,)},
            runs=5,
            quick={"rows": (50_000,)},
            quick_runs=3,
        ),
        measured.of_stream,
        Shown(("stream", "density"), _NUMBERS),
        (),
        claims.of_table1,
        "Five runs.",
        "Of the Wiener process the definition keeps two thirds. As printed the algorithm keeps a little over a third "
        "of both, since it loses rows that are needed.",
    ),
    Experiment(
        "threshold-functions/table1-times",
        "seconds a million rows take, by how disordered they are",
        "In order the linked list is fastest; with disorder it declines sharply, and the skip list gracefully.",
        Grid(
            {
                "stream": ("s-unif", "s-wiener"),
                "sigma": (0, 1, 10, 100, 1_000, 10_000, 100_000),
                "store": tuple(timed.STORES),
                "rows": (1_000_000,),
            },
            runs=5,
            quick={"rows": (50_000,), "sigma": (0, 1_000, 10_000)},
            quick_runs=3,
        ),
        timed.time_of,
        Shown(("stream", "sigma", "store"), ("seconds", "inverted")),
        (),
        claims.of_times,
        "Processor time. Lists are compiled, as the sorted arrays are, and take a row at a time; the scan of the "
        "printed algorithm is mended, so that all keep the same rows. The red-black tree is left out: in the paper "
        "it is two to four times slower than the skip list throughout.",
    ),
    Experiment(
        "threshold-functions/figure9",
        "rows kept beside gaps",
        "Disproportionately many rows are kept just before and after gaps between rows.",
        Grid(
            {"stream": ("Gamma-Wiener", "uniform values"), "density": (16,), "rows": (400_000,)},
            runs=5,
            quick={"rows": (40_000,)},
            quick_runs=3,
        ),
        timed.near_gaps,
        Shown(("stream", "rows from the gap"), ("kept %",)),
        (Lines("rows from the gap", "kept %", "stream"),),
        claims.of_gaps,
        "The paper draws 15 rows, of which 10 are kept, without their numbers. Here bursts of 400 rows, 16 an "
        "interval, with gaps of two intervals between them.",
    ),
    Experiment(
        "threshold-functions/figure10",
        "rows kept by the length of the interval",
        "On Gamma-Wiener the share kept falls from four rows an interval on, and those of an interval stay at four.",
        Grid(
            {"stream": ("Gamma-Wiener", "uniform values"), "density": DENSITIES, "rows": (10_000_000,)},
            runs=3,
            quick={"rows": (50_000,), "density": tuple(2**power for power in range(0, 10, 2))},
            quick_runs=3,
        ),
        measured.of_stream,
        Shown(("stream", "density"), _NUMBERS),
        _CURVES,
        claims.of_figure10,
        "The paper gives no parameters of the gamma distribution: gaps are those of arrivals at random. Three "
        "runs; the stream of independent values is ours.",
        _GROWS,
    ),
    Experiment(
        "threshold-functions/debs",
        "rows kept of a recording by the length of the interval",
        "On the DEBS 2012 recording rows are omitted from fewer rows an interval on than on Gamma-Wiener; those kept "
        "of an interval level off around eight, and fall from 2^7 to 2^11.",
        Grid({"stream": measured.BOTH, "density": DENSITIES}),
        measured.of_recording,
        Shown(("stream", "density"), _NUMBERS),
        _CURVES,
        claims.of_recording,
        "The first 170 s of the recording, its first sensor of power; Gamma-Wiener of as many rows.",
        "The recording's slice wanders: rows kept of an interval go on growing.",
        recorded=True,
    ),
    Experiment(
        "threshold-functions/dew-point",
        "alarms of the dew point over three recorded streams",
        "The motivating alarm of section 1, not measured in the paper: rows are omitted, and no alarm is lost.",
        Grid({"formula": tuple(measured.FORMULAS), "hours": (1, 6, 24)}, quick={"hours": (1, 6)}),
        measured.of_forest,
        Shown(("formula", "hours"), ("kept %", "alarms", "missed", "invented")),
        (),
        claims.of_forest,
        "A year of half hours in a forest: humidity, air, and soil as the surface. The dew point itself, and "
        "the printed formula, which does not give a temperature; no watermark, so nothing expires.",
        recorded=True,
    ),
)
