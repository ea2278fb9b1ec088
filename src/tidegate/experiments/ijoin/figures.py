"""Tables 1 to 4 and 6, Figures 2 to 5, and experiments beyond the paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, get_args

import numpy as np

from tidegate.experiments.claims import Claim
from tidegate.experiments.experiment import Experiment, Grid, Value
from tidegate.experiments.figure_text import read_texts
from tidegate.experiments.ijoin import claims, measures, tables
from tidegate.experiments.ijoin.lazy_ijoin import Recompute
from tidegate.experiments.plots import LinePlot, ScatterPlot
from tidegate.experiments.table_layout import TableLayout

TEXTS: Final = read_texts(Path(__file__).with_suffix(".md"), "ijoin")

SKEWS: Final = (0.0, 1.0)
LARGER: Final = 20
"""A memory, in rows, where schemes differ."""
RUNS, QUICK_RUNS = 10, 3
_QUICK: Final = {"seconds": (50.0,)}
_NUMBERS: Final = ("importance", "size", "fairness")


def _instants(number: int, joins: tuple[str, ...]) -> Experiment:
    return Experiment(
        TEXTS[f"table{number}"],
        Grid({"join": joins}),
        tables.instants,
        TableLayout(("join", "time"), ("R", "S", "output", "importance")),
        claims=claims.TOTALS,
    )


def _varied(
    number: int,
    axis: str,
    values: Sequence[Value],
    declared: tuple[Claim, ...],
    **fixed: Value,
) -> Experiment:
    return Experiment(
        TEXTS[f"figure{number}"],
        Grid(
            {
                axis: values,
                "skew": SKEWS,
                "scheme": tuple(measures.schemes()),
                "seconds": (100.0,),
                **{name: (value,) for name, value in fixed.items()},
            },
            RUNS,
            {axis: (values[0], values[-1]), **_QUICK},
            QUICK_RUNS,
        ),
        measures.section5,
        TableLayout((axis, "skew", "scheme"), _NUMBERS),
        plots=tuple(
            LinePlot(axis, number, "scheme", "skew", include=(*claims.RIVALS, *claims.IJOINS, "expected"))
            for number in _NUMBERS
        ),
        claims=declared,
    )


EXPERIMENTS: Final = (
    Experiment(
        TEXTS["table1"],
        Grid({"stream": ("R", "S")}),
        tables.streams,
        TableLayout(("stream", "time"), ("value", "importance")),
    ),
    _instants(2, ("exact", "fifo")),
    _instants(3, ("rand", "size")),
    _instants(4, ("greedy",)),
    _varied(2, "memory", (5, 10, 15, 20), claims.MEMORY),
    _varied(3, "window", (10.0, 15.0, 20.0, 25.0), claims.WINDOW),
    _varied(4, "domain", (10, 15, 20), claims.DOMAIN, level=True),
    Experiment(
        TEXTS["figure5"],
        Grid(
            {
                "unproductive": (2.0, 3.0, 4.0, 5.0),
                "skew": SKEWS,
                "scheme": (*claims.RIVALS, *claims.IJOINS),
                "seconds": (100.0,),
            },
            RUNS,
            {"unproductive": (2.0, 5.0), **_QUICK},
            QUICK_RUNS,
        ),
        measures.section5,
        TableLayout(("unproductive", "skew", "scheme"), _NUMBERS),
        plots=(
            LinePlot("unproductive", "importance", "scheme", "skew", labels={"x": "unproductive after, s"}),
        ),
        claims=claims.THRESHOLD,
    ),
    Experiment(
        TEXTS["table6"],
        Grid({"skew": SKEWS, "scheme": get_args(Recompute), "seconds": (100.0,)}, RUNS, _QUICK, QUICK_RUNS),
        measures.section5,
        TableLayout(("skew", "scheme"), (*_NUMBERS, "computed")),
        claims=claims.LAZINESS,
    ),
    Experiment(
        TEXTS["beyond"],
        Grid(
            {
                "skew": SKEWS,
                "scheme": (*measures.schemes(), "OPTIMUM"),
                "memory": (LARGER,),
                "order": ("probe-first",),
                "seconds": (100.0,),
            },
            RUNS,
            _QUICK,
            QUICK_RUNS,
        ),
        measures.section5,
        TableLayout(("skew", "scheme"), _NUMBERS),
        claims=claims.BEYOND,
    ),
    Experiment(
        TEXTS["frontier"],
        Grid(
            {
                "skew": SKEWS,
                "scheme": (*(f"ijoin {share:.3f}" for share in np.linspace(0, 1, 9)), *claims.RIVALS),
                "memory": (LARGER,),
                "seconds": (100.0,),
            },
            RUNS,
            _QUICK,
            QUICK_RUNS,
        ),
        measures.section5,
        TableLayout(("skew", "scheme"), _NUMBERS),
        plots=(
            ScatterPlot(
                "fairness",
                "importance",
                "scheme",
                claims.RIVALS,
                "ijoin",
                "skew",
                labels={"x": "fairness (Jain's index)", "y": "total importance"},
            ),
        ),
    ),
    Experiment(
        TEXTS["tickers"],
        Grid(
            {
                "percent": (1, 5, 10, 25, 50),
                "scheme": (
                    *(name for name in measures.schemes() if "printed" not in name),
                    "expected by age",
                ),
            },
            quick={"percent": (10,)},
        ),
        measures.ticker_importance,
        TableLayout(("percent", "scheme"), _NUMBERS),
        plots=(LinePlot("percent", "importance", "scheme", labels={"x": "memory, % of a day's rows"}),),
        needs_data=True,
    ),
)
