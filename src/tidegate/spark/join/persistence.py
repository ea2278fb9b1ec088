"""The state of a bucket between micro-batches: written, read back, and checked against the query.

A state is named, versioned data (`tidegate.engine.snapshot`):

| name | content |
|---|---|
| `layout` | what a query must agree on to go on from the state |
| `settings` | what ranking rows takes |
| `progress` | counts and times |
| `operator` | the operator's snapshot |
| `payload.<side>` | the other columns of the buffered rows |
| `evicted_until.<side>` | of an outer join: until when evicted rows could have matched |
| `grant` | in a pool: what the bucket may hold |
| `importance` | where rows have importance: the definition that holds |
| `sampling`, `reservoir...` | of a sample |
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa

from tidegate.engine.buffer import Buffer
from tidegate.engine.join_state import JoinState
from tidegate.engine.operator import Operator
from tidegate.engine.snapshot import pack, unpack
from tidegate.policies import Policy, find
from tidegate.spark.join.bucket import BucketJoin
from tidegate.spark.join.intake import ArrivalCounts
from tidegate.spark.join.plan import BucketPlan
from tidegate.spark.join.settings import Settings
from tidegate.spark.join.valuation import SavedImportance, WatchedFiles
from tidegate.spark.packing.packed_rows import from_bytes, to_bytes
from tidegate.spark.pool.shares import Grant
from tidegate.spark.state.clock import Clock
from tidegate.spark.state.layout import check_layout
from tidegate.types import SIDES, InputError

if TYPE_CHECKING:
    from tidegate.spark.sample.bucket_reservoir import BucketReservoir
    from tidegate.types import Array, Side

VERSION: Final = 1


@dataclass(frozen=True)
class Progress:
    """The counts and times of a bucket."""

    counts: ArrivalCounts
    clock: Clock
    now: int
    timer: int

    def to_json(self) -> bytes:
        """Write it for a state."""
        times = {"now": self.now, "timer": self.timer}
        return json.dumps(
            {"version": VERSION, "counts": vars(self.counts), "clock": vars(self.clock)} | times
        ).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """Read what `to_json` wrote."""
        plain = json.loads(data)
        if plain["version"] != VERSION:
            raise InputError(
                f"the checkpoint has a state of version {plain['version']}, not {VERSION}; go on with the release "
                "that wrote it, or start with a new checkpointLocation"
            )
        return cls(ArrivalCounts(**plain["counts"]), Clock(**plain["clock"]), plain["now"], plain["timer"])


@dataclass(frozen=True)
class SavedBucket:
    """A saved state, read without the query that wrote it."""

    fields: dict[str, Array]
    layout: dict[str, Any]
    settings: Settings
    progress: Progress
    payload: dict[Side, pa.Table]
    grant: Grant | None
    importance: SavedImportance | None
    sampling: dict[str, Any] | None

    @classmethod
    def of(cls, data: bytes) -> Self:
        """Read what `save` wrote."""
        fields = unpack(data)
        return cls(
            fields,
            json.loads(fields["layout"].tobytes()),
            Settings.from_json(fields["settings"].tobytes()),
            Progress.from_json(fields["progress"].tobytes()),
            {
                side: from_bytes(fields[f"payload.{side}"].tobytes())
                for side in SIDES
                if f"payload.{side}" in fields
            },
            Grant(**json.loads(fields["grant"].tobytes())) if "grant" in fields else None,
            SavedImportance.of(fields),
            json.loads(fields["sampling"].tobytes()) if "sampling" in fields else None,
        )

    @property
    def snapshot(self) -> bytes:
        """The operator's snapshot."""
        return self.fields["operator"].tobytes()

    @cached_property
    def operator(self) -> JoinState:
        """The operator's rows and tally."""
        return JoinState.read(self.snapshot)

    @cached_property
    def sample(self) -> BucketReservoir | None:
        """The reservoir, if the state has one."""
        # Loaded here: a join without a sample needs no samplers.
        from tidegate.spark.sample.bucket_reservoir import BucketReservoir  # noqa: PLC0415

        return BucketReservoir.of(self.fields)

    def scorer(self, policy: Policy | type[Policy] | None) -> Operator | None:
        """The operator as it would go on with a policy, or with the query's own, made again from its class.

        What was learned is restored where that policy learned it. None if the policy cannot be made again, and for a
        sample, which has none.
        """
        if self.sampling is not None:
            return None
        chosen = policy if isinstance(policy, Policy) else self.settings.made(policy)
        if chosen is None:
            return None
        operator = Operator(self.settings.join(chosen))
        operator.restore(self.snapshot, policy=chosen.label() == self.settings.policy)
        for buffer in operator.buffers.values():
            chosen.require(buffer.rows)
        return operator


def save(bucket: BucketJoin) -> bytes:
    """The whole state of a bucket as bytes."""
    plan, counts = bucket.plan, bucket.intake.counts
    state: dict[str, Array | bytes] = {
        "layout": json.dumps(plan.layout, sort_keys=True).encode(),
        "settings": Settings.of(bucket.operator.join).to_json(),
        "progress": Progress(counts, bucket.clock, bucket.now, bucket.timer).to_json(),
        "operator": bucket.operator.snapshot(),
    }
    if bucket.grant:
        state["grant"] = json.dumps(vars(bucket.grant)).encode()
    if plan.valuation:
        state["importance"] = bucket.valuation.to_json()
    if not isinstance(bucket.operator, Operator) and plan.sampling:
        running = bucket.operator.sampling
        described = {
            "sampler": plan.sampling.sampler.name,
            "fraction": running.fraction,
            "lowered": running.control.lowered,
        } | (bucket.sample.model_values() if bucket.sample else {})
        state["sampling"] = json.dumps(described).encode()
    if bucket.sample:
        state |= bucket.sample.snapshot()
    state |= {f"payload.{side}": to_bytes(table) for side, table in bucket.payload.items()}
    if plan.flags_uncertain:
        state |= {f"evicted_until.{side}": until for side, until in bucket.evicted_partners.until.items()}
    return pack(state, compressed=True)


def load(plan: BucketPlan, data: bytes | None, files: WatchedFiles | None = None) -> BucketJoin:
    """A bucket that goes on from saved bytes, or begins; `files` are shared with other buckets."""
    bucket = BucketJoin(plan, files)
    if data is None:
        return bucket
    saved = SavedBucket.of(data)
    check_layout(saved.layout, plan.layout)
    if not isinstance(bucket.operator, Operator):
        bucket.operator.restore(saved.snapshot)
    else:
        # The settings are the plan's; the saved ones name the policy that learned what the state holds.
        same_policy = saved.settings.policy == find(plan.join.policy).label()
        bucket.operator.restore(saved.snapshot, policy=same_policy)
    bucket.intake.counts = saved.progress.counts
    bucket.clock, bucket.now, bucket.timer = saved.progress.clock, saved.progress.now, saved.progress.timer
    bucket.grant = saved.grant
    bucket.payload.update(saved.payload)
    for side in SIDES:
        if f"evicted_until.{side}" in saved.fields:
            bucket.evicted_partners.until[side] = saved.fields[f"evicted_until.{side}"].copy()
        _measure(bucket, side)
    if bucket.sample and not isinstance(bucket.operator, Operator):
        bucket.sample.restore(saved.fields).limit_join(bucket.operator)
    bucket.valuation.resume(saved.importance)
    return bucket


def _measure(bucket: BucketJoin, side: Side) -> None:
    """Give restored rows their sizes if, and only if, this budget counts bytes."""
    rows = bucket.operator.buffers[side].rows
    sizes = bucket.intake.sizes(bucket.payload.get(side))
    bucket.operator.buffers[side] = Buffer.of(replace(rows, payload=sizes))
