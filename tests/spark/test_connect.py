"""A join gives the same results through Spark Connect as in a classic session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark import connected, restarted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.spark
def test_connect_equals_classic(spark: SparkSession, tmp_path: Path) -> None:
    restarted.sources(tmp_path, 0, 4)
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}
    for name in ("SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_CONNECT_MODE_ENABLED"):
        environment.pop(name, None)
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-m", "tests.spark.connected", str(tmp_path)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    got = json.loads((tmp_path / "connect.json").read_text())
    wanted = connected.results(spark, tmp_path, "classic")
    assert got.keys() == wanted.keys()
    for what, rows in wanted.items():
        assert rows
        assert got[what] == rows
