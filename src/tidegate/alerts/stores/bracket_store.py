"""A store of the rows of one stream that can still decide an alarm."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Final, Literal, NamedTuple

import numpy as np

from tidegate.alerts.stores.block_filter import needed_rows
from tidegate.alerts.stores.brackets import extreme_durations
from tidegate.alerts.validation import check_columns, check_duration, check_row
from tidegate.types import InputError, Numbers, Record, Stateful, check_choice

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from tidegate.types import Array, State, Time

Shape = Literal["quasiconvex", "increasing", "decreasing", "any"]
ClosedEnds = Literal["both", "neither", "left", "right"]

_MAX_PENDING: Final = 1024
"""The number of rows, added one by one, after which they are merged."""


class RetainedRows(NamedTuple):
    """Rows in order of time."""

    time: Array
    value: Array


class _KeptRows(NamedTuple):
    """The kept rows as columns."""

    time: Array
    value: Array
    id: Array


_COLUMNS: Final = _KeptRows._fields


class BracketStore(Stateful):
    """The rows of one stream that are the highest or lowest of some interval of length omega.

    All other rows are bracketed: every interval that contains such a row contains a higher and a lower row of those
    that are kept. A function that is quasiconvex in this stream is at least as high for one of them, so no alarm is
    lost; see `tidegate.alerts` for the guarantees. If the values at each time are distinct, no smaller set suffices,
    and the set is the same for every order of arrival.

    Parameters
    ----------
    omega
        The length of the interval: twice the maximal distance between rows of two joined streams, or the distance
        itself if more streams are joined (`omittable` returns it).
    shape
        How the function depends on this stream.

        | shape | rows that are kept |
        |---|---|
        | "quasiconvex" | the highest and the lowest |
        | "increasing" | the highest |
        | "decreasing" | the lowest |
        | "any" | all |
    closed
        Which ends belong to the interval. All but "neither" keep the same rows.
    budget
        The maximal number of rows; None for no limit. Beyond it, the rows are evicted that are the extreme of an
        interval for the shortest time. Then alarms may be missed: see `evicted` and `miss_probability`.

    Examples
    --------
    >>> store = BracketStore(omega=4)
    >>> store.extend([0, 1, 2, 3, 4], [5.0, 2.0, 3.0, 1.0, 6.0])
    >>> store.add(2.5, 2.5)
    >>> store.retained()
    RetainedRows(time=array([0., 1., 3., 4.]), value=array([5., 2., 1., 6.]))
    >>> store.ids.tolist()
    [0, 1, 3, 4]

    References
    ----------
    Optimization of Threshold Functions over Streams, section 3.

    Deviations
    ----------
    Algorithm 1 as printed loses rows that are needed: its scan to the right can begin at an earlier row. Here the
    definition decides.

    The paper keeps all rows of equal value. Here one of them counts as the extreme (see `brackets`), and of rows with
    the same time and value the first is kept.

    If one end of the interval is open, the paper treats both as open. But a pair of rows omega apart brackets then,
    too, so that fewer rows suffice.

    The rows are in sorted arrays. A linked list takes at least four times as long for rows in order, a skip list six
    times as long for others, unless steps are small (`tidegate bench alerts`).
    """

    state: ClassVar[State] = {
        "": Record("_kept", _KeptRows),
        "counts": Numbers(_arrived=int, _evicted=int),
        "moved": Numbers(_lost_time=np.ndarray, _time_range=tuple),
    }

    def __init__(
        self,
        omega: Time,
        shape: Shape = "quasiconvex",
        closed: ClosedEnds = "both",
        *,
        budget: int | None = None,
    ) -> None:
        check_choice(shape, Shape, "shape")
        check_choice(closed, ClosedEnds, "closed")
        self.omega = check_duration(omega, "omega")
        if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int) or budget < 1):
            raise InputError(f"budget is {budget!r}; give a positive whole number of rows, or None")
        self.shape, self.closed, self.budget = shape, closed, budget
        self._arrived = self._evicted = 0
        self._lost_time = np.zeros(2)
        self._time_range = (math.inf, -math.inf)
        self._begin = self._end = 0
        self._columns: dict[str, Array] = {name: np.empty(0, np.int64) for name in _COLUMNS}
        self._columns["value"] = np.empty(0)
        self._pending: tuple[list[Time], list[float]] = ([], [])

    def __len__(self) -> int:
        self._merge_pending()
        return self._end - self._begin

    def add(self, time: Time, value: float) -> None:
        """Offer one row. Such rows are merged in groups, at the latest when the store is read."""
        # Checked now: an invalid row among the pending ones would make the others fail, too.
        when, number = check_row(time, value)
        self._pending[0].append(when)
        self._pending[1].append(number)
        if len(self._pending[0]) >= _MAX_PENDING:
            self._merge_pending()

    def extend(self, times: ArrayLike, values: ArrayLike, ids: ArrayLike | None = None) -> None:
        """Offer rows in any order; without `ids`, rows are numbered in order of arrival."""
        self._merge_pending()
        when, value = check_columns(times, values)
        if len(value) and np.isnan(value).any():
            raise InputError("a value is NaN, which cannot be ranked; leave out such rows, and count them")
        new_ids = None if ids is None else np.asarray(ids, np.int64)
        if new_ids is not None and len(new_ids) != len(when):
            raise InputError(f"there are {len(new_ids)} ids for {len(when)} rows; give one id per row")
        self._merge(when, value, new_ids)
        self._arrived += len(when)
        if self.budget is not None and self._end - self._begin > self.budget:
            self._evict_rows(self.budget)

    def retained(self) -> RetainedRows:
        """The kept rows, in order of time: views, which are valid until the next change."""
        self._merge_pending()
        return RetainedRows(self._column("time"), self._column("value"))

    @property
    def ids(self) -> Array:
        """The ids of the kept rows, in order of time."""
        self._merge_pending()
        return self._column("id")

    @property
    def arrived(self) -> int:
        """The number of rows that were offered."""
        self._merge_pending()
        return self._arrived

    @property
    def evicted(self) -> int:
        """The number of rows that were evicted for the budget."""
        self._merge_pending()
        return self._evicted

    @property
    def miss_probability(self) -> float:
        """The estimated probability that an alarm is missed: the share of intervals whose extreme was evicted.

        The highest and the lowest row of an interval are assumed to be independent, and no interval to lose two
        extremes. For the shape "any" all rows are equally likely to decide an alarm: it is the share of evicted rows.
        """
        if not self.evicted:
            return 0.0
        if self.shape == "any":
            return self._evicted / self._arrived
        return miss_probability(self._lost_time, self._time_range[1] - self._time_range[0] + self.omega)

    @property
    def lost_time(self) -> Array:
        """The total times for which the highest, and the lowest, row of a sliding interval was an evicted row.

        Not meaningful for the shape "any".
        """
        self._merge_pending()
        return self._lost_time.copy()

    def trim(self, before: Time) -> None:
        """Drop the rows before this time."""
        self._merge_pending()
        self._begin += int(np.searchsorted(self._column("time"), before))

    def resume(self, times: Array, values: Array) -> None:
        """Continue with rows that a store has kept, in order of time; their ids are their positions.

        The arrays become the store's own.
        """
        self._kept = _KeptRows(times, values, np.arange(len(times)))
        self._arrived = len(times)

    def _column(self, name: str) -> Array:
        return self._columns[name][self._begin : self._end]

    def _merge_pending(self) -> None:
        if self._pending[0]:
            times, values = self._pending
            self._pending = ([], [])
            self.extend(times, values)

    def _merge(self, when: Array, value: Array, ids: Array | None) -> None:
        """Merge arrivals with the kept rows that they may bracket, and keep the rows that are needed."""
        if not len(when):
            return
        when = self._with_common_type(when)
        ordered = _ascending(when)
        ends = (when[0], when[-1]) if ordered else (when.min(), when.max())
        self._time_range = (
            min(self._time_range[0], float(ends[0])),
            max(self._time_range[1], float(ends[1])),
        )
        omega, strict = self._limit(when)
        first, last = self._reachable(ends, omega)
        if first < last:
            ordered = ordered and self._column("time")[last - 1] <= when[0]
            when, value = (
                np.concatenate((self._column(name)[first:last], arrivals))
                for name, arrivals in (("time", when), ("value", value))
            )
        if not ordered:
            order = np.argsort(when, kind="stable")
            when, value = when.take(order), value.take(order)
        if self.shape == "any":
            kept = np.arange(len(when))
        else:
            up, down = self.shape != "decreasing", self.shape != "increasing"
            kept = np.flatnonzero(needed_rows(when, value, omega, strict, up, down))
        kept_ids = self._ids_of(kept if ordered else order.take(kept), first, last, ids)
        self._replace(first, last, RetainedRows(when, value), kept, kept_ids)

    def _with_common_type(self, when: Array) -> Array:
        """Convert the stored times or these, so that both are integers or both floats."""
        if when.dtype == self._columns["time"].dtype:
            return when
        if self._end > self._begin:
            self._columns["time"] = self._columns["time"].astype(np.float64)
            return when.astype(np.float64)
        self._columns["time"] = self._columns["time"].view(when.dtype)  # no rows to convert
        return when

    def _reachable(self, ends: tuple[Time, Time], omega: Time) -> tuple[int, int]:
        """The range of kept rows that arrivals between these times may affect.

        Rows up to omega away may now be bracketed; the rows that bracket them on the other side are up to omega
        farther away.
        """
        times = self._column("time")
        low, high = ends[0] - 2 * omega, ends[1] + 2 * omega
        if times.dtype.kind == "f":  # rounding must not exclude a row at the limit
            low, high = np.nextafter(low, -np.inf), np.nextafter(high, np.inf)
        return int(np.searchsorted(times, low, side="left")), int(np.searchsorted(times, high, side="right"))

    def _ids_of(self, positions: Array, first: int, last: int, new_ids: Array | None) -> Array:
        """The ids of merged rows: positions among the kept rows from `first` to `last`, then the arrivals."""
        merged = last - first
        if new_ids is None:
            ids = positions + (self._arrived - merged)
        else:
            ids = new_ids.take(positions - merged, mode="clip")
        if merged:
            old = np.flatnonzero(positions < merged)
            ids[old] = self._column("id")[first:last].take(positions.take(old))
        return ids

    def _limit(self, times: Array) -> tuple[Time, bool]:
        """The maximal distance of two rows that bracket another, and whether the limit is exclusive."""
        strict = self.closed == "neither"
        if times.dtype.kind == "f":
            return float(self.omega), strict
        return (math.ceil(self.omega) - 1, False) if strict else (math.floor(self.omega), False)

    def _replace(self, first: int, last: int, rows: RetainedRows, kept: Array, ids: Array) -> None:
        """Replace the rows from `first` to `last` by those of `rows` at the positions `kept`, with these ids."""
        size, count = self._end - self._begin, len(kept)
        total = size - (last - first) + count
        allocate = len(self._columns["time"]) < self._begin + total or self._begin > total
        # A quarter of spare space makes appending cheap. All columns have eight bytes per row, and share one block
        # of memory, for which the system uses larger pages.
        block = np.empty((len(_COLUMNS), total + (total >> 2) if allocate else 0), np.int64)
        for name, space in zip(_COLUMNS, block, strict=True):
            column, old = self._columns[name], self._column(name)
            if allocate:
                target = space.view(column.dtype)
                target[:first] = old[:first]
            else:
                target = column[self._begin :]
            target[first + count : total] = old[last:]
            new = target[first : first + count]
            if name == "id":
                new[:] = ids
            else:
                np.take(getattr(rows, name), kept, out=new, mode="clip")  # "clip" needs no buffer
            if allocate:
                self._columns[name] = target
        if allocate:
            self._begin = 0
        self._end = self._begin + total

    def _evict_rows(self, budget: int) -> None:
        """Drop the rows that are an extreme for the shortest time, until the others fit the budget."""
        while (excess := self._end - self._begin - budget) > 0:
            when, value = self._column("time").astype(np.float64), self._column("value")
            durations = np.stack(
                [extreme_durations(when, sign * value, float(self.omega)) for sign in (1.0, -1.0)]
            )
            used = np.array([self.shape != "decreasing", self.shape != "increasing"])
            total = (durations * used[:, None]).sum(axis=0)
            # Half of the excess at a time: the remaining rows are then extremes for longer.
            dropped = np.argsort(total, kind="stable")[: max(excess // 2, 1)]
            self._lost_time += durations[:, dropped].sum(axis=1) * used
            self._evicted += len(dropped)
            kept = np.delete(np.arange(len(when)), dropped)
            rows = RetainedRows(self._column("time"), value)
            self._replace(0, len(when), rows, kept, self._column("id").take(kept))

    def snapshot(self) -> dict[str, Array]:
        """The state, as named arrays."""
        self._merge_pending()
        return super().snapshot()

    @property
    def _kept(self) -> _KeptRows:
        return _KeptRows(*(self._column(name).copy() for name in _COLUMNS))

    @_kept.setter
    def _kept(self, rows: _KeptRows) -> None:
        self._columns = rows._asdict()
        self._begin, self._end = 0, len(rows.time)
        self._pending = ([], [])


def miss_probability(lost_time: Array, total_time: float) -> float:
    """The probability that an extreme was lost, given for how long the highest and the lowest were lost."""
    high, low = np.minimum(lost_time / total_time, 1.0).tolist()
    return float(1 - (1 - high) * (1 - low))


def _ascending(times: Array) -> bool:
    return bool((times[1:] >= times[:-1]).all())
