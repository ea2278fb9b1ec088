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
POWER: Final = "debs2012/DEBS2012-small.txt"
FOREST: Final = "tharandt_flux/Example_DETha98.txt"
TASKS: Final = "google_cluster/google-cluster-data.txt"
SUBMIT, SCHEDULE = 0, 1
TICKERS: Final = ("AAPL", "AMZN", "CRM", "CVS", "FB", "GOOG", "IBM", "KO", "PFE", "UPS")
_DAY, _CLOSES = 86_400, 21 * 3600
MENTIONS: Final = ("nab/realTweets/Twitter_volume_{}.csv", "timestamp", "value", 0)
PRICES: Final = ("stocks_2015/{}_data.csv", "Date", "Volume", _CLOSES)
"""Files of each ticker: their names, the columns of time and importance, and seconds to add to the time."""


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


def mentions(folder: str | Path) -> Recorded:
    """Mentions of ten tickers every five minutes, and each ticker's price at the end of a day, in seconds.

    A mention joins the price of the same ticker within a day. Its importance is how many there were; that of a price
    is the shares that were traded, always more than that.

    Parameters
    ----------
    folder
        Holds `nab/realTweets/Twitter_volume_NAME.csv` (timestamp, value) and `stocks_2015/NAME_data.csv` (Date,
        Volume and more), each with a header.

    Deviations
    ----------
    A day ends at 21:00 by the clock of the mentions, which is when the exchange closes if that is UTC.
    """
    left, right = ([_column_of(folder, file, ticker) for ticker in TICKERS] for file in (MENTIONS, PRICES))
    first, last = left[0]["time"].min(), left[0]["time"].max()
    sides = []
    for parts in (left, right):
        columns = {
            name: np.concatenate([part[name] for part in parts]) for name in ("key", "time", "importance")
        }
        order = np.argsort(columns["time"], kind="stable")
        sides.append({name: column[order] for name, column in columns.items()})
    shown = (sides[1]["time"] >= first) & (sides[1]["time"] <= last)
    right_side = {name: column[shown] for name, column in sides[1].items()}
    return Recorded(Trace.of(sides[0]), Trace.of(right_side), Window(_DAY, 0))


def _column_of(folder: str | Path, file: tuple[str, str, str, int], ticker: str) -> dict[str, Array]:
    """One ticker's rows: its number, seconds, and importance."""
    name, when, worth, later = file
    options = csv.ConvertOptions(
        include_columns=[when, worth], column_types={when: pa.timestamp("s"), worth: pa.float64()}
    )
    table = csv.read_csv(_file(folder, name.format(ticker)), convert_options=options)
    time = table[when].cast(pa.int64()).to_numpy() + later
    return {
        "key": np.full(len(time), TICKERS.index(ticker)),
        "time": time,
        "importance": table[worth].to_numpy(),
    }


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


def power(folder: str | Path) -> tuple[Array, Array]:
    """The electrical power of a machine (mf01), and when it was read, in microseconds.

    Parameters
    ----------
    folder
        Holds `debs2012/DEBS2012-small.txt`: a row a reading, without a header, columns apart by tabs, of which the
        first (the time) and the third are read.
    """
    table = csv.read_csv(
        _file(folder, POWER),
        read_options=csv.ReadOptions(autogenerate_column_names=True),
        parse_options=csv.ParseOptions(delimiter="\t"),
        convert_options=csv.ConvertOptions(
            include_columns=["f0", "f2"], column_types={"f0": pa.string(), "f2": pa.float64()}
        ),
    )
    # Arrow reads at most nine digits of a second and no zone beside them: the seven here are cut to six.
    moments = pc.utf8_slice_codeunits(table["f0"], 0, 26).cast(pa.timestamp("us"))
    return moments.cast(pa.int64()).to_numpy(), table["f2"].to_numpy()


def forest(folder: str | Path) -> dict[str, tuple[Array, Array]]:
    """Humidity (h, in percent), temperature of air (a) and of soil (s) in a forest near Tharandt: minutes and values.

    Parameters
    ----------
    folder
        Holds `tharandt_flux/Example_DETha98.txt`: a row for each half hour of 1998, columns apart by tabs, a header
        and a line of units, of which DoY, Hour, rH, Tair and Tsoil are read; -9999 where nothing was.
    """
    columns = {"h": "rH", "a": "Tair", "s": "Tsoil"}
    wanted = ["DoY", "Hour", *columns.values()]
    table = csv.read_csv(
        _file(folder, FOREST),
        read_options=csv.ReadOptions(skip_rows_after_names=1),
        parse_options=csv.ParseOptions(delimiter="\t"),
        convert_options=csv.ConvertOptions(
            include_columns=wanted, column_types=dict.fromkeys(wanted, pa.float64()), null_values=["-9999"]
        ),
    )
    minutes = np.rint(table["DoY"].to_numpy() * 1440 + table["Hour"].to_numpy() * 60).astype(np.int64)
    readings = {name: table[column].to_numpy() for name, column in columns.items()}
    return {name: (minutes[~np.isnan(of)], of[~np.isnan(of)]) for name, of in readings.items()}


def _file(folder: str | Path, name: str) -> Path:
    path = Path(folder) / name
    if not path.is_file():
        raise InputError(f"there is no file {path}; give the folder that holds {name}")
    return path
