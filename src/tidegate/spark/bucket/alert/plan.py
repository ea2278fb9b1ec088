"""The plan of an alarm's buckets, which is sent to the workers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from tidegate.alerts import KeyedAlarmFinder
from tidegate.spark.packing.columns import CHECK, KEY
from tidegate.types import InputError

if TYPE_CHECKING:
    from tidegate.alerts import Certificate, ClosedEnds, Topology
    from tidegate.types import Budget

ALERT: Final = "alert"
"""The kind of state, as stored in its layout."""
TIME: Final = "t"
VALUE: Final = "v"
ARRIVAL_COUNTS: Final = ("arrived", "late", "null")
ROW_BYTES: Final = 24
"""The bytes of a kept row without its carried columns: the number of its key, the time and the value."""
MIN_ROW_BYTES: Final = ROW_BYTES + 16
"""The least number of bytes of a kept row, including the two hashes of its key."""


def carried_column(number: int) -> str:
    """The internal name of a carried column."""
    return f"p{number}"


def budget_share(total: Budget | None, buckets: int, streams: int) -> Budget | None:
    """The budget of one bucket for each stream."""
    if total is None:
        return None
    share, least = total.limit // (buckets * streams), 1 if total.unit == "rows" else MIN_ROW_BYTES
    if share < least:
        raise InputError(
            f"a budget of {total.limit} {total.unit} is too small for {buckets} buckets and {streams} streams; give "
            f"at least {least * buckets * streams}, or fewer buckets"
        )
    return replace(total, **{total.unit: share})


@dataclass(frozen=True)
class AlertPlan:
    """The configuration of a bucket, which is sent to the workers.

    Parameters
    ----------
    certificate, topology, hop
        The alarm; times are in microseconds.
    streams
        The streams in the order of the result's columns.
    keys
        The types of the key's columns.
    time
        The type of times.
    carried
        By stream: the types of the columns that rows carry into an alarm.
    budget
        The budget of one bucket for each stream.
    layout
        The settings that must be equal to those of a stored state.
    total
        The budget of the whole query.
    buckets_given
        Whether the number of buckets was given. Otherwise it is that of the running query's partitions.
    """

    certificate: Certificate
    topology: Topology
    hop: int | None
    streams: tuple[str, ...]
    keys: tuple[pa.DataType, ...]
    time: pa.DataType
    carried: dict[str, tuple[pa.DataType, ...]]
    budget: Budget | None
    layout: dict[str, Any]
    total: Budget | None = None
    buckets_given: bool = True

    @property
    def buckets(self) -> int:
        """The number of buckets."""
        count: int = self.layout["buckets"]
        return count

    def with_buckets(self, count: int) -> AlertPlan:
        """The plan with a given number of buckets."""
        budget = budget_share(self.total, count, len(self.streams))
        return replace(self, budget=budget, layout=self.layout | {"buckets": count}, buckets_given=True)

    @property
    def key_schema(self) -> pa.Schema:
        """The columns of a kept key: two hashes (or the key itself, if it is an integer), and the user's columns."""
        hashes = [pa.field(name, pa.int64()) for name in (KEY, CHECK)]
        return pa.schema([*hashes, *(pa.field(f"c{i}", kind) for i, kind in enumerate(self.keys))])

    def carried_schema(self, name: str) -> pa.Schema:
        """The carried columns of a stream's rows."""
        return pa.schema([pa.field(carried_column(i), kind) for i, kind in enumerate(self.carried[name])])

    def new_finder(self) -> KeyedAlarmFinder:
        """The finder of one bucket. As in Spark, hopping windows do not include their end."""
        closed: ClosedEnds = "both" if self.hop is None else "left"
        budget = self.budget.limit if self.budget else None
        return KeyedAlarmFinder(self.certificate, self.topology, hop=self.hop, closed=closed, budget=budget)
