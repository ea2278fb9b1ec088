"""iJoin: Importance-aware Join Approximation over Data Streams (Kulkarni, Ravishankar)."""

from tidegate.experiments.ijoin.figures import (
    beyond,
    figure2,
    figure3,
    figure4,
    figure5,
    frontier,
    table6,
    tickers,
)
from tidegate.experiments.ijoin.tables import RAND, SIZE, table2, table3, table4

__all__ = [
    "RAND",
    "SIZE",
    "beyond",
    "figure2",
    "figure3",
    "figure4",
    "figure5",
    "frontier",
    "table2",
    "table3",
    "table4",
    "table6",
    "tickers",
]
