"""The vocabulary that every part of Tidegate shares.

Nothing here computes a join. The classes are frozen, and check the user's input when they are made.
"""

from __future__ import annotations

import difflib
import math
import re
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self, TypeAlias, get_args

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"
Side = Literal["left", "right"]
Order = Literal["probe-first", "shed-first"]
Comparison = Literal["=", "<", "<=", "!=", ">", ">="]
Combine = Literal["min", "max", "sum", "product", "mean"]
Time: TypeAlias = int | float
StepSize: TypeAlias = int | Literal["instant"]
Split: TypeAlias = Literal["shared", "even", "optimal"] | tuple[int, int]

SIDES: tuple[Side, Side] = get_args(Side)


def other_side(side: Side) -> Side:
    """The side that rows of this one are matched with."""
    return "right" if side == "left" else "left"


class Clocks(NamedTuple):
    """The largest event time that each side has reached.

    The age of a row is measured by the other side's clock. It is negative while the row waits for a side that is
    behind.

    Examples
    --------
    >>> clocks = Clocks(left=80, right=50)
    >>> clocks.now, clocks.of("right"), clocks.lead("left")
    (80, 50, 30)
    """

    left: Time
    right: Time

    @classmethod
    def both(cls, time: Time) -> Self:
        """The same time on both sides."""
        return cls(time, time)

    @property
    def now(self) -> Time:
        """The larger of both."""
        return max(self)

    def of(self, side: Side) -> Time:
        """The clock of one side."""
        return self.left if side == "left" else self.right

    def lead(self, side: Side) -> Time:
        """How far a side is ahead of the other; negative if it is behind."""
        return self.of(side) - self.of(other_side(side))


FAR = 2**61
"""Times lie between `-FAR` and `FAR`, so that no difference of two can overflow 64 bits."""

FOREVER = 2 * FAR
"""A window this long never closes: no two times are further apart."""


class InputError(ValueError):
    """What the user gave cannot be used; the message names the value and the remedy."""


_members = cache(get_args)  # called at every step


def check_choice(value: object, kind: object, what: str) -> None:
    """Refuse a value that is not one of the Literal type's members, and list them."""
    known = _members(kind)
    if not isinstance(value, str) or value not in known:
        listed = ", ".join(map(repr, known))
        raise InputError(f"{what} {value!r} is not known; use one of {listed}{perhaps(value, known)}")


def perhaps(value: object, known: Iterable[str]) -> str:
    """The most similar of the known names, as the end of a message; empty if none is similar.

    Examples
    --------
    >>> perhaps("Random", ["fifo", "random"])
    "; did you mean 'random'?"
    """
    near = difflib.get_close_matches(str(value).casefold(), list(known), n=1) if value else []
    return f"; did you mean {near[0]!r}?" if near else ""


def refuse_class(value: object, what: str, given: str = "...") -> None:
    """Refuse a class where one of its objects is needed; `given` are its arguments, for the message."""
    if isinstance(value, type):
        raise InputError(f"{what} is the class {value.__name__}; call it: {value.__name__}({given})")


@dataclass(frozen=True)
class Last:
    """A tuple-based window: a row stays joinable while it is among the last `rows` rows of its side.

    Counted in arrival order (time, left before right at equal times), so it does not depend on the step.
    """

    rows: int

    def __post_init__(self) -> None:
        if isinstance(self.rows, bool) or not isinstance(self.rows, int) or self.rows < 1:
            raise InputError(f"Last({self.rows!r}) is not a window; give a whole number of rows, at least 1")


WindowSpan: TypeAlias = Time | timedelta | Last | None


@dataclass(frozen=True)
class Window:
    """How long a row of each side stays joinable.

    `l` and `r` join iff their keys match and `-right <= r.time - l.time <= left`, both ends closed. None is
    without end, a `Last` counts rows instead of time, and one of the two may be negative as long as the
    interval is not empty.

    Examples
    --------
    >>> Window.of((10, -5))
    Window(left=10, right=-5)
    >>> Window.of((10, -20))
    Traceback (most recent call last):
    tidegate.types.InputError: window (10, -20) is empty: left + right must be at least 0
    """

    left: Time | Last | None
    right: Time | Last | None

    @classmethod
    def of(cls, value: Window | tuple[WindowSpan, WindowSpan]) -> Window:
        """Make a window from the user's input."""
        if isinstance(value, Window):
            return value
        refuse_class(value, "window")
        if not isinstance(value, tuple | list) or len(value) != len(SIDES):
            raise InputError(
                f"window {value!r} is not a pair; write window=(left, right), e.g. window=(500, 0)"
            )
        return cls(_span(value[0], "left"), _span(value[1], "right"))

    def __post_init__(self) -> None:
        left, right = (_span(self.left, "left"), _span(self.right, "right"))
        object.__setattr__(self, "left", left)
        object.__setattr__(self, "right", right)
        if isinstance(left, Last) or isinstance(right, Last):
            negative = [
                span for span in (left, right) if not isinstance(span, Last) and span is not None and span < 0
            ]
            if negative:
                raise InputError(
                    f"window {(left, right)} mixes Last with a negative end; use 0 or more beside Last"
                )
        elif left is not None and right is not None and left + right < 0:
            raise InputError(f"window {(left, right)} is empty: left + right must be at least 0")

    @property
    def counted(self) -> bool:
        """Whether either end counts rows."""
        return isinstance(self.left, Last) or isinstance(self.right, Last)

    def whole(self) -> Window:
        """The same window over whole times: `r.time - l.time <= 2.5` is `<= 2` there."""
        left, right = (math.floor(s) if isinstance(s, float) else s for s in (self.left, self.right))
        return Window(left, right) if (left, right) != (self.left, self.right) else self

    def length(self, side: Side) -> Time:
        """The window of one side on its own axis: time, or rows after the first for a `Last`."""
        span = self.left if side == "left" else self.right
        if span is None:
            return FOREVER
        return span.rows - 1 if isinstance(span, Last) else span

    def lifetimes(self) -> dict[Side, Time]:
        """How long a row of each side stays joinable, in time: without end where rows are counted."""
        counted = {"left": isinstance(self.left, Last), "right": isinstance(self.right, Last)}
        return {side: FOREVER if counted[side] else self.length(side) for side in SIDES}


def _span(value: WindowSpan, side: Side) -> Time | Last | None:
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    if value is None or isinstance(value, Last):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise InputError(
            f"window on the {side} is {value!r}; give a number, a timedelta, tidegate.Last(rows) or None"
        )
    plain = value.item() if isinstance(value, np.generic) else value
    if not math.isfinite(plain):
        raise InputError(f"window on the {side} is {plain!r}; give a finite number, or None for no end")
    if abs(plain) >= FAR:
        raise InputError(f"window on the {side} is {plain!r}, beyond 2**61; use None for no end")
    return plain


_UNITS = {
    "b": 1,
    "byte": 1,
    "bytes": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
}
_SIZE: Final = re.compile(r"\s*(?P<number>(?:\d{1,3}(?:[_,]\d{3})+|\d+)(?:\.\d+)?)\s*(?P<unit>[a-zA-Z]*)\s*")
"""A number, with commas or underscores between thousands, and a unit."""


@dataclass(frozen=True)
class Budget:
    """The maximum that is buffered after a step, in rows or bytes.

    Examples
    --------
    >>> Budget.of(100)
    Budget(rows=100, bytes=None)
    >>> Budget.of("100 rows")
    Budget(rows=100, bytes=None)
    >>> Budget(bytes="64 MB").bytes
    64000000
    """

    rows: int | None = None
    bytes: int | str | None = None

    @classmethod
    def of(cls, value: Budget | int | str | None) -> Budget | None:
        """Make a budget from the user's input: rows (1000, "1000 rows"), bytes ("64 MB"), or None for no limit."""
        if value is None or isinstance(value, Budget):
            return value
        refuse_class(value, "budget")
        if not isinstance(value, str):
            return cls(rows=value)
        found = _SIZE.fullmatch(value)
        if found is None or found["unit"].lower() not in ("", "row", "rows"):
            return cls(bytes=value)
        number = re.sub("[_,]", "", found["number"])
        if not number.isdecimal():
            raise InputError(f"budget {value!r} is not a whole number of rows; write it like '1000 rows'")
        return cls(rows=int(number))

    def __post_init__(self) -> None:
        if (self.rows is None) == (self.bytes is None):
            raise InputError(
                f"a budget is in rows or in bytes, got rows={self.rows!r} and bytes={self.bytes!r}; give one"
            )
        if isinstance(self.bytes, str):
            object.__setattr__(self, "bytes", _parse_bytes(self.bytes))
        if self.limit < 1:
            raise InputError(
                f"a budget of {self.limit} {self.unit} holds nothing; give at least 1, or None for no limit"
            )

    @property
    def unit(self) -> Literal["rows", "bytes"]:
        """The unit."""
        return "rows" if self.bytes is None else "bytes"

    @property
    def limit(self) -> int:
        """The number of rows or bytes."""
        value = self.rows if self.bytes is None else self.bytes
        if isinstance(value, np.integer):
            return int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise InputError(
                f"a budget of {value!r} is not a whole number; give rows as an int, or bytes like '64 MB'"
            )
        return value

    def divided(self, parts: int) -> list[Budget]:
        """Divide into `parts` that add up to this budget, none empty."""
        if self.limit < parts:
            raise InputError(
                f"a budget of {self.limit} {self.unit} cannot be divided among {parts}; give at least {parts}"
            )
        share, extra = divmod(self.limit, parts)
        return [replace(self, **{self.unit: share + (i < extra)}) for i in range(parts)]


def _parse_bytes(text: str) -> int:
    found = _SIZE.fullmatch(text)
    unit = _UNITS.get(found["unit"].lower()) if found else None
    if found is None or unit is None:
        raise InputError(
            f"budget {text!r} is not a size; write it like '64 MB', '1.5 GiB' or '4096 B', or '1000 rows'"
        )
    return int(float(re.sub("[_,]", "", found["number"])) * unit)


@dataclass(frozen=True)
class Band:
    """The condition `low <= r.key - l.key <= high`, both ends closed."""

    low: Time
    high: Time

    def __post_init__(self) -> None:
        if not all(isinstance(end, int | float) for end in (self.low, self.high)):
            raise InputError(f"Band({self.low!r}, {self.high!r}) is not between numbers; give two")
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            raise InputError(
                f"Band({self.low!r}, {self.high!r}) is not finite; use a comparison like '<' for an open end"
            )
        if self.low > self.high:
            raise InputError(f"Band({self.low!r}, {self.high!r}) is empty; the lower end comes first")


Condition: TypeAlias = Comparison | Band


NOTE: Final = "notes."
"""The prefix of the names of notes in `Rows.columns`."""


@dataclass(frozen=True)
class Rows:
    """Rows of one side, by columns.

    Parameters
    ----------
    side
        Which stream they belong to.
    key
        64-bit integers: whole numbers, or codes of other values.
    time
        Event time, all integers or all floats.
    id
        The row's number among all that ever arrived, both sides together.
    matches
        The number of results of each row so far.
    importance
        The importance of each row, if there is one.
    payload
        The bytes of each row's other columns, if a budget counts them.
    lefts, rights
        The number of rows of that side that had arrived when this one did, itself included; only for `Last` windows.
    notes
        Columns that a running policy or sampler keeps with the rows, by name.
    """

    side: Side
    key: Array
    time: Array
    id: Array
    matches: Array
    importance: Array | None = None
    payload: Array | None = None
    lefts: Array | None = None
    rights: Array | None = None
    notes: dict[str, Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.key)

    def columns(self) -> dict[str, Array]:
        """All columns that are present, by name; each note as `notes.<name>`.

        Examples
        --------
        >>> one = np.arange(1)
        >>> list(Rows("left", one, one, one, one, notes={"priority": one}).columns())
        ['key', 'time', 'id', 'matches', 'notes.priority']
        """
        # Not by `fields`, which is slow: a step of one row needs them several times.
        columns = {name: column for name, column in vars(self).items() if column is not None}
        del columns["side"]
        for name, column in columns.pop("notes").items():
            columns[NOTE + name] = column
        return columns

    @classmethod
    def from_columns(cls, side: Side, columns: Mapping[str, Array]) -> Self:
        """Make rows from what `columns` returned."""
        own: dict[str, Any] = {name: column for name, column in columns.items() if name[: len(NOTE)] != NOTE}
        if len(own) < len(columns):
            own["notes"] = {name[len(NOTE) :]: column for name, column in columns.items() if name not in own}
        return cls(side, **own)

    def take(self, positions: Array | slice) -> Self:
        """The rows at these positions (or under this mask), in their order."""
        # Not by its constructor, which is slow: a step of one row does this several times.
        taken = object.__new__(type(self))
        fields = vars(taken)
        for name, column in vars(self).items():
            if column is None or name == "side":
                fields[name] = column
            elif name == "notes":
                fields[name] = {note: values[positions] for note, values in column.items()}
            else:
                fields[name] = column[positions]
        return taken

    @property
    def row_bytes(self) -> int:
        """Bytes of one row's own columns, including the column of payload sizes."""
        return sum(column.dtype.itemsize for column in self.columns().values())

    def sizes(self) -> Array:
        """Bytes of each row, payload included."""
        own = np.full(len(self), self.row_bytes, dtype=np.int64)
        return own if self.payload is None else own + self.payload

    @property
    def nbytes(self) -> int:
        """Bytes of all rows, payload included."""
        return self.row_bytes * len(self) + (0 if self.payload is None else int(self.payload.sum()))


@dataclass(frozen=True)
class Step:
    """What a policy observes of one step: the rows, the arrivals among them, and the matches.

    Parameters
    ----------
    number
        The number of the step.
    since, clocks
        The clocks of both sides before the step, and after it.
    rows, fresh
        For each side, the buffered rows and then the arrivals, and the position of the first arrival.
    hits
        The matches of each row in this step.
    ages
        For each side, the number of results by the age of the older row, in the buckets that the policy watches.
    importance
        The importance of this step's results.
    shed
        The number of rows evicted since the policy last observed a step.
    step_hits
        The part of `hits` with arrivals of the same step, for each arrival. These results do not depend on which
        rows are kept.
    """

    number: int
    since: Clocks
    clocks: Clocks
    rows: dict[Side, Rows]
    fresh: dict[Side, int]
    hits: dict[Side, Array]
    ages: dict[Side, Array] = field(default_factory=dict)
    importance: float = 0.0
    shed: int = 0
    step_hits: dict[Side, Array] = field(default_factory=dict)

    @property
    def now(self) -> Time:
        """The larger clock after the step."""
        return self.clocks.now

    def arrivals(self, side: Side) -> Rows:
        """The arrivals of a side."""
        return self.rows[side].take(slice(self.fresh[side], None))

    def arrival_hits(self, side: Side) -> Array:
        """The matches of each arrival with rows that were buffered before the step."""
        hits: Array = self.hits[side][self.fresh[side] :]
        return hits - self.step_hits[side] if self.step_hits else hits


class Pairs(NamedTuple):
    """Results, as positions (or, in a report, original row numbers) of the left and the right partner."""

    left: Array
    right: Array


class Sampled(Pairs):
    """Results of a sample: both partners, the probability of each result, and how it was drawn.

    `owner` is the older of its rows, by its number among all that ever arrived. `shown` is the probability with
    which the owner was kept for this result: any two results of one owner are in the sample together with the
    product of their probabilities, divided by the greater `shown` of the two. It is 1 for a result that was drawn
    independently.
    """

    probability: Array
    owner: Array
    shown: Array

    def __new__(cls, left: Array, right: Array, probability: Array, owner: Array, shown: Array) -> Self:
        """Make a sample from columns of equal length."""
        made = super().__new__(cls, left, right)
        made.probability, made.owner, made.shown = probability, owner, shown
        return made

    @classmethod
    def none(cls) -> Self:
        """No results."""
        empty = np.empty(0, np.int64)
        return cls(empty, empty, np.empty(0), empty, np.empty(0))

    def take(self, places: Array) -> Self:
        """The results at these places."""
        columns = (self.left, self.right, self.probability, self.owner, self.shown)
        return type(self)(*(column[places] for column in columns))

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """Several samples as one."""
        every = (cls.none(), *parts)
        columns = ((part.left, part.right, part.probability, part.owner, part.shown) for part in every)
        return cls(*map(np.concatenate, zip(*columns, strict=True)))


@dataclass(frozen=True)
class Future:
    """Everything that will arrive, where the streams are recorded.

    Parameters
    ----------
    left, right
        The rows of each side, in order of arrival.
    steps
        For each row number, the step in which the row arrives.
    pairs
        The results of the exact join that count, by row number.
    importance
        The importance of each of these results, if rows have one.
    """

    left: Rows
    right: Rows
    steps: Array
    pairs: Pairs
    importance: Array | None = None


@dataclass(frozen=True)
class Setting:
    """What a policy may know of the join when it starts.

    Parameters
    ----------
    window, seed, partition, budget, order, condition
        As in `tidegate.engine.operator.Join`.
    shares
        The budget of the shared pool, or of each side; None for a side without memory.
    future
        What will arrive, in a simulation, for a policy that needs it.
    numeric
        Whether keys are the user's own whole numbers (or times), not codes or hashes.
    combine
        How the importance of a result follows from that of its two rows.
    """

    window: Window
    seed: int = 0
    partition: int = 0
    budget: Budget | None = None
    shares: tuple[Budget | None, ...] = ()
    order: Order = "probe-first"
    condition: Condition = "="
    future: Future | None = None
    numeric: bool = True
    combine: Combine = "min"


@dataclass(frozen=True)
class Buckets:
    """Ages from 0 on, in `count` buckets of equal width; the last one also has all older ages."""

    width: float
    count: int


class Learned(NamedTuple):
    """One estimate of a policy.

    Parameters
    ----------
    model
        The kind of estimate: "rate" (rows per unit of time), "share" (of a side's rows, by key; without a key, of
        all), "age" (expected matches of a row while its age is in a range), "maturity" (the age from which rows can
        be evicted), "recomputations" (of priorities; the sample is the number of evictions), "offset" (the position
        of a side's stream), "benefit" (expected results of a row, by its distance from the other stream), or a
        parameter of a process, such as "LinearTrend.speed".
    side
        The side whose rows it describes.
    value
        The estimate.
    sample
        The number of rows that it is based on; None if it was given rather than learned, or not counted.
    key, begin, end
        The key, or the range of ages or distances; None without an end.
    """

    model: str
    side: Side
    value: float
    sample: float | None = None
    key: int | None = None
    begin: float | None = None
    end: float | None = None


@dataclass(frozen=True)
class Report:
    """What was measured.

    `results` is the sum of `from_left`, `from_right` and `from_step`, by where the older partner was. `exact` is the
    number of results with an unlimited budget. Of the rows, `evicted` left for lack of memory, `expired` at the end
    of their window, `late` arrived beyond the allowed lateness, and `null_keys` could never match. `learned` are the
    estimates of the policy at the end.
    """

    results: int
    from_left: int
    from_right: int
    from_step: int
    exact: int
    importance: float
    exact_importance: float
    fairness: float
    peak_rows: int
    peak_bytes: int
    rows_left: int
    rows_right: int
    evicted: int
    expired: int
    late: int
    null_keys: int
    times: Array = field(repr=False)
    results_over_time: Array = field(repr=False)
    exact_over_time: Array = field(repr=False)
    pairs: Pairs | None = field(default=None, repr=False)
    learned: tuple[Learned, ...] = field(default=(), repr=False)

    @property
    def recall(self) -> float:
        """The fraction of the exact results that was produced; 1 when there were none to produce."""
        return self.results / self.exact if self.exact else 1.0

    @property
    def recall_over_time(self) -> Array:
        """`recall` up to each of `times`."""
        exact = np.asarray(self.exact_over_time, dtype=np.float64)
        return np.divide(self.results_over_time, exact, out=np.ones_like(exact), where=exact > 0)


def first_missing(names: Iterable[str], have: Sequence[str]) -> str | None:
    """The first of `names` that is not among `have`."""
    return next((name for name in names if name not in have), None)


def as_part(name: str, state: Mapping[str, Array]) -> dict[str, Array]:
    """A snapshot as part of a larger one: its arrays by names that `parts_of` separates."""
    return {f"{name}.{each}": array for each, array in state.items()}


def parts_of(state: Mapping[str, Array]) -> dict[str, dict[str, Array]]:
    """Split a snapshot into its parts, whose names are before the dots.

    Examples
    --------
    >>> rate = {"left": np.array([1]), "right": np.array([2])}
    >>> parts_of({"clock": np.array([3])} | as_part("rate", rate))
    {'clock': {'': array([3])}, 'rate': {'left': array([1]), 'right': array([2])}}
    """
    parts: dict[str, dict[str, Array]] = {}
    for name, array in state.items():
        part, _, rest = name.partition(".")
        parts.setdefault(part, {})[rest] = array
    return parts
