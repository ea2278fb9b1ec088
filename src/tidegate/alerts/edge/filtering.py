"""Send only what can decide an alarm: the store as a filter for a device or a gateway."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, BinaryIO, Final, Literal

import numpy as np
import pyarrow as pa

from tidegate.alerts.edge.lines import (
    LONGEST_LINE,
    Reader,
    TooLongError,
    UnreadableError,
    blocks,
    joined,
    names,
    overlong,
    split,
)
from tidegate.alerts.stores.bracket_store import Shape, check_length
from tidegate.alerts.stores.brackets import BRACKETED, FREE, OPEN, standing
from tidegate.types import InputError, Time, check_choice

if TYPE_CHECKING:
    from tidegate.types import Array

Form = Literal["csv", "json"]
_SECOND: Final = 1_000_000
_GIB: Final = 1 << 30


@dataclass(frozen=True)
class Edge:
    r"""What a filter is to do.

    A row may be left out once it is bracketed, and must be sent once it no longer can be. In between it is held back,
    for at most `omega` after the time up to which all readings have come; else nothing could be left out. So rows
    leave in another order: `behind` tells how late a join must let them be.

    Parameters
    ----------
    omega
        The length of the brackets, in the unit of the times; in seconds if those are calendar times.
    shape
        How the alarm depends on the readings.
    time, value, key
        The columns (or fields) to read; with a `key`, readings of each value of it are a stream of their own.
    form
        "csv", with a header, or "json", an object a line.
    disorder
        By how much a reading may be older than the newest before it. One that is older still is sent at once.
    hold
        How long a reading may be held back at most, if that is to be less than omega. It is sent then, needed or not.
    low, high
        Between which values the alarm is known to depend on the readings in this way. Others are sent at once, and no
        reading is left out for them.
    patience
        The same as `hold`, but in seconds by the clock: readings may cease, and with them their time. By default as
        long as `behind` for calendar times, and without end for others, of which the unit is not known.
    max_line
        How many bytes a line may have, its end aside. A longer one is an error, so that input without line ends does
        not fill the memory.

    Examples
    --------
    >>> import io
    >>> rows = b"time,value\n0,5\n1,2\n2,3\n3,1\n4,6\n9,6\n"
    >>> sent = io.BytesIO()
    >>> savings = Edge(omega=4).run(io.BytesIO(rows), sent)
    >>> sent.getvalue().split()
    [b'time,value', b'0,5', b'1,2', b'3,1', b'4,6', b'9,6']
    >>> savings.read, savings.sent
    (6, 5)

    References
    ----------
    Optimization of Threshold Functions over Streams, section 3.5.

    Deviations
    ----------
    The paper leaves open when a row is sent. Lines leave as they came, though not always in the same order.
    """

    omega: Time
    shape: Shape = "quasiconvex"
    time: str = "time"
    value: str = "value"
    key: str | None = None
    form: Form = "csv"
    disorder: Time = 0
    hold: Time | None = None
    low: float = -math.inf
    high: float = math.inf
    patience: float | None = None
    max_line: int = LONGEST_LINE

    def __post_init__(self) -> None:
        check_length(self.omega, "omega")
        check_choice(self.shape, Shape, "shape")
        check_choice(self.form, Form, "form")
        if len({self.time, self.value, self.key}) < 3:  # noqa: PLR2004 - columns, or two and None
            raise InputError(
                f"time, value and key are {self.time!r}, {self.value!r}, {self.key!r}; give each its own"
            )
        if not 0 <= self.disorder < math.inf:
            raise InputError(f"disorder is {self.disorder!r}; give a length of time, 0 or more")
        if self.hold is not None and not 0 <= self.hold < math.inf:
            raise InputError(f"hold is {self.hold!r}; give a length of time, 0 or more, or leave it out")
        if self.patience is not None and not 0 <= self.patience < math.inf:
            raise InputError(f"patience is {self.patience!r}; give seconds, 0 or more, or leave it out")
        if (
            isinstance(self.max_line, bool)
            or not isinstance(self.max_line, int)
            or not 0 < self.max_line <= _GIB
        ):
            raise InputError(
                f"max_line is {self.max_line!r}; give a whole number of bytes, from 1 to {_GIB:,}"
            )
        if not self.low < self.high:
            raise InputError(
                f"no reading lies between low, {self.low!r}, and high, {self.high!r}; give less and more"
            )

    @property
    def behind(self) -> Time:
        """How much older than one sent before it a reading may be, unless it is late: less than this.

        What joins the readings must take them so late: the least `lateness` for `tidegate.alert`.
        """
        held = self.omega if self.hold is None else min(self.hold, self.omega)
        return self.disorder + (0 if self.shape == "any" else held)

    def run(self, source: BinaryIO, sink: BinaryIO, cut_short: Callable[[], bool] = lambda: False) -> Savings:
        """Read lines until the end, and write those that must be sent.

        A line that cannot be read ends it, too: an error names it, after all that was held back was sent. Where the
        end may come within a line, `cut_short` tells whether it did.
        """
        reader, emitter, savings = Reader(self), Emitter(self), Savings()
        try:
            with suppress(KeyboardInterrupt):
                for block in blocks(source, due=emitter.due, cut_short=cut_short, longest=self.max_line):
                    if block:
                        self._pass(block, reader, emitter, savings, sink)
                    else:
                        savings.count(0, 0, sink, emitter.overdue())
        finally:  # whatever ended it
            savings.count(0, 0, sink, emitter.finish())
        savings.late, savings.blank, savings.outside = emitter.late, emitter.blank, emitter.outside
        savings.held = emitter.held
        return savings

    def _pass(self, block: bytes, reader: Reader, emitter: Emitter, savings: Savings, sink: BinaryIO) -> None:
        text = block
        if self.form == "csv" and reader.header is None:
            end = block.index(b"\n") + 1
            if end > self.max_line + 1:
                raise TooLongError(1, self.max_line)
            reader.header, text = names(block[:end]), block[end:]
            reader.passed += 1
            sink.write(block[:end])
            savings.bytes_read += end
            savings.bytes_sent += end
        lines = split(text)
        longer = overlong(lines, self.max_line)
        if longer is not None:
            before = joined(lines.slice(0, longer))
            self._pass_lines(split(before), before, reader, emitter, savings, sink)
            # Empty lines are numbered, too.
            at = text.index(lines[longer].as_py(), len(before))
            raise TooLongError(reader.passed + text.count(b"\n", 0, at) + 1, self.max_line)
        self._pass_lines(lines, text, reader, emitter, savings, sink)
        reader.passed += text.count(b"\n")

    def _pass_lines(
        self,
        lines: pa.Array,
        text: bytes,
        reader: Reader,
        emitter: Emitter,
        savings: Savings,
        sink: BinaryIO,
    ) -> None:
        if len(lines):
            try:
                self._take(lines, len(text), reader, emitter, savings, sink)
            except UnreadableError as error:
                good = reader.readable(lines)
                if good:
                    some = lines.slice(0, good)
                    self._take(some, len(joined(some)), reader, emitter, savings, sink)
                raise InputError(reader.told(text, good, error)) from error

    def _take(
        self,
        lines: pa.Array,
        size: int,
        reader: Reader,
        emitter: Emitter,
        savings: Savings,
        sink: BinaryIO,
    ) -> None:
        columns = reader.columns(lines)
        sent = emitter.take(lines, *columns, _SECOND if reader.calendar else 1)
        savings.count(len(lines), size, sink, sent)


@dataclass
class Savings:
    """What was read and sent; `held` is the most rows that were held back at a time."""

    read: int = 0
    sent: int = 0
    bytes_read: int = 0
    bytes_sent: int = 0
    late: int = 0
    blank: int = 0
    held: int = 0
    outside: int = 0

    def told(self) -> str:
        """In words."""
        share = self.bytes_sent / self.bytes_read if self.bytes_read else 1.0
        odd = "".join(
            f"; {number:,} {what} sent at once"
            for number, what in ((self.late, "late"), (self.blank, "blank"), (self.outside, "outside"))
            if number
        )
        return (
            f"{self.sent:,} of {self.read:,} readings sent, {share:.1%} of the bytes; "
            f"at most {self.held:,} held back at a time{odd}"
        )

    def count(self, rows: int, size: int, sink: BinaryIO, sent: pa.Array) -> None:
        """Write the lines, and count them and those that were read."""
        self.read += rows
        self.bytes_read += size
        self.sent += len(sent)
        if len(sent):
            text = joined(sent)
            self.bytes_sent += len(text)
            sink.write(text)
            sink.flush()


class Emitter:
    """`Edge` at work: holds back lines until it is known whether they are needed."""

    def __init__(self, config: Edge) -> None:
        self.config = config
        self.late = self.blank = self.outside = self.held = 0
        self._unit = 1
        self._mark: Time = -math.inf
        self._lines = pa.array([], pa.binary())
        self._key = np.empty(0, np.int64)
        self._time = np.empty(0, np.int64)
        self._value = np.empty(0)
        self._came = np.empty(0)
        self._sent = np.empty(0, bool)

    def take(self, lines: pa.Array, key: Array, time: Array, value: Array, unit: int = 1) -> pa.Array:
        """Take rows, with `unit` times in what omega counts; tell the lines to send now."""
        blank = np.isnan(value) | np.isnan(time.astype(np.float64))
        late = ~blank & (time < self._mark)
        outside = ~(blank | late) & ((value < self.config.low) | (value > self.config.high))
        self.blank += int(blank.sum())
        self.late += int(late.sum())
        self.outside += int(outside.sum())
        self._unit = unit
        if not blank.all():
            newest = time[~blank].max() - (
                self.config.disorder if unit == 1 else int(self.config.disorder * unit)
            )
            self._mark = max(self._mark, newest.item())
        if self._mark == -math.inf:
            return lines
        held = len(self._sent)
        self._lines = pa.concat_arrays([self._lines, lines])
        self._key = np.concatenate((self._key, key))
        self._time = np.concatenate((self._time, time)) if held else time
        self._value = np.concatenate((self._value, value))
        self._came = np.concatenate((self._came, np.full(len(lines), monotonic())))
        self._sent = np.concatenate((self._sent, np.zeros(len(lines), bool)))
        return self._decided(np.concatenate((np.zeros(held, bool), blank | late | outside)))

    def due(self) -> float | None:
        """In how many seconds a line has been held back for long enough; None if none will be."""
        waiting = self._came[~self._sent]
        if not len(waiting) or self._patience == math.inf:
            return None
        return max(0.0, float(waiting.min()) + self._patience - monotonic())

    def overdue(self) -> pa.Array:
        """The lines that were held back for long enough."""
        return self._decided(np.zeros(len(self._sent), bool))

    @property
    def _patience(self) -> float:
        if self.config.patience is not None:
            return self.config.patience
        return math.inf if self._unit == 1 else float(self.config.behind)

    def finish(self) -> pa.Array:
        """No more will come: the lines to send of those that were held back."""
        return self._lines.take(pa.array(np.flatnonzero(~self._sent)))

    def _decided(self, apart: Array) -> pa.Array:
        """The lines to send now, in the order in which they came; those apart bracket none and are not held back."""
        whole = self._time.dtype.kind == "i"
        bound = math.floor(self.config.omega * self._unit) if whole else float(self.config.omega * self._unit)
        mark = math.ceil(self._mark) if whole else float(self._mark)
        state = np.full(len(apart), FREE, np.int8)
        if self.config.shape != "any":
            some = np.flatnonzero(~apart) if apart.any() else slice(None)
            state[some] = self._standing(self._key[some], self._time[some], self._value[some], bound, mark)
        waits = (state == OPEN) & ~self._sent & (monotonic() - self._came < self._patience)
        if self.config.hold is not None:
            waits &= mark - self._time < self.config.hold * self._unit
        sends = (state != BRACKETED) & ~self._sent & ~waits
        self.held = max(self.held, int(waits.sum()))
        sent = self._lines.take(pa.array(np.flatnonzero(sends)))
        # Who waits is no older than omega, and who brackets it no more than that older; the bracketed bracket no one.
        near = self._time >= mark - 2 * bound
        stays = np.flatnonzero(waits | ((self._sent | sends) & near & (state != BRACKETED) & ~apart))
        self._sent = (self._sent | sends)[stays]
        self._lines = self._lines.take(pa.array(stays))
        self._key, self._time, self._value = self._key[stays], self._time[stays], self._value[stays]
        self._came = self._came[stays]
        return sent

    def _standing(self, key: Array, time: Array, value: Array, omega: Time, mark: Time) -> Array:
        """Of each row, whether it is bracketed as the shape wants it."""
        order = _order(key, time)
        if order is not None:
            key, time, value = key[order], time[order], value[order]
        signs = {"increasing": (1.0,), "decreasing": (-1.0,)}.get(self.config.shape, (1.0, -1.0))
        told = [standing(time, sign * value, key, omega, mark) for sign in signs]
        state = told[0] if len(told) == 1 else np.minimum(*told)
        if order is None:
            return state
        placed = np.empty(len(state), np.int8)
        placed[order] = state
        return placed


def _order(key: Array, time: Array) -> Array | None:
    """How to put rows in order of key and time; None if they are."""
    if (key[1:] >= key[:-1]).all() and ((time[1:] >= time[:-1]) | (key[1:] > key[:-1])).all():
        return None
    return np.lexsort((time, key))
