"""Stream joins within a hard memory budget.

Everything except the vocabulary (`types`) is loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.lazy_package import load_on_first_use
from tidegate.types import Band, Budget, InputError, Last, Report, Window

if TYPE_CHECKING:
    from tidegate import alerts, caching, checks, importance, models, policies, relations, sampling, streams
    from tidegate.allocation import allocate, predict_recall
    from tidegate.caching import simulate_cache
    from tidegate.engine import SampleReport, simulate, simulate_sample
    from tidegate.spark import (
        Pool,
        alert,
        configure,
        estimate,
        explain_failure,
        inspect,
        join,
        lookup,
        reservoir,
        sample,
    )

    __version__: str

__all__ = [
    "Band",
    "Budget",
    "InputError",
    "Last",
    "Pool",
    "Report",
    "SampleReport",
    "Window",
    "__version__",
    "alert",
    "alerts",
    "allocate",
    "caching",
    "checks",
    "configure",
    "estimate",
    "explain_failure",
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


_PACKAGES = (
    "alerts",
    "caching",
    "checks",
    "importance",
    "models",
    "policies",
    "relations",
    "sampling",
    "streams",
)
_ON_SPARK = (
    "Pool",
    "alert",
    "configure",
    "estimate",
    "explain_failure",
    "inspect",
    "join",
    "lookup",
    "reservoir",
    "sample",
)


def _missing(name: str, error: ModuleNotFoundError) -> None:
    """Name the package to install if a Spark function is used without Spark."""
    if name in _ON_SPARK and error.name in ("pyspark", "pandas", "sqlglot"):
        raise InputError(f"tidegate.{name} needs {error.name}; run: pip install 'tidegate[spark]'") from error


load_on_first_use(
    __name__,
    {name: f".{name}" for name in _PACKAGES}
    | dict.fromkeys(_ON_SPARK, "spark")
    | {
        "SampleReport": "engine.simulate_sample",
        "__version__": "_version",
        "allocate": "allocation",
        "predict_recall": "allocation",
        "simulate": "engine.simulate",
        "simulate_cache": "caching",
        "simulate_sample": "engine.simulate_sample",
    },
    _missing,
)
