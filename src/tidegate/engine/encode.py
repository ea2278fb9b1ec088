"""From two traces to the rows that the operator handles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.arrivals import Arrivals, arrange
from tidegate.streams import Trace
from tidegate.types import FAR, Band, InputError, Window

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from tidegate.types import Array, Condition, Side, Time, WindowSpan


@dataclass(frozen=True)
class Encoded:
    """Both streams, ready to be joined within a window, and how to find a row of the input again.

    `source` has for each row number (`Rows.id`) its position in its stream; `integer_keys` states whether
    keys are numbers as they are.
    """

    traces: tuple[Trace, Trace]
    window: Window
    arrivals: Arrivals
    source: Array
    null_keys: int
    integer_keys: bool


def encode_streams(
    left: object,
    right: object,
    window: Window | tuple[WindowSpan, WindowSpan],
    condition: Condition,
    *,
    on: str | Sequence[str],
    time: str,
    lateness: Time | None,
    ahead: tuple[Side, Time | timedelta] | None = None,
) -> Encoded:
    """Encode two streams as a user gives them; parameters as in `simulate`."""
    traces = [
        Trace.of(data, on=on, time=time, what=what) for data, what in ((left, "left"), (right, "right"))
    ]
    span = Window.of(window)
    if all(trace.time.dtype.kind == "i" for trace in traces):
        span = span.whole()
    return encode(traces[0], traces[1], span, condition, lateness, ahead)


def encode(
    left: Trace,
    right: Trace,
    window: Window,
    condition: Condition,
    lateness: Time | None,
    ahead: tuple[Side, Time | timedelta] | None = None,
) -> Encoded:
    """Encode keys, drop rows whose key is null, and merge both streams in order of arrival."""
    if len(left.keys) != len(right.keys):
        raise InputError(
            f"the left has {len(left.keys)} key columns, the right {len(right.keys)}; name as many"
        )
    integer_keys = condition != "=" or _has_integer_keys(left, right)
    keys = _equal(left, right) if condition == "=" else _ordered(left, right, condition)
    times = _same_kind(left.time, right.time)
    has_importance = left.importance is not None or right.importance is not None
    sides: list[dict[str, Array]] = []
    for trace, (key, valid), time in zip((left, right), keys, times, strict=True):
        columns = {"key": key, "time": time, "source": np.arange(len(trace))}
        if has_importance:
            importance = trace.importance
            columns["importance"] = np.ones(len(trace)) if importance is None else importance
        sides.append(columns if valid is None else {name: column[valid] for name, column in columns.items()})
    nulls = len(left) + len(right) - sum(len(side["key"]) for side in sides)
    sources = tuple(side.pop("source") for side in sides)
    arrivals = arrange(sides[0], sides[1], window, lateness, ahead)
    source = np.empty(len(sources[0]) + len(sources[1]), np.int64)
    for rows, origin, order in zip((arrivals.left, arrivals.right), sources, arrivals.order, strict=True):
        source[rows.id] = origin[order]
    return Encoded((left, right), window, arrivals, source, nulls, integer_keys)


Keys = tuple[tuple["Array", "Array | None"], tuple["Array", "Array | None"]]


def _has_integer_keys(left: Trace, right: Trace) -> bool:
    """Whether there is one key column on either side, of whole numbers."""
    return len(left.keys) == 1 and all(pa.types.is_integer(trace.keys[0].type) for trace in (left, right))


def _equal(left: Trace, right: Trace) -> Keys:
    pairs = [_common(a, b) for a, b in zip(left.keys, right.keys, strict=True)]
    if _has_integer_keys(left, right):
        return _as_they_are(pairs[0][0]), _as_they_are(pairs[0][1])
    codes = np.zeros(len(left) + len(right), np.int64)
    valid = np.ones(len(codes), bool)
    for a, b in pairs:
        encoded = pa.concat_arrays([a, b]).dictionary_encode()
        valid &= encoded.is_valid().to_numpy(zero_copy_only=False)
        part = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        # Renumbering after each column keeps the product below 2**63 for any number of columns.
        codes = np.unique(codes * max(1, len(encoded.dictionary)) + part, return_inverse=True)[1]
    n = len(left)
    return (codes[:n], valid[:n]), (codes[n:], valid[n:])


def _ordered(left: Trace, right: Trace, condition: Condition) -> Keys:
    if len(left.keys) != 1:
        raise InputError(
            f"the condition {condition!r} compares one key, got {len(left.keys)}; name a single column"
        )
    pair = _common(left.keys[0], right.keys[0])
    kind = pair[0].type
    if pa.types.is_null(kind):
        pair, kind = tuple(array.cast(pa.int64()) for array in pair), pa.int64()
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        pair = tuple(a.cast(pa.timestamp("us", getattr(kind, "tz", None))).cast(pa.int64()) for a in pair)
    elif pa.types.is_floating(kind):
        pair = tuple(array.cast(pa.float64()) for array in pair)
    elif not pa.types.is_integer(kind):
        raise InputError(
            f"the condition {condition!r} needs numbers or times, not {kind}; use '=' or another column"
        )
    if isinstance(condition, Band) and not pa.types.is_floating(pair[0].type):
        _check_reach(pair, condition)
    return _as_they_are(pair[0]), _as_they_are(pair[1])


def _as_they_are(keys: pa.Array) -> tuple[Array, Array | None]:
    """The numbers, and which of them are none; None if all are."""
    valid = keys.is_valid().to_numpy(zero_copy_only=False) if keys.null_count else None
    return keys.fill_null(0).to_numpy(zero_copy_only=False), valid


def _check_reach(pair: tuple[Any, ...], band: Band) -> None:
    for array in pair:
        ends = pc.min_max(array).as_py()
        furthest = max(abs(ends["min"] or 0), abs(ends["max"] or 0), abs(band.low), abs(band.high))
        if furthest >= FAR:
            raise InputError(
                f"{band} on keys up to {furthest} needs keys below 2**61; subtract a constant from both"
            )


def _common(a: pa.Array, b: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Convert two key columns to one type, or refuse if that would not be safe."""
    if a.type == b.type and not (pa.types.is_integer(a.type) or pa.types.is_floating(a.type)):
        return a, b
    if pa.types.is_null(a.type):
        return a.cast(b.type), b
    if pa.types.is_null(b.type):
        return a, b.cast(a.type)
    for family, target in ((pa.types.is_integer, pa.int64()), (pa.types.is_floating, pa.float64())):
        if family(a.type) and family(b.type):
            return _cast(a, target), _cast(b, target)
    if all(map(_is_text, (a.type, b.type))):
        return a.cast(pa.large_string()), b.cast(pa.large_string())
    raise InputError(
        f"the left key is of type {a.type}, the right one of type {b.type}; cast one to the other's type"
    )


def _cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    try:
        cast = array.cast(target)
    except pa.ArrowInvalid as error:
        raise InputError(
            f"a key does not fit 64 bits with a sign ({error}); cast the key columns to strings"
        ) from error
    if pa.types.is_floating(target):
        # Adding zero makes -0.0 and 0.0 one key, as SQL has it; NaN stands for null.
        cast = pc.if_else(pc.is_nan(cast), pa.scalar(None, target), pc.add(cast, 0.0))
    return cast


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _same_kind(left: Array, right: Array) -> tuple[Array, Array]:
    if left.dtype == right.dtype:
        return left, right
    return left.astype(np.float64), right.astype(np.float64)
