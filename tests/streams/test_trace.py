"""Traces are the same from every source."""

import math
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import tidegate as tg
from tidegate import InputError
from tidegate.streams import Trace

DATA: dict[str, list[Any]] = {
    "key": ["a", None, "b"],
    "time": [1, 2, 2],
    "importance": [0.5, 1.0, 2.0],
    "value": [7, 8, 9],
}


def as_csv(data: dict[str, list[Any]], folder: Path) -> Trace:
    csv.write_csv(pa.table(data), folder / "trace.csv")
    return Trace.from_csv(folder / "trace.csv")


def as_parquet(data: dict[str, list[Any]], folder: Path) -> Trace:
    parquet.write_table(pa.table(data), folder / "trace.parquet")
    return Trace.from_parquet(str(folder / "trace.parquet"))


def chunked(data: dict[str, list[Any]], _: Path) -> Trace:
    table = pa.table(data)
    return Trace.of(pa.concat_tables([table.slice(0, 1), table.slice(1)]))


READERS: dict[str, Callable[[dict[str, list[Any]], Path], Trace]] = {
    "lists": lambda data, _: Trace.of(data),
    "numpy": lambda data, _: Trace.of({name: np.array(column) for name, column in data.items()}),
    "pandas": lambda data, _: Trace.of(pd.DataFrame(data)),
    "pandas series": lambda data, _: Trace.of({name: pd.Series(column) for name, column in data.items()}),
    "polars": lambda data, _: Trace.of(pl.DataFrame(data)),
    "arrow": lambda data, _: Trace.of(pa.table(data)),
    "arrow batch": lambda data, _: Trace.of(pa.record_batch(data)),
    "arrow arrays": lambda data, _: Trace.of({name: pa.array(column) for name, column in data.items()}),
    "chunks": chunked,
    "csv": as_csv,
    "parquet": as_parquet,
}


@pytest.mark.parametrize("reader", READERS)
def test_every_source_gives_the_same_trace(reader: str, tmp_path: Path) -> None:
    data = DATA | {"key": [1, None, 2]} if reader == "csv" else DATA
    trace = READERS[reader](data, tmp_path)
    assert len(trace) == 3
    assert [key.to_pylist() for key in trace.keys] == [data["key"]]
    assert trace.time.dtype == np.int64
    assert trace.time.tolist() == [1, 2, 2]
    assert trace.importance is not None
    assert trace.importance.tolist() == [0.5, 1.0, 2.0]
    assert trace.value is not None
    assert trace.value.dtype == np.float64
    assert trace.value.tolist() == [7.0, 8.0, 9.0]


@pytest.mark.parametrize("reader", READERS)
def test_every_source_can_be_joined(reader: str, tmp_path: Path) -> None:
    keys = [1, None, 2] if reader == "csv" else DATA["key"]
    trace = READERS[reader](DATA | {"key": keys}, tmp_path)
    report = tg.simulate(trace, {"key": keys, "time": [2, 2, 2]}, window=(5, 5), collect=True)
    assert (report.results, report.null_keys) == (2, 2)
    assert report.pairs is not None
    assert sorted(zip(*map(np.ndarray.tolist, report.pairs), strict=True)) == [(0, 0), (2, 2)]


def test_a_trace_is_returned_unchanged() -> None:
    trace = Trace.of(DATA)
    assert Trace.of(trace) is trace


@pytest.mark.parametrize("arrow", [True, False], ids=["new pandas", "old pandas"])
def test_a_pandas_frame_has_its_index_and_its_types(monkeypatch: pytest.MonkeyPatch, arrow: bool) -> None:  # noqa: FBT001
    if not arrow:
        monkeypatch.delattr(pd.DataFrame, "__arrow_c_stream__")
    noon = pd.Timestamp("2026-01-02 12:00")
    frame = pd.DataFrame(
        {
            "key": pd.Categorical(["a", None, "b"]),
            "number": pd.array([1, None, 3], dtype="Int64"),
            "time": [noon, noon, noon + pd.Timedelta("1s")],
            0: ["x", "y", "z"],
        }
    )
    for given in (frame, frame.set_index("time"), frame.set_index(["time", "key"]), frame[::-1][::-1]):
        trace = Trace.of(given, on=["key", "number"])
        assert [key.to_pylist() for key in trace.keys] == [["a", None, "b"], [1, None, 3]]
        assert np.diff(trace.time).tolist() == [0, 1_000_000]
    assert Trace.of(frame[frame["key"] == "b"]).keys[0].to_pylist() == ["b"]


def test_unreadable_columns_of_a_pandas_frame_are_named() -> None:
    frame = pd.DataFrame({"key": [1, "a"], "time": [0, 1]})
    with pytest.raises(InputError, match=r"left.key cannot be read as a column: .*; give one flat array"):
        tg.simulate(frame, frame, window=(1, 1))
    with pytest.raises(InputError, match=r"stream has two columns 'time'; rename or drop one"):
        Trace.of(pd.concat([frame, frame[["time"]]], axis=1))


def test_a_spark_frame_is_refused_with_the_remedy() -> None:
    class Frame:
        def toArrow(self) -> None:  # noqa: N802 - Spark's name
            """Nothing."""

    with pytest.raises(
        InputError, match=r"left is a Spark DataFrame; give left.toArrow\(\) or left.toPandas"
    ):
        tg.simulate(Frame(), Frame(), window=(1, 1))


def test_optional_columns_are_optional() -> None:
    trace = Trace.of({"key": [1], "time": [0], "other": ["x"]})
    assert trace.importance is None
    assert trace.value is None


def test_columns_by_other_names(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2], "b": ["x", None], "ts": [3, 4]})
    csv.write_csv(table, tmp_path / "t.csv")
    parquet.write_table(table, tmp_path / "t.parquet")
    for trace in (
        Trace.of(table, on=["b", "a"], time="ts"),
        Trace.from_csv(tmp_path / "t.csv", on=["b", "a"], time="ts"),
        Trace.from_parquet(tmp_path / "t.parquet", on=["b", "a"], time="ts"),
    ):
        assert trace.keys[1].to_pylist() == [1, 2]
        assert trace.keys[0].to_pylist()[0] == "x"
        assert trace.time.tolist() == [3, 4]


NOON = datetime(2026, 1, 2, 12, 0, 0, 5, tzinfo=UTC)
MICROS = 1767355200000005


@pytest.mark.parametrize(
    "times",
    [
        [NOON],
        [NOON.replace(tzinfo=None)],
        pd.to_datetime([NOON]),
        pd.Series([pd.Timestamp(NOON.replace(tzinfo=None))]),
        np.array([MICROS], "datetime64[us]"),
        np.array([MICROS * 1000], "datetime64[ns]"),
        pl.Series([NOON]),
        pa.array([NOON], pa.timestamp("us", "Europe/Vienna")),
    ],
    ids=["aware", "naive", "pandas index", "pandas", "numpy us", "numpy ns", "polars", "another zone"],
)
def test_calendar_times_are_microseconds(times: object) -> None:
    trace = Trace.of({"key": [1], "time": times})
    assert trace.time.dtype == np.int64
    assert trace.time.tolist() == [MICROS]


def test_dates_and_coarser_times() -> None:
    day = 86_400_000_000
    assert Trace.of({"key": [1], "time": [date(1970, 1, 3)]}).time.tolist() == [2 * day]
    seconds = pa.array([5], pa.timestamp("s"))
    assert Trace.of({"key": [1], "time": seconds}).time.tolist() == [5_000_000]


def test_csv_reads_timestamps(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("key,time\na,2026-01-02 12:00:00\n", encoding="utf-8")
    assert Trace.from_csv(tmp_path / "t.csv").time.tolist() == [MICROS - 5]


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (np.int8, np.int64),
        (np.int32, np.int64),
        (np.uint32, np.int64),
        (np.uint64, np.int64),
        (np.float32, np.float64),
        (np.float64, np.float64),
    ],
)
def test_times_have_64_bits(dtype: type[np.generic], expected: type[np.generic]) -> None:
    trace = Trace.of({"key": [1, 1], "time": np.array([1, 2], dtype)})
    assert trace.time.dtype == expected
    assert trace.time.tolist() == [1, 2]


def test_whole_and_fractional_times_join() -> None:
    report = tg.simulate({"key": [1], "time": [1]}, {"key": [1], "time": [1.5]}, window=(0.5, 0))
    assert report.results == 1


@pytest.mark.parametrize("nothing", [{"key": [], "time": []}, {"key": np.empty(0), "time": np.empty(0)}])
def test_an_empty_trace(nothing: dict[str, Any]) -> None:
    assert len(Trace.of(nothing)) == 0


def test_nan_is_a_null_key() -> None:
    report = tg.simulate(
        {"key": [1.0, math.nan], "time": [0, 0]},
        pa.table({"key": [1.0, math.nan], "time": [0, 0]}),
        window=(0, 0),
    )
    assert (report.results, report.null_keys) == (1, 2)


@pytest.mark.parametrize(
    "keys",
    [
        [True, False],
        [b"x", b"y"],
        [date(2026, 1, 1), date(2026, 1, 2)],
        pd.Categorical(["x", "y"]),
        pl.Series(["x", "y"], dtype=pl.Categorical),
        pa.array(["x", "y"], pa.large_string()),
        pa.array(["x", "y"], pa.string_view()),
        pa.array([1, 2], pa.decimal128(20, 3)),
    ],
    ids=["bool", "bytes", "date", "pandas categorical", "polars categorical", "large", "view", "decimal"],
)
def test_keys_of_many_types(keys: object) -> None:
    stream = {"key": keys, "time": [0, 0]}
    assert tg.simulate(stream, stream, window=(0, 0)).results == 2


def test_categories_may_differ() -> None:
    sides = [{"key": pd.Categorical(names), "time": [0, 0]} for names in (["x", "y"], ["y", "z"])]
    report = tg.simulate(*sides, window=(0, 0), collect=True)
    assert report.pairs is not None
    assert (report.pairs.left.tolist(), report.pairs.right.tolist()) == ([1], [0])


def test_texts_of_different_widths() -> None:
    left = {"key": pa.array(["x"], pa.large_string()), "time": [0]}
    assert tg.simulate(left, {"key": ["x"], "time": [0]}, window=(0, 0)).results == 1


def test_several_keys_with_many_values_do_not_collide() -> None:
    n = 300
    columns = {f"k{i}": np.arange(n) * (i + 1) for i in range(9)}
    stream = columns | {"time": np.zeros(n, np.int64)}
    assert tg.simulate(stream, stream, window=(0, 0), on=list(columns)).results == n


@pytest.mark.parametrize("reader", ["from_csv", "from_parquet"])
def test_a_file_is_named_when_a_column_is_missing(reader: str, tmp_path: Path) -> None:
    table = pa.table({"key": [1]})
    csv.write_csv(table, tmp_path / "from_csv")
    parquet.write_table(table, tmp_path / "from_parquet")
    with pytest.raises(InputError, match=rf"{reader} has no column 'time' \(its columns: key\)"):
        getattr(Trace, reader)(tmp_path / reader)


def test_columns_of_unequal_length() -> None:
    with pytest.raises(InputError, match="differ in length: key 2, time 3"):
        Trace.of({"key": [1, 2], "time": [0, 1, 2]})


def test_input_is_not_changed() -> None:
    times = np.array([3, 1, 2])
    keys = np.array([1, 2, 3])
    tg.simulate({"key": keys, "time": times}, {"key": keys, "time": times}, window=(5, 5), budget=1)
    assert times.tolist() == [3, 1, 2]
    assert keys.tolist() == [1, 2, 3]
