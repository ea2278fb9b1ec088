"""Why Spark's Java process does not start, and what to do about it."""

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

LEAST: Final = 17
"""The oldest Java that Spark 4 runs on."""
_GET: Final = (
    f"install Java {LEAST} or newer (apt install openjdk-{LEAST}-jre-headless, brew install openjdk@{LEAST}, or "
    f"conda install openjdk={LEAST})"
)
_SECONDS: Final = 20


@contextlib.contextmanager
def needs_java() -> Iterator[None]:
    """Start a Spark on this machine; if its Java process does not start, say why."""
    try:
        yield
    except (PySparkException, RuntimeError) as error:
        if "JAVA_GATEWAY_EXITED" not in str(error):
            raise
        raise InputError(problem()) from None


def problem() -> str:
    """What is wrong with the Java that Spark would take: that of JAVA_HOME, else the one on the path."""
    home, found = os.environ.get("JAVA_HOME"), shutil.which("java")
    if home and not os.access(Path(home) / "bin" / "java", os.X_OK):
        instead = f"unset it to use {found}, or " if found else ""
        return (
            f"Spark needs Java, and JAVA_HOME is {home!r}, where there is no bin/java; {instead}set it to the folder "
            f"of a Java {LEAST} or newer; if there is none, {_GET}"
        )
    java = str(Path(home) / "bin" / "java") if home else found
    if java is None:
        return f"Spark needs Java, and there is none on the path; {_GET}, or set JAVA_HOME to its folder"
    version = _version(java)
    if version is not None and version < LEAST:
        return f"Spark needs Java {LEAST} or newer, and {java} is Java {version}; {_GET}, and set JAVA_HOME to it"
    return (
        f"Spark's Java process ended before it had begun ({java}); see what it wrote (`tidegate run --log FILE`), "
        "and whether there is memory enough for spark.driver.memory"
    )


def _version(java: str) -> int | None:
    """The major version of a Java; None if it does not tell."""
    try:
        told = subprocess.run(  # noqa: S603 - the program that Spark itself would run
            [java, "-version"], capture_output=True, text=True, check=False, timeout=_SECONDS
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(found[1]) if found else None
