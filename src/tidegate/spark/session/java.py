"""Explain why Spark's Java process does not start."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkException

from tidegate.types import InputError

MIN_JAVA: Final = 17
"""The oldest Java that Spark 4 runs on."""
_INSTALL: Final = (
    f"install Java {MIN_JAVA} or newer (apt install openjdk-{MIN_JAVA}-jre-headless, "
    f"brew install openjdk@{MIN_JAVA}, or conda install openjdk={MIN_JAVA})"
)
_TIMEOUT: Final = 20


@contextlib.contextmanager
def needs_java() -> Iterator[None]:
    """Turn a failed start of Spark's Java process into an error that states the reason and the remedy."""
    try:
        yield
    except (PySparkException, RuntimeError) as error:
        if "JAVA_GATEWAY_EXITED" not in str(error):
            raise
        raise InputError(explain_java()) from None


def explain_java() -> str:
    """What is wrong with the Java that Spark uses: that of JAVA_HOME, or else the one on the path."""
    home, on_path = os.environ.get("JAVA_HOME"), shutil.which("java")
    if home and not os.access(Path(home) / "bin" / "java", os.X_OK):
        instead = f"unset it to use {on_path}, or " if on_path else ""
        return (
            f"Spark needs Java, and JAVA_HOME is {home!r}, where there is no bin/java; {instead}set it to the folder "
            f"of a Java {MIN_JAVA} or newer; if there is none, {_INSTALL}"
        )
    java = str(Path(home) / "bin" / "java") if home else on_path
    if java is None:
        return f"Spark needs Java, and there is none on the path; {_INSTALL}, or set JAVA_HOME to its folder"
    version = _version(java)
    if version is not None and version < MIN_JAVA:
        return (
            f"Spark needs Java {MIN_JAVA} or newer, and {java} is Java {version}; {_INSTALL}, "
            "and set JAVA_HOME to it"
        )
    return (
        f"Spark's Java process ended while it started ({java}); see its log (`tidegate run --log FILE`), "
        "and check that there is enough memory for spark.driver.memory"
    )


def _version(java: str) -> int | None:
    """The major version of a Java; None if it cannot be determined."""
    try:
        output = subprocess.run(  # noqa: S603 - the program that Spark itself would run
            [java, "-version"], capture_output=True, text=True, check=False, timeout=_TIMEOUT
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(r'version "(?:1\.)?(\d+)', output)
    return int(version[1]) if version else None
