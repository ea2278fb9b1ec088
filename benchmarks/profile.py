"""Profile a micro-batch by sampling: Spark's tasks by thread dumps, the Python workers by py-spy.

py-spy is not a dependency. Install it and put it last on the path: `python -m venv /tmp/py-spy &&
/tmp/py-spy/bin/pip install py-spy; PATH=$PATH:/tmp/py-spy/bin`. It needs permission to trace your own processes.
"""

from __future__ import annotations

import argparse
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from threading import Thread

import psutil
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from benchmarks.spark import SECONDS, WARM, bounded_join, is_daemon, measure, own_join, write
from tidegate.spark.session.local import local_session

SAMPLED_SECONDS = 15
RATE = 50
EVERY = 0.1
TASKS = (
    ("waiting for Python", "sun.nio.ch.EPoll|SocketDispatcher"),
    ("computing the size of the Arrow batch after each row", "[sS]izeInBytes"),
    (
        "writing Arrow for Python",
        "ArrowFieldWriter|ArrowWriter|ArrowStreamWriter|DirectByteBufferOutputStream",
    ),
    ("reading Parquet", "parquet"),
    ("reading Arrow from Python", "ReadChannel|ArrowReader|ArrowStreamReader|VectorLoader|ArrowColumnVector"),
    ("state store and checkpoint files", "rocksdb|RocksDB|streaming.state|checkpointing"),
    ("projections, hashes, copies of rows", "GeneratedClass|UnsafeRow|UnsafeProjection|codegen|MapInBatch"),
    ("shuffle", "shuffle|storage"),
    ("starting and ending Python's part", "PythonWorker|PythonRunner|SparkEnv"),
)
"""The activity of a task, by the innermost frame that matches a pattern."""


def sample(spark: SparkSession, folder: Path, spy: str) -> None:
    """Once a query is in steady state, sample its processes for a while."""
    while not any(len(query.recentProgress) > WARM for query in spark.streams.active):
        time.sleep(0.1)
    started = psutil.Process().children(recursive=True)
    [java] = [process for process in started if process.name() == "java"]
    # Spark has a daemon for each kind of function; workers are its children.
    parents = [
        process.pid
        for process in psutil.process_iter(["ppid", "cmdline"])
        if process.info["ppid"] == java.pid and is_daemon(process.info["cmdline"] or [])
    ]
    how = f"--subprocesses --full-filenames --format raw --rate {RATE} --duration {SAMPLED_SECONDS}"
    recordings = [
        subprocess.Popen(  # noqa: S603 - py-spy, with our own pids
            [spy, "record", *how.split(), "--output", folder / f"{parent}.stacks", "--pid", str(parent)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for parent in parents
    ]
    while any(recording.poll() is None for recording in recordings):
        java.send_signal(signal.SIGQUIT)
        time.sleep(EVERY)


def tasks(dumps: str) -> Counter[str]:
    """What the threads of Spark's tasks were doing, in Java's own thread dumps."""
    counts: Counter[str] = Counter()
    for thread in re.findall(r'^"Executor task launch worker.*?\n\n', dumps, re.MULTILINE | re.DOTALL):
        frames = re.findall(r"\tat (\S+)\(", thread)
        if any("Executor$TaskRunner.run" in frame for frame in frames):
            matching = (what for frame in frames for what, pattern in TASKS if re.search(pattern, frame))
            counts[next(matching, "other")] += 1
    return counts


def workers(stacks: str) -> Counter[str]:
    """What the Python workers were computing: the innermost function of ours, or else of PySpark's."""
    counts: Counter[str] = Counter()
    for line in stacks.splitlines():
        stack, _, count = line.rpartition(" ")
        if "pyspark/worker.py" not in stack:
            continue
        frames = re.findall(r"([^;]+?) \(([^;]*?)(?::\d+)?\)", stack)[::-1]
        ours = (
            f"{Path(file).stem}: {name}" for name, file in frames if "tidegate/" in file and name != "main"
        )
        theirs = (f"pyspark {Path(file).stem}: {name}" for name, file in frames if "pyspark/" in file)
        counts[next(ours, None) or next(theirs)] += int(count)
    return counts


def show(console: Console, title: str, counts: Counter[str], rows: int) -> None:
    """The largest parts, in percent."""
    table = Table(title, "%")
    for name, count in counts.most_common(rows):
        table.add_row(name, f"{100 * count / counts.total():.1f}")
    console.print(table, f"{counts.total()} samples")


def main(rows: int, window: int, payload: int, batches: int, budget: int | None, *, own: bool) -> None:
    """Sample a join of the streams of `benchmarks.state`.

    Parameters
    ----------
    rows
        How many a micro-batch has, both sides together.
    window
        How many micro-batches a window has, a row's past and future together.
    payload
        How many bytes the random string of each row has.
    batches
        How many micro-batches run after the window is full.
    budget
        The budget in rows; None: no limit.
    own
        Whether Spark's own join is sampled instead of Tidegate's.
    """
    console = Console(width=120)
    spy = shutil.which("py-spy")
    if spy is None:
        sys.exit(__doc__)
    side = max(1, window // 2)
    join = partial(own_join, seconds=SECONDS * side) if own else bounded_join(budget, SECONDS * side)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        write(root / "main", rows, WARM + batches, window=side, payload=payload, filled=True)
        spark = local_session("profile", memory="6g", log=root / "log")
        try:
            sampling = Thread(target=sample, args=(spark, root, spy))
            sampling.start()
            result = measure(spark, root / "main", join)
            sampling.join()
        finally:
            spark.stop()
        show(console, "Spark's tasks, by time", tasks((root / "log").read_text()), len(TASKS) + 1)
        counts = workers("".join(file.read_text() for file in root.glob("*.stacks")))
        if counts:
            show(console, "Python workers, by processor time", counts, 25)
        busy = counts.total() / RATE / SAMPLED_SECONDS
        console.print(f"{busy:.2f} cores of Python; {result.rate / 1e3:.0f} thousand rows/s while sampled")
        console.print("ms:", ", ".join(f"{phase} {ms:.0f}" for phase, ms in result.phases.items()))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=50_000, help="rows of a micro-batch, both sides together")
    parser.add_argument("--window", type=int, default=20, help="micro-batches of a window, past and future")
    parser.add_argument("--payload", type=int, default=500, help="bytes of a row's string")
    parser.add_argument("--batches", type=int, default=30, help="micro-batches after the window is full")
    parser.add_argument("--budget", type=int, help="the budget in rows; without it there is no limit")
    parser.add_argument("--own", action="store_true", help="sample Spark's own join instead")
    return parser.parse_args()


if __name__ == "__main__":
    main(**vars(_options()))
