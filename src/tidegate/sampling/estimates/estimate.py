"""Estimates of aggregates over a join from a sample of it, with confidence intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.arrow_columns import one_chunk
from tidegate.sampling.estimates.aggregate import Aggregate
from tidegate.sampling.estimates.intervals import check_level, of_mean, of_total
from tidegate.sampling.estimates.moments import OrderedDraws
from tidegate.sampling.estimates.quantiles import quantiles
from tidegate.sampling.estimates.sample_design import Design, GroupCodes, SampleDesign, column, listed
from tidegate.sampling.estimates.time_windows import WindowRows, windowed
from tidegate.streams.trace import columnar, times_of
from tidegate.types import Array, InputError, Time


def estimate(
    sample: object,
    what: str,
    *,
    by: str | Sequence[str] | None = None,
    window: Time | None = None,
    every: Time | None = None,
    level: float = 0.9,
    method: Design | None = None,
    time: str = "time",
    probability: str = "probability",
    owner: str | Sequence[str] = "owner",
    stratum: str | Sequence[str] | None = None,
    shown: str = "shown",
) -> pa.Table:
    """Estimate an aggregate over all results of a join from a sample of them.

    A sampled result represents `1 / probability` results. That makes COUNT and SUM unbiased (Horvitz and Thompson).
    AVG is the ratio of the two (Hajek). It is biased in small samples if large clusters have other values than small
    ones. Quantiles have no estimator that is unbiased for every distribution; most of the bias is removed here (see
    `tidegate.sampling.estimates.quantiles`). The page on sampling in the documentation has measured biases, and the
    share of intervals that contain the true value.

    Intervals are too narrow if clusters of very unequal size are drawn with equal probability and the sample has
    fewer than five of the clusters that hold half of all results (or of the sum). The average of equal values has an
    interval of width 0, since such a sample does not show how much values differ.

    Parameters
    ----------
    sample
        The sampled results: a dict of arrays, a data frame, an Arrow table.
    what
        `count(*)`, `count(x)`, `sum(x)`, `avg(x)`, `median(x)` or `quantile(x, 0.9)`, where `x` is a column. Nulls
        are skipped, as in SQL.
    by
        Columns: one estimate for each of their values; null is a value. A group without a sampled result is not
        returned, which does not mean that it has no results.
    window
        The length of windows of event time: one estimate for each window `[end - window, end)` with a sampled result.
    every
        The interval between the ends of windows, which are multiples of it; by default `window`.
    level
        The confidence level: the probability with which the interval contains the true value.
    method
        How the sample was drawn; by default the columns `owner` and `shown` decide.

        | columns | how results were drawn |
        |---|---|
        | `owner` and `shown` | together with results of the same owner, as far as `shown` states |
        | `owner` | together with all results of the same owner |
        | neither | independently |

        "reservoir" and "progressive" are the reservoirs of `tidegate.sample`, whose probabilities are estimates
        themselves. "counted" is a sample of known size from a known number of results (`Reservoir`, `merge`), each
        with probability size / number.
    time, probability, owner, stratum
        Names of columns: the event time; the inclusion probability of the result; the row that owns the result (null:
        the result was drawn independently); the reservoir of the result, if several reservoirs were merged.
    shown
        The name of an optional column of floating-point numbers: the probability with which the owner of the result
        was kept.

    Returns
    -------
    pyarrow.Table
        The columns `by`, `window_end`, then `estimate`, `low`, `high`, and `rows`: the number of sampled results with
        a value. `low` or `high` is null if the sample is too small for it.

    Examples
    --------
    >>> sample = {"city": ["Oslo", "Oslo", "Rome"], "price": [10.0, 20.0, 7.0],
    ...           "owner": [1, 2, 3], "probability": [0.5, 0.5, 1.0]}
    >>> estimate(sample, "sum(price)", by="city").select(["city", "estimate", "rows"]).to_pylist()
    [{'city': 'Oslo', 'estimate': 60.0, 'rows': 2}, {'city': 'Rome', 'estimate': 7.0, 'rows': 1}]

    References
    ----------
    Srivastava and Widom, "Memory-limited execution of windowed stream joins" (2004), sections 4.3 and 6.2.4.
    Saerndal, Swensson and Wretman, "Model assisted survey sampling" (1992), chapters 2, 3 and 5.

    Deviations
    ----------
    The paper weights clusters by the inverse of their size. The inverse of the probability makes estimates unbiased,
    also if probabilities are limited to 1. The paper has no intervals.
    """
    aggregate = Aggregate.parse(what)
    check_level(level)
    if window is None and every is not None:
        raise InputError(f"every={every!r} needs a window; give window=, or leave it out")
    table = columnar(sample, "sample")
    names = listed(by)
    clock = None if window is None else column(table, time, "time")
    design = SampleDesign.of(table, method, probability, owner, stratum, shown)
    request = _AggregateRequest(aggregate, level, *_values(table, aggregate))
    groups = GroupCodes.of([column(table, name, "by") for name in names], table.num_rows)
    if clock is None or window is None:
        parts: Iterable[WindowRows] = [WindowRows(np.arange(table.num_rows), None)]
    else:
        parts = windowed(times_of(clock, f"sample.{time}"), window, every)
    found = [_estimate_part(request, design, groups, part) for part in parts]
    return _to_table(table, names, groups, clock, found)


@dataclass(frozen=True)
class _AggregateRequest:
    """An aggregate, and the values of its column; `valid` is a mask of those that are not null, None if all are."""

    aggregate: Aggregate
    level: float
    values: Array
    valid: Array | None


class _PartEstimates(NamedTuple):
    """Estimates of some windows: for each group and window, its codes, estimate and interval, and rows.

    `figures` has three rows: estimate, low and high.
    """

    code: Array
    end: Array | None
    figures: Array
    rows: Array


def _values(table: pa.Table, aggregate: Aggregate) -> tuple[Array, Array | None]:
    """The values to aggregate, 1 for a count, and a mask of those that are not null (None if all)."""
    if aggregate.of is None:
        return np.ones(table.num_rows), None
    values = one_chunk(column(table, aggregate.of, "what"))
    valid = values.is_valid().to_numpy(zero_copy_only=False) if values.null_count else None
    if aggregate.kind == "count":
        return np.ones(len(values)), valid
    kind = values.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        if not pa.types.is_null(kind):
            raise InputError(
                f"{aggregate.kind} needs numbers, but {aggregate.of!r} is of type {kind}; cast it to a number"
            )
        valid = np.zeros(len(values), dtype=bool)
    return pc.cast(values, pa.float64(), safe=False).fill_null(0.0).to_numpy(), valid


def _estimate_part(
    request: _AggregateRequest, design: SampleDesign, groups: GroupCodes, part: WindowRows
) -> _PartEstimates:
    """Estimate for each group and window that has a row."""
    rows, group = part.rows, groups.codes[part.rows]
    count = len(groups.first)
    if part.ends is not None:
        # Rows are ordered by window, so a new window begins where the end changes.
        group = group + count * np.insert(np.cumsum(np.diff(part.ends) != 0), 0, 0)
    present, group = _dense(group)
    if request.valid is not None:
        group, rows = group[request.valid[rows]], rows[request.valid[rows]]
    sizes = np.bincount(group, minlength=len(present))
    filled = sizes > 0
    unit = None if design.unit is None else design.unit[rows]
    reservoir = None if design.reservoir is None else design.reservoir[rows]
    dense = (np.cumsum(filled) - 1)[group]
    shown = None if design.shown is None else design.shown[rows]
    draws = OrderedDraws.of(dense, unit, design.probability[rows], reservoir, int(filled.sum()), shown)
    empty = 0.0 if request.aggregate.kind == "count" else np.nan
    figures = np.full((3, len(present)), np.nan)
    figures[0] = empty
    if filled.any():
        figures[:, filled] = _figures(request, draws, request.values[rows][draws.order])
    windows, codes = np.divmod(present, count)
    ends = (
        None if part.ends is None else part.ends[np.insert(np.diff(part.ends) != 0, 0, values=True)][windows]
    )
    return _PartEstimates(codes, ends, figures, sizes)


def _dense(codes: Array) -> tuple[Array, Array]:
    """The distinct codes in order, and the position of each code among them."""
    span = int(codes.max(initial=-1)) + 1
    if span > 4 * len(codes):
        return np.unique(codes, return_inverse=True)
    occurs = np.bincount(codes, minlength=span) > 0
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[codes]


def _figures(request: _AggregateRequest, draws: OrderedDraws, values: Array) -> tuple[Array, Array, Array]:
    """The estimates and the ends of their intervals, by group."""
    kind, level = request.aggregate.kind, request.level
    if kind == "quantile":
        return quantiles(draws, values, request.aggregate.q, level)
    if kind == "avg":
        weight = draws.totals(np.ones(len(values)))
        mean = draws.totals(values) / weight
        with np.errstate(divide="ignore", invalid="ignore"):
            # The distance of each draw from the mean of all others, since a large draw shifts the mean to itself.
            residuals = (values - mean[draws.group]) / (weight[draws.group] * draws.others())
        return mean, *of_mean(mean, draws.moments(np.where(np.isfinite(residuals), residuals, 0.0)), level)
    moments = draws.moments(values)
    low, high = of_total(moments, level)
    if kind == "count":
        low = np.maximum(low, np.bincount(draws.group, minlength=draws.groups))
    return moments.total, low, high


def _to_table(
    table: pa.Table,
    names: list[str],
    groups: GroupCodes,
    clock: pa.ChunkedArray | None,
    found: list[_PartEstimates],
) -> pa.Table:
    """One table of all estimates, with the values of the columns `by`."""
    none = np.empty(0, np.int64)
    first = groups.first[np.concatenate([none, *(part.code for part in found)])]
    columns = {name: table.column(name).take(pa.array(first)) for name in names}
    if clock is not None:
        ends = [part.end for part in found if part.end is not None]
        columns["window_end"] = _ends(np.concatenate(ends or [none]), clock.type)
    figures = np.concatenate([np.empty((3, 0)), *(part.figures for part in found)], axis=1)
    for name, figure in zip(("estimate", "low", "high"), figures, strict=True):
        columns[name] = pa.array(figure, from_pandas=True)
    columns["rows"] = pa.array(np.concatenate([none, *(part.rows for part in found)]))
    return pa.table(columns)


def _ends(ends: Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return pa.array(ends.astype(np.int64)).cast(pa.timestamp("us", getattr(kind, "tz", None)))
    return pa.array(ends)
