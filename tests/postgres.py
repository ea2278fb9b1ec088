"""A PostgreSQL server of one's own: on loopback, in a folder that goes with it; skipped where it cannot be had."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

PASSWORD = "s3cr%40t"  # noqa: S105 - of a server that lives for seconds
USER = "tester"


@dataclass(frozen=True)
class Server:
    """A server that can be stopped and started again, on one port."""

    programs: Path
    folder: Path
    port: int

    @property
    def dsn(self) -> str:
        return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=20"
        self._run("pg_ctl", "-w", "-t", "600", "-D", "data", "-l", "log", "-o", options, "start")

    def stop(self) -> None:
        """At once, as in a crash."""
        self._run("pg_ctl", "-w", "-t", "600", "-D", "data", "-m", "immediate", "stop")

    def execute(self, *statements: str) -> None:
        from adbc_driver_postgresql import dbapi  # noqa: PLC0415 - only where there is a server

        with dbapi.connect(self.dsn, autocommit=True) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def _run(self, program: str, *arguments: str) -> None:
        # It refuses to serve as root.
        as_whom = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        subprocess.run(  # noqa: S603 - our own words
            [*as_whom, str(self.programs / program), *arguments],
            cwd=self.folder,
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=900,
        )


def _programs() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), key=lambda p: int(p.parts[-3]))
    on_path = shutil.which("pg_ctl")
    if not found and on_path is None:
        pytest.skip("no PostgreSQL server here; on Debian: apt-get install postgresql")
    return found[-1].parent if found else Path(str(on_path)).parent


@contextmanager
def server() -> Iterator[Server]:
    pytest.importorskip("adbc_driver_postgresql")
    programs = _programs()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "password").write_text(PASSWORD.replace("%40", "@"), encoding="utf-8")
        if os.getuid() == 0:
            try:
                account = pwd.getpwnam("postgres")
            except KeyError:
                pytest.skip("PostgreSQL does not run as root, and there is no user 'postgres'")
            for path in (folder, folder / "password"):
                os.chown(path, account.pw_uid, account.pw_gid)
        made = Server(programs, folder, port)
        made._run(
            "initdb", "-D", "data", "-U", USER, "-A", "scram-sha-256", "--pwfile", "password", "-E", "UTF8"
        )
        made.start()
        try:
            yield made
        finally:
            if (folder / "data" / "postmaster.pid").exists():
                made.stop()
