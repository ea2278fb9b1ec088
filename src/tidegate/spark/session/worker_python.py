"""Which Python Spark's workers run, and whether it can run Tidegate."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tidegate._version import __version__
from tidegate.types import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOCAL: Final = re.compile(r"local(?:-cluster)?(?:\[.*\])?")
_TIMEOUT: Final = 60.0
_DESCRIBE: Final = """
import json, sys
from importlib.metadata import PackageNotFoundError, version
try: release = version("tidegate")
except PackageNotFoundError: release = None
print(json.dumps([list(sys.version_info[:2]), release]))
"""
_MISSING_MODULE: Final = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_OTHER_VERSION: Final = re.compile(r"PYTHON_VERSION_MISMATCH\]\D*(\d+)\D+(\d+)\D+(\d+)\D+(\d+)")


def use_own_python(spark: SparkSession) -> str | None:
    """Let the workers of a local session run the Python of this process, if the user has chosen none.

    Spark starts the first `python3` of the path, which is the system's if an environment is used without being
    activated, as IDEs and notebooks do.

    Returns
    -------
    str or None
        What was changed, to be logged; None if nothing had to be.

    Raises
    ------
    InputError
        If the Python that the user has chosen cannot run this query's code.
    """
    context: Any = getattr(spark, "sparkContext", None)
    if context is None or not _LOCAL.fullmatch(spark.conf.get("spark.master", None) or ""):
        return None
    program = shutil.which(context.pythonExec)
    if program is not None and _is_own(program):
        return None
    before = program or context.pythonExec
    if "PYSPARK_PYTHON" in os.environ or context.getConf().contains("spark.pyspark.python"):
        _check(before)
        return None
    context.pythonExec = sys.executable
    return (
        f"Spark's workers now run the Python of this process, {sys.executable}, instead of {before}; "
        "set PYSPARK_PYTHON before the session starts to choose another one"
    )


def explain_worker_python(text: str) -> list[str]:
    """What is wrong with the Python of the workers, and what to do, from Spark's report; empty if it is fine."""
    version = "{}.{}".format(*sys.version_info[:2])
    if missing := _MISSING_MODULE.search(text):
        package = missing[1].split(".")[0]
        if package not in sys.modules:
            return []
        return [
            f"Spark's workers run {_worker_program()}, where there is no package {package!r}",
            f"install there what this process has (tidegate {__version__} with the extra 'spark'), "
            f"or set PYSPARK_PYTHON to a Python {version} that has it before the session starts"
            + (f", here: PYSPARK_PYTHON={sys.executable}" if _is_local() else ""),
        ]
    if other := _OTHER_VERSION.search(text):
        worker, driver = ".".join(other.groups()[:2]), ".".join(other.groups()[2:])
        return [
            f"Spark's workers run {_worker_program()}, which is Python {worker}, and the driver runs Python {driver}",
            f"set PYSPARK_PYTHON to a Python {driver} before the session starts",
        ]
    return []


def _check(program: str) -> None:
    """Refuse a Python of another version or another release of Tidegate, or without Tidegate."""
    command = [program, "-c", _DESCRIBE]
    try:
        done = subprocess.run(  # noqa: S603 - the program that Spark itself would run
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=_TIMEOUT
        )
        version, release = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        raise InputError(
            f"Spark's workers would run {program!r}, which does not start ({error}); set PYSPARK_PYTHON to another "
            "Python before the session starts"
        ) from None
    own = list(sys.version_info[:2])
    if version != own:
        differs = f"which is Python {version[0]}.{version[1]}, and this process runs Python {own[0]}.{own[1]}"
    elif release is None:
        differs = "which has no package 'tidegate'"
    elif release != __version__:
        differs = f"which has tidegate {release}, and this process has {__version__}"
    else:
        return
    raise InputError(
        f"Spark's workers would run {program}, {differs}; set PYSPARK_PYTHON={sys.executable} before the session "
        "starts, or leave it and spark.pyspark.python out"
    )


def _is_own(program: str) -> bool:
    """Whether a program is this process's Python, with the same packages: an environment links to another Python."""
    return Path(program).parent == Path(sys.executable).parent and Path(program).samefile(sys.executable)


def _context() -> Any:  # noqa: ANN401 - a SparkContext, if there is one
    from pyspark import SparkContext  # noqa: PLC0415 - only after a failure

    return SparkContext._active_spark_context  # noqa: SLF001 - there is no public name that starts none


def _is_local() -> bool:
    context = _context()
    return context is not None and _LOCAL.fullmatch(context.master) is not None


def _worker_program() -> str:
    """The Python of the workers, as far as the driver knows it."""
    context = _context()
    if context is None:
        return "the Python of Spark's server"
    program: str = context.pythonExec
    return shutil.which(program) or program if _is_local() else repr(program)
