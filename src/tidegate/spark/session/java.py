"""Explain why Spark's Java process does not start."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

MIN_JAVA: Final = 17
"""The oldest Java that Spark 4 runs on."""
_INSTALL: Final = (
    f"install Java {MIN_JAVA} or newer (apt install openjdk-{MIN_JAVA}-jre-headless, "
    f"brew install openjdk@{MIN_JAVA}, or conda install openjdk={MIN_JAVA})"
)
_TIMEOUT: Final = 20
_STACK: Final = re.compile(r"\s*(at |\.\.\. \d+ more)")


def java_ended(error: BaseException) -> bool:
    """Whether Spark's Java process ended while it started."""
    return "JAVA_GATEWAY_EXITED" in str(error)


def explain_java(output: str) -> str:
    """What is wrong with the Java that Spark uses: that of JAVA_HOME, or else the one on the path.

    Parameters
    ----------
    output
        What Spark printed before it ended.
    """
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
    return f"Spark's Java process ended while it started ({java}): {_last_line(output)}"


def _last_line(output: str) -> str:
    """The last line that is not a place in a stack trace; the causes of an error are after the error itself."""
    lines = [line.strip() for line in output.splitlines() if line.strip() and not _STACK.match(line)]
    if not lines:
        return "it printed nothing; check that there is enough memory for spark.driver.memory"
    return lines[-1].removeprefix("Caused by: ")


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
