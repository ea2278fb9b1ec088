"""What the papers published, done again with this code: one module a paper."""

from tidegate.experiments import ijoin, recorded, windowed_joins

ALL = {
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
}
"""Everything that can be reproduced so far, by name; each gives a title, a header and rows."""

RECORDED = {"windowed-joins/recorded": windowed_joins.recordings}
"""What can be reproduced from recorded streams: each takes the folder that holds them (see `recorded`)."""

__all__ = ["ALL", "RECORDED", "ijoin", "recorded", "windowed_joins"]
