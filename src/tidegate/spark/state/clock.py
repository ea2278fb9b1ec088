"""Where a bucket is in its query: the micro-batch, the watermark, and what comes too late."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Clock:
    """What a bucket knows of time; watermarks in microseconds.

    Examples
    --------
    >>> clock = Clock()
    >>> clock.advance(0, 50)
    >>> clock.advance(1, 80)
    >>> clock
    Clock(batch=1, watermark=80, late=50)
    """

    batch: int = -1
    watermark: int = 0
    late: int = 0

    def advance(self, batch: int | None, watermark: int) -> None:
        """Learn which micro-batch runs. As in Spark, a row is late at or before the watermark of the one before.

        A bucket hears of every micro-batch with data; where it missed some, those had none, and the watermark
        has not moved since.
        """
        if batch is None or batch == self.batch + 1:
            self.late = self.watermark
        elif batch > self.batch:
            self.late = watermark
        self.batch, self.watermark = self.batch + 1 if batch is None else batch, watermark
