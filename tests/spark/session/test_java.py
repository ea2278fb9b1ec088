"""Without a Java that Spark can use, the error names the remedy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import PySparkRuntimeError

from tidegate.spark.session import java
from tidegate.types import InputError

ROOT = Path(__file__).parents[3]
PIPELINE = ROOT / "examples" / "auctions.toml"


def fake(folder: Path, version: str) -> Path:
    """A fake Java that prints a version."""
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2022-04-19' >&2\n")
    program.chmod(0o755)
    return folder


def problem(monkeypatch: pytest.MonkeyPatch, home: Path | None, path: Path) -> str:
    if home is None:
        monkeypatch.delenv("JAVA_HOME", raising=False)
    else:
        monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", str(path))
    return java.explain_java()


def test_no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    message = problem(monkeypatch, None, tmp_path)
    assert "there is none on the path; install Java 17 or newer (apt install" in message


def test_a_wrong_java_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    message = problem(monkeypatch, nowhere, tmp_path)
    assert (
        f"JAVA_HOME is '{nowhere}', where there is no bin/java; set it to the folder of a Java 17" in message
    )
    other = fake(tmp_path / "other", "17.0.3") / "bin"
    assert f"unset it to use {other / 'java'}, or set it" in problem(monkeypatch, nowhere, other)


@pytest.mark.parametrize(("version", "major"), [("11.0.15", 11), ("1.8.0_292", 8)])
def test_an_old_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, major: int) -> None:
    home = fake(tmp_path / "old", version)
    path = f"{home / 'bin'}:/usr/bin:/bin"
    for given in (home, None):
        message = problem(monkeypatch, given, Path(path))
        assert f"{home / 'bin' / 'java'} is Java {major}; install Java 17" in message


def test_a_suitable_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    message = problem(monkeypatch, fake(tmp_path / "new", "21.0.1"), Path("/usr/bin:/bin"))
    assert "Spark's Java process ended while it started" in message


def test_other_errors_are_left_alone() -> None:
    with pytest.raises(RuntimeError, match="no"), java.needs_java():
        raise RuntimeError("no")
    with pytest.raises(InputError, match="Java"), java.needs_java():
        raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    "command",
    [
        ["demo", "--folder", "demo"],
        ["run", str(PIPELINE)],
        ["reproduce", "ijoin/figure2", "--quick", "--out", "o"],
    ],
    ids=lambda command: command[0],
)
def test_the_command_line_shows_a_few_lines(tmp_path: Path, command: list[str]) -> None:
    environment = os.environ | {"JAVA_HOME": str(tmp_path / "nowhere"), "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", "from tidegate.cli import run; run()", *command],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 2
    lines = done.stderr.strip().splitlines()
    assert len(lines) <= 2
    assert "JAVA_HOME is" in done.stderr
    assert "Traceback" not in done.stderr
