"""The filter sends the rows that a store keeps, as unchanged lines."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from array import array
from concurrent.futures import ThreadPoolExecutor
from fcntl import ioctl
from itertools import pairwise
from subprocess import PIPE, Popen
from termios import FIONREAD
from time import monotonic, sleep

import numpy as np
import pyarrow as pa
import pytest
from psutil import STATUS_SLEEPING, Process
from typer.testing import CliRunner

from tidegate import InputError, cli
from tidegate.alerts import AlarmFinder, BracketStore, Edge, Topology
from tidegate.alerts.edge.filtering import EdgeFilter, EdgeReport
from tidegate.types import Array


class SmallReads(io.BytesIO):
    """Returns few bytes at a time, like a pipe."""

    def read1(self, size: int | None = -1, /) -> bytes:
        return super().read1(min(size or 0, 700))


class OneLineReads(io.BytesIO):
    """Returns one line at a time, like a device."""

    def read1(self, size: int | None = -1, /) -> bytes:
        return self.readline(size)


def random_rows(rows: int, keys: int, disorder: float, seed: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    time = np.sort(rng.integers(0, rows * 3, rows))
    arrival = np.argsort(time + rng.random(rows) * disorder, kind="stable")
    return rng.integers(0, keys, rows), time[arrival], rng.integers(0, 40, rows) / 2


def to_text(key: Array, time: Array, value: Array, form: str) -> bytes:
    rows = zip(key.tolist(), time.tolist(), value.tolist(), strict=True)
    if form == "csv":
        return "".join(["k,time,x,value\n", *(f"m{k},{t},a,{v}\n" for k, t, v in rows)]).encode()
    return "".join(json.dumps({"k": f"m{k}", "time": t, "value": v}) + "\n" for k, t, v in rows).encode()


def kept_by_store(key: Array, time: Array, value: Array, omega: float) -> set[tuple[str, float, float]]:
    found = set()
    for one in np.unique(key).tolist():
        store = BracketStore(omega)
        store.extend(time[key == one], value[key == one])
        times, values = store.retained()
        found |= {(f"m{one}", t, v) for t, v in zip(times.tolist(), values.tolist(), strict=True)}
    return found


def parse_rows(sent: bytes, form: str) -> list[tuple[str, float, float]]:
    if form == "csv":
        parts = [line.split(",") for line in sent.decode().splitlines()[1:]]
        return [(part[0], float(part[1]), float(part[3])) for part in parts]
    parsed = [json.loads(line) for line in sent.decode().splitlines()]
    return [(row["k"], row["time"], row["value"]) for row in parsed]


@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.parametrize(("keys", "disorder"), [(1, 0), (1, 30), (5, 0), (5, 30)])
def test_the_filter_sends_the_rows_that_a_store_keeps(form: str, keys: int, disorder: int) -> None:
    columns = random_rows(1500, keys, disorder, seed=keys + disorder)
    config = Edge(omega=60 * keys, key="k", format=form, disorder=disorder)  # type: ignore[arg-type]
    sink = io.BytesIO()
    report = config.run(SmallReads(to_text(*columns, form)), sink)
    sent = parse_rows(sink.getvalue(), form)
    assert len(set(sent)) == len(sent) == report.sent
    assert set(sent) == kept_by_store(*columns, 60 * keys)
    assert report.read == 1500
    assert report.sent < 700
    assert 0 < report.max_held < 1500
    assert (report.late, report.missing) == (0, 0)
    assert report.bytes_sent == len(sink.getvalue())


def test_no_row_is_held_back_for_longer_than_the_limit() -> None:
    _, time, value = random_rows(3000, 1, 20, seed=9)
    for hold, limit in ((None, 90), (25, 25)):
        edge_filter = EdgeFilter(Edge(omega=90, disorder=20, hold=hold))
        lines = pa.array([b"x\n"] * 3000)
        sent = 0
        for begin, end in pairwise(range(0, 3001, 50)):
            some = slice(begin, end)
            sent += len(edge_filter.process(lines[some], np.zeros(50, np.int64), time[some], value[some]))
            newest = time[:end].max() - 20
            waiting = edge_filter._time[~edge_filter._sent]
            assert (newest - waiting < limit).all()
        sent += len(edge_filter.finish())
        minimum = len(kept_by_store(np.zeros(3000, np.int64), time, value, 90))
        assert sent == minimum if hold is None else minimum < sent < 3000


def test_late_and_missing_readings_are_sent_at_once() -> None:
    rows = b"time,value\n0,1\n5,1\n100,1\n"
    source = SmallReads(rows + b"".join(b"%d,1\n" % time for time in range(101, 300)) + b"3,7\n290,\n")
    sink = io.BytesIO()
    report = Edge(omega=10).run(source, sink)
    assert (report.late, report.missing) == (1, 1)
    assert b"3,7\n290,\n" in sink.getvalue()
    assert "1 late sent at once; 1 without a value sent at once" in report.summary()


def test_omega_is_in_seconds_for_timestamps() -> None:
    rows = b"when,v\r\n" + b"".join(b"2020-01-01 00:00:%02d,%d\r\n" % (at, at % 5) for at in range(60))
    sink = io.BytesIO()
    report = Edge(omega=20, time="when", value="v").run(io.BytesIO(rows), sink)
    store = BracketStore(20)
    store.extend(np.arange(60), np.arange(60) % 5)
    assert report.sent == len(store)


TIMES = {
    "small, then huge": ["0", "1", "2", "1e16", "2e16"],
    "whole, then not": ["0", "1", "1.5", "3", "5", "7.25", "9"],
    "missing, then whole": ["", "0", "1", "", "3", "4", "9"],
    "large, and missing": ["1700000000000000001", "", "1700000000000000002", "1700000000000000004"],
    "seconds, then parts": ["2020-01-01T00:00:00", "2020-01-01T00:00:00.5", "2020-01-01T00:00:03"],
    "with a zone": ["2020-01-01T00:00:00Z", "2020-01-01T01:00:00.250+01:00", "2020-01-01T00:00:05Z"],
    "trailing zeros": ["2020-01-01T00:00:00", "2020-01-01T00:00:01.500000000", "2020-01-01T00:00:03"],
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
def test_the_result_does_not_depend_on_blocks(form: str, times: list[str], keys: list[str]) -> None:
    rows = [(time, keys[at % 3], (at * 7 + part) % 4) for at, time in enumerate(times) for part in range(3)]
    if form == "csv":
        lines = ["time,k,value", *(f"{time},{key},{value}" for time, key, value in rows)]
    else:
        lines = [
            f'{{"time": {quoted(t)}, "k": {quoted(k)}, "value": {v}, "x": {quoted(k)}}}' for t, k, v in rows
        ]
    results = []
    for source in (io.BytesIO, OneLineReads):
        sink = io.BytesIO()
        report = Edge(omega=2, key="k", format=form).run(  # type: ignore[arg-type]
            source("\n".join(lines).encode()), sink
        )
        assert report.read == len(rows)
        assert report.missing == 3 * times.count("")
        assert report.sent < report.read or report.missing or len(set(keys)) == 3
        results.append(sorted(sink.getvalue().splitlines()))
    assert results[0] == results[1]


def test_large_integer_keys_are_not_rounded() -> None:
    """Readings of one key never bracket those of another, even if one key is a fraction."""
    keys = [2**60, 2**60 + 1, 2**60, 1.5]
    lines = [
        json.dumps({"time": at, "value": v, "k": k})
        for at, (v, k) in enumerate(zip([5, 2, 6, 1], keys, strict=True))
    ]
    sink = io.BytesIO()
    assert Edge(omega=9, key="k", format="json").run(io.BytesIO("\n".join(lines).encode()), sink).sent == 4


@pytest.mark.parametrize("source", [io.BytesIO, OneLineReads])
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("5,high", "line 8 cannot be read, '5,high': value cannot be read as a number"),
        ("soon,1", "line 8 cannot be read, 'soon,1': time cannot be read as a number or a timestamp"),
        ("2020-01-01,1", "line 8 .* time has timestamps after numbers; give one or the other"),
        ("5", "line 8 .* Expected 2 columns"),
    ],
)
def test_held_readings_are_sent_before_the_error_about_a_line(
    source: type[io.BytesIO], bad: str, message: str
) -> None:
    rows = ["time,value", "0,5", "1,2", "", "2,3", "3,1", "4,6", bad, "6,1"]
    sink = io.BytesIO()
    with pytest.raises(InputError, match=message):
        Edge(omega=100).run(source("\n".join(rows).encode()), sink)
    assert sink.getvalue().decode().split() == [rows[0], "0,5", "1,2", "3,1", "4,6"]


@pytest.mark.parametrize("source", [io.BytesIO, OneLineReads])
def test_fractions_after_integers_too_large_for_floats_are_refused(source: type[io.BytesIO]) -> None:
    rows = b"time,value\n%d,1\n%d,2\n" % (2**60 + 1, 2**60 + 3)
    sink = io.BytesIO()
    fine = Edge(omega=9)
    assert fine.run(source(rows), sink).read == 2
    with pytest.raises(InputError, match=r"line 4 .*fractions after whole numbers that are too large"):
        fine.run(OneLineReads(rows + b"1152921504606846980.5,3\n"), sink)


def test_the_last_line_and_empty_lines() -> None:
    sink = io.BytesIO()
    report = Edge(omega=1).run(io.BytesIO(b"time,value\n1,2\n\n3,4"), sink)
    assert report == EdgeReport(2, 2, bytes_read=20, bytes_sent=19, max_held=1)
    assert sink.getvalue() == b"time,value\n1,2\n3,4\n"
    assert Edge(omega=1).run(io.BytesIO(b""), sink).read == 0


@pytest.mark.parametrize(
    ("config", "rows", "message"),
    [
        ({"value": "x"}, b"time,value\n1,2\n", "no column 'x'; the columns are: time, value"),
        ({}, b"time,value\n1,b\n", "line 2 cannot be read, '1,b': value cannot be read as a number"),
        (
            {},
            b"time,value\n\na,1\n",
            "line 3 cannot be read, 'a,1': time cannot be read as a number or a timestamp",
        ),
        ({}, b'time,value,s\n1,2,"a\nb"\n', "line . cannot be read"),
        ({}, b"time,value\n1\n", "line 2 cannot be read, '1': .* 2 columns, got 1"),
        ({"format": "json"}, b'{"time": 1}\n{"t": 1', "line 2 cannot be read"),
        ({"format": "json"}, b'{"time": 1}{"time": 2}\n', "line 1 .* 1 lines contain 2 rows"),
        ({"format": "json", "time": "t"}, b'{"value": 1}\n', "no 't' in the lines"),
        ({"key": "time"}, b"", "time, value and key are 'time', 'value', 'time'; give different columns"),
        ({"value": "time"}, b"", "give different columns"),
        ({"omega": 0}, b"", "omega is 0"),
        ({"disorder": -1}, b"", "disorder is -1"),
        ({"hold": -1}, b"", "hold is -1"),
        ({"max_wait": -1}, b"", "max_wait is -1"),
        ({"low": 5, "high": 5}, b"", "low is 5 and high 5; low must be less than high"),
        ({"low": float("nan")}, b"", "low is nan"),
        ({"shape": "round"}, b"", "shape 'round' is not known"),
        ({"format": "xml"}, b"", "format 'xml' is not known"),
    ],
)
def test_invalid_input_is_refused(config: dict[str, object], rows: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Edge(**{"omega": 1, **config}).run(io.BytesIO(rows), io.BytesIO())  # type: ignore[arg-type]


def test_the_command_sends_held_readings_before_it_fails() -> None:
    rows = b'{"time": 0, "value": 5, "k": 7}\n{"time": 1, "value": 2, "k": 7}\n{"time": "late", "value": 2, "k": 7}\n'
    result = CliRunner().invoke(
        cli.app, ["edge", "--bracket", "50", "--key", "k", "--format", "json"], input=rows
    )
    assert result.exit_code == 1
    assert result.stdout.encode() == b"".join(rows.splitlines(keepends=True)[:2])
    assert "line 3 cannot be read" in str(result.exception)


def test_readings_outside_of_the_range_are_sent_and_bracket_no_others() -> None:
    rows = b"time,value\n0,100\n1,4\n2,100\n3,2\n4,3\n5,-7\n"
    sink = io.BytesIO()
    report = Edge(omega=4, shape="increasing", low=0, high=50).run(io.BytesIO(rows), sink)
    assert sink.getvalue().split() == [b"time,value", b"0,100", b"1,4", b"2,100", b"5,-7", b"4,3"]
    assert (report.outside, report.missing, report.late) == (3, 0, 0)
    assert "3 outside the range sent at once" in report.summary()
    assert Edge(omega=4, shape="increasing").run(io.BytesIO(rows), io.BytesIO()).outside == 0


def test_readings_are_sent_within_the_required_lateness() -> None:
    _, time, value = random_rows(700, 1, 20, seed=4)
    rows = b"time,value\n" + b"".join(
        b"%d,%s\n" % row for row in zip(time.tolist(), map(str.encode, map(str, value)), strict=True)
    )
    for config in (
        Edge(omega=90, disorder=20, high=19),
        Edge(omega=90, disorder=20, hold=25),
        Edge(omega=90, disorder=20, shape="increasing"),
        Edge(omega=90, disorder=20, shape="any"),
    ):
        for source in (OneLineReads, SmallReads, io.BytesIO):
            sink = io.BytesIO()
            assert config.run(source(rows), sink).late == 0
            sent = np.array([int(line.split(b",")[0]) for line in sink.getvalue().splitlines()[1:]])
            assert (np.maximum.accumulate(sent) - sent).max() < config.required_lateness
    assert [
        Edge(9, disorder=2).required_lateness,
        Edge(9, hold=3).required_lateness,
        Edge(9, "any").required_lateness,
    ] == [11, 3, 0]


def test_a_join_with_the_required_lateness_raises_every_alarm() -> None:
    """One stream is filtered: for each row of the other, the highest alarm is as high as without the filter."""
    within, rng = 50, np.random.default_rng(6)
    time, value = np.sort(rng.integers(0, 1500, 150)), rng.integers(0, 40, 150) / 4
    edge, sink = Edge(2 * within), io.BytesIO()
    rows = zip(time.tolist(), value.tolist(), strict=True)
    edge.run(OneLineReads(("time,value\n" + "".join(f"{t},{v}\n" for t, v in rows)).encode()), sink)
    sent = [tuple(map(float, line.split(b","))) for line in sink.getvalue().splitlines()[1:]]
    assert len(sent) < 80
    late = {edge.required_lateness: 0, 0: 0}
    for at in range(0, 1500, 150):
        near = value[abs(time - at) <= within]
        for wait in late:
            finder = AlarmFinder(
                Topology.clique("ab", within), lambda values: abs(values["a"] - 5) + values["b"]
            )
            finder.step({"b": ([at], [1.0])})
            newest, levels = -np.inf, [0.0]
            for when, height in sent:
                newest = max(newest, when)
                levels += finder.step({"a": ([when], [height])}, watermark=newest - wait).level.tolist()
            late[wait] += finder.late["a"]
            if wait:
                assert max(levels) == (abs(near - 5) + 1).max(initial=0.0)
    assert late[edge.required_lateness] == 0 < late[0]


@pytest.mark.parametrize(
    ("day", "config"),
    [
        ("", Edge(omega=100, max_wait=0.05)),
        ("2020-01-01 00:00:0", Edge(omega=0.05)),
        ("2020-01-01 00:00:0", Edge(omega=100, hold=0.05)),
    ],
)
def test_held_readings_are_sent_if_no_more_arrive(day: str, config: Edge) -> None:
    reading, writing = os.pipe()
    lines = [b"time,value\n", *(f"{day}{at},{at}\n".encode() for at in range(3))]
    sink = io.BytesIO()
    with (
        ThreadPoolExecutor() as pool,
        os.fdopen(reading, "rb") as source,
        os.fdopen(writing, "wb", 0) as device,
    ):
        report = pool.submit(config.run, source, sink)
        device.write(b"".join(lines)[:-2])
        until = monotonic() + 60
        while sink.getvalue() != b"".join(lines[:-1]) and monotonic() < until:
            sleep(0.01)
        assert sink.getvalue() == b"".join(lines[:-1])
        device.write(b"2\n")
        device.close()
        assert report.result(60).sent == 3
    assert sink.getvalue() == b"".join(lines)


WITHOUT_SPARK = """
import sys
class MissingModules:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in ("pyspark", "pandas", "sqlglot"):
            raise ModuleNotFoundError(name=name)
sys.meta_path.insert(0, MissingModules())
from tidegate import cli
cli.run()
"""


def _wait_until_read(process: Popen[bytes]) -> None:
    """Wait until a process has read its whole input and waits for more."""
    assert process.stdin is not None
    unread = array("i", [1])
    while unread[0] or Process(process.pid).status() != STATUS_SLEEPING:
        assert process.poll() is None
        sleep(0.05)
        ioctl(process.stdin, FIONREAD, unread)


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_the_command_runs_without_spark_and_sends_held_readings_at_a_signal(end: int) -> None:
    command = [
        sys.executable,
        "-c",
        WITHOUT_SPARK,
        "edge",
        "--bracket",
        "100",
        "--shape",
        "increasing",
        "--key",
        "k",
    ]
    with Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE) as process:  # noqa: S603 - our own
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"k,time,value\na,0,7\na,1,6\na,2,8\nb,150,1\n")
        process.stdin.flush()
        for line in (b"k,time,value\n", b"a,0,7\n", b"a,2,8\n"):
            assert process.stdout.readline() == line
        process.stdin.write(b"b,151,2\nb,15")
        process.stdin.flush()
        _wait_until_read(process)
        process.send_signal(end)
        sent, messages = process.communicate(timeout=120)
    assert process.returncode == 0, messages
    assert sent == b"b,150,1\nb,151,2\n"
    assert b"4 of 5 readings sent" in messages
    assert b"a join of them needs a lateness of at least 100" in messages


def test_the_edge_command_sends_what_the_filter_keeps() -> None:
    rows = to_text(*random_rows(400, 2, 0, seed=1), "csv")
    result = CliRunner().invoke(
        cli.app, ["edge", "--bracket", "50", "--key", "k"], input=rows, catch_exceptions=False
    )
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == "k,time,x,value"
    assert f"{len(result.stdout.splitlines()) - 1} of 400 readings sent" in result.stderr


GOOD = b'{"time": 1, "value": 2}\n'
DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize("source", [io.BytesIO, SmallReads])
@pytest.mark.parametrize(
    ("form", "rows", "message", "sent"),
    [
        ("csv", b"time,value," + b"x" * 5_000_000 + b"\n1,2,3\n", "line 1 is longer than 1,048,576 bytes", 0),
        ("csv", b"time,value\n1,2\n\n1," + b"2" * 2_000_000 + b"\n1,2\n", "line 4 is longer than", 1),
        ("csv", b"time,value\n1,2\n" + b"1" * 9_000_000, "line 3 is longer than .*--max-line", 1),
        ("json", GOOD + b'{"time": 1, "x": "' + b"a" * 2_000_000 + b'"}\n', "line 2 is longer than", 1),
        ("csv", b"\n1,2\n", "line 1 is empty; it must contain the names", 0),
        ("csv", b"time,value,\xff\n1,2,3\n", "line 1, the names of the columns, cannot be read: .*UTF-8", 0),
        ("csv", b'time,"value\n1,2\n', "line 1, the names of the columns, cannot be read", 0),
        ("csv", b"time,time,value\n1,1,2\n", "there are two columns 'time'", 0),
        ("json", GOOD + b"null\n", "line 2 cannot be read, 'null': it is not an object", 1),
        ("json", GOOD + b" null\n", "line 2 cannot be read, .*: it is not an object", 1),
        ("json", GOOD + GOOD[:-1] + b" null\n", "line 2 cannot be read, .*: it is not JSON: Extra data", 1),
        (
            "json",
            GOOD + b'{"time": no, "value": 1}\n',
            "it is not JSON: .*, in or after the field 'time'; the lines",
            1,
        ),
        (
            "json",
            GOOD + b'{"time": 1, "value": 1, "x": 1e}\n',
            "it is not JSON: .*, in or after the field 'x'; ",
            1,
        ),
        ("json", GOOD + b'{"time": 1, "value": "b"}\n', "value cannot be read as a number", 1),
        ("json", GOOD + b'{"time": "x", "value": 1}\n', "time cannot be read as a number or a timestamp", 1),
        ("json", GOOD + b"[1, 2]\n", "line 2 cannot be read, .*: it is not an object", 1),
        ("json", GOOD + b'{"time": 1, "value": ' + DEEP + b"}\n", "line 2 cannot be read", 1),
    ],
)
def test_malformed_lines_are_refused_after_the_lines_before_them_are_sent(
    source: type[io.BytesIO], form: str, rows: bytes, message: str, sent: int
) -> None:
    sink = io.BytesIO()
    with pytest.raises(InputError, match=message) as raised:
        Edge(omega=4, format=form).run(source(rows), sink)  # type: ignore[arg-type]
    assert len(str(raised.value)) < 600
    assert (
        sink.getvalue().removeprefix(rows[: rows.index(b"\n") + 1] if form == "csv" else b"").count(b"\n")
        == sent
    )


def test_deeply_nested_json_is_refused_in_a_key_only() -> None:
    deep = b'{"time": 2, "value": 3, "k": "a", "x": ' + DEEP + b"}\n"
    sink = io.BytesIO()
    assert Edge(omega=4, format="json").run(io.BytesIO(GOOD + deep), sink).read == 2
    rows = b'{"time": 1, "value": 2, "k": 1}\n{"time": 2, "value": 3, "k": "a"}\n'
    with pytest.raises(
        InputError, match=r"line 3 cannot be read, .*: it is nested too deep; give flat objects"
    ):
        Edge(omega=4, format="json", key="k").run(io.BytesIO(rows + deep.replace(b'"a", "x": ', b"")), sink)


def test_text_that_looks_like_a_null_after_an_object() -> None:
    rows = GOOD + b'{"time": 2, "value": 3, "x": "} null"}\n{"time": 3, "value": null, "y": {"a": {}}}\n'
    assert Edge(omega=4, format="json").run(io.BytesIO(rows), io.BytesIO()).read == 3


def test_the_limit_of_the_length_of_a_line() -> None:
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
