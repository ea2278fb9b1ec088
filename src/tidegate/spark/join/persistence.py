"""The state of a bucket between micro-batches: saved, loaded, and checked against the query.

A state is named arrays (`tidegate.spark.state.log`), and segments of payload:

| name | content |
|---|---|
| `layout` | what a query must agree on to continue from the state |
| `settings` | what ranking rows takes |
| `progress` | counts and times |
| `rows.<side>.<column>` | the buffered rows: key, time, id, matches, and what the policy keeps of each |
| `operator.<name>` | the rest of the operator's snapshot |
| `evicted_until.<side>` | of an outer join: until when evicted rows could have matched |
| `grant` | in a pool: what the bucket may hold |
| `importance` | where rows have importance: the definition in force |
| `sampling`, `reservoir...` | of a sample |
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import _parse_datatype_json_string

from tidegate.engine.buffer import Buffer
from tidegate.engine.join_state import JoinState
from tidegate.engine.operator import Operator
from tidegate.engine.snapshot import pack, unpack
from tidegate.policies import Policy, find
from tidegate.policies.policy import check_rows
from tidegate.spark.join.bucket import BucketJoin
from tidegate.spark.join.intake import ArrivalCounts
from tidegate.spark.join.plan import BucketPlan
from tidegate.spark.join.settings import Settings
from tidegate.spark.join.valuation import SavedImportance, WatchedFiles
from tidegate.spark.packing.columns import travelled
from tidegate.spark.packing.packed_rows import CHECK
from tidegate.spark.packing.type_encoding import carrier
from tidegate.spark.pool.shares import Grant
from tidegate.spark.state.clock import Clock
from tidegate.spark.state.difference import ROWS
from tidegate.spark.state.evolution import check_restart, migration
from tidegate.spark.state.layout import check_owner
from tidegate.spark.state.log import StateLog
from tidegate.spark.state.payload import PayloadStore
from tidegate.types import SIDES, InputError

if TYPE_CHECKING:
    from tidegate.spark.sample.bucket_reservoir import BucketReservoir
    from tidegate.types import Array, Side

VERSION: Final = 1
_OPERATOR: Final = "operator."


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

    arrays: dict[str, Array]
    layout: dict[str, Any]
    settings: Settings
    progress: Progress
    payload: dict[Side, PayloadStore]
    grant: Grant | None
    importance: SavedImportance | None
    sampling: dict[str, Any] | None

    @classmethod
    def read(cls, log: StateLog) -> Self | None:
        """Read what `save` wrote; None if nothing is saved."""
        arrays = log.read()
        if arrays is None:
            return None
        return cls(
            arrays,
            json.loads(arrays["layout"].tobytes()),
            Settings.from_json(arrays["settings"].tobytes()),
            Progress.from_json(arrays["progress"].tobytes()),
            {side: log.payload(side) for side in SIDES},
            Grant(**json.loads(arrays["grant"].tobytes())) if "grant" in arrays else None,
            SavedImportance.of(arrays),
            json.loads(arrays["sampling"].tobytes()) if "sampling" in arrays else None,
        )

    @cached_property
    def snapshot(self) -> bytes:
        """The operator's snapshot."""
        names = {name: name.removeprefix(ROWS).removeprefix(_OPERATOR) for name in self.arrays}
        return pack({own: self.arrays[name] for name, own in names.items() if own != name})

    @cached_property
    def operator(self) -> JoinState:
        """The operator's rows and tally."""
        return JoinState.read(self.snapshot)

    @cached_property
    def sample(self) -> BucketReservoir | None:
        """The reservoir, if the state has one."""
        # Loaded here: a join without a sample needs no samplers.
        from tidegate.spark.sample.bucket_reservoir import BucketReservoir  # noqa: PLC0415

        return BucketReservoir.of(self.arrays)

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
            check_rows(chosen, buffer.rows)
        return operator


def save(bucket: BucketJoin, log: StateLog) -> None:
    """Save the state of a bucket in the place of the one that it was loaded from."""
    for side in SIDES:
        bucket.payload[side].compact(np.sort(bucket.operator.buffers[side].rows.id))
    log.write(_arrays(bucket), dict(bucket.payload.items()), f"{bucket.clock.batch}")


def _arrays(bucket: BucketJoin) -> dict[str, Array | bytes]:
    """The state of a bucket without its payload."""
    plan, counts = bucket.plan, bucket.intake.counts
    state: dict[str, Array | bytes] = {
        "layout": json.dumps(plan.layout, sort_keys=True).encode(),
        "settings": Settings.of(bucket.operator.join).to_json(),
        "progress": Progress(counts, bucket.clock, bucket.now, bucket.timer).to_json(),
    }
    for name, values in unpack(bucket.operator.snapshot()).items():
        state[(ROWS if name.partition(".")[0] in SIDES else _OPERATOR) + name] = values
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
    if plan.flags_uncertain:
        state |= {f"evicted_until.{side}": until for side, until in bucket.evicted_partners.until.items()}
    return state


def load(plan: BucketPlan, saved: SavedBucket | None, files: WatchedFiles | None = None) -> BucketJoin:
    """A bucket that continues from a saved state, or a new one; `files` are shared with other buckets."""
    bucket = BucketJoin(plan, files)
    if saved is None:
        return bucket
    check_owner(saved.layout, plan.layout)
    check_restart(saved.layout, plan.layout)
    if not isinstance(bucket.operator, Operator):
        bucket.operator.restore(saved.snapshot)
    else:
        # The settings are the plan's; the saved ones name the policy that learned what the state holds.
        same_policy = saved.settings.policy == find(plan.join.policy).label()
        bucket.operator.restore(saved.snapshot, policy=same_policy)
    progress = saved.progress
    bucket.intake.counts, bucket.clock = replace(progress.counts), replace(progress.clock)
    bucket.now, bucket.timer = progress.now, progress.timer
    bucket.grant = saved.grant
    for side, store in saved.payload.items():
        convert = migration(side, saved.layout, plan.layout, (CHECK,) if plan.checked else (), _arrow_type)
        segments = store.segments if convert is None else [s.converted(convert) for s in store.segments]
        bucket.payload[side] = PayloadStore(segments)
    for side in SIDES:
        if f"evicted_until.{side}" in saved.arrays:
            bucket.evicted_partners.until[side] = saved.arrays[f"evicted_until.{side}"].copy()
        _measure(bucket, side)
    if bucket.sample and not isinstance(bucket.operator, Operator):
        bucket.sample.restore(saved.arrays).limit_join(bucket.operator)
    bucket.valuation.resume(saved.importance)
    return bucket


def _arrow_type(kind: str) -> pa.DataType:
    """The type that a column of a Spark type, in JSON, has in the state."""
    parsed = _parse_datatype_json_string(kind)
    carried = carrier(parsed, "")
    return travelled(to_arrow_type(carried.type if carried else parsed, timezone="UTC"))


def _measure(bucket: BucketJoin, side: Side) -> None:
    """Give restored rows their sizes if, and only if, this budget counts bytes."""
    rows = bucket.operator.buffers[side].rows
    budget = bucket.plan.join.budget
    in_bytes = budget is not None and budget.unit == "bytes"
    if in_bytes and rows.payload is None:
        sizes = bucket.intake.sizes(bucket.payload[side].take(rows.id) if len(rows) else None)
        bucket.operator.buffers[side] = Buffer.of(replace(rows, payload=sizes))
    elif not in_bytes and rows.payload is not None:
        bucket.operator.buffers[side] = Buffer.of(replace(rows, payload=None))
