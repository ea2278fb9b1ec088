"""The filter sends what the store keeps, line by line as it came."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from subprocess import PIPE, Popen
from time import monotonic, sleep

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from tidegate import InputError, cli
from tidegate.alerts import AlarmFinder, BracketStore, Edge, Topology
from tidegate.alerts.edge.filtering import Emitter, Savings
from tidegate.types import Array


class Dripping(io.BytesIO):
    """Gives only some bytes at a time, as a pipe does."""

    def read1(self, size: int | None = -1, /) -> bytes:
        return super().read1(min(size or 0, 700))


class ByLine(io.BytesIO):
    """Gives a line at a time, as a device does."""

    def read1(self, size: int | None = -1, /) -> bytes:
        return self.readline(size)


def made(rows: int, keys: int, disorder: float, seed: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    time = np.sort(rng.integers(0, rows * 3, rows))
    arrival = np.argsort(time + rng.random(rows) * disorder, kind="stable")
    return rng.integers(0, keys, rows), time[arrival], rng.integers(0, 40, rows) / 2


def text(key: Array, time: Array, value: Array, form: str) -> bytes:
    rows = zip(key.tolist(), time.tolist(), value.tolist(), strict=True)
    if form == "csv":
        return "".join(["k,time,x,value\n", *(f"m{k},{t},a,{v}\n" for k, t, v in rows)]).encode()
    return "".join(json.dumps({"k": f"m{k}", "time": t, "value": v}) + "\n" for k, t, v in rows).encode()


def needed(key: Array, time: Array, value: Array, omega: float) -> set[tuple[str, float, float]]:
    found = set()
    for one in np.unique(key).tolist():
        store = BracketStore(omega)
        store.extend(time[key == one], value[key == one])
        times, values = store.retained()
        found |= {(f"m{one}", t, v) for t, v in zip(times.tolist(), values.tolist(), strict=True)}
    return found


def rows_of(sent: bytes, form: str) -> list[tuple[str, float, float]]:
    if form == "csv":
        parts = [line.split(",") for line in sent.decode().splitlines()[1:]]
        return [(part[0], float(part[1]), float(part[3])) for part in parts]
    told = [json.loads(line) for line in sent.decode().splitlines()]
    return [(row["k"], row["time"], row["value"]) for row in told]


@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.parametrize(("keys", "disorder"), [(1, 0), (1, 30), (5, 0), (5, 30)])
def test_what_is_sent_is_what_a_store_keeps(form: str, keys: int, disorder: int) -> None:
    columns = made(1500, keys, disorder, seed=keys + disorder)
    config = Edge(omega=60 * keys, key="k", form=form, disorder=disorder)  # type: ignore[arg-type]
    sink = io.BytesIO()
    savings = config.run(Dripping(text(*columns, form)), sink)
    sent = rows_of(sink.getvalue(), form)
    assert len(set(sent)) == len(sent) == savings.sent
    assert set(sent) == needed(*columns, 60 * keys)
    assert savings.read == 1500
    assert savings.sent < 700
    assert 0 < savings.held < 1500
    assert (savings.late, savings.blank) == (0, 0)
    assert savings.bytes_sent == len(sink.getvalue())


def test_no_row_is_held_back_for_longer_than_promised() -> None:
    _, time, value = made(3000, 1, 20, seed=9)
    for hold, most in ((None, 90), (25, 25)):
        emitter = Emitter(Edge(omega=90, disorder=20, hold=hold))
        lines = pa.array([b"x\n"] * 3000)
        sent = 0
        for begin, end in pairwise(range(0, 3001, 50)):
            some = slice(begin, end)
            sent += len(emitter.take(lines[some], np.zeros(50, np.int64), time[some], value[some]))
            newest = time[:end].max() - 20
            waiting = emitter._time[~emitter._sent]
            assert (newest - waiting < most).all()
        sent += len(emitter.finish())
        least = len(needed(np.zeros(3000, np.int64), time, value, 90))
        assert sent == least if hold is None else least < sent < 3000


def test_late_and_blank_readings_are_sent_at_once() -> None:
    rows = b"time,value\n0,1\n5,1\n100,1\n"
    source = Dripping(rows + b"".join(b"%d,1\n" % time for time in range(101, 300)) + b"3,7\n290,\n")
    sink = io.BytesIO()
    savings = Edge(omega=10).run(source, sink)
    assert (savings.late, savings.blank) == (1, 1)
    assert b"3,7\n290,\n" in sink.getvalue()
    assert "1 late sent at once; 1 blank sent at once" in savings.told()


def test_calendar_times_count_in_seconds() -> None:
    rows = b"when,v\r\n" + b"".join(b"2020-01-01 00:00:%02d,%d\r\n" % (at, at % 5) for at in range(60))
    sink = io.BytesIO()
    savings = Edge(omega=20, time="when", value="v").run(io.BytesIO(rows), sink)
    store = BracketStore(20)
    store.extend(np.arange(60), np.arange(60) % 5)
    assert savings.sent == len(store)


TIMES = {
    "small, then huge": ["0", "1", "2", "1e16", "2e16"],
    "whole, then not": ["0", "1", "1.5", "3", "5", "7.25", "9"],
    "blank, then whole": ["", "0", "1", "", "3", "4", "9"],
    "large, and blank": ["1700000000000000001", "", "1700000000000000002", "1700000000000000004"],
    "seconds, then parts": ["2020-01-01T00:00:00", "2020-01-01T00:00:00.5", "2020-01-01T00:00:03"],
    "with a zone": ["2020-01-01T00:00:00Z", "2020-01-01T01:00:00.250+01:00", "2020-01-01T00:00:05Z"],
    "finer than it matters": ["2020-01-01T00:00:00", "2020-01-01T00:00:01.500000000", "2020-01-01T00:00:03"],
    "a day, then times": ["2020-01-01", "2020-01-01 00:00:01", "2020-01-01 00:00:03.25"],
}
KEYS = {
    "words": ["a", "b", "a"],
    "numbers": ["1", "2", "1"],
    "numbers, then fractions": ["1", "1", "2.5"],
    "numbers and words": ["1", "a", "1"],
    "large": ["1152921504606846976", "1152921504606846977", "1.5"],
}


def quoted(text: str) -> str:
    try:
        json.loads(text)
    except json.JSONDecodeError:
        return json.dumps(text) if text else "null"
    return text


@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.parametrize("times", TIMES.values(), ids=TIMES)
@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
def test_how_the_lines_are_cut_does_not_matter(form: str, times: list[str], keys: list[str]) -> None:
    rows = [(time, keys[at % 3], (at * 7 + part) % 4) for at, time in enumerate(times) for part in range(3)]
    if form == "csv":
        lines = ["time,k,value", *(f"{time},{key},{value}" for time, key, value in rows)]
    else:
        lines = [
            f'{{"time": {quoted(t)}, "k": {quoted(k)}, "value": {v}, "x": {quoted(k)}}}' for t, k, v in rows
        ]
    told = []
    for source in (io.BytesIO, ByLine):
        sink = io.BytesIO()
        savings = Edge(omega=2, key="k", form=form).run(  # type: ignore[arg-type]
            source("\n".join(lines).encode()), sink
        )
        assert savings.read == len(rows)
        assert savings.blank == 3 * times.count("")
        assert savings.sent < savings.read or savings.blank or len(set(keys)) == 3
        told.append(sorted(sink.getvalue().splitlines()))
    assert told[0] == told[1]


def test_keys_beyond_what_a_float_tells_apart_stay_apart() -> None:
    """One key's readings never bracket another's, though a fraction stands among them."""
    keys = [2**60, 2**60 + 1, 2**60, 1.5]
    lines = [
        json.dumps({"time": at, "value": v, "k": k})
        for at, (v, k) in enumerate(zip([5, 2, 6, 1], keys, strict=True))
    ]
    sink = io.BytesIO()
    assert Edge(omega=9, key="k", form="json").run(io.BytesIO("\n".join(lines).encode()), sink).sent == 4


@pytest.mark.parametrize("source", [io.BytesIO, ByLine])
@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ("5,high", "line 8 cannot be read, '5,high': value cannot be read as a number"),
        ("soon,1", "line 8 cannot be read, 'soon,1': time cannot be read as a number or a calendar time"),
        ("2020-01-01,1", "line 8 .* time has calendar times after numbers; give one or the other"),
        ("5", "line 8 .* Expected 2 columns"),
    ],
)
def test_what_was_held_back_is_sent_before_a_line_that_cannot_be_read_is_named(
    source: type[io.BytesIO], bad: str, told: str
) -> None:
    rows = ["time,value", "0,5", "1,2", "", "2,3", "3,1", "4,6", bad, "6,1"]
    sink = io.BytesIO()
    with pytest.raises(InputError, match=told):
        Edge(omega=100).run(source("\n".join(rows).encode()), sink)
    assert sink.getvalue().decode().split() == [rows[0], "0,5", "1,2", "3,1", "4,6"]


@pytest.mark.parametrize("source", [io.BytesIO, ByLine])
def test_fractions_are_not_compared_with_whole_times_that_no_float_holds(source: type[io.BytesIO]) -> None:
    rows = b"time,value\n%d,1\n%d,2\n" % (2**60 + 1, 2**60 + 3)
    sink = io.BytesIO()
    fine = Edge(omega=9)
    assert fine.run(source(rows), sink).read == 2
    with pytest.raises(InputError, match=r"line 4 .*fractions after whole numbers too large"):
        fine.run(ByLine(rows + b"1152921504606846980.5,3\n"), sink)


def test_the_last_line_and_empty_lines() -> None:
    sink = io.BytesIO()
    savings = Edge(omega=1).run(io.BytesIO(b"time,value\n1,2\n\n3,4"), sink)
    assert savings == Savings(2, 2, bytes_read=20, bytes_sent=19, held=1)
    assert sink.getvalue() == b"time,value\n1,2\n3,4\n"
    assert Edge(omega=1).run(io.BytesIO(b""), sink).read == 0


@pytest.mark.parametrize(
    ("config", "rows", "told"),
    [
        ({"value": "x"}, b"time,value\n1,2\n", "no column 'x'; there is time, value"),
        ({}, b"time,value\n1,b\n", "line 2 cannot be read, '1,b': value cannot be read as a number"),
        (
            {},
            b"time,value\n\na,1\n",
            "line 3 cannot be read, 'a,1': time cannot be read as a number or a calendar",
        ),
        ({}, b'time,value,s\n1,2,"a\nb"\n', "line . cannot be read"),
        ({}, b"time,value\n1\n", "line 2 cannot be read, '1': .* 2 columns, got 1"),
        ({"form": "json"}, b'{"time": 1}\n{"t": 1', "line 2 cannot be read"),
        ({"form": "json"}, b'{"time": 1}{"time": 2}\n', "line 1 .* 1 lines hold 2 rows"),
        ({"form": "json", "time": "t"}, b'{"value": 1}\n', "no 't' in the lines"),
        ({"key": "time"}, b"", "time, value and key are 'time', 'value', 'time'; give each its own"),
        ({"value": "time"}, b"", "give each its own"),
        ({"omega": 0}, b"", "omega is 0"),
        ({"disorder": -1}, b"", "disorder is -1"),
        ({"hold": -1}, b"", "hold is -1"),
        ({"patience": -1}, b"", "patience is -1"),
        ({"low": 5, "high": 5}, b"", "no reading lies between low, 5, and high, 5"),
        ({"low": float("nan")}, b"", "no reading lies between low, nan"),
        ({"shape": "round"}, b"", "shape 'round' is not known"),
        ({"form": "xml"}, b"", "form 'xml' is not known"),
    ],
)
def test_what_cannot_be_used_is_named(config: dict[str, object], rows: bytes, told: str) -> None:
    with pytest.raises(InputError, match=told):
        Edge(**{"omega": 1, **config}).run(io.BytesIO(rows), io.BytesIO())  # type: ignore[arg-type]


def test_the_command_sends_what_it_held_back_before_it_fails() -> None:
    rows = b'{"time": 0, "value": 5, "k": 7}\n{"time": 1, "value": 2, "k": 7}\n{"time": "late", "value": 2, "k": 7}\n'
    result = CliRunner().invoke(
        cli.app, ["edge", "--omega", "50", "--key", "k", "--format", "json"], input=rows
    )
    assert result.exit_code == 1
    assert result.stdout.encode() == b"".join(rows.splitlines(keepends=True)[:2])
    assert "line 3 cannot be read" in str(result.exception)


def test_a_reading_outside_of_the_domain_is_sent_and_stands_in_for_none() -> None:
    rows = b"time,value\n0,100\n1,4\n2,100\n3,2\n4,3\n5,-7\n"
    sink = io.BytesIO()
    savings = Edge(omega=4, shape="increasing", low=0, high=50).run(io.BytesIO(rows), sink)
    assert sink.getvalue().split() == [b"time,value", b"0,100", b"1,4", b"2,100", b"5,-7", b"4,3"]
    assert (savings.outside, savings.blank, savings.late) == (3, 0, 0)
    assert "3 outside sent at once" in savings.told()
    assert Edge(omega=4, shape="increasing").run(io.BytesIO(rows), io.BytesIO()).outside == 0


def test_what_is_sent_is_behind_by_less_than_is_told() -> None:
    _, time, value = made(700, 1, 20, seed=4)
    rows = b"time,value\n" + b"".join(
        b"%d,%s\n" % row for row in zip(time.tolist(), map(str.encode, map(str, value)), strict=True)
    )
    for config in (
        Edge(omega=90, disorder=20, high=19),
        Edge(omega=90, disorder=20, hold=25),
        Edge(omega=90, disorder=20, shape="increasing"),
        Edge(omega=90, disorder=20, shape="any"),
    ):
        for source in (ByLine, Dripping, io.BytesIO):
            sink = io.BytesIO()
            assert config.run(source(rows), sink).late == 0
            sent = np.array([int(line.split(b",")[0]) for line in sink.getvalue().splitlines()[1:]])
            assert (np.maximum.accumulate(sent) - sent).max() < config.behind
    assert [Edge(9, disorder=2).behind, Edge(9, hold=3).behind, Edge(9, "any").behind] == [11, 3, 0]


def test_a_join_that_waits_for_what_is_behind_raises_every_alarm() -> None:
    """One stream comes through the filter: for each row of the other, the highest alarm is as high as without."""
    within, rng = 50, np.random.default_rng(6)
    time, value = np.sort(rng.integers(0, 1500, 150)), rng.integers(0, 40, 150) / 4
    edge, sink = Edge(2 * within), io.BytesIO()
    rows = zip(time.tolist(), value.tolist(), strict=True)
    edge.run(ByLine(("time,value\n" + "".join(f"{t},{v}\n" for t, v in rows)).encode()), sink)
    sent = [tuple(map(float, line.split(b","))) for line in sink.getvalue().splitlines()[1:]]
    assert len(sent) < 80
    late = {edge.behind: 0, 0: 0}
    for at in range(0, 1500, 150):
        near = value[abs(time - at) <= within]
        for wait in late:
            finder = AlarmFinder(Topology.clique("ab", within), lambda of: abs(of["a"] - 5) + of["b"])
            finder.step({"b": ([at], [1.0])})
            newest, levels = -np.inf, [0.0]
            for when, height in sent:
                newest = max(newest, when)
                levels += finder.step({"a": ([when], [height])}, watermark=newest - wait).level.tolist()
            late[wait] += finder.late["a"]
            if wait:
                assert max(levels) == (abs(near - 5) + 1).max(initial=0.0)
    assert late[edge.behind] == 0 < late[0]


@pytest.mark.parametrize(
    ("day", "config"),
    [
        ("", Edge(omega=100, patience=0.05)),
        ("2020-01-01 00:00:0", Edge(omega=0.05)),
        ("2020-01-01 00:00:0", Edge(omega=100, hold=0.05)),
    ],
)
def test_what_is_held_back_is_sent_when_readings_cease(day: str, config: Edge) -> None:
    reading, writing = os.pipe()
    lines = [b"time,value\n", *(f"{day}{at},{at}\n".encode() for at in range(3))]
    sink = io.BytesIO()
    with (
        ThreadPoolExecutor() as pool,
        os.fdopen(reading, "rb") as source,
        os.fdopen(writing, "wb", 0) as device,
    ):
        savings = pool.submit(config.run, source, sink)
        device.write(b"".join(lines)[:-2])
        until = monotonic() + 5
        while sink.getvalue() != b"".join(lines[:-1]) and monotonic() < until:
            sleep(0.01)
        assert sink.getvalue() == b"".join(lines[:-1])
        device.write(b"2\n")
        device.close()
        assert savings.result(5).sent == 3
    assert sink.getvalue() == b"".join(lines)


WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in ("pyspark", "pandas", "sqlglot"):
            raise ModuleNotFoundError(name=name)
sys.meta_path.insert(0, Absent())
from tidegate import cli
cli.run()
"""


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_the_command_runs_without_spark_and_ended_sends_what_it_held_back(end: int) -> None:
    command = [sys.executable, "-c", WITHOUT, "edge", "--omega", "100", "--shape", "increasing", "--key", "k"]
    with Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE) as process:  # noqa: S603 - our own
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"k,time,value\na,0,7\na,1,6\na,2,8\nb,150,1\n")
        process.stdin.flush()
        for line in (b"k,time,value\n", b"a,0,7\n", b"a,2,8\n"):
            assert process.stdout.readline() == line
        process.stdin.write(b"b,151,2\nb,15")
        process.stdin.flush()
        sleep(0.3)
        process.send_signal(end)
        sent, told = process.communicate(timeout=20)
    assert process.returncode == 0, told
    assert sent == b"b,150,1\nb,151,2\n"
    assert b"4 of 5 readings sent" in told
    assert b"a join of them needs a lateness of at least 100" in told


def test_the_command() -> None:
    rows = text(*made(400, 2, 0, seed=1), "csv")
    result = CliRunner().invoke(
        cli.app, ["edge", "--omega", "50", "--key", "k"], input=rows, catch_exceptions=False
    )
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == "k,time,x,value"
    assert f"{len(result.stdout.splitlines()) - 1} of 400 readings sent" in result.stderr


GOOD = b'{"time": 1, "value": 2}\n'
DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize("source", [io.BytesIO, Dripping])
@pytest.mark.parametrize(
    ("form", "rows", "told", "sent"),
    [
        ("csv", b"time,value," + b"x" * 5_000_000 + b"\n1,2,3\n", "line 1 is longer than 1,048,576 bytes", 0),
        ("csv", b"time,value\n1,2\n\n1," + b"2" * 2_000_000 + b"\n1,2\n", "line 4 is longer than", 1),
        ("csv", b"time,value\n1,2\n" + b"1" * 9_000_000, "line 3 is longer than .*--max-line", 1),
        ("json", GOOD + b'{"time": 1, "x": "' + b"a" * 2_000_000 + b'"}\n', "line 2 is longer than", 1),
        ("csv", b"\n1,2\n", "line 1 is empty; give the names", 0),
        ("csv", b"time,value,\xff\n1,2,3\n", "line 1, the names of the columns, cannot be read: .*UTF-8", 0),
        ("csv", b'time,"value\n1,2\n', "line 1, the names of the columns, cannot be read", 0),
        ("csv", b"time,time,value\n1,1,2\n", "there are two columns 'time'", 0),
        ("json", GOOD + b"null\n", "line 2 cannot be read, 'null': it is not an object", 1),
        ("json", GOOD + b" null\n", "line 2 cannot be read, .*: it is not an object", 1),
        ("json", GOOD + GOOD[:-1] + b" null\n", "line 2 cannot be read, .*: it is not JSON: Extra data", 1),
        ("json", GOOD + b"[1, 2]\n", "line 2 cannot be read, .*: it is not an object", 1),
        ("json", GOOD + b'{"time": 1, "value": ' + DEEP + b"}\n", "line 2 cannot be read", 1),
    ],
)
def test_hostile_lines_are_named_and_what_was_before_them_is_sent(
    source: type[io.BytesIO], form: str, rows: bytes, told: str, sent: int
) -> None:
    sink = io.BytesIO()
    with pytest.raises(InputError, match=told) as raised:
        Edge(omega=4, form=form).run(source(rows), sink)  # type: ignore[arg-type]
    assert len(str(raised.value)) < 600
    assert (
        sink.getvalue().removeprefix(rows[: rows.index(b"\n") + 1] if form == "csv" else b"").count(b"\n")
        == sent
    )


def test_json_nested_deep_is_no_matter_but_in_a_key() -> None:
    deep = b'{"time": 2, "value": 3, "k": "a", "x": ' + DEEP + b"}\n"
    sink = io.BytesIO()
    assert Edge(omega=4, form="json").run(io.BytesIO(GOOD + deep), sink).read == 2
    rows = b'{"time": 1, "value": 2, "k": 1}\n{"time": 2, "value": 3, "k": "a"}\n'
    with pytest.raises(
        InputError, match=r"line 3 cannot be read, .*: it is nested too deep; make it flatter"
    ):
        Edge(omega=4, form="json", key="k").run(io.BytesIO(rows + deep.replace(b'"a", "x": ', b"")), sink)


def test_text_that_only_looks_like_a_null_behind_an_object() -> None:
    rows = GOOD + b'{"time": 2, "value": 3, "x": "} null"}\n{"time": 3, "value": null, "y": {"a": {}}}\n'
    assert Edge(omega=4, form="json").run(io.BytesIO(rows), io.BytesIO()).read == 3


def test_a_line_may_be_as_long_as_it_is_allowed_to() -> None:
    long = b"1,2," + b"x" * 96
    for end in (b"\n", b"\r\n", b""):
        rows = b"time,value,note" + (end or b"\n") + long + end
        config = Edge(omega=4, max_line=len(long) + (end == b"\r\n"))
        assert config.run(io.BytesIO(rows), io.BytesIO()).read == 1
    with pytest.raises(InputError, match="line 2 is longer than 99 bytes"):
        Edge(omega=4, max_line=99).run(io.BytesIO(rows), io.BytesIO())
    for wrong in (0, -1, 2**31, 1.5, True):
        with pytest.raises(InputError, match=r"max_line is .*; give a whole number of bytes"):
            Edge(omega=4, max_line=wrong)  # type: ignore[arg-type]
