"""The time of a bucket: the micro-batch, the watermark, and which rows are late."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self


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

    Examples
    --------
    >>> clock = Clock()
    >>> clock.advance(0, 50)
    >>> clock.advance(1, 80)
    >>> clock
    Clock(batch=1, watermark=80, late_until=50)
    """

    batch: int = -1
    watermark: int = 0
    late_until: int = 0

    def advance(self, batch: int | None, watermark: int) -> None:
        """Begin a micro-batch. As in Spark, a row is late at or before the watermark of the previous micro-batch.

        A bucket takes part in every micro-batch that has data. Micro-batches that it skipped had no data, and the
        watermark has not moved since.
        """
        if batch is None or batch == self.batch + 1:
            self.late_until = self.watermark
        elif batch > self.batch:
            self.late_until = watermark
        self.batch, self.watermark = self.batch + 1 if batch is None else batch, watermark

    def to_dict(self) -> dict[str, int]:
        """The values for a state; the keys are part of its layout."""
        return {"batch": self.batch, "watermark": self.watermark, "late": self.late_until}

    @classmethod
    def from_dict(cls, saved: Mapping[str, int]) -> Self:
        """Read what `to_dict` wrote."""
        return cls(**{"late_until" if name == "late" else name: value for name, value in saved.items()})
