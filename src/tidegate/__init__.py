"""Stream joins that never outgrow their memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate import alerts, checks, importance, models, policies, relations, sampling, streams
from tidegate.allocation import allocate, predict_recall
from tidegate.engine import SampleReport, simulate, simulate_cache, simulate_sample
from tidegate.types import Band, Budget, InputError, Last, Report, Window

if TYPE_CHECKING:
    from tidegate.spark import (
        Pool,
        alert,
        configure,
        estimate,
        inspect,
        join,
        lookup,
        reservoir,
        sample,
    )

__all__ = [
    "Band",
    "Budget",
    "InputError",
    "Last",
    "Pool",
    "Report",
    "SampleReport",
    "Window",
    "alert",
    "alerts",
    "allocate",
    "checks",
    "configure",
    "estimate",
    "importance",
    "inspect",
    "join",
    "lookup",
    "models",
    "policies",
    "predict_recall",
    "relations",
    "reservoir",
    "sample",
    "sampling",
    "simulate",
    "simulate_cache",
    "simulate_sample",
    "streams",
]


_ON_SPARK = ("Pool", "alert", "configure", "estimate", "inspect", "join", "lookup", "reservoir", "sample")


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
