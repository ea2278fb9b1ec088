"""Who wins where, as heat maps: what each policy gets, of what the optimum gets."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from tidegate import policies
from tidegate.experiments.experiment import Experiment, Grid, Settings
from tidegate.experiments.plots import Heat
from tidegate.experiments.shown import Shown
from tidegate.experiments.tournament import measured

PERCENTS: Final = (1, 5, 10, 25, 50)
_POLICIES: Final = tuple(
    name for name in policies.names() if name != "flow_expect" or find_spec("ortools") is not None
)
_PLOT: Final = Heat("workload", "policy", "importance", measured.OPTIMUM, "percent")
_SAYS: Final = "Not in a paper: every policy on every workload, against the optimum that knows the future."
_PLANNED: Final = 10
"""Percent of memory up to which `flow_expect` plans anew at every step; beyond, it takes hours."""
_NAMED: Final = ("tasks",)
"""Recorded streams whose keys are no numbers, so that they lie nowhere."""
_CHOSEN: Final = (
    "Memory in percent of the rows that an unlimited join holds at most, shared by both sides. Policies are taken by "
    "name and know nothing but what they learn on the way. Where rows have no importance, results count. "
    f"`flow_expect` solves a plan at every step, and runs up to {_PLANNED} %, and not on tickers."
)


def _there(settings: Settings) -> bool:
    """Whether a policy can rank such rows, in a time that is worth it."""
    workload, policy = str(settings["workload"]), str(settings["policy"])
    if policy == "flow_expect" and (int(settings["percent"]) > _PLANNED or workload == "tickers"):
        return False
    if policy == "heeb_histogram" and workload in _NAMED:
        return False
    by_keys = workload not in measured.CONTESTS or measured.CONTESTS[workload].condition == "="
    return by_keys or not policies.find(policy).by_key


EXPERIMENTS: Final = (
    Experiment(
        "tournament/synthetic",
        "all policies on the workloads of the papers",
        _SAYS,
        Grid(
            {
                "workload": tuple(measured.CONTESTS),
                "percent": PERCENTS,
                "policy": _POLICIES,
                "rows": (2000,),
            },
            runs=3,
            quick={"percent": (10,), "rows": (600,)},
            only=_there,
        ),
        measured.contest,
        Shown(("workload", "percent"), ("importance",), across="policy"),
        (_PLOT,),
        chosen=_CHOSEN
        + " In the wide area, with five rows a second instead of 50, keys match within a band: policies that count "
        "keys have nothing to count. Normal keys have a window of 100 instead of 500 on either side.",
    ),
    Experiment(
        "tournament/recorded",
        "all policies on recorded streams",
        _SAYS,
        Grid(
            {"workload": tuple(measured.RECORDED), "percent": PERCENTS, "policy": _POLICIES},
            quick={"percent": (10,), "workload": ("auctions",)},
            only=_there,
        ),
        measured.recorded_contest,
        Shown(("workload", "percent"), ("importance",), across="policy"),
        (_PLOT,),
        chosen=_CHOSEN,
        recorded=True,
    ),
)
