"""A bucket of a join driven by hand, without Spark, and the plain loops that say what it should give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from tidegate.arrow_columns import row_sizes
from tidegate.engine.join import Join
from tidegate.spark.bucket.join.bucket import BucketJoin
from tidegate.spark.bucket.join.plan import LEFT_ONLY, BucketPlan, OutputColumn, SideColumns
from tidegate.spark.bucket.join.saved import SavedBucket
from tidegate.spark.query.evolution import migrate
from tidegate.spark.state.log import StateLog
from tidegate.spark.state.values import DictValueStore
from tidegate.types import SIDES, Band, Window

if TYPE_CHECKING:
    from tidegate.policies import Policy
    from tidegate.spark.bucket.join.plan import How
    from tidegate.types import Budget, Condition, Side


class Arrival(NamedTuple):
    """A row: its key (null for none), its time, and a unique text."""

    key: int | None
    time: int
    text: str


Batch = dict["Side", list[Arrival]]


def table(rows: Sequence[Arrival], zone: str = "UTC") -> pa.Table:
    """Rows as they are unpacked."""
    return pa.table(
        {
            "k": pa.array([row.key for row in rows], pa.int64()),
            "h": pa.array([hash((row.key, row.time, row.text)) for row in rows], pa.int64()),
            "c0": pa.array([row.key for row in rows], pa.int64()),
            "c1": pa.array([row.time for row in rows], pa.int64()).cast(pa.timestamp("us", zone)),
            "c2": pa.array([row.text for row in rows], pa.string()),
        }
    )


def plan(
    window: tuple[int | None, int | None] = (10, 10),
    budget: Budget | int | str | None = None,
    policy: Policy | str = "fifo",
    how: How = "inner",
    condition: Condition = "=",
    layout: dict[str, Any] | None = None,
    seed: int = 0,
) -> BucketPlan:
    columns = SideColumns(("c0", "c1", "c2"), "c1")
    time, left = pa.timestamp("us", "UTC"), ("c0", "c1", "c2")
    kinds = {"c0": pa.int64(), "c1": time, "c2": pa.string()}
    output = [
        OutputColumn(name, "c0" if name == "c0" and condition == "=" else None, kinds[name]) for name in left
    ]
    right = left[1:] if condition == "=" else left
    if how not in LEFT_ONLY:
        output += [OutputColumn(None, name, kinds[name]) for name in right]
    return BucketPlan(
        join=Join(Window(*window), budget, policy, condition=condition, seed=seed),  # type: ignore[arg-type]
        how=how,
        left=columns,
        right=columns,
        output=tuple(output),
        is_hashed=False,
        where=None,
        layout={"buckets": 1, "how": how} if layout is None else layout,
    )


class Result(NamedTuple):
    """The texts of both partners, null for none, and whether a missing partner is uncertain."""

    left: str | None
    right: str | None
    uncertain: bool


def saved(bucket: BucketJoin) -> SavedBucket:
    """The state of a bucket, written and read back."""
    values = DictValueStore()
    bucket.save(StateLog(values, local=False))
    found = SavedBucket.read(StateLog(values, local=False))
    assert found is not None
    return found


def content(bucket: BucketJoin | SavedBucket) -> dict[str, Any]:
    """All that the state of a bucket says, to compare it with another's."""
    state = bucket if isinstance(bucket, SavedBucket) else saved(bucket)
    found: dict[str, Any] = {name: (values.dtype, values.tobytes()) for name, values in state.arrays.items()}
    for side, store in state.payload.items():
        ids = state.arrays[f"rows.{side}.id"]
        found[side] = store.take(ids).to_pylist() if len(ids) else []
    return found


@dataclass
class Hand:
    """Gives micro-batches to a bucket, and collects its results."""

    plan: BucketPlan
    bucket: BucketJoin = field(init=False)
    results: list[Result] = field(default_factory=list)
    chunks: list[int] = field(default_factory=list)
    values: DictValueStore = field(default_factory=DictValueStore)
    log: StateLog = field(init=False)

    def __post_init__(self) -> None:
        self.bucket = BucketJoin(self.plan)
        self.log = StateLog(self.values, local=False)

    def step(self, batch: Batch, watermark: int | None = 0, zone: str = "UTC") -> None:
        if watermark is not None:
            self.bucket.clock.advance(None, watermark)
        tables = {side: table(rows, zone) for side, rows in batch.items() if rows}
        self._keep(self.bucket.step(tables, watermark))

    def finish(self) -> None:
        self._keep(self.bucket.finish())

    def restart(self, plan: BucketPlan | None = None) -> None:
        self.plan = plan or self.plan
        self.bucket.save(self.log)
        self.log = StateLog(self.values, local=False)
        self.bucket = BucketJoin.load(self.plan, migrate(SavedBucket.read(self.log), self.plan))

    def _keep(self, batches: Any) -> None:  # noqa: ANN401 - an iterator of Arrow's
        for batch in batches:
            self.chunks.append(batch.num_rows)
            texts = [
                next(
                    (
                        batch.column(i).to_pylist()
                        for i, o in enumerate(self.plan.output)
                        if getattr(o, side) == "c2"
                    ),
                    [None] * batch.num_rows,
                )
                for side in SIDES
            ]
            flags = batch.column(len(self.plan.output)).to_pylist() if self.plan.flags_uncertain else None
            self.results += map(Result, *texts, flags or [False] * batch.num_rows)

    @property
    def rows_in(self) -> int:
        return self.bucket.intake.counts.rows_left + self.bucket.intake.counts.rows_right

    @property
    def accounted(self) -> int:
        """The number of arrived rows by what happened to them."""
        tally, counts = self.bucket.operator.tally, self.bucket.intake.counts
        return tally.evicted + tally.expired + self.bucket.operator.rows + counts.late + counts.null_keys

    @property
    def bytes(self) -> int:
        """The bytes that are buffered: the columns of the operator and all others."""
        own = (int(column.nbytes) for side in SIDES for column in self._columns(side))
        return sum(own) + sum(self._payload_bytes(side) for side in SIDES)

    def _payload_bytes(self, side: Side) -> int:
        ids = self.bucket.operator.buffers[side].rows.id
        return int(row_sizes(self.bucket.payload[side].take(ids)).sum()) if len(ids) else 0

    def _columns(self, side: Side) -> list[Any]:
        return list(self.bucket.operator.buffers[side].rows.columns().values())


def watermarks(batches: Sequence[Batch], delay: int) -> list[int]:
    """The watermark of each micro-batch: the minimum of both sides, from earlier micro-batches; 0 at first."""
    seen: dict[Side, int] = dict.fromkeys(SIDES, 0)
    found = []
    for batch in batches:
        found.append(max(0, min(seen.values())))
        for side in SIDES:
            seen[side] = max([seen[side], *(row.time - delay for row in batch.get(side, []))])
    return found


def timely(batches: Sequence[Batch], marks: Sequence[int]) -> dict[Side, list[Arrival]]:
    """The rows that are not late: later than the watermark of the micro-batch before."""
    rows: dict[Side, list[Arrival]] = {side: [] for side in SIDES}
    for number, batch in enumerate(batches):
        late = marks[number - 1] if number else 0
        for side in SIDES:
            rows[side] += [row for row in batch.get(side, []) if row.time > late]
    return rows


def holds(condition: Condition, left: int, right: int) -> bool:
    if isinstance(condition, Band):
        return condition.low <= right - left <= condition.high
    compare = {
        "=": np.equal,
        "<": np.less,
        "<=": np.less_equal,
        "!=": np.not_equal,
        ">": np.greater,
        ">=": np.greater_equal,
    }
    return bool(compare[condition](left, right))


def pairs(
    rows: dict[Side, list[Arrival]], window: tuple[int | None, int | None], condition: Condition = "="
) -> list[tuple[str, str]]:
    """Every pair that matches, by brute force."""
    ahead, behind = (10**15 if span is None else span for span in window)
    return [
        (a.text, b.text)
        for a in rows["left"]
        for b in rows["right"]
        if a.key is not None
        and b.key is not None
        and holds(condition, a.key, b.key)
        and -behind <= b.time - a.time <= ahead
    ]
