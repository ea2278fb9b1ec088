"""What all tests share: how Hypothesis runs (the same cases every time, no deadline), and one Spark session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

settings.register_profile(
    "tidegate",
    derandomize=True,
    deadline=None,
    max_examples=100,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tidegate")


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of several processes one runs all that share the Spark session, and begins with it: it takes longest."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) or item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One small Spark for the whole run."""
    from tidegate.spark.session import SHORT_LIVED, local  # noqa: PLC0415 - the core's tests do without

    session = local(
        "tests", cores=2, memory="1g", java=SHORT_LIVED, log=tmp_path_factory.mktemp("spark") / "log"
    )
    yield session
    session.stop()
