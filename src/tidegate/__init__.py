"""Stream joins within a hard memory budget."""

from typing import TYPE_CHECKING

from tidegate.lazy_package import load_on_first_use

if TYPE_CHECKING:
    from tidegate import alerts as alerts
    from tidegate import caching as caching
    from tidegate import checks as checks
    from tidegate import importance as importance
    from tidegate import models as models
    from tidegate import policies as policies
    from tidegate import relations as relations
    from tidegate import sampling as sampling
    from tidegate import streams as streams
    from tidegate._version import __version__ as __version__
    from tidegate.allocation import allocate as allocate
    from tidegate.allocation import predict_recall as predict_recall
    from tidegate.caching import simulate_cache as simulate_cache
    from tidegate.engine import SampleReport as SampleReport
    from tidegate.engine import simulate as simulate
    from tidegate.engine import simulate_sample as simulate_sample
    from tidegate.engine.report import Report as Report
    from tidegate.spark import Pool as Pool
    from tidegate.spark import alert as alert
    from tidegate.spark import configure as configure
    from tidegate.spark import estimate as estimate
    from tidegate.spark import explain_failure as explain_failure
    from tidegate.spark import inspect as inspect
    from tidegate.spark import join as join
    from tidegate.spark import joining as joining
    from tidegate.spark import lookup as lookup
    from tidegate.spark import reservoir as reservoir
    from tidegate.spark import sample as sample
    from tidegate.types import Band as Band
    from tidegate.types import Budget as Budget
    from tidegate.types import InputError as InputError
    from tidegate.types import Last as Last
    from tidegate.types import Window as Window


def _missing(where: str, error: ModuleNotFoundError) -> None:
    """Name the package to install if a Spark function is used without Spark."""
    if where.startswith("tidegate.spark.") and error.name in ("pyspark", "pandas", "sqlglot"):
        from tidegate.types import InputError  # noqa: PLC0415 - where it is needed

        name = where.rpartition(".")[2]
        raise InputError(f"tidegate.{name} needs {error.name}; run: pip install 'tidegate[spark]'") from error


__all__ = load_on_first_use(__name__, _missing)
