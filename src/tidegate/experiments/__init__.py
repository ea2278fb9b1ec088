"""What the papers published, done again with this code: one module a paper."""

from tidegate.experiments import ijoin, recorded

ALL = {"ijoin/table2": ijoin.table2}
"""Everything that can be reproduced so far, by name; each gives a title, a header and rows."""

__all__ = ["ALL", "ijoin", "recorded"]
