"""Run the cells of experiments in waves. Each wave writes its results, so a stopped run can continue."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from datetime import timedelta
from pathlib import Path
from typing import Final, Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from tidegate.experiments.cells import SCHEMA, CellResult, CellRunner, read_results, write_results
from tidegate.experiments.experiment import Cell
from tidegate.types import InputError

CELLS: Final = "cells"
_WAVE_SECONDS: Final = 10.0
"""Seconds that a wave should take. At most this much work is lost when a run is stopped."""
_CONCURRENT_WAVES: Final = 2
"""Waves that run at the same time, so that no core is idle while the last cells of a wave run."""


class Executor(Protocol):
    """Runs cells somewhere."""

    cores: int

    def execute(self, runner: CellRunner, cells: Sequence[Cell], folder: Path) -> None:
        """Run cells and write their results to a new folder."""


class LocalExecutor:
    """Runs cells in this process, one after another."""

    cores = 1

    def execute(self, runner: CellRunner, cells: Sequence[Cell], folder: Path) -> None:
        """Run cells."""
        write_results([runner.run(cell) for cell in cells], folder / "part.parquet")


class SparkExecutor:
    """Runs cells on all cores of a Spark cluster. All machines must see the folder."""

    def __init__(self, spark: object, cores: int) -> None:
        self._spark, self.cores = spark, cores

    def execute(self, runner: CellRunner, cells: Sequence[Cell], folder: Path) -> None:
        """Run cells as one Spark job."""
        from tidegate.spark.grid import is_alive, run_tasks  # noqa: PLC0415 - `LocalExecutor` needs no Spark

        chosen, spark = list(cells), self._spark
        try:
            run_tasks(
                spark,  # type: ignore[arg-type]  # a session, from `on_spark`
                len(chosen),
                lambda number: runner.run(chosen[number])._asdict(),
                SCHEMA,
                folder.absolute().as_uri(),
                self.cores,
            )
        except Exception as error:
            if not is_alive(spark):  # type: ignore[arg-type]  # as above
                raise InputError(
                    f"Spark has stopped ({error}); run the same command again to continue"
                ) from error
            raise
        if not any(folder.rglob("*.parquet")):
            raise InputError(
                f"the workers' output in {folder} is not visible here; set --out to a folder that all machines share"
            )


@contextlib.contextmanager
def on_spark(master: str | None = None, confs: Mapping[str, str] | None = None) -> Iterator[SparkExecutor]:
    """An executor on Spark, by default on all cores of this machine."""
    try:
        from tidegate.spark import grid  # noqa: PLC0415 - `LocalExecutor` needs no Spark
    except ModuleNotFoundError as error:
        raise InputError(
            f"running on Spark needs {error.name}; run: pip install 'tidegate[spark]', or use --master none"
        ) from error
    with grid.open_session(master, confs or {}) as (spark, cores):
        yield SparkExecutor(spark, cores)


def run_cells(
    runner: CellRunner, cells: Sequence[Cell], out: Path, executor: Executor, progress: Progress
) -> dict[Cell, CellResult]:
    """Run the cells that are not finished, and return the results of all.

    The first runs of all configurations come first, so that a run that is stopped early has a result for each.
    """
    folder = ensure_writable(out) / CELLS
    done = read_results(folder, runner.digests)
    pending = [cell for cell in cells if cell not in done or done[cell].error is not None]
    pending.sort(key=lambda cell: cell.seed)
    before = len(cells) - len(pending)
    bar = progress.add_task("cells", total=len(cells), completed=before, before=before)
    waves: dict[Future[None], int] = {}
    began, ended = time.monotonic(), 0
    stopped = threading.Event()
    pool = ThreadPoolExecutor(_CONCURRENT_WAVES if executor.cores > 1 else 1)
    try:
        while pending or waves:
            while pending and len(waves) < _CONCURRENT_WAVES:
                speed = ended / (time.monotonic() - began)
                size = max(executor.cores, round(_WAVE_SECONDS * speed)) if ended else executor.cores
                wave, pending = pending[:size], pending[size:]
                waves[pool.submit(_run_wave, runner, wave, folder, executor, stopped)] = len(wave)
            for future in wait(waves, return_when=FIRST_COMPLETED).done:
                future.result()
                ended += (count := waves.pop(future))
                progress.advance(bar, count)
    finally:
        stopped.set()
        pool.shutdown(wait=False, cancel_futures=True)
    return finished_cells(runner, cells, out)


def finished_cells(runner: CellRunner, cells: Sequence[Cell], out: Path) -> dict[Cell, CellResult]:
    """The results of the cells that have run."""
    results = read_results(out / CELLS, runner.digests)
    return {cell: results[cell] for cell in cells if cell in results}


def _run_wave(
    runner: CellRunner, cells: Sequence[Cell], folder: Path, executor: Executor, stopped: threading.Event
) -> None:
    """Run some cells. If the wave fails as a whole, for example because a worker died, find the cell by bisection."""
    own = folder / uuid.uuid4().hex
    try:
        executor.execute(runner, cells, own)
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 - any error is reported with its cell
        if stopped.is_set():  # the cells may not have failed themselves
            return
        if len(cells) == 1:
            message = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
            write_results([runner.result(cells[0], None, message)], own / "failed.parquet")
            return
        half = len(cells) // 2
        _run_wave(runner, cells[:half], folder, executor, stopped)
        _run_wave(runner, cells[half:], folder, executor, stopped)


class _TimeLeft(ProgressColumn):
    """The time left, estimated from the cells that this run has finished."""

    def render(self, task: Task) -> Text:
        finished = task.completed - task.fields["before"]
        if not finished or task.elapsed is None or task.total is None:
            return Text("")
        left = round(task.elapsed / finished * (task.total - task.completed))
        return Text(f"{timedelta(seconds=left)} left")


def progress_bar(console: Console) -> Progress:
    """A progress bar with the time left."""
    columns = TextColumn("[bold]{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    return Progress(*columns, _TimeLeft(), console=console)


def ensure_writable(folder: Path) -> Path:
    """Create the folder if needed, and check that it can be written."""
    probe = folder / f".{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InputError(
            f"cannot write to {folder} ({error}); set --out to a folder that can be written"
        ) from error
    return folder
