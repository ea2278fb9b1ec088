"""The alarms of several streams as their rows arrive, found from the few rows that must be kept."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tidegate.alerts.search.alarm_search import AlarmFunction, Alarms, AlarmSearch, NewRows
from tidegate.alerts.stores.bracket_store import ClosedEnds
from tidegate.alerts.validation import check_columns
from tidegate.types import InputError, Nested, Numbers, Stateful, Time, TimeOrNone

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from tidegate.alerts.topology import Topology
    from tidegate.types import State


class AlarmFinder(Stateful):
    """Raises an alarm for each arrival that exceeds the threshold together with rows that arrived before it.

    An arrival is matched before its own store gets it. So whether it raises an alarm, and how high, is the same as if
    no row were omitted. The alarm contains the highest combination (any, if several are equally high). So the last
    row of a combination raises its alarm, and a row raises at most one alarm.

    Rows of a step arrive in order of time, at equal times in the order of the streams.

    Parameters
    ----------
    topology
        The streams, which of them are joined, and how the function depends on each.
    function
        Computes a column of numbers (or truth values) from a column of values by stream.
    threshold
        An alarm is raised if the function is above the threshold.
    hop
        If given, rows are joined that lie in one window. Windows have the length `within`, and one begins at every
        multiple of `hop`. The topology must be a clique.
    closed
        "both" or "neither": whether rows exactly `within` apart are joined. With `hop`, "both" or "left".
    budget
        The maximal number of rows to keep per stream; None for no limit. See `miss_probability` for the consequences.

    Examples
    --------
    >>> from tidegate.alerts import Topology
    >>> def excess(values):
    ...     return values["humidity"] + values["cold"] - 9
    >>> finder = AlarmFinder(Topology.clique(["humidity", "cold"], within=5), excess)
    >>> step = {"humidity": ([0, 1, 2], [5.0, 3.0, 4.0]), "cold": ([3, 9], [4.5, 9.0])}
    >>> alarms = finder.step(step, watermark=9)
    >>> alarms.time["humidity"], alarms.time["cold"], alarms.level
    (array([0]), array([3]), array([0.5]))
    >>> {name: len(store) for name, store in finder.stores.items()}
    {'humidity': 0, 'cold': 1}

    References
    ----------
    Optimization of Threshold Functions over Streams, sections 2.1, 3 and 4.

    Deviations
    ----------
    The paper only states that an alarm is raised; here one is raised for each arrival that completes a combination.
    For hopping windows the rows are kept that sliding intervals of the same length need, which suffice.
    """

    state: ClassVar[State] = {
        "{}.": Nested("stores"),
        "counts": Numbers(arrived=dict, late=dict, nan=dict),
        "undefined": Numbers(undefined=int),
        "watermark": TimeOrNone("watermark"),
    }

    def __init__(
        self,
        topology: Topology,
        function: AlarmFunction,
        *,
        threshold: float = 0.0,
        hop: Time | None = None,
        closed: ClosedEnds = "both",
        budget: int | None = None,
    ) -> None:
        self.search = AlarmSearch(topology, function, threshold=threshold, hop=hop, closed=closed)
        self.stores = self.search.new_stores(budget)
        self.watermark: Time | None = None
        self.arrived, self.late, self.nan = (dict.fromkeys(self.stores, 0) for _ in range(3))
        self.undefined = 0

    @property
    def miss_probability(self) -> float:
        """The estimated probability that an alarm is missed; above 0 only if a budget is too small."""
        return 1 - math.prod(1 - store.miss_probability for store in self.stores.values())

    def step(self, rows: Mapping[str, tuple[ArrayLike, ArrayLike]], watermark: Time | None = None) -> Alarms:
        """Process arrivals, and return the alarms that they raise.

        Parameters
        ----------
        rows
            The times and values of the arrivals, by stream. Rows at or before an earlier watermark are late. Late
            rows and rows whose value is NaN are counted and left out.
        watermark
            The time up to which, inclusive, no further row will arrive.
        """
        unknown = [name for name in rows if name not in self.stores]
        if unknown:
            raise InputError(f"there is no stream {unknown[0]!r}; the streams are: {', '.join(self.stores)}")
        arrivals = {name: self._accept(name, *rows.get(name, ((), ()))) for name in self.stores}
        alarms, undefined = self.search.find(self.stores, arrivals)
        self.undefined += undefined
        if watermark is not None and (self.watermark is None or watermark > self.watermark):
            self.watermark = watermark
            for name, store in self.stores.items():
                store.trim(watermark - self.search.reach[name])
        return alarms

    def _accept(self, name: str, times: ArrayLike, values: ArrayLike) -> NewRows:
        """Check and count arrivals; return times, values and ids of those that are neither late nor NaN."""
        when, value = check_columns(times, values)
        ids = np.arange(self.arrived[name], self.arrived[name] + len(when))
        self.arrived[name] += len(when)
        late = np.zeros(len(when), bool) if self.watermark is None else when <= self.watermark
        nan = np.isnan(value) & ~late
        self.late[name] += int(late.sum())
        self.nan[name] += int(nan.sum())
        accepted = ~(late | nan)
        return NewRows(when[accepted], value[accepted], ids[accepted])
