"""The stream of the demo: auctions and bids, written as Parquet files while the queries run."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from tidegate.streams import Auctions
from tidegate.types import Array, InputError

MEMORY_SHARE: Final = 0.1
"""The budget as a share of the rows that the window holds."""
SIDE_SCHEMAS: Final = {
    "auctions": "auction bigint, opened_at timestamp",
    "bids": "auction bigint, placed_at timestamp, price double",
}

_FILE_SPAN: Final = timedelta(minutes=1)
_BIDS: Final = 5.0
_LATENESS: Final = 4.0
_START: Final = np.datetime64("2026-01-01T00:00:00", "us").astype(np.int64)
_MICROS: Final = 1_000_000
_FILES_AHEAD: Final = 2
_POLL: Final = 0.075


@dataclass(frozen=True)
class DemoScale:
    """The number of rows that arrive; a file holds a minute of the stream.

    Parameters
    ----------
    files
        The maximum number of files of each side.
    auctions
        The number of auctions that open in a minute; each gets five bids on average.
    minutes
        How long an auction is open, which is the join's window.
    """

    files: int = 30
    auctions: int = 10_000
    minutes: int = 8

    def __post_init__(self) -> None:
        if min(self.files, self.auctions, self.minutes) < 1:
            raise InputError(f"files, auctions and minutes must be at least 1; got {self}")

    @property
    def window(self) -> timedelta:
        """How long an auction is open."""
        return self.minutes * _FILE_SPAN


class DemoStream:
    """All rows that will arrive, and with them the results and the memory of an exact join."""

    def __init__(self, scale: DemoScale, seed: int) -> None:
        self.scale = scale
        generator = Auctions(
            length=scale.window.total_seconds(),
            bids=_BIDS,
            rate=scale.auctions / _FILE_SPAN.total_seconds(),
            lateness=_LATENESS,
        )
        # Some more than needed on average, so that the last minute is as full as the others.
        opened, bids = generator.both(int(scale.files * scale.auctions * 1.05) + 100, seed)
        self.opened = _START + (opened.time * _MICROS).astype(np.int64)
        self.placed = _START + (bids.time * _MICROS).astype(np.int64)
        self.auction: Array = bids.keys[0].to_numpy()
        self.price = np.zeros(0) if bids.value is None else bids.value
        ends = _START + np.arange(scale.files + 1) * (_FILE_SPAN // timedelta(microseconds=1))
        self._cuts = {
            "auctions": np.searchsorted(self.opened, ends),
            "bids": np.searchsorted(self.placed, ends),
        }
        ages = self.placed - self.opened[self.auction]
        self._joins = (ages >= 0) & (ages <= scale.window // timedelta(microseconds=1))
        # Auctions are numbered in the order of their opening, so those open form a range.
        closed = np.searchsorted(self.opened, ends - scale.window // timedelta(microseconds=1))
        self.needed = self._cuts["auctions"] - closed
        self.budget = max(1, int(self.needed.max() * MEMORY_SHARE))

    def rows(self, side: str, files: int) -> int:
        """The number of rows of a side in the first files."""
        return int(self._cuts[side][files])

    def files(self, bids: int) -> int:
        """The number of files that these bids fill."""
        return int(np.searchsorted(self._cuts["bids"], bids, side="right")) - 1

    def minute(self, bids: int) -> float:
        """The minute of the stream when these bids have arrived."""
        last = self.placed[bids - 1] if bids else _START
        return float((last - _START) / _MICROS / _FILE_SPAN.total_seconds())

    def exact(self, auctions: int, bids: int) -> int:
        """The number of exact results of the first rows of each side."""
        return int(np.count_nonzero((self.auction[:bids] < auctions) & self._joins[:bids]))

    def table(self, side: str, file: int) -> pa.Table:
        """The rows of one file."""
        part = slice(*self._cuts[side][file : file + 2])
        stamp = pa.timestamp("us", "UTC")
        if side == "auctions":
            numbers = np.arange(part.start, part.stop)
            return pa.table({"auction": numbers, "opened_at": pa.array(self.opened[part], stamp)})
        placed = pa.array(self.placed[part], stamp)
        return pa.table({"auction": self.auction[part], "placed_at": placed, "price": self.price[part]})


class FileWriter(threading.Thread):
    """Writes the files, at most two ahead of the slowest query, until a deadline."""

    def __init__(self, stream: DemoStream, folder: Path, stopped: threading.Event, seconds: float) -> None:
        super().__init__(name="tidegate-demo-writer", daemon=True)
        self.written = 0
        self.consumed = 0
        self._stream, self._folder, self._stop_requested = stream, folder, stopped
        self._deadline = time.monotonic() + seconds

    def run(self) -> None:
        """Write until everything is written, the deadline has passed, or the demo is stopped."""
        for file in range(self._stream.scale.files):
            while self.written - self.consumed >= _FILES_AHEAD:
                if self._stop_requested.wait(_POLL) or time.monotonic() > self._deadline:
                    return
            if self._stop_requested.is_set() or time.monotonic() > self._deadline:
                return
            self._write(file)
            self.written += 1

    def _write(self, file: int) -> None:
        """Write both sides under hidden names, then rename both: a query that sees bids first would lose them."""
        hidden = {side: self._folder / side / f".{file:04}.parquet" for side in SIDE_SCHEMAS}
        for side, path in hidden.items():
            parquet.write_table(self._stream.table(side, file), path)
        for path in hidden.values():
            path.rename(path.with_name(path.name.removeprefix(".")))
