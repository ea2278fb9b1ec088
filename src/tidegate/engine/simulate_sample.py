"""Samples the join of two recorded streams, and compares the sample with the exact join."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tidegate.engine.encode import encode_streams
from tidegate.engine.join import Join
from tidegate.engine.operator import Operator, results_by_row_number
from tidegate.engine.replay import Recording, replay
from tidegate.engine.sampler_retention import SamplerRetention
from tidegate.engine.simulate import run
from tidegate.types import Budget, Sampled

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from tidegate.sampling import Sampler
    from tidegate.types import Array, Condition, Side, StepSize, Time, Window, WindowSpan


@dataclass(frozen=True)
class SampleReport:
    """The results of `simulate_sample`.

    Parameters
    ----------
    results, from_left, from_right, from_step
        The number of sampled results, in all and by where the older row was.
    exact
        The number of results of the exact join.
    peak_rows, peak_bytes
        The largest memory after a step.
    overflows
        How often memory overflowed, so that the probability was lowered.
    late, null_keys
        The number of rows that arrived too late, and of rows without a key.
    pairs
        The sampled results as row numbers of the left and right stream, each with its probability and its owner. The
        owner is the older row, as its number among all rows of both streams in order of arrival.
    times
        The end of each step. The next two have one value for each.
    fraction
        The probability of new draws.
    rows
        The number of held rows.
    """

    results: int
    from_left: int
    from_right: int
    from_step: int
    exact: int
    peak_rows: int
    peak_bytes: int
    overflows: int
    late: int
    null_keys: int
    pairs: Sampled = field(repr=False)
    times: Array = field(repr=False)
    fraction: Array = field(repr=False)
    rows: Array = field(repr=False)

    @property
    def estimate(self) -> float:
        """The estimated number of exact results: the sum of one over the probability of each sampled result."""
        return float((1 / self.pairs.probability).sum())


def simulate_sample(
    left: object,
    right: object,
    *,
    window: Window | tuple[WindowSpan, WindowSpan],
    budget: Budget | int | str | None = None,
    sampler: Sampler | str = "uniform",
    step: StepSize = 1,
    condition: Condition = "=",
    on: str | Sequence[str] = "key",
    time: str = "time",
    lateness: Time | None = None,
    ahead: tuple[Side, Time | timedelta] | None = None,
    seed: int = 0,
    warmup: Time = 0,
) -> SampleReport:
    """Sample the join of two recorded streams within a budget.

    Parameters
    ----------
    left, right, window, budget, step, condition, on, time, lateness, ahead
        As in `simulate`.
    sampler
        The sampler, by name or as an object; see `tidegate.sampling`.
    seed
        Fixes all draws.
    warmup
        Results of rows that arrive less than this after the first are not counted, here or in `exact`.

    Examples
    --------
    >>> import numpy as np
    >>> import tidegate as tg
    >>> rng = np.random.default_rng(0)
    >>> clicks, views = ({"key": rng.integers(0, 50, 4000), "time": np.arange(4000)} for _ in range(2))
    >>> sample = tg.simulate_sample(clicks, views, window=(500, 500), budget=200, step=100)
    >>> sample.peak_rows <= 200, sample.exact
    (True, 75324)
    """
    encoded = encode_streams(left, right, window, condition, on=on, time=time, lateness=lateness, ahead=ahead)
    join = Join(encoded.window, Budget.of(budget), condition=condition, seed=seed)
    retention = SamplerRetention(join, sampler)
    operator, sampling = Operator(join, retention), retention.sampling
    recording = Recording.of(encoded.arrivals, step, warmup)
    exact = run(recording.coarse(), Join(join.window, condition=condition))
    found: list[Sampled] = []
    recorded: list[tuple[Time, float, int]] = []
    lowered = 0
    for ended in replay(recording, operator, partial(results_by_row_number, operator)):
        if ended.counted:
            found += ended.outcome
        else:
            lowered = sampling.control.lowered
        recorded.append((ended.moment.now, sampling.fraction, operator.rows))
    tally = operator.tally
    times, fraction, rows = map(np.array, zip(*recorded, strict=True)) if recorded else (_NONE, _NONE, _NONE)
    return SampleReport(
        results=tally.results,
        from_left=tally.from_left,
        from_right=tally.from_right,
        from_step=tally.from_step,
        exact=exact.tally.results,
        peak_rows=tally.peak_rows,
        peak_bytes=tally.peak_bytes,
        overflows=sampling.control.lowered - lowered,
        late=encoded.arrivals.late,
        null_keys=encoded.null_keys,
        pairs=Sampled.concat(found).renumbered(encoded.source, encoded.source),
        times=times,
        fraction=fraction,
        rows=rows,
    )


_NONE = np.empty(0, np.int64)
