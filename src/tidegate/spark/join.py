"""The front door: two DataFrames in, one DataFrame out, batch or streaming."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from typing import TYPE_CHECKING, Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import BooleanType, DataType, StructField, StructType

from tidegate.engine.operator import Join
from tidegate.policies import Policy, find
from tidegate.spark.columns import travelled
from tidegate.spark.durations import Duration, window_of
from tidegate.spark.importance import parts as importance_parts
from tidegate.spark.importance import stated
from tidegate.spark.packing import PACKED, RESULTS, Pack, unpack
from tidegate.spark.plan import UNCERTAIN, BucketPlan, How, Output, QueryPlan, SideColumns
from tidegate.spark.pool import Member
from tidegate.spark.processor import Processor, batch_job
from tidegate.spark.session import PARTITIONS, check_provider
from tidegate.spark.settings import online
from tidegate.spark.side import Keyed, On, SideFrame, keyed, quoted
from tidegate.spark.where import SPARK, EntangledError, Where, check, parse, take_apart
from tidegate.spark.worth import Valuation
from tidegate.types import SIDES, Budget, Combine, Condition, InputError, Split, check_choice

if TYPE_CHECKING:
    from datetime import timedelta

    import pyarrow as pa
    from sqlglot import exp

    from tidegate.importance import Stated
    from tidegate.types import Side

_MOST_BUCKETS: Final = 64
_TOO_MANY_BUCKETS: Final = 4096
_LONG_WATERMARK: Final = 10


def join(
    left: DataFrame,
    right: DataFrame,
    *,
    on: On,
    time: str | tuple[str, str],
    window: tuple[Duration, Duration],
    budget: Budget | Member | int | str | None = None,
    policy: Policy | str = "fifo",
    how: How = "inner",
    where: str | None = None,
    condition: Condition = "=",
    by: str | tuple[str, str] | None = None,
    lateness: str | timedelta | None = None,
    importance: Stated | None = None,
    combine: Combine = "min",
    split: Split = "shared",
    buckets: int | None = None,
    suffix: str = "_right",
    seed: int = 0,
    step: int = 100_000,
) -> DataFrame:
    """Join two DataFrames within a budget of memory; with one that suffices, exactly as Spark does.

    Both are streaming, or both are batch. Rows of a micro-batch are handled in order of event time. Null keys
    never match. The watermark is the lesser of both sides'; a row at or before that of the previous micro-batch
    is late and dropped, as in Spark's own join.

    Parameters
    ----------
    left, right
        The two sides. Streaming ones need a watermark: `df.withWatermark(time, delay)`, or `lateness`.
    on
        The key: a column that both have, several of them, or pairs `(left, right)` where names differ.
    time
        The column of event time, or `(left, right)`.
    window
        `(left, right)`: `l` and `r` join iff `-right <= r.time - l.time <= left`; "10 minutes", a timedelta, or
        None for no end.
    budget
        What the whole query may buffer: a number of rows, a string of bytes ("64 MB"), a `Budget`, the member
        of a `Pool`, or None for no limit.
    policy
        Who stays, by name or as an object; see `tidegate.policies`.
    how
        "inner", "left", "right", "full" or "left_semi". A row without a match leaves when its window has
        passed, or earlier when it is shed; the column `uncertain` then says whether a match may have been
        missed. A row whose key is null leaves at once.
    where
        A further condition on the pair, as Spark SQL over `l.` and `r.`: "l.amount > r.amount".
    condition
        How keys compare, `l.key ? r.key`: "=", or "<", "<=", "!=", ">", ">=" or a `Band` on a number or a time.
    by
        With such a condition: a column (or a pair) whose values must be equal, by which rows are dealt out.
    lateness
        Sets a watermark with this delay on both sides.
    importance
        What rows are worth, for a policy that ranks by it and for the total in `inspect`: one of
        `tidegate.importance`, a column's name, a number, or a pair (left, right) of these.
    combine
        The importance of a result from its partners': "min", "max", "sum", "product" or "mean".
    split
        How the sides share the budget: "shared", "even", (left, right) in the budget's unit, or "optimal": as
        the model of prob, life or age divides it.
    buckets
        Into how many parts keys, budget and state are divided. By default as many as the session has shuffle
        partitions, at most 64. A restart needs the same number.
    suffix
        Appended to the right's columns whose names the left has too.
    seed
        Fixes all randomness.
    step
        On batch DataFrames: how many rows are handled together, in order of time.

    Returns
    -------
    DataFrame
        The left's columns, then the right's; a key that has one name on both sides once. For "left_semi" the
        left's alone.
    """
    check_choice(how, How, "how")
    if isinstance(step, bool) or not isinstance(step, int) or step < 1:
        raise InputError(f"step={step!r} is not a number of rows; give at least 1")
    streaming = _streaming(left, right)
    times = _two_names(time, "time")
    span = window_of(window)
    frames: dict[Side, SideFrame] = {
        side: SideFrame.of(side, frame, at, lateness, streaming=streaming)
        for side, frame, at in zip(SIDES, (left, right), times, strict=True)
    }
    _check_times(frames)
    keys = keyed(frames["left"], frames["right"], on, condition, by)
    member = budget if isinstance(budget, Member) else None
    whole = budget.budget if isinstance(budget, Member) else Budget.of(budget)
    core = Join(
        span,
        whole,
        online(policy),
        split,
        condition=condition,
        combine=combine,
        seed=seed,
        numeric=not keys.checked,
    )
    core.start()  # what the policy refuses is told here and not by a worker
    spark = left.sparkSession
    count = _buckets(buckets, keys, spark.conf.get(PARTITIONS) or "200")
    if member:
        member.check(find(policy), split, span, count, streaming=streaming)
    if streaming:
        check_provider(spark)
        _warn_watermarks(frames, core)
    filtered, parts = _taken_apart(where, frames, how)
    valuation = stated(importance, frames, find(policy), streaming=streaming)
    schema, output = _result(frames, keys, how, suffix)
    plan = QueryPlan(
        BucketPlan(
            join=core,
            how=how,
            left=SideColumns(frames["left"].columns, frames["left"].time_column),
            right=SideColumns(frames["right"].columns, frames["right"].time_column),
            output=output,
            checked=keys.checked,
            where=parts,
            layout=_layout(frames, count, how, keys, parts) | {"importance": _expressions(valuation)},
            valuation=valuation,
        ),
        count,
        member,
    )
    plan.check()
    packed = [
        frames[side]
        .packed(
            keys.expressions(side),
            (getattr(parts, side) if parts else {}) | importance_parts(valuation, side),
        )
        .mapInArrow(Pack(number, count, keys.dealt_by), PACKED)
        for number, side in enumerate(SIDES)
    ]
    grouped = packed[0].union(packed[1]).groupBy("bucket")
    if streaming:
        results = grouped.transformWithStateInPandas(Processor(plan), RESULTS, "Append", "EventTime")
    else:
        results = grouped.applyInArrow(batch_job(plan, step), RESULTS)
    return _unpacked(results, schema, frames, output, filtered)


def _streaming(left: DataFrame, right: DataFrame) -> bool:
    for side, frame in zip(SIDES, (left, right), strict=True):
        if not hasattr(frame, "mapInArrow"):
            raise InputError(f"{side} is a {type(frame).__name__}; give a Spark DataFrame")
    if left.isStreaming != right.isStreaming:
        stream, batch = SIDES if left.isStreaming else SIDES[::-1]
        raise InputError(
            f"{stream} is streaming and {batch} is not; read both with spark.readStream, or both with spark.read"
        )
    return bool(left.isStreaming)


def _two_names(value: object, what: str) -> tuple[str, str]:
    if isinstance(value, str):
        return value, value
    if (
        isinstance(value, tuple | list)
        and len(value) == len(SIDES)
        and all(isinstance(v, str) for v in value)
    ):
        return value[0], value[1]
    raise InputError(f"{what}={value!r} is not a column; give its name, or (left, right) where names differ")


def _check_times(frames: dict[Side, SideFrame]) -> None:
    kinds = {side: frame.by_name(frame.time).dataType.simpleString() for side, frame in frames.items()}
    if kinds["left"] != kinds["right"]:
        raise InputError(
            f"the left time is {kinds['left']}, the right one {kinds['right']}; cast one, "
            f'e.g. F.col({frames["right"].time!r}).cast("{kinds["left"]}")'
        )


def _buckets(buckets: int | None, keys: Keyed, partitions: str) -> int:
    if keys.dealt_by is None:
        if (buckets or 1) != 1:
            raise InputError(f"buckets={buckets} need by=: without it every row may match every other")
        warnings.warn(
            "a condition without equality and without by= runs in one bucket, on one core; "
            "name a column with by= to distribute it",
            stacklevel=3,
        )
        return 1
    if buckets is None:
        return min(int(partitions), _MOST_BUCKETS)
    if isinstance(buckets, bool) or not isinstance(buckets, int) or not 1 <= buckets <= _TOO_MANY_BUCKETS:
        raise InputError(f"buckets={buckets!r} is not a number of buckets; give 1 to {_TOO_MANY_BUCKETS}")
    return buckets


def _warn_watermarks(frames: dict[Side, SideFrame], core: Join) -> None:
    spans = [abs(s) for s in (core.window.left, core.window.right) if isinstance(s, int)]
    for frame in frames.values():
        delay = frame.delay
        if delay is not None and spans and delay > _LONG_WATERMARK * max(*spans, 1_000_000):
            warnings.warn(
                f"the {frame.side} watermark waits {delay / 1e6:g} s, far longer than the window of "
                f"{max(spans) / 1e6:g} s: rows stay buffered that long; lower its delay if rows come sooner",
                stacklevel=3,
            )


def _taken_apart(
    where: str | None, frames: dict[Side, SideFrame], how: How
) -> tuple[exp.Expression | None, Where | None]:
    """The condition as a filter on results, or taken apart for the pairs; an inner join can do with either."""
    if where is None:
        return None, None
    tree = parse(where, frames["left"].names, frames["right"].names)
    _check_understood(where, tree, frames)
    try:
        parts = take_apart(tree)
        check(parts, {side: _part_types(frames[side], getattr(parts, side)) for side in SIDES}, where)
    except EntangledError:
        if how != "inner":
            raise
        return tree, None
    return None, parts


def _check_understood(where: str, tree: exp.Expression, frames: dict[Side, SideFrame]) -> None:
    """Let Spark say, on no rows, what the condition is, and whether it reads what we read."""
    both = frames["left"].empty().alias("l").crossJoin(frames["right"].empty().alias("r"))
    try:
        asked = both.select(F.expr(where).alias("holds"))
        kind = asked.schema.fields[0].dataType
    except PySparkException as error:
        raise InputError(f"where={where!r}: {str(error).splitlines()[0]}") from error
    if not isinstance(kind, BooleanType):
        raise InputError(
            f"where={where!r} is of type {kind.simpleString()}; write a condition, true or false"
        )
    understood = tree.sql(SPARK)
    if _analysed(asked) != _analysed(both.select(F.expr(understood).alias("holds"))):
        raise InputError(f"where={where!r} would be read as {understood!r}; write it in plainer SQL")


def _analysed(frame: DataFrame) -> str:
    """What Spark makes of a query, without the numbers that it gives to columns."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        frame.explain(extended=True)
    plan = shown.getvalue().partition("== Analyzed Logical Plan ==")[2].partition("== Optimized")[0]
    return re.sub(r"#\d+L?", "", plan).casefold()


def _part_types(frame: SideFrame, parts: dict[str, str]) -> dict[str, pa.DataType]:
    schema = frame.empty().select(*(F.expr(sql).alias(name) for name, sql in parts.items())).schema
    try:
        for field in schema.fields:
            if "collate" in field.dataType.simpleString():
                raise EntangledError(
                    f"where compares {field.dataType.simpleString()} between the sides; use lower(...)"
                )
        return {field.name: _arrow(field.dataType) for field in schema.fields}
    except PySparkException as error:
        raise EntangledError(
            f"where: {str(error).splitlines()[0]}; cast it to a number or a string"
        ) from error


def _result(
    frames: dict[Side, SideFrame], keys: Keyed, how: How, suffix: str
) -> tuple[StructType, tuple[Output, ...]]:
    """The result's fields, and where each comes from."""
    left, right = frames["left"], frames["right"]
    shared = dict(keys.shared)
    fields: list[StructField] = []
    output: list[Output] = []

    def add(name: str, field: StructField, a: str | None, b: str | None, *, nullable: bool) -> None:
        if name.casefold() in [f.name.casefold() for f in fields]:
            raise InputError(
                f"the result would have two columns {name!r}; rename one before the join, or choose another "
                f"suffix than {suffix!r}"
            )
        fields.append(StructField(name, field.dataType, field.nullable or nullable, field.metadata))
        output.append(Output(a, b, _arrow(left.travelling(field))))

    for field in left.fields:
        both = shared.get(field.name) if how != "left_semi" else None
        other = right.column(both) if both else None
        source, nullable = field, False
        if how in ("right", "full"):
            nullable = right.by_name(both).nullable if both else True
            wider = keys.wider(field, right.by_name(both)) if both else field.dataType
            source = StructField(field.name, wider, field.nullable, field.metadata)
        add(field.name, source, left.column(field.name), other, nullable=nullable)
    if how != "left_semi":
        taken = {field.name.casefold() for field in left.fields}
        for field in right.fields:
            if field.name in shared.values():
                continue
            name = field.name + suffix if field.name.casefold() in taken else field.name
            add(name, field, None, right.column(field.name), nullable=how in ("left", "full"))
    if how in ("left", "right", "full"):
        if UNCERTAIN in [f.name.casefold() for f in fields]:
            raise InputError(
                f"an input has a column {UNCERTAIN!r}, which an outer join adds; rename it first"
            )
        fields.append(StructField(UNCERTAIN, BooleanType(), nullable=False))
    return StructType(fields), tuple(output)


def _arrow(kind: DataType) -> pa.DataType:
    return travelled(to_arrow_type(kind, timezone="UTC"))


def _layout(
    frames: dict[Side, SideFrame], buckets: int, how: How, keys: Keyed, where: Where | None
) -> dict[str, object]:
    layout: dict[str, object] = {"buckets": buckets, "how": how, "on": keys.described}
    layout["where"] = None if where is None else [where.left, where.right, repr(where.tree)]
    layout["time"] = [frame.time for frame in frames.values()]
    for side, frame in frames.items():
        layout[f"{side} columns"] = frame.described
    return layout


def _expressions(valuation: Valuation | None) -> dict[Side, dict[str, str]] | None:
    """The expressions whose values buffered rows carry along."""
    return valuation.computed if valuation and any(valuation.computed.values()) else None


def _unpacked(
    results: DataFrame,
    schema: StructType,
    frames: dict[Side, SideFrame],
    output: tuple[Output, ...],
    filtered: exp.Expression | None,
) -> DataFrame:
    """Bring results back to the user's names and types."""
    owners = [frames["left"] if out.left is not None else frames["right"] for out in output]
    sources = [out.left or out.right or "" for out in output]
    carriers = [owner.carrier(source) for owner, source in zip(owners, sources, strict=True)]
    if not any(carriers):
        frame = results.mapInArrow(unpack, schema)
    else:
        travelling = StructType(
            [
                StructField(
                    f.name, owners[i].travelling(f) if i < len(output) else f.dataType, f.nullable, f.metadata
                )
                for i, f in enumerate(schema.fields)
            ]
        )
        frame = results.mapInArrow(unpack, travelling)
        expressions = []
        for field, how in zip(schema.fields, [*carriers, None], strict=False):
            column = F.col(quoted(field.name))
            back = how.returned(column, nullable=field.nullable) if how else column
            expressions.append(back.alias(field.name, metadata=field.metadata))
        frame = frame.select(*expressions)
    if filtered is None:
        return frame
    return frame.where(_on_results(filtered, frames, schema, output))


def _on_results(
    tree: exp.Expression, frames: dict[Side, SideFrame], schema: StructType, output: tuple[Output, ...]
) -> str:
    """The condition over the result's columns."""
    from sqlglot import exp  # noqa: PLC0415 - a type elsewhere

    names: dict[tuple[str, str], str] = {}
    for field, out in zip(schema.fields, output, strict=False):
        for alias, side, column in (("l", "left", out.left), ("r", "right", out.right)):
            if column is not None:
                names[alias, frames[side].names[frames[side].columns.index(column)]] = field.name  # type: ignore[index]

    def renamed(node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.Column):
            return exp.column(names[node.table, node.name], quoted=True)
        return node

    return tree.transform(renamed).sql(SPARK)
