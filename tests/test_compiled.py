"""Kernels are compiled once, even if several processes need them at the same time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

MODULE = """
import time
from numba.core import event
from tidegate.compiled import kernel

class Slow(event.Listener):
    def on_start(self, event):
        time.sleep(1)

    def on_end(self, event):
        pass

event.register("numba:compile", Slow())

@kernel
def part(x):
    return x + 1

@kernel
def whole(x):
    return part(x) * 2
"""

CALL = """
import sys
import kernels
print("ready", flush=True)
sys.stdin.readline()
assert kernels.whole(3) == 8
print(sum(sum(k.stats.cache_misses.values()) for k in (kernels.whole, kernels.part)))
"""


def test_one_of_several_processes_compiles_a_kernel(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(MODULE)
    paths = [str(tmp_path), *sys.path]
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join(paths),
    }
    processes = [
        subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", CALL],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    compiled = sorted(int(process.communicate()[0]) for process in processes)
    assert compiled == [0, 2]
