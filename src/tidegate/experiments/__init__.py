"""What the papers published, done again with this code: one module a paper."""

from collections.abc import Callable
from functools import partial

from tidegate.experiments import ijoin, recorded, stochastic_streams, threshold_functions, windowed_joins
from tidegate.experiments.reproduced import Reproduced

_BY_MEMORY = {
    f"stochastic-streams/figure{number}": partial(stochastic_streams.by_memory, stream, f"Figure {number}")
    for number, stream in enumerate(stochastic_streams.SETUPS, start=9)
}

ALL: dict[str, Callable[..., Reproduced]] = {
    "ijoin/table2": ijoin.table2,
    "ijoin/table3": ijoin.table3,
    "ijoin/table4": ijoin.table4,
    "ijoin/figure2": ijoin.figure2,
    "ijoin/figure3": ijoin.figure3,
    "ijoin/figure4": ijoin.figure4,
    "ijoin/figure5": ijoin.figure5,
    "ijoin/table6": ijoin.table6,
    "ijoin/beyond": ijoin.beyond,
    "ijoin/frontier": ijoin.frontier,
    "windowed-joins/figure7": windowed_joins.figure7,
    "windowed-joins/figure10": windowed_joins.figure10,
    "windowed-joins/figure10-uc": windowed_joins.figure10_with_uc,
    "windowed-joins/figure11": windowed_joins.figure11,
    "windowed-joins/prob": windowed_joins.prob,
    "windowed-joins/learning": windowed_joins.learned_curves,
    "stochastic-streams/figure8": stochastic_streams.figure8,
    **_BY_MEMORY,
    "stochastic-streams/figure16": stochastic_streams.figure16,
    "threshold-functions/table1": threshold_functions.table1,
    "threshold-functions/figure10": threshold_functions.figure10,
}
"""Everything that can be reproduced so far, by name; each gives a title, a header and rows."""

FULL = {
    name: partial(ALL[name], rows=stochastic_streams.ROWS, runs=stochastic_streams.RUNS)
    for name in ("stochastic-streams/figure8", *_BY_MEMORY, "stochastic-streams/figure16")
} | {
    "threshold-functions/table1": partial(threshold_functions.table1, rows=threshold_functions.ROWS),
    "threshold-functions/figure10": partial(threshold_functions.figure10, rows=10 * threshold_functions.ROWS),
}
"""Those of them that the papers ran for longer, as long as there."""

RECORDED = {
    "ijoin/tickers": ijoin.tickers,
    "windowed-joins/recorded": windowed_joins.recordings,
    "stochastic-streams/figure15": stochastic_streams.figure15,
    "threshold-functions/debs": threshold_functions.debs,
}
"""What can be reproduced from recorded streams: each takes the folder that holds them (see `recorded`)."""

__all__ = [
    "ALL",
    "FULL",
    "RECORDED",
    "ijoin",
    "recorded",
    "stochastic_streams",
    "threshold_functions",
    "windowed_joins",
]
