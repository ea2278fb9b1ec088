"""Stream joins that never outgrow their memory."""

from tidegate import checks, policies, streams
from tidegate.engine import simulate
from tidegate.types import Band, Budget, InputError, Last, Report, Window

__all__ = [
    "Band",
    "Budget",
    "InputError",
    "Last",
    "Report",
    "Window",
    "checks",
    "policies",
    "simulate",
    "streams",
]
