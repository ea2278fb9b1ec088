"""A filter for a device or a gateway: it sends only the readings that can decide an alarm."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, BinaryIO, Final

import numpy as np
import pyarrow as pa

from tidegate.alerts.edge.lines import (
    MAX_LINE_BYTES,
    LineFormat,
    LineReader,
    TooLongError,
    UnreadableError,
    concatenate_lines,
    find_long_line,
    read_blocks,
    read_header,
    split_lines,
)
from tidegate.alerts.stores.bracket_store import Shape
from tidegate.alerts.stores.brackets import BRACKETED, NEEDED, UNDECIDED, bracket_states
from tidegate.alerts.validation import check_duration
from tidegate.types import InputError, Time, check_choice

if TYPE_CHECKING:
    from tidegate.types import Array

_MICROSECONDS: Final = 1_000_000
_GIB: Final = 1 << 30


@dataclass(frozen=True)
class Edge:
    r"""The configuration of a filter.

    A reading may be omitted once it is bracketed, and must be sent once it can no longer become so. Until then it is
    held back, for at most `omega` after the time up to which all readings have arrived. So readings are sent in
    another order: `required_lateness` is the lateness that a join must allow.

    Parameters
    ----------
    omega
        The length of the brackets, in the unit of the times; in seconds for timestamps.
    shape
        How the alarm depends on the readings.
    time, value, key
        The columns (or fields) to read. With a `key`, the readings of each key are a separate stream.
    format
        "csv", with a header, or "json", with one object per line.
    disorder
        By how much a reading may be older than the newest one before it. An older one is late, and sent at once.
    hold
        The longest time to hold a reading back, if less than omega. Then it is sent, needed or not.
    low, high
        The range of values for which the shape is known. Readings outside of it are sent at once, and no other
        reading is omitted because of them.
    max_wait
        Like `hold`, but in seconds by the clock, in case that no more readings arrive. By default `required_lateness`
        for timestamps, and no limit for numbers, whose unit is not known.
    max_line
        The maximal number of bytes of a line, without its end. A longer line is an error, so that input without line
        ends does not fill the memory.

    Examples
    --------
    >>> import io
    >>> rows = b"time,value\n0,5\n1,2\n2,3\n3,1\n4,6\n9,6\n"
    >>> sent = io.BytesIO()
    >>> report = Edge(omega=4).run(io.BytesIO(rows), sent)
    >>> sent.getvalue().split()
    [b'time,value', b'0,5', b'1,2', b'3,1', b'4,6', b'9,6']
    >>> report.read, report.sent
    (6, 5)

    References
    ----------
    Optimization of Threshold Functions over Streams, section 3.5.

    Deviations
    ----------
    The paper does not state when a row is sent. Lines are sent unchanged, but not always in the same order.
    """

    omega: Time
    shape: Shape = "quasiconvex"
    time: str = "time"
    value: str = "value"
    key: str | None = None
    format: LineFormat = "csv"
    disorder: Time = 0
    hold: Time | None = None
    low: float = -math.inf
    high: float = math.inf
    max_wait: float | None = None
    max_line: int = MAX_LINE_BYTES

    def __post_init__(self) -> None:
        check_duration(self.omega, "omega")
        check_choice(self.shape, Shape, "shape")
        check_choice(self.format, LineFormat, "format")
        if len({self.time, self.value, self.key}) < 3:  # noqa: PLR2004 - three columns, or two and None
            raise InputError(
                f"time, value and key are {self.time!r}, {self.value!r}, {self.key!r}; give different columns"
            )
        if not 0 <= self.disorder < math.inf:
            raise InputError(f"disorder is {self.disorder!r}; give a duration, 0 or more")
        if self.hold is not None and not 0 <= self.hold < math.inf:
            raise InputError(f"hold is {self.hold!r}; give a duration, 0 or more, or leave it out")
        if self.max_wait is not None and not 0 <= self.max_wait < math.inf:
            raise InputError(f"max_wait is {self.max_wait!r}; give seconds, 0 or more, or leave it out")
        if (
            isinstance(self.max_line, bool)
            or not isinstance(self.max_line, int)
            or not 0 < self.max_line <= _GIB
        ):
            raise InputError(
                f"max_line is {self.max_line!r}; give a whole number of bytes, from 1 to {_GIB:,}"
            )
        if not self.low < self.high:
            raise InputError(f"low is {self.low!r} and high {self.high!r}; low must be less than high")

    @property
    def required_lateness(self) -> Time:
        """The least `lateness` for a `tidegate.alert` of the sent readings.

        A reading that is not late is older than one sent before it by less than this.
        """
        held = self.omega if self.hold is None else min(self.hold, self.omega)
        return self.disorder + (0 if self.shape == "any" else held)

    def run(
        self, source: BinaryIO, sink: BinaryIO, cut_short: Callable[[], bool] = lambda: False
    ) -> EdgeReport:
        """Read lines until the end of the source, and write those that must be sent.

        If a line cannot be read, all readings that are held back are sent, and an error names the line. If the source
        may end within a line, `cut_short` returns whether it did.
        """
        run = _EdgeRun(self, sink)
        try:
            with suppress(KeyboardInterrupt):
                for block in read_blocks(
                    source, due=run.filter.next_due, cut_short=cut_short, max_line=self.max_line
                ):
                    if block:
                        run.process_block(block)
                    else:
                        run.send(run.filter.overdue_lines())
        finally:  # also after an error
            run.send(run.filter.finish())
        report, edge_filter = run.report, run.filter
        report.late, report.missing = edge_filter.late, edge_filter.missing
        report.outside, report.max_held = edge_filter.outside, edge_filter.max_held
        return report


@dataclass
class EdgeReport:
    """Counts of what was read and sent.

    Attributes
    ----------
    read, sent, bytes_read, bytes_sent
        Readings and bytes.
    late, missing, outside
        The readings that were sent at once: late ones, ones without a time or value, and ones outside of the range.
    max_held
        The largest number of readings that were held back at a time.
    """

    read: int = 0
    sent: int = 0
    bytes_read: int = 0
    bytes_sent: int = 0
    late: int = 0
    missing: int = 0
    max_held: int = 0
    outside: int = 0

    def summary(self) -> str:
        """The counts in words."""
        share = self.bytes_sent / self.bytes_read if self.bytes_read else 1.0
        sent_at_once = "".join(
            f"; {count:,} {kind} sent at once"
            for count, kind in (
                (self.late, "late"),
                (self.missing, "without a value"),
                (self.outside, "outside the range"),
            )
            if count
        )
        return (
            f"{self.sent:,} of {self.read:,} readings sent, {share:.1%} of the bytes; "
            f"at most {self.max_held:,} held back at a time{sent_at_once}"
        )


class _EdgeRun:
    """One run of a filter: the reader of the lines, the filter, the sink and the counts."""

    def __init__(self, config: Edge, sink: BinaryIO) -> None:
        self.config, self.sink = config, sink
        self.reader, self.filter, self.report = LineReader(config), EdgeFilter(config), EdgeReport()

    def send(self, lines: pa.Array) -> None:
        """Write lines to the sink, and count them."""
        self.report.sent += len(lines)
        if len(lines):
            text = concatenate_lines(lines)
            self.report.bytes_sent += len(text)
            self.sink.write(text)
            self.sink.flush()

    def process_block(self, block: bytes) -> None:
        """Process whole lines; the first one is the header of a CSV file."""
        text = block
        if self.config.format == "csv" and self.reader.header is None:
            text = self._process_header(block)
        lines = split_lines(text)
        too_long = find_long_line(lines, self.config.max_line)
        if too_long is not None:
            before = concatenate_lines(lines.slice(0, too_long))
            self._process_lines(split_lines(before), before)
            # Empty lines count in the number of the line.
            start = text.index(lines[too_long].as_py(), len(before))
            raise TooLongError(self.reader.lines_read + text.count(b"\n", 0, start) + 1, self.config.max_line)
        self._process_lines(lines, text)
        self.reader.lines_read += text.count(b"\n")

    def _process_header(self, block: bytes) -> bytes:
        """Read and send the header; return the rest of the block."""
        end = block.index(b"\n") + 1
        if end > self.config.max_line + 1:
            raise TooLongError(1, self.config.max_line)
        self.reader.header = read_header(block[:end])
        self.reader.lines_read += 1
        self.sink.write(block[:end])
        self.report.bytes_read += end
        self.report.bytes_sent += end
        return block[end:]

    def _process_lines(self, lines: pa.Array, text: bytes) -> None:
        """Process lines; if one cannot be read, process those before it and raise an error that names it."""
        if not len(lines):
            return
        try:
            self._process_readable(lines, len(text))
        except UnreadableError as error:
            readable = self.reader.count_readable(lines)
            if readable:
                some = lines.slice(0, readable)
                self._process_readable(some, len(concatenate_lines(some)))
            raise InputError(self.reader.describe_error(text, readable, error)) from error

    def _process_readable(self, lines: pa.Array, size: int) -> None:
        key, time, value = self.reader.read_columns(lines)
        ready = self.filter.process(lines, key, time, value, _MICROSECONDS if self.reader.timestamps else 1)
        self.report.read += len(lines)
        self.report.bytes_read += size
        self.send(ready)


class EdgeFilter:
    """A running filter: it holds back lines until it is known whether they are needed."""

    def __init__(self, config: Edge) -> None:
        self.config = config
        self.late = self.missing = self.outside = self.max_held = 0
        self._unit = 1
        self._complete_until: Time = -math.inf
        # The lines that are held back, and those that were sent and may still bracket others.
        self._lines = pa.array([], pa.binary())
        self._key = np.empty(0, np.int64)
        self._time = np.empty(0, np.int64)
        self._value = np.empty(0)
        self._arrived_at = np.empty(0)
        self._sent = np.empty(0, bool)

    def process(self, lines: pa.Array, key: Array, time: Array, value: Array, unit: int = 1) -> pa.Array:
        """Process readings, and return the lines to send now; one unit of omega is `unit` units of `time`."""
        missing = np.isnan(value) | np.isnan(time.astype(np.float64))
        late = ~missing & (time < self._complete_until)
        outside = ~(missing | late) & ((value < self.config.low) | (value > self.config.high))
        self.missing += int(missing.sum())
        self.late += int(late.sum())
        self.outside += int(outside.sum())
        self._unit = unit
        if not missing.all():
            disorder = self.config.disorder if unit == 1 else int(self.config.disorder * unit)
            self._complete_until = max(self._complete_until, (time[~missing].max() - disorder).item())
        if self._complete_until == -math.inf:
            return lines
        before = len(self._sent)
        self._lines = pa.concat_arrays([self._lines, lines])
        self._key = np.concatenate((self._key, key))
        self._time = np.concatenate((self._time, time)) if before else time
        self._value = np.concatenate((self._value, value))
        self._arrived_at = np.concatenate((self._arrived_at, np.full(len(lines), monotonic())))
        self._sent = np.concatenate((self._sent, np.zeros(len(lines), bool)))
        return self._lines_to_send(np.concatenate((np.zeros(before, bool), missing | late | outside)))

    def next_due(self) -> float | None:
        """The seconds until a line must be sent by the clock; None if there is no such line."""
        waiting = self._arrived_at[~self._sent]
        if not len(waiting) or self._max_wait == math.inf:
            return None
        return max(0.0, float(waiting.min()) + self._max_wait - monotonic())

    def overdue_lines(self) -> pa.Array:
        """The lines that must be sent now by the clock."""
        return self._lines_to_send(np.zeros(len(self._sent), bool))

    @property
    def _max_wait(self) -> float:
        if self.config.max_wait is not None:
            return self.config.max_wait
        return math.inf if self._unit == 1 else float(self.config.required_lateness)

    def finish(self) -> pa.Array:
        """The lines that are held back; call it when no more will arrive."""
        return self._lines.take(pa.array(np.flatnonzero(~self._sent)))

    def _lines_to_send(self, excluded: Array) -> pa.Array:
        """The lines to send now, in the order of arrival; `excluded` ones bracket no other and are not held back."""
        integers = self._time.dtype.kind == "i"
        omega = self.config.omega * self._unit
        bound = math.floor(omega) if integers else float(omega)
        complete = math.ceil(self._complete_until) if integers else float(self._complete_until)
        state = np.full(len(excluded), NEEDED, np.int8)
        if self.config.shape != "any":
            some = np.flatnonzero(~excluded) if excluded.any() else slice(None)
            state[some] = self._states(self._key[some], self._time[some], self._value[some], bound, complete)
        waits = (state == UNDECIDED) & ~self._sent & (monotonic() - self._arrived_at < self._max_wait)
        if self.config.hold is not None:
            waits &= complete - self._time < self.config.hold * self._unit
        ready = (state != BRACKETED) & ~self._sent & ~waits
        self.max_held = max(self.max_held, int(waits.sum()))
        lines = self._lines.take(pa.array(np.flatnonzero(ready)))
        # A waiting row is at most omega old, and rows that bracket it are at most omega older. Bracketed rows bracket
        # no other row that the rows around them do not bracket.
        recent = self._time >= complete - 2 * bound
        sent = self._sent | ready
        kept = np.flatnonzero(waits | (sent & recent & (state != BRACKETED) & ~excluded))
        self._sent = sent[kept]
        self._lines = self._lines.take(pa.array(kept))
        self._key, self._time, self._value = self._key[kept], self._time[kept], self._value[kept]
        self._arrived_at = self._arrived_at[kept]
        return lines

    def _states(self, key: Array, time: Array, value: Array, omega: Time, complete_until: Time) -> Array:
        """The state of each row, for the directions that the shape needs."""
        order = _order(key, time)
        if order is not None:
            key, time, value = key[order], time[order], value[order]
        signs = {"increasing": (1.0,), "decreasing": (-1.0,)}.get(self.config.shape, (1.0, -1.0))
        states = [bracket_states(time, sign * value, key, omega, complete_until) for sign in signs]
        state = states[0] if len(states) == 1 else np.minimum(*states)
        if order is None:
            return state
        placed = np.empty(len(state), np.int8)
        placed[order] = state
        return placed


def _order(key: Array, time: Array) -> Array | None:
    """The order of the rows by key and time; None if they are in that order."""
    if (key[1:] >= key[:-1]).all() and ((time[1:] >= time[:-1]) | (key[1:] > key[:-1])).all():
        return None
    return np.lexsort((time, key))
