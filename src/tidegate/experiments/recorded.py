"""Recorded streams: auctions with their bids, and tasks of a cluster, which follow an age curve; temperatures.

The files are not part of Tidegate. Each function takes the folder that holds them, one folder a set.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from tidegate.streams import Trace
from tidegate.types import Array, InputError, Window

AUCTIONS: Final = "ebay_auctions/auction.csv"
TEMPERATURES: Final = "melbourne_temps/daily-max-temperatures.csv"
TASKS: Final = "google_cluster/google-cluster-data.txt"
SUBMIT, SCHEDULE = 0, 1


class Recorded(NamedTuple):
    """Two recorded streams, and the window in which their rows are partners."""

    left: Trace
    right: Trace
    window: Window


def auctions(folder: str | Path, *, at_once: float = 150.0) -> Recorded:
    """Openings and bids of auctions on eBay, by auction, in days: partners come late.

    Parameters
    ----------
    folder
        Holds `ebay_auctions/auction.csv`: a row a bid, with a header, of which the columns auctionid, bid,
        bidtime (days since the opening) and auction_type ("7 day auction") are read.
    at_once
        How many auctions are open at a time, on average.

    Deviations
    ----------
    When an auction opened was not recorded. Here they open one after another in the order of their numbers,
    evenly spaced, by the mean of their lengths over `at_once`. In the published file of 628 auctions of 3, 5
    and 7 days, 133 to 163 are open at a time by default, once the first week is over.
    """
    if not at_once > 0:
        raise InputError(f"at_once {at_once!r} is no number of auctions; give one above 0")
    path = _file(folder, AUCTIONS)
    table = csv.read_csv(
        path,
        convert_options=csv.ConvertOptions(
            include_columns=["auctionid", "bid", "bidtime", "auction_type"],
            column_types={"auctionid": pa.int64(), "bid": pa.float64(), "bidtime": pa.float64()},
        ),
    )
    days = pc.struct_field(pc.extract_regex(table["auction_type"], r"^(?P<days>\d+) day"), "days")
    if days.null_count:
        odd = table["auction_type"].filter(days.is_null())[0].as_py()
        raise InputError(f"{path} has the auction_type {odd!r}; give lengths such as '7 day auction'")
    auction, first, opening = np.unique(table["auctionid"].to_numpy(), return_index=True, return_inverse=True)
    lengths = days.cast(pa.int64()).to_numpy()[first]
    opened = np.arange(len(auction)) * (lengths.mean() / at_once)
    placed = opened[opening] + table["bidtime"].to_numpy()
    order = np.argsort(placed, kind="stable")
    return Recorded(
        Trace.of({"key": auction, "time": opened}),
        Trace.of(
            {
                "key": auction[opening][order],
                "time": placed[order],
                "value": table["bid"].to_numpy()[order],
            }
        ),
        Window(int(lengths.max()), 0),
    )


def tasks(folder: str | Path, *, window: int = 100) -> Recorded:
    """Tasks of a Google cluster, submitted and scheduled, by job and task, in seconds: partners come early.

    The importance of a row is the task's priority.

    Parameters
    ----------
    folder
        Holds `google_cluster/google-cluster-data.txt`: a row an event in order of time, without a header,
        columns apart by blanks: time, job, task, machine, event, user, category, priority, and more.
    window
        How long after its submission a task may be scheduled.
    """
    path = _file(folder, TASKS)
    try:
        time, job, task, event, priority = np.loadtxt(
            path, np.int64, usecols=(0, 1, 2, 4, 7), unpack=True, ndmin=2
        )
    except ValueError as error:
        raise InputError(f"{path} cannot be read: {error}; give whole numbers apart by blanks") from error
    columns = {"job": job, "task": task, "time": time, "importance": priority}
    left, right = (
        Trace.of({name: column[event == kind] for name, column in columns.items()}, on=["job", "task"])
        for kind in (SUBMIT, SCHEDULE)
    )
    return Recorded(left, right, Window(window, 0))


def temperatures(folder: str | Path) -> Array:
    """The highest temperature of each day in Melbourne, 1981 to 1990, in tenths of a degree Celsius.

    Parameters
    ----------
    folder
        Holds `melbourne_temps/daily-max-temperatures.csv`: a row a day, with a header, of which the column
        Temperature is read.
    """
    table = csv.read_csv(
        _file(folder, TEMPERATURES),
        convert_options=csv.ConvertOptions(
            include_columns=["Temperature"], column_types={"Temperature": pa.float64()}
        ),
    )
    tenths: Array = np.rint(table["Temperature"].drop_null().to_numpy() * 10)
    return tenths.astype(np.int64)


def _file(folder: str | Path, name: str) -> Path:
    path = Path(folder) / name
    if not path.is_file():
        raise InputError(f"there is no file {path}; give the folder that holds {name}")
    return path
