"""Heat maps of each policy's importance, as a share of the offline optimum's."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tidegate import policies
from tidegate.experiments.experiment import Experiment, Grid, Settings
from tidegate.experiments.figure_text import read_texts
from tidegate.experiments.plots import HeatMap
from tidegate.experiments.table_layout import TableLayout
from tidegate.experiments.tournament import measures

TEXTS: Final = read_texts(Path(__file__).with_suffix(".md"), "tournament")

PERCENTS: Final = (1, 5, 10, 25, 50)
_POLICIES: Final = tuple(policies.names())
_PLOT: Final = HeatMap("workload", "policy", "importance", measures.OPTIMUM, "percent")
_MAX_PLANNED: Final = 10
"""The largest memory in percent for `flow_expect`. With more, its plans take hours."""
_NOT_NUMERIC: Final = ("tasks",)
"""Recorded streams whose keys are not numbers, so `heeb_histogram` cannot run."""


def _is_possible(settings: Settings) -> bool:
    """Whether a policy can run on a workload in reasonable time."""
    workload, policy = str(settings["workload"]), str(settings["policy"])
    if policy == "flow_expect" and (int(settings["percent"]) > _MAX_PLANNED or workload == "tickers"):
        return False
    if policy == "heeb_histogram" and workload in _NOT_NUMERIC:
        return False
    by_keys = workload not in measures.CONTESTS or measures.CONTESTS[workload].condition == "="
    return by_keys or not policies.find(policy).by_key


EXPERIMENTS: Final = (
    Experiment(
        TEXTS["synthetic"],
        Grid(
            {
                "workload": tuple(measures.CONTESTS),
                "percent": PERCENTS,
                "policy": _POLICIES,
                "rows": (2000,),
            },
            runs=3,
            quick={"percent": (10,), "rows": (600,)},
            include=_is_possible,
        ),
        measures.contest,
        TableLayout(("workload", "percent"), ("importance",), columns="policy"),
        plots=(_PLOT,),
    ),
    Experiment(
        TEXTS["recorded"],
        Grid(
            {"workload": tuple(measures.RECORDED), "percent": PERCENTS, "policy": _POLICIES},
            quick={"percent": (10,), "workload": ("auctions",)},
            include=_is_possible,
        ),
        measures.recorded_contest,
        TableLayout(("workload", "percent"), ("importance",), columns="policy"),
        plots=(_PLOT,),
        needs_data=True,
    ),
)
