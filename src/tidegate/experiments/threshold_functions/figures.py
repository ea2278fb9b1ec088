"""The experiments of section 6."""

from __future__ import annotations

from typing import Final

from tidegate.experiments.experiment import Experiment, Grid
from tidegate.experiments.plots import LinePlot
from tidegate.experiments.table_layout import TableLayout
from tidegate.experiments.threshold_functions import claims, measures, timing

DENSITIES: Final = tuple(2**power for power in range(12))
_NUMBERS: Final = ("kept %", "kept of an interval", "as printed %", "as printed of an interval")
_CURVES: Final = tuple(
    LinePlot(
        "density",
        number,
        "stream",
        predicted=printed,
        labels={"x": "rows per interval", "y": number, "dashed": "as printed"},
        log2_x=True,
    )
    for number, printed in zip(_NUMBERS[:2], _NUMBERS[2:], strict=True)
)
_GROWS: Final = (
    "On a Wiener process a row is the highest of some interval of n rows with a probability of about 1.13 / "
    "sqrt(n), so the rows kept of an interval grow as sqrt(n). A constant level of four is that of independent "
    "values, where the probability is 2 / n. Algorithm 1 as printed, which loses rows that are needed, does not "
    "reach it either."
)

EXPERIMENTS: Final = (
    Experiment(
        "threshold-functions/table1",
        "rows kept at ten rows per interval",
        "About 40 % of the rows of both streams are kept.",
        Grid(
            {"stream": ("s-unif", "s-wiener"), "density": (10,), "rows": (1_000_000,)},
            runs=5,
            quick={"rows": (50_000,)},
            quick_runs=3,
        ),
        measures.kept_on_stream,
        TableLayout(("stream", "density"), _NUMBERS),
        (),
        claims.claims_of_table1,
        "Five runs.",
        "By the definition, two thirds of the Wiener process are kept. The algorithm as printed keeps a little "
        "over a third of both streams, since it loses rows that are needed.",
    ),
    Experiment(
        "threshold-functions/table1-times",
        "seconds for a million rows, by their disorder",
        "In order the linked list is fastest. With disorder it slows down sharply, and the skip list gradually.",
        Grid(
            {
                "stream": ("s-unif", "s-wiener"),
                "sigma": (0, 1, 10, 100, 1_000, 10_000, 100_000),
                "store": tuple(timing.STORES),
                "rows": (1_000_000,),
            },
            runs=5,
            quick={"rows": (50_000,), "sigma": (0, 1_000, 10_000)},
            quick_runs=3,
        ),
        timing.store_seconds,
        TableLayout(("stream", "sigma", "store"), ("seconds", "inverted")),
        (),
        claims.claims_of_times,
        "Processor time. The lists are compiled, like the sorted arrays, and take one row at a time. The scan of "
        "the printed algorithm is corrected, so all stores keep the same rows. The red-black tree is left out: "
        "in the paper it is always two to four times slower than the skip list.",
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
        timing.near_gaps,
        TableLayout(("stream", "rows from the gap"), ("kept %",)),
        (LinePlot("rows from the gap", "kept %", "stream"),),
        claims.claims_of_gaps,
        "The paper shows 15 rows, 10 of them kept, without numbers. Here there are bursts of 400 rows, 16 per "
        "interval, with gaps of two intervals between them.",
    ),
    Experiment(
        "threshold-functions/figure10",
        "rows kept by the length of the interval",
        "On Gamma-Wiener the share kept falls from four rows per interval on; the rows kept of an interval stay "
        "at four.",
        Grid(
            {"stream": ("Gamma-Wiener", "uniform values"), "density": DENSITIES, "rows": (10_000_000,)},
            runs=3,
            quick={"rows": (50_000,), "density": tuple(2**power for power in range(0, 10, 2))},
            quick_runs=3,
        ),
        measures.kept_on_stream,
        TableLayout(("stream", "density"), _NUMBERS),
        _CURVES,
        claims.claims_of_figure10,
        "The paper does not state the parameters of the gamma distribution: gaps are those of Poisson arrivals. "
        "Three runs. The stream of independent values is ours.",
        _GROWS,
    ),
    Experiment(
        "threshold-functions/debs",
        "rows kept of a recording by the length of the interval",
        "On the DEBS 2012 recording rows are omitted from fewer rows an interval on than on Gamma-Wiener; those kept "
        "of an interval level off around eight, and fall from 2^7 to 2^11.",
        Grid({"stream": measures.RECORDING_AND_GENERATED, "density": DENSITIES}),
        measures.kept_on_recording,
        TableLayout(("stream", "density"), _NUMBERS),
        _CURVES,
        claims.claims_of_recording,
        "The first 170 s of the recording, its first sensor of power; Gamma-Wiener of as many rows.",
        "The recording's slice wanders: rows kept of an interval go on growing.",
        needs_data=True,
    ),
    Experiment(
        "threshold-functions/dew-point",
        "alarms of the dew point over three recorded streams",
        "The motivating alarm of section 1, not measured in the paper: rows are omitted, and no alarm is lost.",
        Grid({"formula": tuple(measures.FORMULAS), "hours": (1, 6, 24)}, quick={"hours": (1, 6)}),
        measures.dew_point_alarms,
        TableLayout(("formula", "hours"), ("kept %", "alarms", "missed", "invented")),
        (),
        claims.claims_of_dew_point,
        "A year of half hours in a forest: humidity, air, and soil as the surface. The dew point itself, and "
        "the printed formula, which does not give a temperature; no watermark, so nothing expires.",
        needs_data=True,
    ),
)
