"""What arrives: recorded traces and seeded generators."""

from tidegate.streams.auctions import Auctions
from tidegate.streams.stream import Stream
from tidegate.streams.trace import Trace
from tidegate.streams.zipf import Zipf

__all__ = ["Auctions", "Stream", "Trace", "Zipf"]
