"""How every join runs on Spark: check two DataFrames, compute keys, pack, run the buckets, unpack."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import BooleanType, DataType, DoubleType, LongType, StructField, StructType

from tidegate.engine.operator import Join
from tidegate.spark.bucket.join.pair_condition import PairCondition
from tidegate.spark.bucket.join.plan import (
    UNCERTAIN,
    BucketPlan,
    OutputColumn,
    QueryPlan,
    SamplePlan,
    SideColumns,
)
from tidegate.spark.bucket.join.reservoir import merge_packed
from tidegate.spark.bucket.join.sample_columns import BATCH, OWNER, PROBABILITY, SHOWN, WEIGHT
from tidegate.spark.bucket.join.valuation import Valuation
from tidegate.spark.frames.equalities import has_comparison, read_key_pairs
from tidegate.spark.frames.explained_plan import analyzed_plan
from tidegate.spark.frames.how import OUTER, How
from tidegate.spark.frames.keys import JoinKey, On, join_key
from tidegate.spark.frames.side import SideFrame, check_frame
from tidegate.spark.packing.arrow_types import arrow_type
from tidegate.spark.packing.packed_rows import PACKED, RESULTS, unpack
from tidegate.spark.packing.row_packer import RowPacker
from tidegate.spark.packing.type_encoding import encoded_type, encoding_of, is_atomic
from tidegate.spark.pool.pool import PoolMember
from tidegate.spark.query.computable import computable_forms
from tidegate.spark.query.evolution import check_restart, is_plain_column
from tidegate.spark.query.processor import JoinProcessor, batch_job
from tidegate.spark.query.where import SPARK, TwoSidedExpressionError, check_types, parse, split_condition
from tidegate.spark.session.bucket_count import bucket_count
from tidegate.spark.session.configuration import (
    check_state_store,
    choose_worker_python,
    shuffle_partitions,
    warn_about_partitions,
)
from tidegate.spark.state.deferred_processor import DeferredProcessor
from tidegate.spark.state.layout import NAME, check_name
from tidegate.spark.state.start_listener import count_sources, watch_starts
from tidegate.types import SIDES, Condition, InputError

if TYPE_CHECKING:
    from datetime import timedelta
    from pathlib import Path

    import pyarrow as pa
    from sqlglot import exp

    from tidegate.spark.query.computed import Form
    from tidegate.types import Side

_LONG_WATERMARK: Final = 10


@dataclass(frozen=True)
class JoinQuery:
    """Two checked DataFrames and their key: the first stage of every join and sample.

    Parameters
    ----------
    frames
        The two sides.
    keys
        The key by which rows are matched and distributed.
    streaming
        Whether both are streaming; else both are batch.
    step
        Of a batch query: the number of rows that are handled together.
    """

    frames: dict[Side, SideFrame]
    keys: JoinKey
    streaming: bool
    step: int

    @classmethod
    def of(
        cls,
        left: DataFrame,
        right: DataFrame,
        *,
        on: On,
        time: str | tuple[str, str],
        condition: Condition,
        by: str | tuple[str, str] | None,
        lateness: str | timedelta | None,
        step: int,
    ) -> Self:
        """Check the arguments, which are those of `tidegate.join`."""
        if isinstance(step, bool) or not isinstance(step, int) or step < 1:
            raise InputError(f"step={step!r} is not a number of rows; give at least 1")
        streaming = _check_streaming(left, right)
        if has_comparison(on):
            if condition != "=":
                raise InputError(
                    f"on={str(on)!r} compares by ==, and condition={condition!r}; give names of columns in on="
                )
            on = read_key_pairs(on, left, right)
        times = _column_pair(time, "time")
        frames: dict[Side, SideFrame] = {
            side: SideFrame.of(side, frame, at, lateness, streaming=streaming)
            for side, frame, at in zip(SIDES, (left, right), times, strict=True)
        }
        _check_times(frames)
        keys = join_key(frames["left"], frames["right"], on, condition, by)
        return cls(frames, keys, streaming, step)

    @property
    def numeric(self) -> bool:
        """Whether keys are numbers, not hashes."""
        return not self.keys.checked

    def buckets(self, wanted: int | None) -> int:
        """The number of buckets of the query."""
        spark = self.frames["left"].frame.sparkSession
        return _count_buckets(wanted, self.keys.distributed_by, shuffle_partitions(spark))

    def run(
        self,
        core: Join,
        buckets: int,
        *,
        how: How,
        where: str | None,
        suffix: str,
        valuation: Valuation | None = None,
        member: PoolMember | None = None,
        sampling: SamplePlan | None = None,
        name: str = NAME,
        buckets_given: bool = True,
        checkpoint: str | Path | None = None,
    ) -> DataFrame:
        """The results of this join, as a DataFrame.

        `buckets_given` states whether the user gave the number of buckets.
        """
        frames, keys = self.frames, self.keys
        buckets_given = buckets_given or keys.distributed_by is None or not self.streaming
        choose_worker_python(frames["left"].frame.sparkSession)
        if self.streaming:
            check_state_store(frames["left"].frame.sparkSession)
            watch_starts(frames["left"].frame.sparkSession)
            warn_about_partitions(frames["left"].frame.sparkSession, buckets, stacklevel=3)
            _warn_watermarks(frames, core)
        result_filter, parts = _split_where(where, frames, how)
        if result_filter is not None and sampling and sampling.reservoir:
            raise InputError(
                f"where={where!r} can only be applied to whole results, so the reservoir would contain rejected "
                "results; write it as comparisons of l. with r., or filter the sides before the join"
            )
        schema, output = _result_schema(frames, keys, how, suffix, _result_fields(how, sampling))
        if sampling:
            sampling = sampling.resolve_columns(schema.names[: len(output)], output)
        plan = QueryPlan(
            BucketPlan(
                join=core,
                how=how,
                left=SideColumns(frames["left"].columns, frames["left"].time_column),
                right=SideColumns(frames["right"].columns, frames["right"].time_column),
                output=output,
                checked=keys.checked,
                where=parts,
                layout=_layout(frames, buckets, how, keys, parts)
                | {"importance": _computed_expressions(valuation), "name": check_name(name)}
                | {"computable": _computable(frames, parts, valuation) if self.streaming else {}}
                | ({"sample": sampling.described} if sampling else {})
                | (
                    {"reservoir": {"columns": _row_schema(schema, output)}}
                    if sampling and sampling.reservoir
                    else {}
                ),
                valuation=valuation,
                sampling=sampling,
            ),
            buckets,
            member,
            buckets_given,
        )
        plan.check()
        if checkpoint is not None and self.streaming:
            plan = _continued(checkpoint, plan, frames)
            buckets, buckets_given = plan.buckets, plan.buckets_given
        packed = [
            frames[side]
            .packed(
                keys.expressions(side),
                (getattr(parts, side) if parts else {})
                | (valuation.hidden_columns(side) if valuation else {}),
            )
            .mapInArrow(RowPacker(number, buckets, keys.distributed_by, buckets_given), PACKED)
            for number, side in enumerate(SIDES)
        ]
        grouped = packed[0].union(packed[1]).groupBy("bucket")
        transport_schema = _transport_schema(schema, len(output))
        reservoir = sampling is not None and sampling.reservoir is not None
        packs = reservoir or not all(is_atomic(field.dataType) for field in transport_schema)
        written: StructType | str = RESULTS if packs else transport_schema
        if self.streaming:
            processor = DeferredProcessor(JoinProcessor(plan, packs=packs))
            results = grouped.transformWithStateInPandas(processor, written, "Append", "EventTime")
        else:
            results = grouped.applyInArrow(batch_job(plan, self.step, packs=packs), written)
        if reservoir:
            # In one partition: the sample depends on the reservoirs of all buckets.
            results = results.repartition(1).mapInArrow(merge_packed, transport_schema)
        elif packs:
            results = results.mapInArrow(unpack, transport_schema)
        decoded = _decode(results, schema)
        if result_filter is None:
            return decoded
        return decoded.where(_rewrite_for_results(result_filter, frames, schema, output))


def _continued(checkpoint: str | Path, plan: QueryPlan, frames: dict[Side, SideFrame]) -> QueryPlan:
    """The plan of a query that continues from this checkpoint, if there is one; refuse one that cannot."""
    session = frames["left"].frame.sparkSession
    sources = sum(count_sources(frame.frame) for frame in frames.values())
    # Imported here: only needed if a checkpoint is given.
    from tidegate.spark.query.checkpoint import saved_layout  # noqa: PLC0415

    saved = saved_layout(checkpoint, session, str(plan.bucket.layout["name"]), sources)
    if saved is None:
        return plan
    if not plan.buckets_given:
        # Without a given number of buckets, a restart keeps that of the checkpoint.
        plan = plan.with_buckets(saved["buckets"])
    check_restart(saved, plan.bucket.layout)
    return plan


def _check_streaming(left: DataFrame, right: DataFrame) -> bool:
    for side, frame in zip(SIDES, (left, right), strict=True):
        check_frame(frame, side)
    if left.isStreaming != right.isStreaming:
        stream, batch = SIDES if left.isStreaming else SIDES[::-1]
        raise InputError(
            f"{stream} is streaming and {batch} is not; read both with spark.readStream, or both with spark.read"
        )
    return bool(left.isStreaming)


def _column_pair(value: object, what: str) -> tuple[str, str]:
    if isinstance(value, str):
        return value, value
    if (
        isinstance(value, tuple | list)
        and len(value) == len(SIDES)
        and all(isinstance(v, str) for v in value)
    ):
        return value[0], value[1]
    raise InputError(f"{what}={value!r} is not a column; give its name, or (left, right) if names differ")


def _check_times(frames: dict[Side, SideFrame]) -> None:
    kinds = {side: frame.by_name(frame.time).dataType.simpleString() for side, frame in frames.items()}
    if kinds["left"] != kinds["right"]:
        raise InputError(
            f"the left time is {kinds['left']}, the right one {kinds['right']}; cast one, "
            f'e.g. F.col({frames["right"].time!r}).cast("{kinds["left"]}")'
        )


def _count_buckets(buckets: int | None, distributed_by: str | None, partitions: int) -> int:
    """The number of buckets of a query whose rows are distributed by this column."""
    if distributed_by is None:
        if (buckets or 1) != 1:
            raise InputError(f"buckets={buckets} needs by=: without it, any row may match any other")
        warnings.warn(
            "a condition without equality and without by= runs in one bucket, on one core; "
            "name a column with by= to distribute it",
            stacklevel=4,
        )
        return 1
    return bucket_count(buckets, partitions)


def _warn_watermarks(frames: dict[Side, SideFrame], core: Join) -> None:
    spans = [abs(s) for s in (core.window.left, core.window.right) if isinstance(s, int)]
    for frame in frames.values():
        delay = frame.delay
        if delay is not None and spans and delay > _LONG_WATERMARK * max(*spans, 1_000_000):
            warnings.warn(
                f"the {frame.side} watermark waits {delay / 1e6:g} s, far longer than the window of "
                f"{max(spans) / 1e6:g} s: rows stay buffered that long; lower its delay if rows arrive earlier",
                stacklevel=4,
            )


def _split_where(
    where: str | None, frames: dict[Side, SideFrame], how: How
) -> tuple[exp.Expression | None, PairCondition | None]:
    """The condition as a filter on results, which only an inner join allows, or as a condition on pairs."""
    if where is None:
        return None, None
    tree = parse(where, frames["left"].names, frames["right"].names)
    _check_same_meaning(where, tree, frames)
    try:
        parts = split_condition(tree)
        check_types(parts, {side: _part_types(frames[side], getattr(parts, side)) for side in SIDES}, where)
    except TwoSidedExpressionError:
        if how != "inner":
            raise
        return tree, None
    return None, parts


def _check_same_meaning(where: str, tree: exp.Expression, frames: dict[Side, SideFrame]) -> None:
    """Check, on empty DataFrames, that Spark accepts the condition and parses it as we do."""
    both = frames["left"].empty().alias("l").crossJoin(frames["right"].empty().alias("r"))
    try:
        selected = both.select(F.expr(where).alias("holds"))
        kind = selected.schema.fields[0].dataType
    except PySparkException as error:
        raise InputError(f"where={where!r}: {str(error).splitlines()[0]}") from error
    if not isinstance(kind, BooleanType):
        raise InputError(
            f"where={where!r} is of type {kind.simpleString()}; it must be a condition, which is true or false"
        )
    rewritten = tree.sql(SPARK)
    if _plan_without_ids(selected) != _plan_without_ids(both.select(F.expr(rewritten).alias("holds"))):
        raise InputError(f"where={where!r} would be parsed as {rewritten!r}; write it in simpler SQL")


def _plan_without_ids(frame: DataFrame) -> str:
    """The analyzed plan of a DataFrame without the ids of columns."""
    return re.sub(r"#\d+L?", "", analyzed_plan(frame)).casefold()


def _part_types(frame: SideFrame, parts: dict[str, str]) -> dict[str, pa.DataType]:
    schema = frame.empty().select(*(F.expr(sql).alias(name) for name, sql in parts.items())).schema
    try:
        for field in schema.fields:
            if "collate" in field.dataType.simpleString():
                raise TwoSidedExpressionError(
                    f"where compares {field.dataType.simpleString()} between the sides; use lower(...)"
                )
        return {field.name: arrow_type(field.dataType) for field in schema.fields}
    except PySparkException as error:
        raise TwoSidedExpressionError(
            f"where: {str(error).splitlines()[0]}; cast it to a number or a string"
        ) from error


def _result_schema(
    frames: dict[Side, SideFrame], keys: JoinKey, how: How, suffix: str, result_fields: list[StructField]
) -> tuple[StructType, tuple[OutputColumn, ...]]:
    """The schema of the result, with `result_fields` at the end, and the source of each column of a row."""
    left, right = frames["left"], frames["right"]
    shared = dict(keys.shared)
    fields: list[StructField] = []
    output: list[OutputColumn] = []

    def add(name: str, field: StructField, a: str | None, b: str | None, *, nullable: bool) -> None:
        if name.casefold() in [f.name.casefold() for f in fields]:
            raise InputError(
                f"the result would have two columns {name!r}; rename one before the join, or choose another "
                f"suffix than {suffix!r}"
            )
        fields.append(StructField(name, field.dataType, field.nullable or nullable, field.metadata))
        output.append(OutputColumn(a, b, arrow_type(encoded_type(field.dataType, field.name))))

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
        left_names = {field.name.casefold() for field in left.fields}
        for field in right.fields:
            if field.name in shared.values():
                continue
            name = field.name + suffix if field.name.casefold() in left_names else field.name
            add(name, field, None, right.column(field.name), nullable=how in ("left", "full"))
    for field in result_fields:
        if field.name in [f.name.casefold() for f in fields]:
            raise InputError(f"an input has a column {field.name!r}, which the result adds; rename it first")
    return StructType([*fields, *result_fields]), tuple(output)


def _row_schema(schema: StructType, output: tuple[OutputColumn, ...]) -> dict[str, Any]:
    """The fields of a result that come from its rows, without metadata, as JSON."""
    fields = [StructField(f.name, f.dataType) for f in schema.fields[: len(output)]]
    described: dict[str, Any] = StructType(fields).jsonValue()
    return described


def _result_fields(how: How, sampling: SamplePlan | None) -> list[StructField]:
    """The fields of a result that do not come from its rows."""
    kinds: dict[str, DataType] = {UNCERTAIN: BooleanType()} if how in OUTER else {}
    if sampling:
        kinds |= {PROBABILITY: DoubleType(), WEIGHT: DoubleType(), OWNER: LongType(), SHOWN: DoubleType()}
    if sampling and sampling.reservoir:
        kinds |= {BATCH: LongType()}
    return [StructField(name, kind, nullable=False) for name, kind in kinds.items()]


def _layout(
    frames: dict[Side, SideFrame], buckets: int, how: How, keys: JoinKey, where: PairCondition | None
) -> dict[str, object]:
    layout: dict[str, object] = {"buckets": buckets, "how": how, "on": keys.described}
    layout["where"] = None if where is None else [where.left, where.right, repr(where.tree)]
    layout["time"] = [frame.time for frame in frames.values()]
    for side, frame in frames.items():
        layout[f"{side} columns"] = frame.described
        layout[f"{side} required"] = [field.name for field in frame.fields if not field.nullable]
        layout[f"{side} keys"] = list(keys.columns[side])
    return layout


def _computed_expressions(valuation: Valuation | None) -> dict[Side, dict[str, str]] | None:
    """The expressions of the importance whose values are stored with buffered rows."""
    return valuation.computed if valuation and any(valuation.computed.values()) else None


def _computable(
    frames: dict[Side, SideFrame], where: PairCondition | None, valuation: Valuation | None
) -> dict[str, dict[Side, dict[str, Form]]]:
    """By use and side, the expressions that can be computed for rows that were buffered before they were used."""
    forms: dict[str, dict[Side, dict[str, Form]]] = {"where": {}, "importance": {}}
    for side, frame in frames.items():
        new = [sql for sql in (getattr(where, side) if where else {}).values() if not is_plain_column(sql)]
        forms["where"][side] = computable_forms(frame, new)
        numbers = valuation.computed[side] if valuation else ()
        forms["importance"][side] = computable_forms(frame, numbers, as_double=True)
    return forms


def _transport_schema(schema: StructType, from_rows: int) -> StructType:
    """The columns that leave a bucket: `ResultWriter` names those `from_rows`, and encoded ones have other types."""
    fields = []
    for i, field in enumerate(schema.fields):
        name = f"o{i}" if i < from_rows else field.name
        fields.append(StructField(name, encoded_type(field.dataType, field.name), field.nullable))
    return StructType(fields)


def _decode(results: DataFrame, schema: StructType) -> DataFrame:
    """Results with the user's names, types and metadata."""
    columns = []
    for name, field in zip(results.columns, schema.fields, strict=True):
        encoding, column = encoding_of(field.dataType, field.name), F.col(name)
        decoded = encoding.decode(column, nullable=field.nullable) if encoding else column
        columns.append(decoded.alias(field.name, metadata=field.metadata))
    return results.select(*columns)


def _rewrite_for_results(
    tree: exp.Expression, frames: dict[Side, SideFrame], schema: StructType, output: tuple[OutputColumn, ...]
) -> str:
    """Rewrite a condition on pairs in SQL over the result's columns."""
    from sqlglot import exp  # noqa: PLC0415 - a type elsewhere

    names: dict[tuple[str, str], str] = {}
    for field, out in zip(schema.fields, output, strict=False):
        for alias, side, column in (("l", "left", out.left), ("r", "right", out.right)):
            if column is not None:
                names[alias, frames[side].names[frames[side].columns.index(column)]] = field.name  # type: ignore[index]

    def rename(node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.Column):
            return exp.column(names[node.table, node.name], quoted=True)
        return node

    return tree.transform(rename).sql(SPARK)
