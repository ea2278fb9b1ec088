"""The stream of the demo: clicks and purchases of the accounts of a shop, as Parquet files of a minute each."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from tidegate.streams.trace import Trace
from tidegate.types import Array, InputError

MEMORY_SHARE: Final = 0.1
"""The budget as a share of the rows that an exact join holds."""
SIDE_SCHEMAS: Final = {
    "clicks": "account bigint, clicked_at timestamp, page string",
    "purchases": "account bigint, bought_at timestamp, amount double",
}

_FILE_SPAN: Final = timedelta(minutes=1)
_PURCHASES: Final = 0.015
_MEDIAN_LAG: Final = 2.0
_PAGES: Final = 20_000
_FIRST_MODIFIED: Final = 1_767_225_600
_TAIL: Final = 1.3
_START: Final = np.datetime64("2026-01-01T00:00:00", "us").astype(np.int64)
_MICROS: Final = _FILE_SPAN // timedelta(microseconds=1)


@dataclass(frozen=True)
class DemoScale:
    """The number of rows; a file holds a minute of the stream.

    Parameters
    ----------
    files
        The number of files of each side.
    clicks
        The number of clicks in a minute.
    minutes
        How long before a purchase a click may be, which is the join's window.
    accounts
        The number of accounts. Their activity follows Pareto's law.
    """

    files: int = 12
    clicks: int = 40_000
    minutes: int = 6
    accounts: int = 200_000

    def __post_init__(self) -> None:
        if min(self.files, self.clicks, self.minutes, self.accounts) < 1:
            raise InputError(f"files, clicks, minutes and accounts must be at least 1; got {self}")

    @property
    def window(self) -> timedelta:
        """How long before a purchase a click may be."""
        return self.minutes * _FILE_SPAN

    @property
    def budget(self) -> int:
        """A tenth of the clicks in a window."""
        return max(1, int(self.clicks * min(self.minutes, self.files) * MEMORY_SHARE))


class DemoStream:
    """All rows that will arrive.

    An account clicks and buys in proportion to its activity, which differs widely between accounts. Some clicks lead
    to a purchase by the same account, most often one to five minutes later.
    """

    def __init__(self, scale: DemoScale, seed: int) -> None:
        self.scale = scale
        rng = np.random.default_rng(seed)
        activity = 1 + rng.pareto(_TAIL, scale.accounts)
        count = scale.files * scale.clicks
        clicked = np.sort(rng.uniform(0, scale.files, count))
        account = rng.choice(scale.accounts, count, p=activity / activity.sum())
        buys = rng.random(count) < _PURCHASES
        bought = clicked[buys] + rng.lognormal(np.log(_MEDIAN_LAG), 0.6, int(buys.sum()))
        order = np.argsort(bought, kind="stable")
        order = order[bought[order] < scale.files]
        self._time = {"clicks": _micros(clicked), "purchases": _micros(bought[order])}
        self._account = {"clicks": account, "purchases": account[buys][order]}
        self._page = rng.integers(0, _PAGES, count)
        self._amount = np.round(np.exp(rng.normal(3.5, 1.0, len(order))), 2)
        ends = _START + np.arange(scale.files + 1) * _MICROS
        self._cuts = {side: np.searchsorted(time, ends) for side, time in self._time.items()}

    def rows(self, side: str, files: int) -> int:
        """The number of rows of a side in the first files."""
        return int(self._cuts[side][files])

    def traces(self, files: int) -> tuple[Trace, Trace]:
        """Clicks and purchases of the first files, as `tidegate.simulate` takes them; times in minutes."""
        left, right = (
            Trace.of(
                {
                    "key": self._account[side][: self.rows(side, files)],
                    "time": (self._time[side][: self.rows(side, files)] - _START) / _MICROS,
                }
            )
            for side in SIDE_SCHEMAS
        )
        return left, right

    def write(self, folder: Path) -> None:
        """Write all files."""
        pages = pa.array(
            [
                f"https://shop.example/products/{page * 7919 % 1_000_003}?campaign={page % 97}"
                for page in range(_PAGES)
            ]
        )
        for side in SIDE_SCHEMAS:
            (folder / side).mkdir(parents=True)
        for file in range(self.scale.files):
            for side in SIDE_SCHEMAS:
                part = slice(*self._cuts[side][file : file + 2])
                more = (
                    {"page": pages.take(pa.array(self._page[part]))}
                    if side == "clicks"
                    else {"amount": self._amount[part]}
                )
                time = "clicked_at" if side == "clicks" else "bought_at"
                stamps = pa.array(self._time[side][part], pa.timestamp("us", "UTC"))
                table = pa.table({"account": self._account[side][part], time: stamps, **more})
                path = folder / side / f"{file:04}.parquet"
                parquet.write_table(table, path)
                # Spark reads files in the order of their times of modification.
                os.utime(path, (_FIRST_MODIFIED + file, _FIRST_MODIFIED + file))


def _address(page: int) -> str:
    return f"https://shop.example/products/{page * 7919 % 1_000_003}?campaign={page % 97}"


def _micros(minutes: Array) -> Array:
    return _START + (minutes * _MICROS).astype(np.int64)
