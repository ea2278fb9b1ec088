"""Streams for simulations: recorded traces and seeded generators."""

from typing import TYPE_CHECKING

from tidegate.lazy_package import load_on_first_use

if TYPE_CHECKING:
    from tidegate.streams.aged import Aged
    from tidegate.streams.auctions import Auctions
    from tidegate.streams.correlated import Correlated
    from tidegate.streams.normal import Normal
    from tidegate.streams.partners import HeavyTails, OneToOne
    from tidegate.streams.readings import Readings
    from tidegate.streams.rush_hours import RushHours
    from tidegate.streams.sessions import Sessions
    from tidegate.streams.stochastic import Stochastic, StochasticPair
    from tidegate.streams.stream import Pair, Stream
    from tidegate.streams.trace import Trace
    from tidegate.streams.zipf import Zipf

__all__ = [
    "Aged",
    "Auctions",
    "Correlated",
    "HeavyTails",
    "Normal",
    "OneToOne",
    "Pair",
    "Readings",
    "RushHours",
    "Sessions",
    "Stochastic",
    "StochasticPair",
    "Stream",
    "Trace",
    "Zipf",
]

load_on_first_use(
    __name__,
    {
        "Aged": "aged",
        "Auctions": "auctions",
        "Correlated": "correlated",
        "HeavyTails": "partners",
        "Normal": "normal",
        "OneToOne": "partners",
        "Pair": "stream",
        "Readings": "readings",
        "RushHours": "rush_hours",
        "Sessions": "sessions",
        "Stochastic": "stochastic",
        "StochasticPair": "stochastic",
        "Stream": "stream",
        "Trace": "trace",
        "Zipf": "zipf",
    },
)
