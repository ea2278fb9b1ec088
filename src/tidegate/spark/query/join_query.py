"""Joins and samples of two DataFrames: check them, compute keys, and run the buckets."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from tidegate.engine.join import Join
from tidegate.spark.bucket.join.plan import BucketPlan, How, QueryPlan, SamplePlan, SideColumns
from tidegate.spark.bucket.join.valuation import Valuation
from tidegate.spark.frames.equalities import has_comparison, read_key_pairs
from tidegate.spark.frames.keys import JoinKey, On, join_key
from tidegate.spark.frames.side import SideFrame, check_frame
from tidegate.spark.pool.pool import PoolMember
from tidegate.spark.query.bucket_query import BucketQuery, prepare_session
from tidegate.spark.query.event_time import check_event_time, with_event_time
from tidegate.spark.query.evolution import check_restart
from tidegate.spark.query.join_layout import join_layout
from tidegate.spark.query.processor import JoinProcessor, batch_job
from tidegate.spark.query.result_schema import ResultSchema
from tidegate.spark.query.where_clause import WhereClause
from tidegate.spark.session.configuration import shuffle_partitions
from tidegate.spark.session.task import bucket_count
from tidegate.spark.state.layout import NAME, check_name
from tidegate.spark.state.start_listener import count_sources
from tidegate.types import SIDES, Condition, InputError

if TYPE_CHECKING:
    from datetime import timedelta
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from tidegate.spark.query.bucket_query import Merge
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
    def session(self) -> SparkSession:
        """The session of both sides."""
        return self.frames["left"].frame.sparkSession

    @property
    def integer_keys(self) -> bool:
        """Whether keys are integers or numbers, not hashes of them."""
        return not self.keys.is_hashed

    def buckets(self, wanted: int | None) -> int:
        """The number of buckets of the query."""
        return _count_buckets(wanted, self.keys.distributed_by, shuffle_partitions(self.session))

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
        event_time: str | None = None,
    ) -> DataFrame:
        """The results of this join, as a DataFrame.

        `buckets_given` states whether the user gave the number of buckets.
        """
        frames, keys = self.frames, self.keys
        check_event_time(event_time, how, core.window)
        prepare_session(self.session, buckets, streaming=self.streaming, stacklevel=3)
        if self.streaming:
            _warn_watermarks(frames, core)
        clause = WhereClause.of(where, frames, how)
        reservoir = sampling is not None and sampling.reservoir is not None
        if clause.results is not None and reservoir:
            raise InputError(
                f"where={where!r} can only be applied to whole results, so the reservoir would contain rejected "
                "results; write it as comparisons of l. with r., or filter the sides before the join"
            )
        result = ResultSchema.of(frames, keys, how, suffix, sampling)
        if sampling:
            sampling = sampling.resolve_columns(result.row_names, result.sources)
        layout = join_layout(
            frames,
            keys,
            buckets=buckets,
            how=how,
            where=clause.pairs,
            valuation=valuation,
            sampling=sampling,
            result=result,
            name=check_name(name),
            streaming=self.streaming,
        )
        bucket = BucketPlan(
            join=core,
            how=how,
            left=SideColumns(frames["left"].columns, frames["left"].time_column),
            right=SideColumns(frames["right"].columns, frames["right"].time_column),
            output=result.sources,
            is_hashed=keys.is_hashed,
            where=clause.pairs,
            layout=layout,
            valuation=valuation,
            sampling=sampling,
        )
        buckets_given = buckets_given or keys.distributed_by is None or not self.streaming
        plan = QueryPlan(bucket, buckets, member, buckets_given)
        plan.check()
        if checkpoint is not None and self.streaming:
            plan = self._continued(checkpoint, plan)
        hidden = {
            side: clause.hidden_columns(side) | (valuation.hidden_columns(side) if valuation else {})
            for side in SIDES
        }
        query = BucketQuery(
            [frames[side].packed(keys.expressions(side), hidden[side]) for side in SIDES],
            keys.distributed_by,
            plan.buckets,
            plan.buckets_given,
            result.sent,
            merge=_merge_of_reservoirs() if reservoir else None,
        )
        results = (
            query.stream(JoinProcessor(plan)) if self.streaming else query.batch(batch_job(plan, self.step))
        )
        results = clause.filter(result.decode(results), frames, result)
        if event_time is None:
            return results
        times = {side: result.name_of(side, frames[side].time_column) for side in SIDES}
        return with_event_time(results, event_time, how, core.window, times)

    def _continued(self, checkpoint: str | Path, plan: QueryPlan) -> QueryPlan:
        """The plan of a query that continues from this checkpoint, if there is one; refuse one that cannot."""
        # Imported here: only needed if a checkpoint is given.
        from tidegate.spark.query.checkpoint import saved_layout  # noqa: PLC0415

        sources = sum(count_sources(frame.frame) for frame in self.frames.values())
        saved = saved_layout(checkpoint, self.session, str(plan.bucket.layout["name"]), sources)
        if saved is None:
            return plan
        if not plan.buckets_given:
            # Without a given number of buckets, a restart keeps that of the checkpoint.
            plan = plan.with_buckets(saved["buckets"])
        check_restart(saved, plan.bucket.layout)
        return plan


def _merge_of_reservoirs() -> Merge:
    """The sample depends on the reservoirs of all buckets."""
    # Imported here: a join without a sample needs no samplers.
    from tidegate.spark.bucket.join.reservoir import merge_packed  # noqa: PLC0415

    return merge_packed


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
