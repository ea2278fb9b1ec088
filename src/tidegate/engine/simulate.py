"""A bounded join of two recorded streams, measured against the exact one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from tidegate.engine import one_loop
from tidegate.engine.arrivals import step_ends
from tidegate.engine.combining import COMBINES, importances
from tidegate.engine.encode import encode_streams
from tidegate.engine.join import Join
from tidegate.engine.operator import Operator, collected, results_by_row_number
from tidegate.engine.policy_retention import PolicyRetention
from tidegate.engine.replay import Recording, replay
from tidegate.engine.report import Report
from tidegate.engine.tally import Measured
from tidegate.engine.valuing import Redefined, value
from tidegate.policies import find
from tidegate.policies.policy import check_rows
from tidegate.types import SIDES, Budget, Future, Pairs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from tidegate.engine.arrivals import Moment
    from tidegate.importance import DefinitionLike
    from tidegate.policies import Policy
    from tidegate.types import (
        Combine,
        Condition,
        Order,
        Rows,
        Side,
        Split,
        StepSize,
        Time,
        Window,
        WindowSpan,
    )

_NO_ROWS: Final = np.empty(0, np.int64)


def simulate(
    left: object,
    right: object,
    *,
    window: Window | tuple[WindowSpan, WindowSpan],
    budget: Budget | int | str | None = None,
    policy: Policy | str = "fifo",
    split: Split = "shared",
    order: Order = "probe-first",
    step: StepSize = 1,
    condition: Condition = "=",
    on: str | Sequence[str] = "key",
    time: str = "time",
    lateness: Time | None = None,
    ahead: tuple[Side, Time | timedelta] | None = None,
    importance: DefinitionLike | None = None,
    combine: Combine = "min",
    seed: int = 0,
    warmup: Time = 0,
    collect: bool = False,
) -> Report:
    """Join two recorded streams within a budget, and report how good the answer is.

    Parameters
    ----------
    left, right
        Anything columnar (dict of arrays, data frame, Arrow table, `Trace`) with `key`, `time` and
        optionally `importance`, and the columns that `importance=` reads. Null keys never match.
    window
        `(left, right)`: `l` and `r` join iff `-right <= r.time - l.time <= left`. Numbers, timedeltas,
        `Last(rows)`, or None for no end.
    budget
        A number of rows, a string of bytes ("64 MB"), a `Budget`, or None for no limit.
    policy
        Which rows stay, by name or as an object; see `tidegate.policies`.
    split
        How the sides share the budget: "shared", "even", (left, right), or "optimal": by the model of prob,
        life or age.
    order
        "probe-first" or "shed-first" within a step. With "shed-first" a row finds partners only if it stays, so
        that each side needs memory of its own: "optimal" is refused, and "shared" with a policy that scores by
        expected results.
    step
        1 (a row at a time), "instant" (all rows of one time), or a number of rows.
    condition
        How keys match, `l.key ? r.key`: "=", "<", "<=", "!=", ">", ">=" or a `Band`.
    on, time
        The key column (or columns) and the time column.
    lateness
        None: rows arrive by time. A number: they arrive as given, and one older than its stream's largest
        time by more than this is dropped and counted.
    ahead
        A side, and how far it is ahead of the other: ("left", 500) brings each left row together with right rows
        whose times are smaller by 500, as when the right is a delayed feed. It changes what a budget finds, but not
        the exact join. Not with `Last` windows.
    importance
        The importance of rows: one of `tidegate.importance`, the name of a column, a number, or a pair (left, right)
        of these; by default the column `importance`, if there is one. `{0: first, 500: second}` redefines it: each
        definition holds from its time on, for buffered rows too, and the importance of a result follows from that of
        its partners when it is produced. A definition must give a value to every row that arrives before the next.
    combine
        The importance of a result from its partners': "min", "max", "sum", "product" or "mean".
    seed
        Fixes all randomness.
    warmup
        Results of rows that arrive less than this after the first row are not counted, here or in `exact`.
    collect
        Whether the report contains the pairs, as row numbers of `left` and `right`.

    Examples
    --------
    >>> import tidegate as tg
    >>> opened = {"key": [1, 2, 3], "time": [0, 1, 2]}
    >>> bids = {"key": [1, 3, 2, 1], "time": [3, 4, 5, 9]}
    >>> report = tg.simulate(opened, bids, window=(6, 0), budget=2)
    >>> report.results, report.exact, round(report.recall, 2)
    (2, 3, 0.67)
    """
    encoded = encode_streams(left, right, window, condition, on=on, time=time, lateness=lateness, ahead=ahead)
    arrivals, redefined = encoded.arrivals, Redefined()
    join = Join(
        encoded.window,
        Budget.of(budget),
        policy,
        split,
        order,
        condition,
        combine,
        seed,
        integer_keys=encoded.integer_keys,
    )
    if importance is not None:
        arrivals, redefined = value(arrivals, encoded.source, encoded.traces, importance)
    for rows in (arrivals.left, arrivals.right):
        check_rows(find(join.policy), rows)
    recording = Recording.of(arrivals, step, warmup)
    recording = replace(recording, cuts=redefined.cut(recording.cuts))
    needs_future = "future" in find(join.policy).needs
    boundless = Join(join.window, condition=condition, combine=combine)
    exact_steps = recording.coarse()
    exact_steps = replace(exact_steps, cuts=redefined.cut(exact_steps.cuts))
    exact = run(exact_steps, boundless, collect=needs_future, redefined=redefined)
    future = future_of(recording, exact.pairs, combine, redefined) if exact.pairs else None
    measured = None if redefined else one_loop.run(recording, join, collect=collect, future=future)
    if measured is None:
        measured = run(recording, join, collect=collect, future=future, redefined=redefined)
    tally, pairs = measured.tally, measured.pairs
    return Report(
        results=tally.results,
        from_left=tally.from_left,
        from_right=tally.from_right,
        from_step=tally.from_step,
        exact=exact.tally.results,
        importance=tally.importance,
        exact_importance=exact.tally.importance,
        fairness=tally.fairness,
        peak_rows=tally.peak_rows,
        peak_bytes=tally.peak_bytes,
        rows_left=len(encoded.traces[0]),
        rows_right=len(encoded.traces[1]),
        evicted=tally.evicted,
        expired=tally.expired,
        late=arrivals.late,
        null_keys=encoded.null_keys,
        times=exact.times,
        results_over_time=measured.curve,
        exact_over_time=exact.curve,
        pairs=pairs.renumbered(encoded.source, encoded.source) if pairs else None,
        learned=measured.learned,
    )


def run(
    recording: Recording,
    join: Join,
    *,
    collect: bool = False,
    future: Future | None = None,
    redefined: Redefined | None = None,
) -> Measured:
    """Run an operator over recorded streams.

    Parameters
    ----------
    recording, join
        The streams, and the configuration of the join.
    collect
        Whether to keep the pairs, by row number.
    future
        What will arrive, for a policy that needs it.
    redefined
        The importance of rows from some of the cuts on.
    """
    operator = Operator(join, PolicyRetention(join, future))

    def run_step(left: Rows, right: Rows, moment: Moment) -> list[Pairs]:
        arrived = tuple(operator.state.arrived.values())
        importance = redefined.importance(arrived) if redefined else None
        if importance is not None:
            for side in SIDES:
                if len(operator.buffers[side]):
                    operator.revalue(side, importance[operator.buffers[side].rows.id])
        if collect:
            return results_by_row_number(operator, left, right, moment)
        collected(operator.step(left, right, moment))
        return []

    read = {tuple(check) for check in recording.checks.tolist()}
    times, curve, found = [], [], [Pairs(_NO_ROWS, _NO_ROWS)]
    for step in replay(recording, operator, run_step):
        found += step.outcome if step.counted else []
        if step.arrived in read:
            times.append(step.moment.now)
            curve.append(operator.tally.results if step.counted else 0)
    pairs = Pairs(*map(np.concatenate, zip(*found, strict=True))) if collect else None
    learned = tuple(operator.retention.learned())
    return Measured(operator.tally, np.array(times), np.array(curve, np.int64), pairs, learned)


def future_of(
    recording: Recording, pairs: Pairs, combine: Combine = "min", redefined: Redefined | None = None
) -> Future:
    """Everything that arrives in the steps of a recording; `pairs` are the results of the exact join."""
    arrivals = recording.arrivals
    left, right = arrivals.left, arrivals.right
    ends = step_ends(recording.cuts)
    steps = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
    importance = None
    if left.importance is not None and right.importance is not None:
        by_number = np.zeros(len(arrivals))
        by_number[left.id], by_number[right.id] = left.importance, right.importance
        # The importance of a result follows from that of its rows when the later one arrives.
        later = redefined.by_arrivals if redefined else {}
        stage = np.searchsorted(list(map(sum, later)), np.maximum(pairs.left, pairs.right), side="right")
        importance = np.empty(len(stage))
        for number, values in enumerate((by_number, *later.values())):
            at = stage == number
            importance[at] = importances(COMBINES[combine], values, values, pairs.left[at], pairs.right[at])
    return Future(left, right, steps, pairs, importance)
