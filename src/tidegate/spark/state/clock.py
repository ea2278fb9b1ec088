"""The time of a bucket: the micro-batch, the watermark, and which rows are late."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from tidegate.spark.state.values import DamagedStateError

_REMEDY: Final = "restore the checkpoint from a copy, or start with a new checkpointLocation"


@dataclass
class Clock:
    """The micro-batch and the watermarks of a bucket.

    Parameters
    ----------
    batch
        The number of the micro-batch.
    watermark
        The watermark of this micro-batch, in microseconds.
    late_until
        A row at or before this time is late, in microseconds.
    arrivals
        The number of the last micro-batch in which rows arrived at any bucket.

    Examples
    --------
    >>> clock = Clock()
    >>> clock.advance(0, 50)
    >>> clock.advance(1, 80)
    >>> clock
    Clock(batch=1, watermark=80, late_until=50, arrivals=1)
    """

    batch: int = -1
    watermark: int = 0
    late_until: int = 0
    arrivals: int = -1

    def check(self, batch: int | None, last_arrivals: int, buckets: int) -> None:
        """Refuse a state that is not the one that the query left.

        Parameters
        ----------
        batch
            The micro-batch that begins, if Spark reports it.
        last_arrivals
            An earlier one in which rows arrived; -1 if none is known. A bucket takes part in all of these.
        buckets
            The query's number of buckets.
        """
        if batch is not None and self.batch >= batch:
            raise DamagedStateError(
                f"there is a state of micro-batch {self.batch} where micro-batch {batch} begins: a newer state "
                f"replaced the right one; {_REMEDY}"
            )
        if self.batch < 0 <= last_arrivals:
            # This task cannot tell the two cases apart. That of another bucket may report the first one, too.
            raise DamagedStateError(
                f"one of the query's {buckets} buckets has no state, and micro-batch {last_arrivals} is complete: "
                f"give buckets= as the checkpoint has it, or, if {buckets} is that number, {_REMEDY}"
            )
        if self.batch < last_arrivals:
            raise DamagedStateError(
                f"there is a state of micro-batch {self.batch} where that of micro-batch {last_arrivals} should be: "
                f"an older state replaced it; {_REMEDY} (to return to micro-batch {self.batch + 1}, delete later "
                "offsets and commits as well)"
            )

    def advance(self, batch: int | None, watermark: int, *, arrivals: bool = True) -> None:
        """Begin a micro-batch. As in Spark, a row is late at or before the watermark of the previous micro-batch.

        A bucket takes part in every micro-batch in which rows arrive. No rows arrived in those that it skipped, and
        the watermark has not moved since. `arrivals` states whether rows have arrived, at this or another bucket.
        """
        if batch is None or batch == self.batch + 1:
            self.late_until = self.watermark
        elif batch > self.batch:
            self.late_until = watermark
        self.batch, self.watermark = self.batch + 1 if batch is None else batch, watermark
        if arrivals:
            self.arrivals = self.batch

    def to_dict(self) -> dict[str, int]:
        """The values for a state; the keys are part of its layout."""
        return {
            "batch": self.batch,
            "watermark": self.watermark,
            "late": self.late_until,
            "arrivals": self.arrivals,
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, int]) -> Self:
        """Read what `to_dict` wrote; the first states have no `arrivals`."""
        return cls(**{"late_until" if name == "late" else name: value for name, value in saved.items()})
