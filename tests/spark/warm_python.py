"""Python processes for Spark that start in milliseconds: forks of one process that has imported everything.

Spark starts a new Python process next to the driver for every query with a stateful Python operator, and that process
has 10 seconds to connect. Its imports take two seconds of a core, so on a busy machine it may miss the limit. Tests
run many small queries: their `PYSPARK_PYTHON` is a launcher that hands its arguments, environment and files to the
server below. The server forks, and the fork does what a new Python would do.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import importlib
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_PRELOADED = (
    "pyspark.daemon",
    "pyspark.sql.streaming.transform_with_state_driver_worker",
    "tidegate.spark.alert.processor",
    "tidegate.spark.query.processor",
    "tidegate.spark.lookup.task",
    "tidegate.spark.bucket.join.reservoir",
)
"""What the processes of most tests import."""

_LAUNCHER = """\
#!{python} -IS
import os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
request = repr((sys.argv[1:], dict(os.environ), os.getcwd())).encode()
socket.send_fds(server, [len(request).to_bytes(4, "big")], [0, 1, 2])
server.sendall(request)
os._exit(int.from_bytes(server.recv(1) or bytes([1]), "big"))
"""


@contextlib.contextmanager
def warm_python() -> Iterator[Path]:
    """Start the server; yields the launcher, a program that behaves like this Python."""
    # The address of a socket has room for some 100 characters only; the names of pytest's folders may be longer.
    with tempfile.TemporaryDirectory() as folder:
        address, launcher = Path(folder, "server"), Path(folder, "python")
        launcher.write_text(_LAUNCHER.format(python=sys.executable, address=str(address)), encoding="utf-8")
        launcher.chmod(0o700)
        with _started(address) as server:
            try:
                yield launcher
            finally:
                server.terminate()


def _started(address: Path) -> subprocess.Popen[bytes]:
    # Only the server keeps the listener: if it fails, launchers are refused and do not wait.
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address))
        listener.listen()
        return subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "tests.spark.warm_python", str(listener.fileno())],
            cwd=_ROOT,
            # All workers agree on the hash of a text, as they do in Spark. A fork cannot use its parent's threads.
            env=os.environ | {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"},
            pass_fds=[listener.fileno()],
            stdin=subprocess.PIPE,
        )


def _serve(listener: socket.socket) -> None:
    """Fork for every connection until the standard input closes, because its writer has ended."""
    for module in _PRELOADED:
        importlib.import_module(module)
    # Spark's workers collect garbage after every task: 80 milliseconds for what the imports leave, none if frozen.
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while sys.stdin.fileno() not in (ready := select.select([sys.stdin, listener], [], [])[0]) and ready:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            _run(connection)
        connection.close()


def _run(connection: socket.socket) -> None:
    """Become the Python that the launcher was called as, and send its exit code back."""
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        size, files, *_ = socket.recv_fds(connection, 4, 3)
        for standard, file in enumerate(files):
            os.dup2(file, standard)
            os.close(file)
        request = connection.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL)
        arguments, environment, folder = ast.literal_eval(request.decode())
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        sys.path[:0] = environment.get("PYTHONPATH", "").split(os.pathsep)
        if arguments[0] != "-m":
            code = subprocess.call([sys.executable, *arguments])  # noqa: S603 - as the launcher was called
        else:
            sys.argv = arguments[1:]
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
            code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - as at the end of any Python program
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        with contextlib.suppress(OSError):
            connection.send(bytes([code % 256]))
        os._exit(code)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
