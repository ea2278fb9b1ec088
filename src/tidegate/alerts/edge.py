"""Send only what can decide an alarm: the store as a filter for a device or a gateway."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final, Literal

import numpy as np
import pyarrow as pa

from tidegate.alerts.bracket_store import Shape, check_length
from tidegate.alerts.brackets import BRACKETED, OPEN, standing
from tidegate.alerts.lines import Reader, UnreadableError, blocks, joined, names, split
from tidegate.types import InputError, Time, check_choice

if TYPE_CHECKING:
    from tidegate.types import Array

Form = Literal["csv", "json"]
_SECOND: Final = 1_000_000


@dataclass(frozen=True)
class Edge:
    r"""What a filter is to do.

    A row may be left out once it is bracketed, and must be sent once it no longer can be. In between it is held back,
    for at most `omega` after the time up to which all readings have come; else nothing could be left out.

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

    def run(self, source: BinaryIO, sink: BinaryIO) -> Savings:
        """Read lines until the end, and write those that must be sent.

        A line that cannot be read ends it, too: an error names it, after all that was held back was sent.
        """
        reader, emitter, savings = Reader(self), Emitter(self), Savings()
        try:
            with suppress(KeyboardInterrupt):
                for block in blocks(source):
                    self._pass(block, reader, emitter, savings, sink)
        finally:  # whatever ended it
            savings.count(0, 0, sink, emitter.finish())
        savings.late, savings.blank, savings.held = emitter.late, emitter.blank, emitter.held
        return savings

    def _pass(self, block: bytes, reader: Reader, emitter: Emitter, savings: Savings, sink: BinaryIO) -> None:
        text = block
        if self.form == "csv" and reader.header is None:
            end = block.index(b"\n") + 1
            reader.header, text = names(block[:end]), block[end:]
            reader.passed += 1
            sink.write(block[:end])
            savings.bytes_read += end
            savings.bytes_sent += end
        lines = split(text)
        if len(lines):
            try:
                self._take(lines, len(text), reader, emitter, savings, sink)
            except UnreadableError as error:
                good = reader.readable(lines)
                if good:
                    some = lines.slice(0, good)
                    self._take(some, len(joined(some)), reader, emitter, savings, sink)
                raise InputError(reader.told(text, good, error)) from error
        reader.passed += text.count(b"\n")

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

    def told(self) -> str:
        """In words."""
        share = self.bytes_sent / self.bytes_read if self.bytes_read else 1.0
        odd = "".join(
            f"; {number:,} {what} sent at once"
            for number, what in ((self.late, "late"), (self.blank, "blank"))
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
        self.late = self.blank = self.held = 0
        self._mark: Time = -math.inf
        self._lines = pa.array([], pa.binary())
        self._key = np.empty(0, np.int64)
        self._time = np.empty(0, np.int64)
        self._value = np.empty(0)
        self._sent = np.empty(0, bool)

    def take(self, lines: pa.Array, key: Array, time: Array, value: Array, unit: int = 1) -> pa.Array:
        """Take rows, with `unit` times in what omega counts; tell the lines to send now."""
        blank = np.isnan(value) | np.isnan(time.astype(np.float64))
        late = ~blank & (time < self._mark)
        self.blank += int(blank.sum())
        self.late += int(late.sum())
        odd = blank | late
        at_once = lines.take(pa.array(np.flatnonzero(odd))) if odd.any() else lines.slice(0, 0)
        if odd.any():
            lines = lines.take(pa.array(np.flatnonzero(~odd)))
            key, time, value = key[~odd], time[~odd], value[~odd]
        if not len(lines):
            return at_once
        self._lines = pa.concat_arrays([self._lines, lines])
        self._key = np.concatenate((self._key, key))
        self._time = np.concatenate((self._time, time)) if len(self._time) else time
        self._value = np.concatenate((self._value, value))
        self._sent = np.concatenate((self._sent, np.zeros(len(lines), bool)))
        newest = time.max() - (self.config.disorder if unit == 1 else int(self.config.disorder * unit))
        self._mark = max(self._mark, newest.item())
        return pa.concat_arrays([at_once, self._decided(unit)])

    def finish(self) -> pa.Array:
        """No more will come: the lines to send of those that were held back."""
        return self._lines.take(pa.array(np.flatnonzero(~self._sent)))

    def _decided(self, unit: int) -> pa.Array:
        omega = self.config.omega * unit
        whole = self._time.dtype.kind == "i"
        bound = math.floor(omega) if whole else float(omega)
        order = _order(self._key, self._time)
        key, time, value = (
            column if order is None else column[order] for column in (self._key, self._time, self._value)
        )
        mark = math.ceil(self._mark) if whole else float(self._mark)
        signs = {"increasing": (1.0,), "decreasing": (-1.0,)}.get(self.config.shape, (1.0, -1.0))
        told = [standing(time, sign * value, key, bound, mark) for sign in signs]
        if self.config.shape == "any":
            told = [np.zeros(len(time), np.int8)]
        state = told[0] if len(told) == 1 else np.minimum(*told)
        if order is not None:
            placed = np.empty(len(state), np.int8)
            placed[order] = state
            state = placed
        waits = (state == OPEN) & ~self._sent
        if self.config.hold is not None:
            waits &= mark - self._time < self.config.hold * unit
        sends = (state != BRACKETED) & ~self._sent & ~waits
        self.held = max(self.held, int(waits.sum()))
        sent = self._lines.take(pa.array(np.flatnonzero(sends)))
        # Who waits is no older than omega, and who brackets it no more than that older; the bracketed bracket no one.
        near = self._time >= mark - 2 * bound
        stays = np.flatnonzero(waits | ((self._sent | sends) & near & (state != BRACKETED)))
        self._sent = (self._sent | sends)[stays]
        self._lines = self._lines.take(pa.array(stays))
        self._key, self._time, self._value = self._key[stays], self._time[stays], self._value[stays]
        return sent


def _order(key: Array, time: Array) -> Array | None:
    """How to put rows in order of key and time; None if they are."""
    if (key[1:] >= key[:-1]).all() and ((time[1:] >= time[:-1]) | (key[1:] > key[:-1])).all():
        return None
    return np.lexsort((time, key))
