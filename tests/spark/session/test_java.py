"""Without a Java that Spark can use, the error names the remedy."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import PySparkRuntimeError

from tidegate.spark.session import java, local
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
    return java.explain_java("")


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
    assert message.endswith("it printed nothing; check that there is enough memory for spark.driver.memory")


UNKNOWN_HOST = """\
WARNING: Using incubator modules: jdk.incubator.vector
Exception in thread "main" java.lang.ExceptionInInitializerError
\tat org.apache.spark.util.Utils.localHostName(Utils.scala:1)
Caused by: java.net.UnknownHostException: box: box: Name or service not known
\tat java.base/java.net.InetAddress.getLocalHost(InetAddress.java:2)
\t... 12 more
"""


class Builder:
    """Starts a program in place of Spark's Java process, as often as it is asked."""

    def __init__(self, script: str) -> None:
        self.script, self.starts = script, 0

    def getOrCreate(self) -> object:  # noqa: N802 - Spark's name
        self.starts += 1
        subprocess.run(["/bin/sh", "-c", self.script], check=False)  # noqa: S603 - a line of this test
        raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})


@pytest.mark.parametrize("log", [True, False])
def test_the_error_shows_the_last_line_of_spark(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, log: bool
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake(tmp_path / "new", "21.0.1")))
    (tmp_path / "printed").write_text(UNKNOWN_HOST)
    builder = Builder(f"cat '{tmp_path / 'printed'}' >&2")
    with pytest.raises(InputError) as raised:
        local.start_session(builder, tmp_path / "log" if log else None, local=False)  # type: ignore[arg-type]
    assert str(raised.value) == (
        f"Spark's Java process ended while it started ({tmp_path / 'new' / 'bin' / 'java'}): "
        "java.net.UnknownHostException: box: box: Name or service not known"
    )
    assert builder.starts == 2
    if log:
        assert (tmp_path / "log").read_text() == UNKNOWN_HOST


def test_other_errors_are_left_alone() -> None:
    class Broken(Builder):
        def getOrCreate(self) -> object:  # noqa: N802 - Spark's name
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        local.start_session(Broken(""), None, local=False)  # type: ignore[arg-type]


@pytest.mark.parametrize("resolves", [True, False])
@pytest.mark.parametrize("given", [None, "SPARK_LOCAL_IP", "SPARK_LOCAL_HOSTNAME"])
def test_a_host_name_that_does_not_resolve_is_replaced(
    monkeypatch: pytest.MonkeyPatch, *, resolves: bool, given: str | None
) -> None:
    def resolve_host(name: str) -> str:
        if not resolves:
            raise socket.gaierror(f"{name}: Name or service not known")
        return "127.0.0.1"

    environment = {given: "mine"} if given else {}
    monkeypatch.setattr(os, "environ", environment)
    monkeypatch.setattr(socket, "gethostbyname", resolve_host)
    local._replace_unknown_host_name()
    replaced = not resolves and given is None
    assert environment == ({"SPARK_LOCAL_IP": "127.0.0.1"} if replaced else {given: "mine"} if given else {})


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
