"""The vocabulary that every part of Tidegate shares.

Nothing here computes a join. The classes are frozen, check what the user wrote as soon as it is written, and
are the only types that cross from one room of the project to another.
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


FAR = 2**61
"""Times lie between `-FAR` and `FAR`, so that no difference of two can overflow 64 bits."""

FOREVER = 2 * FAR
"""A window this long never closes: no two times are further apart."""


class InputError(ValueError):
    """What the user gave cannot be used; the message names the value and the remedy."""


_members = cache(get_args)  # asked for at every step


def check_choice(value: object, kind: object, what: str) -> None:
    """Refuse a value that is not one of the Literal type's members, and say which there are."""
    known = _members(kind)
    if not isinstance(value, str) or value not in known:
        listed = ", ".join(map(repr, known))
        raise InputError(f"{what} {value!r} is not known; use one of {listed}{perhaps(value, known)}")


def perhaps(value: object, known: Iterable[str]) -> str:
    """Which of the known names may have been meant, as the end of a message; nothing where none is near.

    Examples
    --------
    >>> perhaps("Random", ["fifo", "random"])
    "; did you mean 'random'?"
    """
    near = difflib.get_close_matches(str(value).casefold(), list(known), n=1) if value else []
    return f"; did you mean {near[0]!r}?" if near else ""


def refuse_class(value: object, what: str, given: str = "...") -> None:
    """Refuse a class where one of its objects is needed, which is made of what is `given`."""
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
        """Read what the user wrote."""
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
    """What may be buffered after a step: rows or bytes, never more.

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
        """Read what the user wrote: rows (1000, "1000", "1000 rows"), bytes ("64 MB"), or None for no limit."""
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
        """What is counted."""
        return "rows" if self.bytes is None else "bytes"

    @property
    def limit(self) -> int:
        """How much of it."""
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
"""What the name of a note begins with where all columns of `Rows` are listed together."""


@dataclass(frozen=True)
class Rows:
    """Rows of one side, by columns.

    Parameters
    ----------
    side
        Which stream they belong to.
    key
        64-bit integers; numbers as they are, anything else encoded.
    time
        Event time, all integers or all floats.
    id
        The row's number among all that ever arrived, both sides together.
    matches
        How many results each has produced so far.
    importance
        What the user says a row is worth, where a policy or a report asks for it.
    payload
        Bytes that a row takes elsewhere (its other columns), where a budget counts them.
    lefts, rights
        How many rows of that side had arrived when this one did, itself included; only for `Last` windows.
    notes
        Columns that a running policy or sampler keeps beside the rows, by name.
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
        # Not by `fields`: a step of one row asks for them many times.
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
        # Not by its constructor, which sets every field by itself: a step of one row takes many times.
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
        """Bytes of one row's own columns; what they say of the payload's size is one of them."""
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
    """What a policy is shown of one step: who is there, who is new, and who matched.

    Of each side, `rows` holds the buffered rows first, then the arrivals, which begin at `fresh`; `hits` are
    the matches of each row in this step. `ages` tells for each side how many of this step's results found a
    row at which age, in the buckets that the policy asked for. `importance` is that of this step's results, and
    `shed` says how many rows had to leave for want of room since the policy was last shown a step.
    """

    number: int
    now: Time
    rows: dict[Side, Rows]
    fresh: dict[Side, int]
    hits: dict[Side, Array]
    ages: dict[Side, Array] = field(default_factory=dict)
    importance: float = 0.0
    shed: int = 0

    def arrivals(self, side: Side) -> Rows:
        """The rows that are new."""
        return self.rows[side].take(slice(self.fresh[side], None))


class Pairs(NamedTuple):
    """Results, as positions (or, in a report, original row numbers) of the left and the right partner."""

    left: Array
    right: Array


class Sampled(Pairs):
    """Results of a sample: beside both partners the probability of each to be in it, and how it was drawn.

    `owner` is the older of its rows, by its number among all that ever arrived. `shown` is the probability with
    which the owner was kept for this result: any two results of one owner are in the sample together with the
    product of their probabilities, divided by the greater `shown` of the two. It is 1 for a result that was drawn
    by itself.
    """

    probability: Array
    owner: Array
    shown: Array

    def __new__(cls, left: Array, right: Array, probability: Array, owner: Array, shown: Array) -> Self:
        """Make it of equally long columns."""
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
        What each of these results is worth, where rows say what they are.
    """

    left: Rows
    right: Rows
    steps: Array
    pairs: Pairs
    importance: Array | None = None


@dataclass(frozen=True)
class Setting:
    """What a policy may know of the join when it starts.

    `shares` are the budgets of the shared pool or of each side's own, None for one that holds nothing; `future` is
    there for a policy that needs it, in a simulation; `numeric` says whether keys are the user's own whole numbers
    (or times), so that a larger one means more, and not codes or hashes; `combine` is how the importance of a result
    follows from that of its two rows.
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
    """Ages from 0 on, in `count` buckets of equal width; the last one holds whatever is older, too."""

    width: float
    count: int


class Learned(NamedTuple):
    """One number that a policy believes, and what it is about.

    Parameters
    ----------
    model
        What kind of number: "rate" (rows a unit of time), "share" (of a side's rows, by key; without a key, of
        all), "age" (matches that a row may expect while its age is in a span), "maturity" (the age from which rows
        may go), "recomputations" (of priorities; the sample is how often room was made), "offset" (where a side's
        stream is), "brought" or "stayed" (results of rows, and their steps in memory, by how far from the other
        stream they were).
    side
        Of which side's rows.
    value
        The number.
    sample
        On how many rows it rests; None if it was given rather than learned, or where that is not counted.
    key, begin, end
        What it is about: a key, or a span of ages or of distances, None where that has no end.
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

    `results` is split by where the older partner stood: `from_left`, `from_right`, `from_step`. `exact` is
    what an unlimited budget would have given. Of the rows, `evicted` were shed for room, `expired` outlived
    their window, `late` came beyond the allowed lateness and `null_keys` could never match. `learned` is what the
    policy believed at the end.
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
    """A snapshot as part of a larger one: its arrays by names that `parts_of` tells apart from others."""
    return {f"{name}.{each}": array for each, array in state.items()}


def parts_of(state: Mapping[str, Array]) -> dict[str, dict[str, Array]]:
    """Take apart a snapshot whose names say, before a dot, which part each array is of.

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
