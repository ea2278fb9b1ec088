"""What arrives: recorded traces and seeded generators."""

from tidegate.streams.trace import Trace

__all__ = ["Trace"]
