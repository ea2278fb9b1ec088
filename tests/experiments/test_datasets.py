"""Recorded data sets are read as two streams."""

import os
from pathlib import Path

import numpy as np
import pytest

import tidegate as tg
from tidegate import InputError
from tidegate.experiments import datasets

BIDS = """auctionid,bid,bidtime,bidder,bidderrate,openbid,price,item,auction_type
20,175.0,2.5,b0,0.0,99.0,177.5,Cartier wristwatch,3 day auction
20,100.0,0.5,b1,,99.0,177.5,Cartier wristwatch,3 day auction
10,7.0,6.75,b2,2.0,1.0,9.0,Palm Pilot,7 day auction
30,1.0,4.0,,2.0,1.0,9.0,Xbox,5 day auction
"""
EVENTS = """1    500   0   32   0    280  0  9    0.063 0.006 0.000     0
2    500   1   32   0    280  0  2    0.063 0.006 0.000     0
2    500   0   32   1    280  0  9    0.063 0.006 0.000     0
3    500   0   32   4    280  0  9    0.063 0.006 0.000     0
102  500   1   32   1    280  0  2    0.063 0.006 0.000     0
103  500   1   32   1    280  0  2    0.063 0.006 0.000     0
104  501   1   32   1    280  0  2    0.063 0.006 0.000     0
"""
TEMPERATURES = """"Date","Temperature"
"1981-01-01",38.1
"1981-01-02",7

"1981-01-03",-0.3
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {datasets.AUCTIONS: BIDS, datasets.TASKS: EVENTS, datasets.TEMPERATURES: TEMPERATURES}
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir()
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_auctions_open_in_order_of_their_numbers(folder: Path) -> None:
    left, right, window = datasets.auctions(folder, at_once=2.5)
    assert left.keys[0].to_pylist() == [10, 20, 30]
    assert left.time.tolist() == [0.0, 2.0, 4.0]  # lengths of 5 days on average, 2.5 open at once
    assert right.keys[0].to_pylist() == [20, 20, 10, 30]
    assert right.time.tolist() == [2.5, 4.5, 6.75, 8.0]
    assert right.value is not None
    assert right.value.tolist() == [100.0, 175.0, 7.0, 1.0]
    assert window == tg.Window(7, 0)
    assert tg.simulate(left, right, window=window).from_left == 4


def test_tasks_are_submitted_and_scheduled(folder: Path) -> None:
    left, right, window = datasets.tasks(folder)
    assert [key.to_pylist() for key in left.keys] == [[500, 500], [0, 1]]
    assert left.time.tolist() == [1, 2]
    assert left.importance is not None
    assert left.importance.tolist() == [9.0, 2.0]
    assert right.time.tolist() == [2, 102, 103, 104]
    assert window == tg.Window(100, 0)
    assert tg.simulate(left, right, window=window).results == 2


def test_temperatures_are_in_tenths(folder: Path) -> None:
    assert datasets.temperatures(folder).tolist() == [381, 70, -3]


@pytest.mark.parametrize("read", [datasets.auctions, datasets.tasks, datasets.temperatures])
def test_a_missing_file_is_named(read: object, tmp_path: Path) -> None:
    assert callable(read)
    with pytest.raises(
        InputError, match=rf"{tmp_path}/\w+/[\w.-]+ does not exist; give the folder that contains \w+/"
    ):
        read(tmp_path)


def test_an_invalid_length_is_named(folder: Path) -> None:
    path = folder / datasets.AUCTIONS
    path.write_text(BIDS.replace("5 day", "some day"), encoding="utf-8")
    with pytest.raises(InputError, match="auction_type 'some day auction'"):
        datasets.auctions(folder)


def test_an_invalid_event_is_named(folder: Path) -> None:
    path = folder / datasets.TASKS
    path.write_text(EVENTS + "five 1 1 1 1 1 1 1\n", encoding="utf-8")
    with pytest.raises(InputError, match="could not convert string 'five'"):
        datasets.tasks(folder)


def test_at_once_sets_the_number_of_open_auctions(folder: Path) -> None:
    with pytest.raises(InputError, match="at_once must be a positive number of auctions; got 0"):
        datasets.auctions(folder, at_once=0)


@pytest.mark.skipif(
    "TIDEGATE_DATA" not in os.environ, reason="set TIDEGATE_DATA to the folder of recorded sets"
)
def test_the_published_data_sets() -> None:
    folder = os.environ["TIDEGATE_DATA"]
    opened, bids, window = datasets.auctions(folder)
    report = tg.simulate(opened, bids, window=window)
    assert (len(opened), len(bids), report.exact, report.peak_rows) == (628, 10_681, 10_681, 183)
    submitted, scheduled, window = datasets.tasks(folder)
    report = tg.simulate(submitted, scheduled, window=window)
    assert (len(submitted), len(scheduled), report.exact) == (5349, 5306, 7256)
    assert (np.diff(submitted.time) >= 0).all()
