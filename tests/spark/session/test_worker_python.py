"""Spark's workers run a Python that has Tidegate, or the error says which one they run and what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import PythonException

import tidegate as tg
from tidegate.spark.packing.packed_rows import PACKED
from tidegate.spark.packing.row_packer import RowPacker
from tidegate.spark.session import worker_python
from tidegate.spark.session.worker_python import use_own_python
from tidegate.types import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOT_ACTIVATED = """
import tidegate as tg
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
for name in ("spark.driver.host", "spark.driver.bindAddress"):
    builder = builder.config(name, "127.0.0.1")
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")

def count():
    left, right = (spark.range(5).selectExpr("id", f"timestamp_seconds(id) as {t}") for t in ("l", "r"))
    return tg.join(left, right, on="id", time=("l", "r"), window=("1 minute", "1 minute")).count()

try:
    print("ran", spark.range(5).select(udf(lambda rows: tg.Budget(rows=rows).rows, "long")("id")).collect())
except Exception as error:
    print(tg.explain_failure(error))
print("counted", count())
tg.configure(spark)
print("counted", count())
"""


def bare_python(folder: Path) -> Path:
    """A `python3` without any package."""
    program = folder / "python3"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    program.chmod(0o755)
    return program


@pytest.mark.spark
def test_workers_run_this_python_if_its_environment_is_not_activated(tmp_path: Path) -> None:
    program = bare_python(tmp_path)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK")}
    environment["PATH"] = f"{tmp_path}:/usr/bin:/bin"
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", NOT_ACTIVATED],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    wrong, remedy, *counted = done.stdout.splitlines()
    assert wrong == f"Spark's workers run {program}, where there is no package 'tidegate'"
    assert f"PYSPARK_PYTHON={sys.executable}" in remedy
    assert counted == ["counted 5", "counted 5"]
    assert (
        f"workers now run the Python of this process, {sys.executable}, instead of {program}" in done.stderr
    )


@dataclass
class FakeConf:
    """Settings of a session, and of its context."""

    settings: dict[str, str]

    def get(self, name: str, default: str | None) -> str | None:
        return self.settings.get(name, default)

    def contains(self, name: str) -> bool:
        return name in self.settings


class FakeSession:
    """A classic session whose workers run a program."""

    def __init__(self, program: str, **settings: str) -> None:
        self.conf = FakeConf({"spark.master": "local[2]"} | settings)
        names = {"pythonExec": program, "getConf": lambda _: self.conf}
        self.sparkContext: Any = type("Context", (), names)()


def changed(session: FakeSession) -> str | None:
    return use_own_python(session)  # type: ignore[arg-type]


def test_another_python_is_replaced_only_on_this_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    program = str(bare_python(tmp_path))
    local, cluster = FakeSession(program), FakeSession(program, **{"spark.master": "spark://host:7077"})
    assert f"{sys.executable}, instead of {program}" in (changed(local) or "")
    assert local.sparkContext.pythonExec == sys.executable
    assert changed(local) is None
    assert changed(cluster) is None
    assert cluster.sparkContext.pythonExec == program
    missing = FakeSession(str(tmp_path / "nowhere"))
    assert "instead of" in (changed(missing) or "")


def printing(folder: Path, line: str) -> str:
    """A program that answers as a Python of another version or with other packages would."""
    program = folder / "python"
    program.write_text(f"#!/bin/sh\necho '{line}'\n")
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('[[3, 1], "0"]', "which is Python 3.1, and this process runs Python 3."),
        (f"[{list(sys.version_info[:2])}, null]", "which has no package 'tidegate'"),
        (f'[{list(sys.version_info[:2])}, "0.0.9"]', "which has tidegate 0.0.9, and this process has"),
        ("oh no", "which does not start"),
    ],
)
@pytest.mark.parametrize("by", ["environment", "setting"])
def test_a_chosen_python_that_cannot_run_tidegate_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str, problem: str, by: str
) -> None:
    program, settings = printing(tmp_path, line), {}
    if by == "environment":
        monkeypatch.setenv("PYSPARK_PYTHON", program)
    else:
        monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
        settings = {"spark.pyspark.python": program}
    with pytest.raises(InputError) as raised:
        changed(FakeSession(program, **settings))
    assert program in str(raised.value)
    assert problem in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_chosen_python_with_the_same_packages_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = printing(tmp_path, f'[{list(sys.version_info[:2])}, "{tg.__version__}"]')
    monkeypatch.setenv("PYSPARK_PYTHON", program)
    session = FakeSession(program)
    assert changed(session) is None
    assert session.sparkContext.pythonExec == program


def test_another_version_of_python_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    context = FakeSession("python3").sparkContext
    context.master = "spark://host:7077"
    monkeypatch.setattr(worker_python, "_context", lambda: context)
    error = RuntimeError(
        "Lost task 0.0: org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
        "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has "
        "different version: 3.12 than that in driver: 3.11, PySpark cannot run with different minor versions.\n"
    )
    wrong, remedy = tg.explain_failure(error).splitlines()
    assert wrong == "Spark's workers run 'python3', which is Python 3.12, and the driver runs Python 3.11"
    assert remedy == "set PYSPARK_PYTHON to a Python 3.11 before the session starts"


def test_a_module_that_the_driver_does_not_have_either_is_not_explained() -> None:
    error = RuntimeError(
        "Traceback (most recent call last):\nModuleNotFoundError: No module named 'my_functions'\n"
    )
    assert tg.explain_failure(error) == "ModuleNotFoundError: No module named 'my_functions'"


@pytest.mark.spark
def test_a_worker_with_another_release_is_refused_before_the_first_row(spark: SparkSession) -> None:
    packer = replace(RowPacker(0, 1, None), release="0.0.9")
    with pytest.raises(PythonException) as raised:
        spark.range(1).mapInArrow(packer, PACKED).collect()
    assert tg.explain_failure(raised.value) == (
        f"Spark's workers run {sys.executable}, which has tidegate {tg.__version__}, and the driver has 0.0.9; "
        "install tidegate 0.0.9 for that Python"
    )
