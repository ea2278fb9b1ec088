"""Tables 1 to 4 and 6, Figures 2 to 5, and experiments beyond the paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, get_args

import numpy as np

from tidegate.experiments.claims import Claim
from tidegate.experiments.experiment import Experiment, Grid, Value
from tidegate.experiments.ijoin import claims, measures, tables
from tidegate.experiments.plots import LinePlot, ScatterPlot
from tidegate.experiments.results import Results
from tidegate.experiments.table_layout import TableLayout
from tidegate.policies.ijoin import Recompute

SKEWS: Final = (0.0, 1.0)
LARGER: Final = 20
"""A memory, in rows, where schemes differ."""
RUNS, QUICK_RUNS = 10, 3
_QUICK: Final = {"seconds": (50.0,)}
_EVEN: Final = (
    "If all values are equally frequent (skew 0), past matches predict nothing, and IJOIN equals FIFO"
)
_SKEWED: Final = "With skew, SIZE has the most."
_RARE: Final = (
    f"{_EVEN}; GREEDY has the most. {_SKEWED} The paper does not state how frequent its values are."
)
_EQUAL: Final = (
    f"{_EVEN}. {_SKEWED} Among equally important rows GREEDY keeps the oldest, so a few rows occupy the memory "
    "until they expire, as the paper states."
)
_UNFAIR: Final = (
    " Ten rows of memory last two seconds, less than the printed maturity. So hardly a row is mature when one "
    "must be evicted, and the rule for that case decides. With our defaults IJOIN trades fairness for importance "
    "(see `ijoin/frontier`)."
)
_NUMBERS: Final = ("importance", "size", "fairness")
_CHOSEN: Final = (
    "Both streams together have 10 rows per second, as Table 6 implies (Table 5 prints 100 to 200), for 100 "
    "seconds. There are 10 runs (the paper reports one), with skew 0 and 1. Importance belongs to the value and "
    "does not change. Memory is divided evenly. Among rows of equal rank the newest stays, but with GREEDY the "
    "oldest. SIZE keeps the rows with the most frequent values of the other side so far. A row is unproductive "
    "after 3 s, as in Table 5 (the text: 5), and then loses one match of mean importance. The weight of a match "
    "falls to 1/e in that time. The initial priority is the importance, k is 10, and epsilon 0.1. `IJOIN as "
    "printed` protects rows younger than 2 s. If all rows are protected, it evicts the lowest priority; IJOIN "
    "with our defaults evicts the oldest."
)


def _instants(number: int, joins: tuple[str, ...], finding: str) -> Experiment:
    return Experiment(
        f"ijoin/table{number}",
        "eight instants, step by step",
        finding,
        Grid({"join": joins}),
        tables.instants,
        TableLayout(("join", "time"), ("R", "S", "output", "importance")),
        claims=claims.claims_of_totals,
        choices="Rows are evicted before arrivals are matched. RAND and SIZE are replayed from the printed memory.",
    )


def _varied(
    number: int,
    axis: str,
    title: str,
    values: Sequence[Value],
    finding: str,
    judge_claims: Callable[[Results], tuple[Claim, ...]],
    deviation: str = _RARE,
    **fixed: Value,
) -> Experiment:
    return Experiment(
        f"ijoin/figure{number}",
        title,
        finding,
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
        tuple(
            LinePlot(axis, number, "scheme", "skew", include=(*claims.RIVALS, *claims.IJOINS, "expected"))
            for number in _NUMBERS
        ),
        judge_claims,
        f"{_CHOSEN} EXACT is far above all others, and in the table only.",
        deviation + _UNFAIR,
    )


EXPERIMENTS: Final = (
    Experiment(
        "ijoin/table1",
        "the streams of the worked example",
        "Two streams of eight values; a to d have the importance 1 to 4.",
        Grid({"stream": ("R", "S")}),
        tables.streams,
        TableLayout(("stream", "time"), ("value", "importance")),
    ),
    _instants(2, ("exact", "fifo"), "The exact join has a total importance of 36, FIFO 6."),
    _instants(3, ("rand", "size"), "The total importance of RAND and SIZE."),
    _instants(4, ("greedy",), "GREEDY has a total importance of 13."),
    _varied(
        2,
        "memory",
        "memory from 5 to 20 rows",
        (5, 10, 15, 20),
        "IJOIN has the most importance at every memory and is more than 80 % fair. FIFO is fair and has the least.",
        claims.claims_of_memory,
    ),
    _varied(
        3,
        "window",
        "windows from 10 to 25 seconds",
        (10.0, 15.0, 20.0, 25.0),
        "IJOIN has the most importance, which grows with the window only for IJOIN and GREEDY. It is 80 to 85 % "
        "fair.",
        claims.claims_of_window,
    ),
    _varied(
        4,
        "domain",
        "10 to 20 values, all equally important",
        (10, 15, 20),
        "IJOIN has the most importance, which falls for all as the number of values grows. GREEDY has the least.",
        claims.claims_of_domain,
        _EQUAL,
        level=True,
    ),
    Experiment(
        "ijoin/figure5",
        "unproductive after 2 to 5 seconds",
        "The coarser the threshold, the lower IJOIN's importance. It is always above all others.",
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
        (LinePlot("unproductive", "importance", "scheme", "skew", labels={"x": "unproductive after, s"}),),
        claims.claims_of_threshold,
        _CHOSEN,
        f"{_RARE} With ten rows of memory, few rows stay long enough to become unproductive.",
    ),
    Experiment(
        "ijoin/table6",
        "when priorities are computed",
        "Successive is best and fairest. Adaptive is close to it with 60 % of the work; k-successive needs 10 %.",
        Grid({"skew": SKEWS, "scheme": get_args(Recompute), "seconds": (100.0,)}, RUNS, _QUICK, QUICK_RUNS),
        measures.section5,
        TableLayout(("skew", "scheme"), (*_NUMBERS, "computed")),
        claims=claims.claims_of_laziness,
        choices=_CHOSEN,
        deviation=_RARE + _UNFAIR,
    ),
    Experiment(
        "ijoin/beyond",
        "arrivals matched before rows are evicted",
        "Not in the paper: what a learned model adds to past matches, and what remains to be gained.",
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
        claims=claims.claims_beyond,
        choices=_CHOSEN,
        deviation="With equally frequent values, a model learns only noise.",
    ),
    Experiment(
        "ijoin/frontier",
        "importance against fairness",
        "Not in the paper: the importance lost as the fairness parameter goes from 0 to 1.",
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
        (
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
        choices=_CHOSEN,
    ),
    Experiment(
        "ijoin/tickers",
        "mentions and prices of ten tickers",
        "Not in the paper: recorded streams with an importance of their own.",
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
        (LinePlot("percent", "importance", "scheme", labels={"x": "memory, % of a day's rows"}),),
        choices="A mention joins the price at the end of its day. Memory is in percent of a day's rows.",
        needs_data=True,
    ),
)
