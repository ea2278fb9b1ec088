"""Streams for simulations: recorded traces and seeded generators."""

from typing import TYPE_CHECKING

from tidegate.lazy_package import load_on_first_use

if TYPE_CHECKING:
    from tidegate.streams.aged import Aged as Aged
    from tidegate.streams.auctions import Auctions as Auctions
    from tidegate.streams.correlated import Correlated as Correlated
    from tidegate.streams.normal import Normal as Normal
    from tidegate.streams.partners import HeavyTails as HeavyTails
    from tidegate.streams.partners import OneToOne as OneToOne
    from tidegate.streams.readings import Readings as Readings
    from tidegate.streams.rush_hours import RushHours as RushHours
    from tidegate.streams.sessions import Sessions as Sessions
    from tidegate.streams.stochastic import Stochastic as Stochastic
    from tidegate.streams.stochastic import StochasticPair as StochasticPair
    from tidegate.streams.stream import Pair as Pair
    from tidegate.streams.stream import Stream as Stream
    from tidegate.streams.trace import Trace as Trace
    from tidegate.streams.zipf import Zipf as Zipf

__all__ = load_on_first_use(__name__)
