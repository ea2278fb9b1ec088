"""What arrives: recorded traces and seeded generators."""

from tidegate.streams.aged import Aged
from tidegate.streams.auctions import Auctions
from tidegate.streams.correlated import Correlated
from tidegate.streams.readings import Readings
from tidegate.streams.stochastic import Stochastic, StochasticPair
from tidegate.streams.stream import Pair, Stream
from tidegate.streams.trace import Trace
from tidegate.streams.zipf import Zipf

__all__ = [
    "Aged",
    "Auctions",
    "Correlated",
    "Pair",
    "Readings",
    "Stochastic",
    "StochasticPair",
    "Stream",
    "Trace",
    "Zipf",
]
