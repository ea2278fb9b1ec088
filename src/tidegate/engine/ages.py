"""The ages at which rows match: the observation from which age curves are learned.

The age of a result is that of the row that had to be kept, when the other one arrives. For rows in order it follows
from their times. For a row out of order it is at least the age of its partner when the step began. Of two rows of one
step the earlier one counts, left before right at equal times.

A side that is ahead has rows of negative age. If such a row is kept and matches at the age `-a`, the other row would
have matched it at the age `a`, had the sides arrived together. So the result is counted for the other side, at `a`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from tidegate.compiled import inlined, kernel
from tidegate.types import FAR

if TYPE_CHECKING:
    from tidegate.types import Array, Buckets, Clocks, Side

Origin = Literal["from_left", "from_right", "from_step"]


class Watch(NamedTuple):
    """Where the compiled loops count ages: of the probing side and of the indexed side.

    `counts` has a row for each of the two, `per_probing` and `per_indexed` are the buckets per unit of age, and
    `since` is the clock of the indexed side when the step began. Without buckets nothing is counted.
    """

    counts: Array
    per_probing: float
    per_indexed: float
    since: float
    in_step: bool


NO_WATCH = Watch(np.zeros((2, 0), np.int64), 0.0, 0.0, 0.0, False)


class Ages:
    """Counts of one step, by side and bucket.

    Parameters
    ----------
    buckets
        The ages to count, by side; both or neither.
    since
        The clocks when the step began.
    """

    def __init__(self, buckets: dict[Side, Buckets], since: Clocks) -> None:
        self._buckets = buckets
        self._since = since
        size = max((b.count for b in buckets.values()), default=0)
        self._counts: dict[Side, Array] = {side: np.zeros(size, np.int64) for side in buckets}

    def watch(self, origin: Origin) -> Watch:
        """Return arrays in which the results of one origin are counted; then call `add`."""
        if not self._buckets:
            return NO_WATCH
        probing, indexed = _roles(origin)
        counts = np.zeros((2, len(self._counts[probing])), np.int64)
        widths = (self._buckets[probing].width, self._buckets[indexed].width)
        in_step = origin == "from_step"
        since = -float(FAR) if in_step else float(self._since.of(indexed))
        return Watch(counts, 1 / widths[0], 1 / widths[1], since, in_step)

    def add(self, origin: Origin, watch: Watch) -> None:
        """Add what was counted."""
        if self._buckets:
            for side, counts in zip(_roles(origin), watch.counts, strict=True):
                self._counts[side] += counts

    def by_side(self) -> dict[Side, Array]:
        """The counts, each with the buckets of its side."""
        return {side: counts[: self._buckets[side].count] for side, counts in self._counts.items()}


def _roles(origin: Origin) -> tuple[Side, Side]:
    """The probing and the indexed side: buffered rows probe, and of one step's arrivals the right ones do."""
    return ("left", "right") if origin == "from_left" else ("right", "left")


@inlined
def note_age(watch: Watch, probing: Any, indexed: Any) -> None:
    """Count one result by the times of its partners."""
    age = np.float64(indexed - probing)
    role = 0
    if watch.in_step:
        role = 1 if age <= 0.0 else 0
    else:
        age = max(age, watch.since - np.float64(probing))
        role = 1 if age < 0.0 else 0
    bucket = np.int64(abs(age) * (watch.per_indexed if role == 1 else watch.per_probing))
    watch.counts[role, min(bucket, watch.counts.shape[1] - 1)] += 1


@kernel
def note_ages(watch: Watch, probing: Array, indexed: Array, at_probing: Array, at_indexed: Array) -> None:
    """Count formed results."""
    if watch.counts.shape[1] > 0:
        for i in range(len(at_probing)):
            note_age(watch, probing[at_probing[i]], indexed[at_indexed[i]])
