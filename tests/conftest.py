"""What all tests share: how Hypothesis runs (the same cases every time, no deadline), and one Spark session."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = {"fast": 40, "all": 100}
"""How many examples Hypothesis tries, in `make test` and in `make test-all`."""

for profile, examples in EXAMPLES.items():
    settings.register_profile(
        profile,
        derandomize=True,
        deadline=None,
        max_examples=examples,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )


def pytest_configure(config: pytest.Config) -> None:
    """Try fewer examples if slow tests are not run."""
    settings.load_profile("fast" if config.option.markexpr == "not slow" else "all")


class _OneSpark(LoadScopeScheduling):  # type: ignore[misc] # xdist has no types
    """One process runs all tests that share the Spark session; the other files go to any process that is free."""

    def _split_scope(self, nodeid: str) -> str:
        return (
            "spark"
            if nodeid.startswith(("tests/spark/", "tests/test_docs.py"))
            else nodeid.split("::", maxsplit=1)[0]
        )


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> _OneSpark:
    """How tests are distributed to several processes (`--numprocesses 2`)."""
    return _OneSpark(config, log)


_MANY_SMALL_QUERIES = {
    # Spark's default starts 50 processes (`readlink`) in every micro-batch on a local disk.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # A second file beside every file of a checkpoint.
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.stateStore.maintenanceInterval": "600s",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One small Spark session for all tests."""
    # The core's tests do without these.
    from tests.spark.warm_python import warm_python  # noqa: PLC0415
    from tidegate.spark.session.local import SHORT_LIVED, local_session  # noqa: PLC0415

    # Hadoop changes the mode of every file by a process (`chmod`). This is the cheapest way to start one.
    vfork = " -Djdk.lang.Process.launchMechanism=VFORK" if sys.platform == "linux" else ""
    with warm_python() as python, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", str(python))
        session = local_session(
            "tests",
            cores=2,
            memory="1g",
            java=SHORT_LIVED + vfork,
            settings=_MANY_SMALL_QUERIES,
            log=tmp_path_factory.mktemp("spark") / "log",
        )
        yield session
        session.stop()
