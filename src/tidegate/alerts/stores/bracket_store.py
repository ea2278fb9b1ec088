"""Keep of a stream only what can still decide an alarm."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Self

import numpy as np

from tidegate.alerts.stores.block_filter import needed
from tidegate.alerts.stores.brackets import reigns
from tidegate.types import FAR, InputError, check_choice

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from tidegate.types import Array, Time

Shape = Literal["quasiconvex", "increasing", "decreasing", "any"]
Closed = Literal["both", "neither", "left", "right"]

_PENDING: Final = 1024
"""How many rows that came one by one wait to be looked at together."""
_COLUMNS: Final = ("time", "value", "id")


class Retained(NamedTuple):
    """Rows in order of time."""

    time: Array
    value: Array


class BracketStore:
    """The rows of one stream that are highest or lowest in some interval of length omega.

    All others are bracketed: whatever interval holds such a row holds a higher and a lower one of those that stay.
    A function that is quasiconvex in this stream is then at least as high for one of them, so no alarm is lost; see
    `tidegate.alerts` for what is promised. For distinct values of each time, no smaller set would do, and it is
    the same for every order of arrival.

    Parameters
    ----------
    omega
        The length of the interval: twice the bound on the distance of two streams' rows, or once for more streams
        (`omittable` tells).
    shape
        How the function depends on this stream: "quasiconvex" (highest and lowest rows stay), "increasing" (highest),
        "decreasing" (lowest), or "any" (all stay, in order of time).
    closed
        Which ends belong to the interval. All but "neither" keep the same rows.
    budget
        How many rows may stay at most; None for as many as must. Beyond it rows are shed that are the extreme of an
        interval for the shortest time, and alarms may be missed: `shed` and `chance` tell.

    Examples
    --------
    >>> store = BracketStore(omega=4)
    >>> store.extend([0, 1, 2, 3, 4], [5.0, 2.0, 3.0, 1.0, 6.0])
    >>> store.add(2.5, 2.5)
    >>> store.retained()
    Retained(time=array([0., 1., 3., 4.]), value=array([5., 2., 1., 6.]))
    >>> store.ids.tolist()
    [0, 1, 3, 4]

    References
    ----------
    Optimization of Threshold Functions over Streams, section 3.

    Deviations
    ----------
    Algorithm 1 as printed loses rows that are needed: its scan to the right can begin at an earlier row. Here the
    definition decides. Of equal values the paper keeps all; here one of them counts as the extreme one (`brackets`),
    and of rows alike in time and value the first stays. With ends of which one is open the paper turns to both open;
    but a pair of rows omega apart brackets there, too, which gives the least set. The rows are sorted arrays: a
    linked list takes four times as long or more for rows in order, a skip list six times for others, unless steps
    are small (`tidegate bench alerts`).
    """

    def __init__(
        self,
        omega: Time,
        shape: Shape = "quasiconvex",
        closed: Closed = "both",
        *,
        budget: int | None = None,
    ) -> None:
        check_choice(shape, Shape, "shape")
        check_choice(closed, Closed, "closed")
        self.omega = check_length(omega, "omega")
        if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int) or budget < 1):
            raise InputError(f"budget {budget!r} holds no rows; give a whole number, at least 1, or None")
        self.shape, self.closed, self.budget = shape, closed, budget
        self._arrived = self._gone = 0
        self._moved = np.zeros(2)
        self._seen = (math.inf, -math.inf)
        self._begin = self._end = 0
        self._columns: dict[str, Array] = {name: np.empty(0, np.int64) for name in _COLUMNS}
        self._columns["value"] = np.empty(0)
        self._waiting: tuple[list[Time], list[float]] = ([], [])
        self._moves = (0, np.empty(0, np.int64), 0, 0)

    def __len__(self) -> int:
        self._settle()
        return self._end - self._begin

    def add(self, time: Time, value: float) -> None:
        """Offer one row. Rows that come so are looked at together, at the latest when the store is read."""
        # What waits must be good, or rows that wait beside it would be lost with it.
        when, height = _reading(time, value)
        self._waiting[0].append(when)
        self._waiting[1].append(height)
        if len(self._waiting[0]) >= _PENDING:
            self._settle()

    def extend(self, times: ArrayLike, values: ArrayLike, ids: ArrayLike | None = None) -> None:
        """Offer rows in any order; `ids` are theirs, or else numbers in order of arrival."""
        self._settle()
        when, value = readings(times, values)
        if len(value) and np.isnan(value).any():
            raise InputError(
                "a value is NaN, which is neither high nor low; leave such rows out and count them"
            )
        number = None if ids is None else np.asarray(ids, np.int64)
        if number is not None and len(number) != len(when):
            raise InputError(f"there are {len(number)} ids for {len(when)} rows; give one a row")
        self._merge(when, value, number)
        self._arrived += len(when)
        if self.budget is not None and self._end - self._begin > self.budget:
            self._shed(self.budget)

    def retained(self) -> Retained:
        """The rows that stay, in order of time: views, good until the next change."""
        self._settle()
        return Retained(self._column("time"), self._column("value"))

    @property
    def ids(self) -> Array:
        """The numbers of the rows that stay, in order of time."""
        self._settle()
        return self._column("id")

    def kept(self) -> Array:
        """Where each row that stays stood before the last `extend`: among what was there, then the arrivals."""
        first, stays, last, before = self._moves
        again = last - first
        source = stays + np.where(stays < again, first, before - again)
        return np.concatenate((np.arange(first), source, np.arange(last, before)))

    @property
    def arrived(self) -> int:
        """How many rows were offered."""
        self._settle()
        return self._arrived

    @property
    def shed(self) -> int:
        """How many rows the budget had no room for."""
        self._settle()
        return self._gone

    @property
    def chance(self) -> float:
        """The estimated chance that an alarm is missed: in what share of intervals shedding moved an extreme.

        Highest and lowest are taken to be independent, and rows to be shed for no interval twice. For the shape "any"
        each row is as likely as another to decide an alarm: it is the share of rows that were shed.
        """
        if not self.shed:
            return 0.0
        if self.shape == "any":
            return self._gone / self._arrived
        return missing(self._moved, self._seen[1] - self._seen[0] + self.omega)

    @property
    def moved(self) -> Array:
        """For how long shedding moved the highest and the lowest of an interval; it says little for "any"."""
        self._settle()
        return self._moved.copy()

    def trim(self, before: Time) -> None:
        """Drop the rows before this time."""
        self._settle()
        self._begin += int(np.searchsorted(self._column("time"), before))

    def snapshot(self) -> dict[str, Array]:
        """All that is to be known of it, as arrays."""
        self._settle()
        state = {name: self._column(name).copy() for name in _COLUMNS}
        return state | {
            "counts": np.array([self._arrived, self._gone]),
            "moved": np.array([*self._moved, *self._seen]),
        }

    def restore(self, state: dict[str, Array]) -> Self:
        """Take up what `snapshot` gave."""
        self._columns = {name: np.array(state[name]) for name in _COLUMNS}
        self._begin, self._end = 0, len(state["time"])
        self._arrived, self._gone = state["counts"].tolist()
        self._moved = np.array(state["moved"][:2])
        self._seen = (float(state["moved"][2]), float(state["moved"][3]))
        self._waiting = ([], [])
        return self

    def _column(self, name: str) -> Array:
        return self._columns[name][self._begin : self._end]

    def _settle(self) -> None:
        if self._waiting[0]:
            times, values = self._waiting
            self._waiting = ([], [])
            self.extend(times, values)

    def _merge(self, when: Array, value: Array, number: Array | None) -> None:
        """Merge arrivals, and look again at what they can reach."""
        before = self._end - self._begin
        if not len(when):
            self._moves = (before, when, before, before)
            return
        if when.dtype != self._columns["time"].dtype:
            if before:
                self._columns["time"], when = (
                    self._columns["time"].astype(np.float64),
                    when.astype(np.float64),
                )
            else:  # there is room, but nothing in it to convert
                self._columns["time"] = self._columns["time"].view(when.dtype)
        ordered = _ascending(when)
        ends = (when[0], when[-1]) if ordered else (when.min(), when.max())
        self._seen = (min(self._seen[0], float(ends[0])), max(self._seen[1], float(ends[1])))
        omega, strict = self._limit(when)
        # Rows up to omega away may be bracketed now; who brackets them on one side already is up to twice that away.
        reach = ends[0] - 2 * omega, ends[1] + 2 * omega
        if when.dtype.kind == "f":  # rounding must not hide a row that is just within reach
            reach = np.nextafter(reach[0], -np.inf), np.nextafter(reach[1], np.inf)
        there = self._column("time")
        first = int(np.searchsorted(there, reach[0], side="left"))
        last = int(np.searchsorted(there, reach[1], side="right"))
        if first < last:
            ordered = ordered and there[last - 1] <= when[0]
            when, value = (
                np.concatenate((self._column(name)[first:last], fresh))
                for name, fresh in (("time", when), ("value", value))
            )
        if not ordered:
            order = np.argsort(when, kind="stable")
            when, value = when.take(order), value.take(order)
        if self.shape == "any":
            stays = np.arange(len(when))
        else:
            up, down = self.shape != "decreasing", self.shape != "increasing"
            stays = np.flatnonzero(needed(when, value, omega, strict, up, down))
        places = stays if ordered else order.take(stays)
        self._splice(first, last, Retained(when, value), stays, self._named(first, last, number, places))
        self._moves = (first, places, last, before)

    def _named(self, first: int, last: int, number: Array | None, places: Array) -> Array:
        """The ids of rows at these places: among what is from `first` to `last`, then the arrivals."""
        again = last - first
        ids = places + (self._arrived - again) if number is None else number.take(places - again, mode="clip")
        if again:
            old = np.flatnonzero(places < again)
            ids[old] = self._column("id")[first:last].take(places.take(old))
        return ids

    def _limit(self, times: Array) -> tuple[Time, bool]:
        """How far apart two rows that bracket may be, and whether less than that; whole for whole times."""
        strict = self.closed == "neither"
        if times.dtype.kind == "f":
            return float(self.omega), strict
        return (math.ceil(self.omega) - 1, False) if strict else (math.floor(self.omega), False)

    def _splice(self, first: int, last: int, rows: Retained, stays: Array, ids: Array) -> None:
        """Put those of the rows that stay, with these ids, in the place of what is from `first` to `last`."""
        size, new = self._end - self._begin, len(stays)
        total = size - (last - first) + new
        spacious = len(self._columns["time"]) < self._begin + total or self._begin > total
        # A quarter of spare room keeps appending cheap and the memory close to that of the rows. One block for all
        # columns, whose numbers all take eight bytes, is given in larger pages.
        block = np.empty((len(_COLUMNS), total + (total >> 2) if spacious else 0), np.int64)
        for name, room in zip(_COLUMNS, block, strict=True):
            column, old = self._columns[name], self._column(name)
            if spacious:
                target = room.view(column.dtype)
                target[:first] = old[:first]
            else:
                target = column[self._begin :]
            target[first + new : total] = old[last:]
            place = target[first : first + new]
            if name == "id":
                place[:] = ids
            else:
                np.take(getattr(rows, name), stays, out=place, mode="clip")  # which needs no buffer
            if spacious:
                self._columns[name] = target
        if spacious:
            self._begin = 0
        self._end = self._begin + total

    def _shed(self, budget: int) -> None:
        """Drop rows that are an extreme for the shortest time, until the budget holds the rest."""
        while (over := self._end - self._begin - budget) > 0:
            when, value = self._column("time").astype(np.float64), self._column("value")
            both = np.stack([reigns(when, sign * value, float(self.omega)) for sign in (1.0, -1.0)])
            wanted = np.array([self.shape != "decreasing", self.shape != "increasing"])
            lasting = (both * wanted[:, None]).sum(axis=0)
            # Half of what is too much at a time: those that stay then reign for longer.
            going = np.argsort(lasting, kind="stable")[: max(over // 2, 1)]
            self._moved += both[:, going].sum(axis=1) * wanted
            self._gone += len(going)
            stays = np.delete(np.arange(len(when)), going)
            self._moves = (0, self.kept()[stays], 0, 0)
            rows = Retained(self._column("time"), value)
            self._splice(0, len(when), rows, stays, self._column("id").take(stays))


def missing(moved: Array, seen: float) -> float:
    """The chance that an extreme is missed, if of all intervals the highest and lowest of so many were moved."""
    high, low = np.minimum(moved / seen, 1.0).tolist()
    return float(1 - (1 - high) * (1 - low))


def check_length(value: Time, what: str) -> Time:
    """Refuse what is no length of time."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise InputError(f"{what} is {value!r}; give a number above 0")
    plain: Time = value.item() if isinstance(value, np.generic) else value
    if not 0 < plain < FAR:
        raise InputError(f"{what} is {plain!r}; give a number above 0 and below 2**61")
    return plain


def readings(times: ArrayLike, values: ArrayLike) -> tuple[Array, Array]:
    """Times as 64-bit integers or floats, and values as floats, one a time."""
    when, value = _column(times, "times"), _numbers(values)
    if when.ndim != 1 or when.shape != value.shape:
        raise InputError(f"times are {when.shape} and values {value.shape}; give two columns of one length")
    if not len(when):
        return np.empty(0, np.int64), value
    if when.dtype.kind in "mM":
        if np.isnat(when).any():
            raise InputError("a time is NaT, which is never; leave such rows out and count them")
        when = when.astype(f"{when.dtype.kind}8[us]").view(np.int64)
    elif when.dtype.kind not in "iuf":
        raise InputError(f"times of type {when.dtype} cannot be used; give numbers or calendar times")
    first, last = when.min().item(), when.max().item()  # of Python: its whole numbers have no end
    if not (first > -FAR and last < FAR):
        raise InputError(f"times reach from {first} to {last}; give finite ones within 2**61 of 0")
    return when.astype(np.float64 if when.dtype.kind == "f" else np.int64, copy=False), value


def _column(given: ArrayLike, what: str) -> Array:
    try:
        return np.asarray(given)
    except ValueError as error:
        raise InputError(f"the {what} are no column: {error}; give one number a row") from error


def _numbers(given: ArrayLike) -> Array:
    values = _column(given, "values")
    try:
        if values.dtype.kind in "iufbO":
            return values.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"a value is no number: {error}; give numbers, NaN for those that are missing"
        ) from error
    raise InputError(f"values of type {values.dtype} cannot be used; give numbers")


def _reading(time: Time, value: float) -> tuple[Time, float]:
    """One row as plain numbers."""
    if not isinstance(value, int | float | np.number | np.bool_):
        raise InputError(f"the value at time {time!r} is {value!r}; give a number")
    if value != value:  # noqa: PLR0124 - only NaN is not what it is
        raise InputError(
            f"the value at time {time!r} is NaN, which is neither high nor low; leave such rows out and count them"
        )
    if isinstance(time, int | float) and not isinstance(time, bool) and -FAR < time < FAR:
        return time, float(value)
    try:
        when, _ = readings([time], [value])
    except InputError as error:
        raise InputError(f"the time is {time!r}: {error}") from error
    plain: Time = when[0].item()
    return plain, float(value)


def _ascending(times: Array) -> bool:
    return bool((times[1:] >= times[:-1]).all())
