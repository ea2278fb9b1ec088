"""Tables 1 to 4 and 6, Figures 2 to 5, and what goes beyond them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, get_args

import numpy as np

from tidegate.experiments.claims import Claim
from tidegate.experiments.experiment import Experiment, Grid, Value
from tidegate.experiments.ijoin import claims, measured, tables
from tidegate.experiments.plots import Lines, Scatter
from tidegate.experiments.results import Results
from tidegate.experiments.shown import Shown
from tidegate.policies.ijoin import Recompute

SKEWS: Final = (0.0, 1.0)
LARGER: Final = 20
"""Rows of memory where schemes are to differ."""
RUNS, QUICK_RUNS = 10, 3
_QUICK: Final = {"seconds": (50.0,)}
_EVEN: Final = (
    "Where all values are as frequent (skew 0), past matches tell nothing of later ones: IJOIN does as FIFO"
)
_SKEWED: Final = "With skew SIZE has most."
_RARE: Final = f"{_EVEN}, and GREEDY has most. {_SKEWED} The paper does not say how frequent its values are."
_EQUAL: Final = (
    f"{_EVEN}. {_SKEWED} Of rows that are equally important GREEDY keeps the oldest: a few occupy the memory "
    "until they expire, as the paper says."
)
_UNFAIR: Final = (
    " Ten rows of memory last two seconds, less than the printed maturity, so that hardly a row is mature when room "
    "is needed, and what is done then decides; IJOIN by our defaults trades fairness for importance (see "
    "`ijoin/frontier`)."
)
_NUMBERS: Final = ("importance", "size", "fairness")
_CHOSEN: Final = (
    "10 rows a second of both streams together, as Table 6 implies (Table 5 prints 100 to 200); 100 seconds; "
    "10 runs, the paper tells of one; skew 0 and 1; importance belongs to the value and is not redefined. "
    "Memory is divided evenly; of rows of equal rank the newest stays, but under GREEDY the oldest. SIZE keeps the "
    "rows whose value has come most often on the other side so far. A row is unproductive after 3 s, as Table 5 "
    "has it (the text: 5), and pays one match of mean importance; a match loses all but 1/e of its weight in that "
    "time; the initial priority is the importance; k is 10, epsilon 0.1. `IJOIN as printed` spares rows of less than "
    "2 s, and where all are, the least priority goes; IJOIN spares them by our defaults, and then the oldest goes."
)


def _instants(number: int, joins: tuple[str, ...], says: str) -> Experiment:
    return Experiment(
        f"ijoin/table{number}",
        "eight instants, step by step",
        says,
        Grid({"join": joins}),
        tables.instants,
        Shown(("join", "time"), ("R", "S", "output", "importance")),
        claims=claims.claims_of_totals,
        chosen="Room is made before rows are matched. RAND and SIZE are replayed by the memory that is printed.",
    )


def _over(
    number: int,
    axis: str,
    title: str,
    values: Sequence[Value],
    says: str,
    judge: Callable[[Results], tuple[Claim, ...]],
    deviates: str = _RARE,
    **fixed: Value,
) -> Experiment:
    return Experiment(
        f"ijoin/figure{number}",
        title,
        says,
        Grid(
            {
                axis: values,
                "skew": SKEWS,
                "scheme": tuple(measured.schemes()),
                "seconds": (100.0,),
                **{name: (value,) for name, value in fixed.items()},
            },
            RUNS,
            {axis: (values[0], values[-1]), **_QUICK},
            QUICK_RUNS,
        ),
        measured.section5,
        Shown((axis, "skew", "scheme"), _NUMBERS),
        tuple(
            Lines(axis, number, "scheme", "skew", only=(*claims.RIVALS, *claims.IJOINS, "expected"))
            for number in _NUMBERS
        ),
        judge,
        f"{_CHOSEN} EXACT, far above all, is in the table only.",
        deviates + _UNFAIR,
    )


EXPERIMENTS: Final = (
    Experiment(
        "ijoin/table1",
        "the streams of the worked example",
        "Two streams of eight values; a to d are worth 1 to 4.",
        Grid({"stream": ("R", "S")}),
        tables.streams,
        Shown(("stream", "time"), ("value", "importance")),
    ),
    _instants(2, ("exact", "fifo"), "The exact join is worth 36, FIFO 6."),
    _instants(3, ("rand", "size"), "What RAND and SIZE are worth."),
    _instants(4, ("greedy",), "GREEDY is worth 13."),
    _over(
        2,
        "memory",
        "memory from 5 to 20 rows",
        (5, 10, 15, 20),
        "IJOIN has the most importance at every memory, and is more than 80 % fair; FIFO is fair, and has the least.",
        claims.claims_of_memory,
    ),
    _over(
        3,
        "window",
        "windows from 10 to 25 seconds",
        (10.0, 15.0, 20.0, 25.0),
        "IJOIN has the most importance, which grows with the window for it and GREEDY only; it is 80 to 85 % fair.",
        claims.claims_of_window,
    ),
    _over(
        4,
        "domain",
        "10 to 20 values, all equally important",
        (10, 15, 20),
        "IJOIN has the most importance, though all fall as values become more; GREEDY is the worst.",
        claims.claims_of_domain,
        _EQUAL,
        level=True,
    ),
    Experiment(
        "ijoin/figure5",
        "unproductive after 2 to 5 seconds",
        "The coarser the threshold, the lower IJOIN's importance, which is above that of all others throughout.",
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
        measured.section5,
        Shown(("unproductive", "skew", "scheme"), _NUMBERS),
        (Lines("unproductive", "importance", "scheme", "skew", says={"x": "unproductive after, s"}),),
        claims.claims_of_threshold,
        _CHOSEN,
        f"{_RARE} With ten rows of memory few stay for so long that they pay.",
    ),
    Experiment(
        "ijoin/table6",
        "when priorities are computed",
        "Successive is best and fairest; adaptive is close to it with 60 % of the effort, k-successive takes 10 %.",
        Grid({"skew": SKEWS, "scheme": get_args(Recompute), "seconds": (100.0,)}, RUNS, _QUICK, QUICK_RUNS),
        measured.section5,
        Shown(("skew", "scheme"), (*_NUMBERS, "computed")),
        claims=claims.claims_of_laziness,
        chosen=_CHOSEN,
        deviates=_RARE + _UNFAIR,
    ),
    Experiment(
        "ijoin/beyond",
        "matched before room is made",
        "Not in the paper: what a learned model adds to past matches, and what is left to gain.",
        Grid(
            {
                "skew": SKEWS,
                "scheme": (*measured.schemes(), "OPTIMUM"),
                "memory": (LARGER,),
                "order": ("probe-first",),
                "seconds": (100.0,),
            },
            RUNS,
            _QUICK,
            QUICK_RUNS,
        ),
        measured.section5,
        Shown(("skew", "scheme"), _NUMBERS),
        claims=claims.claims_beyond,
        chosen=_CHOSEN,
        deviates="Shares that are learned from equally frequent values are learned from chance.",
    ),
    Experiment(
        "ijoin/frontier",
        "importance against fairness",
        "Not in the paper: what fairness costs, as it goes from 0 to 1.",
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
        measured.section5,
        Shown(("skew", "scheme"), _NUMBERS),
        (
            Scatter(
                "fairness",
                "importance",
                "scheme",
                claims.RIVALS,
                "ijoin",
                "skew",
                says={"x": "fairness (Jain's index)", "y": "total importance"},
            ),
        ),
        chosen=_CHOSEN,
    ),
    Experiment(
        "ijoin/tickers",
        "mentions and prices of ten tickers",
        "Not in the paper: recorded streams with an importance of their own.",
        Grid(
            {
                "percent": (1, 5, 10, 25, 50),
                "scheme": (
                    *(name for name in measured.schemes() if "printed" not in name),
                    "expected by age",
                ),
            },
            quick={"percent": (10,)},
        ),
        measured.on_tickers,
        Shown(("percent", "scheme"), _NUMBERS),
        (Lines("percent", "importance", "scheme", says={"x": "memory, % of a day's rows"}),),
        chosen="A mention joins the price at the end of its day; memory in percent of a day's rows.",
        recorded=True,
    ),
)
