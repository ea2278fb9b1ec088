"""Readers of recorded streams: auctions and bids, tasks of a cluster, mentions and prices, temperatures, sensors.

The files are not part of Tidegate. Each function takes the folder that contains the folders of all data
sets.
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
POWER: Final = "debs2012/DEBS2012-small.txt"
FOREST: Final = "tharandt_flux/Example_DETha98.txt"
TASKS: Final = "google_cluster/google-cluster-data.txt"
SUBMIT, SCHEDULE = 0, 1
TICKERS: Final = ("AAPL", "AMZN", "CRM", "CVS", "FB", "GOOG", "IBM", "KO", "PFE", "UPS")
_DAY, _CLOSES = 86_400, 21 * 3600
MENTIONS: Final = ("nab/realTweets/Twitter_volume_{}.csv", "timestamp", "value", 0)
PRICES: Final = ("stocks_2015/{}_data.csv", "Date", "Volume", _CLOSES)
"""The files of each ticker: name, columns of time and importance, and seconds to add to the time."""


class RecordedStreams(NamedTuple):
    """Two recorded streams and their window."""

    left: Trace
    right: Trace
    window: Window


def auctions(folder: str | Path, *, at_once: float = 150.0) -> RecordedStreams:
    """Openings and bids of auctions on eBay, by auction, in days. Most bids come late.

    Parameters
    ----------
    folder
        Contains `ebay_auctions/auction.csv`, with a header and a row for each bid. The columns auctionid, bid,
        bidtime (days since the opening) and auction_type ("7 day auction") are read.
    at_once
        The average number of auctions that are open at a time.

    Deviations
    ----------
    The file does not contain opening times. Here auctions open in the order of their numbers, at equal distances of
    their mean length divided by `at_once`. In the published file of 628 auctions of 3, 5 and 7 days, 133 to 163 are
    open at a time by default, after the first week.
    """
    if not at_once > 0:
        raise InputError(f"at_once must be a positive number of auctions; got {at_once!r}")
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
        unknown = table["auction_type"].filter(days.is_null())[0].as_py()
        raise InputError(f"{path} has the auction_type {unknown!r}; give lengths such as '7 day auction'")
    auction, first, opening = np.unique(table["auctionid"].to_numpy(), return_index=True, return_inverse=True)
    lengths = days.cast(pa.int64()).to_numpy()[first]
    opened = np.arange(len(auction)) * (lengths.mean() / at_once)
    placed = opened[opening] + table["bidtime"].to_numpy()
    order = np.argsort(placed, kind="stable")
    return RecordedStreams(
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


def tasks(folder: str | Path, *, window: int = 100) -> RecordedStreams:
    """Submissions and schedulings of tasks in a Google cluster, by job and task, in seconds. Partners come early.

    The importance of a row is the task's priority.

    Parameters
    ----------
    folder
        Contains `google_cluster/google-cluster-data.txt`, without a header and with a row for each event in order of
        time. Columns are separated by blanks: time, job, task, machine, event, user, category, priority, and more.
    window
        The longest time between submission and scheduling, in seconds.
    """
    path = _file(folder, TASKS)
    try:
        time, job, task, event, priority = np.loadtxt(
            path, np.int64, usecols=(0, 1, 2, 4, 7), unpack=True, ndmin=2
        )
    except ValueError as error:
        raise InputError(
            f"cannot read {path}: {error}; it must have whole numbers separated by blanks"
        ) from error
    columns = {"job": job, "task": task, "time": time, "importance": priority}
    left, right = (
        Trace.of({name: column[event == kind] for name, column in columns.items()}, on=["job", "task"])
        for kind in (SUBMIT, SCHEDULE)
    )
    return RecordedStreams(left, right, Window(window, 0))


def mentions(folder: str | Path) -> RecordedStreams:
    """Mentions of ten tickers every five minutes, and the price of each ticker at the end of a day, in seconds.

    A mention joins the price of the same ticker within a day. Its importance is the number of mentions. The
    importance of a price is the number of traded shares, which is always larger.

    Parameters
    ----------
    folder
        Contains `nab/realTweets/Twitter_volume_NAME.csv` (timestamp, value) and `stocks_2015/NAME_data.csv` (Date,
        Volume and more), each with a header.

    Deviations
    ----------
    A day ends at 21:00 of the mentions' clock. The exchange closes then if that clock is UTC.
    """
    left, right = ([_ticker_rows(folder, file, ticker) for ticker in TICKERS] for file in (MENTIONS, PRICES))
    first, last = left[0]["time"].min(), left[0]["time"].max()
    sides = []
    for parts in (left, right):
        columns = {
            name: np.concatenate([part[name] for part in parts]) for name in ("key", "time", "importance")
        }
        order = np.argsort(columns["time"], kind="stable")
        sides.append({name: column[order] for name, column in columns.items()})
    overlapping = (sides[1]["time"] >= first) & (sides[1]["time"] <= last)
    right_side = {name: column[overlapping] for name, column in sides[1].items()}
    return RecordedStreams(Trace.of(sides[0]), Trace.of(right_side), Window(_DAY, 0))


def _ticker_rows(folder: str | Path, file: tuple[str, str, str, int], ticker: str) -> dict[str, Array]:
    """The rows of one ticker: its number, the time in seconds, and the importance."""
    name, time_name, importance_name, offset = file
    options = csv.ConvertOptions(
        include_columns=[time_name, importance_name],
        column_types={time_name: pa.timestamp("s"), importance_name: pa.float64()},
    )
    table = csv.read_csv(_file(folder, name.format(ticker)), convert_options=options)
    time = table[time_name].cast(pa.int64()).to_numpy() + offset
    return {
        "key": np.full(len(time), TICKERS.index(ticker)),
        "time": time,
        "importance": table[importance_name].to_numpy(),
    }


def temperatures(folder: str | Path) -> Array:
    """The highest temperature of each day in Melbourne, 1981 to 1990, in tenths of a degree Celsius.

    Parameters
    ----------
    folder
        Contains `melbourne_temps/daily-max-temperatures.csv`, with a header and a row for each day. The column
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


def power(folder: str | Path) -> tuple[Array, Array]:
    """The times in microseconds and the values of readings of a machine's electrical power (mf01).

    Parameters
    ----------
    folder
        Contains `debs2012/DEBS2012-small.txt`, without a header, with a row for each reading and columns separated by
        tabs. The first column (the time) and the third are read.
    """
    table = csv.read_csv(
        _file(folder, POWER),
        read_options=csv.ReadOptions(autogenerate_column_names=True),
        parse_options=csv.ParseOptions(delimiter="\t"),
        convert_options=csv.ConvertOptions(
            include_columns=["f0", "f2"], column_types={"f0": pa.string(), "f2": pa.float64()}
        ),
    )
    # Arrow cannot read a time zone after a fraction of seconds: both are cut off after six digits.
    timestamps = pc.utf8_slice_codeunits(table["f0"], 0, 26).cast(pa.timestamp("us"))
    return timestamps.cast(pa.int64()).to_numpy(), table["f2"].to_numpy()


def forest(folder: str | Path) -> dict[str, tuple[Array, Array]]:
    """Humidity (h, in percent), temperature of air (a) and of soil (s) in a forest near Tharandt: minutes and values.

    Parameters
    ----------
    folder
        Contains `tharandt_flux/Example_DETha98.txt`, with a header, a line of units and a row for each half hour of
        1998. Columns are separated by tabs; DoY, Hour, rH, Tair and Tsoil are read. -9999 marks a missing value.
    """
    columns = {"h": "rH", "a": "Tair", "s": "Tsoil"}
    names = ["DoY", "Hour", *columns.values()]
    table = csv.read_csv(
        _file(folder, FOREST),
        read_options=csv.ReadOptions(skip_rows_after_names=1),
        parse_options=csv.ParseOptions(delimiter="\t"),
        convert_options=csv.ConvertOptions(
            include_columns=names, column_types=dict.fromkeys(names, pa.float64()), null_values=["-9999"]
        ),
    )
    minutes = np.rint(table["DoY"].to_numpy() * 1440 + table["Hour"].to_numpy() * 60).astype(np.int64)
    readings = {name: table[column].to_numpy() for name, column in columns.items()}
    return {
        name: (minutes[~np.isnan(values)], values[~np.isnan(values)]) for name, values in readings.items()
    }


def _file(folder: str | Path, name: str) -> Path:
    path = Path(folder) / name
    if not path.is_file():
        raise InputError(f"{path} does not exist; give the folder that contains {name}")
    return path
