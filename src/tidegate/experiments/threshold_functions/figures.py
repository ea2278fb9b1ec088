"""The experiments of section 6."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tidegate.experiments.experiment import Experiment, Grid
from tidegate.experiments.figure_text import read_texts
from tidegate.experiments.plots import LinePlot
from tidegate.experiments.table_layout import TableLayout
from tidegate.experiments.threshold_functions import claims, measures, timing

TEXTS: Final = read_texts(Path(__file__).with_suffix(".md"), "threshold-functions")

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

EXPERIMENTS: Final = (
    Experiment(
        TEXTS["table1"],
        Grid(
            {"stream": ("s-unif", "s-wiener"), "density": (10,), "rows": (1_000_000,)},
            runs=5,
            quick={"rows": (50_000,)},
            quick_runs=3,
        ),
        measures.kept_on_stream,
        TableLayout(("stream", "density"), _NUMBERS),
        claims=claims.TABLE1,
    ),
    Experiment(
        TEXTS["table1-times"],
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
        claims=claims.TIMES,
    ),
    Experiment(
        TEXTS["figure9"],
        Grid(
            {"stream": ("Gamma-Wiener", "uniform values"), "density": (16,), "rows": (400_000,)},
            runs=5,
            quick={"rows": (40_000,)},
            quick_runs=3,
        ),
        timing.near_gaps,
        TableLayout(("stream", "rows from the gap"), ("kept %",)),
        plots=(LinePlot("rows from the gap", "kept %", "stream"),),
        claims=claims.GAPS,
    ),
    Experiment(
        TEXTS["figure10"],
        Grid(
            {"stream": ("Gamma-Wiener", "uniform values"), "density": DENSITIES, "rows": (10_000_000,)},
            runs=3,
            quick={"rows": (50_000,), "density": tuple(2**power for power in range(0, 10, 2))},
            quick_runs=3,
        ),
        measures.kept_on_stream,
        TableLayout(("stream", "density"), _NUMBERS),
        plots=_CURVES,
        claims=claims.LENGTHS,
    ),
    Experiment(
        TEXTS["debs"],
        Grid({"stream": measures.RECORDING_AND_GENERATED, "density": DENSITIES}),
        measures.kept_on_recording,
        TableLayout(("stream", "density"), _NUMBERS),
        plots=_CURVES,
        claims=claims.RECORDING,
        needs_data=True,
    ),
    Experiment(
        TEXTS["dew-point"],
        Grid({"formula": tuple(measures.FORMULAS), "hours": (1, 6, 24)}, quick={"hours": (1, 6)}),
        measures.dew_point_alarms,
        TableLayout(("formula", "hours"), ("kept %", "alarms", "missed", "invented")),
        claims=claims.DEW_POINT,
        needs_data=True,
    ),
)
