"""Stream joins that never outgrow their memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate import alerts, checks, importance, models, policies, relations, streams
from tidegate.allocation import allocate, predict_recall
from tidegate.engine import simulate, simulate_cache
from tidegate.types import Band, Budget, InputError, Last, Report, Window

if TYPE_CHECKING:
    from tidegate.spark import Pool, alert, configure, inspect, join, lookup

__all__ = [
    "Band",
    "Budget",
    "InputError",
    "Last",
    "Pool",
    "Report",
    "Window",
    "alert",
    "alerts",
    "allocate",
    "checks",
    "configure",
    "importance",
    "inspect",
    "join",
    "lookup",
    "models",
    "policies",
    "predict_recall",
    "relations",
    "simulate",
    "simulate_cache",
    "streams",
]


_ON_SPARK = ("Pool", "alert", "configure", "inspect", "join", "lookup")


def __getattr__(name: str) -> object:
    """Load what needs Spark on first use, so that the core works without it."""
    if name not in _ON_SPARK:
        raise AttributeError(f"module 'tidegate' has no attribute {name!r}")
    try:
        from tidegate import spark  # noqa: PLC0415 - only when asked for
    except ModuleNotFoundError as error:
        if error.name not in ("pyspark", "pandas", "sqlglot"):
            raise
        raise InputError(f"tidegate.{name} needs {error.name}; run: pip install 'tidegate[spark]'") from error
    return getattr(spark, name)
