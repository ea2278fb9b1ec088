"""Run the cells of experiments, in waves: what is finished is found in the output, whatever happens later."""

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

from tidegate.experiments.experiment import Cell
from tidegate.experiments.outcomes import SCHEMA, Outcome, Plan, read, write
from tidegate.types import InputError

CELLS: Final = "cells"
_WAVE: Final = 10.0
"""Seconds that a wave is to take: so much is lost if a run is stopped."""
_AT_ONCE: Final = 2
"""While the last cells of a wave run, those of the next have begun, so that no core waits."""


class Where(Protocol):
    """Somewhere to run cells."""

    cores: int

    def work(self, plan: Plan, cells: Sequence[Cell], folder: Path) -> None:
        """Run cells and write what becomes of them to a folder of their own."""


class Here:
    """Run cells in this process, one after the other."""

    cores = 1

    def work(self, plan: Plan, cells: Sequence[Cell], folder: Path) -> None:
        """Run cells."""
        write([plan.run(cell) for cell in cells], folder / "part.parquet")


class OnSpark:
    """Run cells on Spark, spread over its cores; the folder must be seen by all machines."""

    def __init__(self, spark: object, cores: int) -> None:
        self._spark, self.cores = spark, cores

    def work(self, plan: Plan, cells: Sequence[Cell], folder: Path) -> None:
        """Run cells as one Spark job."""
        from tidegate.spark.grid import answers, spread  # noqa: PLC0415 - the plain way does without Spark

        chosen, spark = list(cells), self._spark
        try:
            spread(
                spark,  # type: ignore[arg-type]  # whoever made it, knew
                len(chosen),
                lambda number: plan.run(chosen[number])._asdict(),
                SCHEMA,
                folder.absolute().as_uri(),
                self.cores,
            )
        except Exception as error:
            if not answers(spark):  # type: ignore[arg-type]  # as above
                raise InputError(
                    f"Spark has stopped ({error}); start the same command again: it goes on where it was"
                ) from error
            raise
        if not any(folder.rglob("*.parquet")):
            raise InputError(
                f"workers wrote {folder}, but it is not seen here; give a folder that all machines share by --out"
            )


@contextlib.contextmanager
def on_spark(master: str | None = None, confs: Mapping[str, str] | None = None) -> Iterator[OnSpark]:
    """Spark at some master, by default on all cores of this machine."""
    try:
        from tidegate.spark import grid  # noqa: PLC0415 - the plain way does without Spark
    except ModuleNotFoundError as error:
        raise InputError(
            f"running on Spark needs {error.name}; run: pip install 'tidegate[spark]', or give --master none"
        ) from error
    with grid.session(master, confs or {}) as (spark, cores):
        yield OnSpark(spark, cores)


def run(
    plan: Plan, cells: Sequence[Cell], out: Path, where: Where, progress: Progress
) -> dict[Cell, Outcome]:
    """Run the cells that are not finished yet, and tell what became of all.

    First runs come first, so that a grid that is stopped early has told something of every configuration.
    """
    folder = writable(out) / CELLS
    done = read(folder, plan.codes)
    pending = [cell for cell in cells if cell not in done or done[cell].error is not None]
    pending.sort(key=lambda cell: cell.seed)
    before = len(cells) - len(pending)
    bar = progress.add_task("cells", total=len(cells), completed=before, before=before)
    waves: dict[Future[None], int] = {}
    began, ended = time.monotonic(), 0
    stopped = threading.Event()
    pool = ThreadPoolExecutor(_AT_ONCE if where.cores > 1 else 1)
    try:
        while pending or waves:
            while pending and len(waves) < _AT_ONCE:
                speed = ended / (time.monotonic() - began)
                size = max(where.cores, round(_WAVE * speed)) if ended else where.cores
                wave, pending = pending[:size], pending[size:]
                waves[pool.submit(_wave, plan, wave, folder, where, stopped)] = len(wave)
            for future in wait(waves, return_when=FIRST_COMPLETED).done:
                future.result()
                ended += (count := waves.pop(future))
                progress.advance(bar, count)
    finally:
        stopped.set()
        pool.shutdown(wait=False, cancel_futures=True)
    return finished(plan, cells, out)


def finished(plan: Plan, cells: Sequence[Cell], out: Path) -> dict[Cell, Outcome]:
    """What became of those of the cells that have run."""
    kept = read(out / CELLS, plan.codes)
    return {cell: kept[cell] for cell in cells if cell in kept}


def _wave(plan: Plan, cells: Sequence[Cell], folder: Path, where: Where, stopped: threading.Event) -> None:
    """Run some cells; if that ends badly as a whole, such as by a worker's death, find out by which of them."""
    own = folder / uuid.uuid4().hex
    try:
        where.work(plan, cells, own)
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever killed it, it is reported with its cell
        if stopped.is_set():  # then nothing is known of the cells
            return
        if len(cells) == 1:
            told = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
            write([plan.ended(cells[0], None, told)], own / "failed.parquet")
            return
        half = len(cells) // 2
        _wave(plan, cells[:half], folder, where, stopped)
        _wave(plan, cells[half:], folder, where, stopped)


class _Left(ProgressColumn):
    """The time left, by the cells that this run has finished."""

    def render(self, task: Task) -> Text:
        ran = task.completed - task.fields["before"]
        if not ran or task.elapsed is None or task.total is None:
            return Text("")
        left = round(task.elapsed / ran * (task.total - task.completed))
        return Text(f"{timedelta(seconds=left)} left")


def bar(console: Console) -> Progress:
    """A bar with the time left."""
    columns = TextColumn("[bold]{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    return Progress(*columns, _Left(), console=console)


def writable(folder: Path) -> Path:
    """The folder, once it is known that one can write there."""
    probe = folder / f".{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InputError(
            f"{folder} cannot be written ({error}); give a folder that can be by --out"
        ) from error
    return folder
