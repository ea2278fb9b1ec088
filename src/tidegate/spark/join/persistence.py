"""The state of a bucket between micro-batches: saved, loaded, and checked against the query.

A state is named arrays (`tidegate.spark.state.log`), and segments of payload:

| name | content |
|---|---|
| `layout` | what a query must agree on to continue from the state |
| `settings` | the policy, its parameters and all else that scores depend on |
| `progress` | counts and times |
| `rows.<side>.<column>` | the buffered rows: key, time, id, matches, and the columns of the policy |
| `operator.<name>` | the rest of the operator's snapshot |
| `evicted_until.<side>` | in an outer join: until when evicted rows could have matched |
| `grant` | in a pool: how much the bucket may buffer |
| `importance` | if rows have importance: the definition that applies |
| `sampling`, `reservoir...` | in a sample: its sampler and its reservoir; its results are payload |
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
from tidegate.engine.clocks import SideClocks
from tidegate.engine.join_state import JoinState
from tidegate.engine.operator import Operator
from tidegate.policies import Policy, find
from tidegate.policies.policy import check_rows
from tidegate.spark.join.bucket import BucketJoin
from tidegate.spark.join.computed import compute
from tidegate.spark.join.intake import ArrivalCounts
from tidegate.spark.join.plan import BucketPlan
from tidegate.spark.join.settings import SavedSettings
from tidegate.spark.join.valuation import SavedImportance, WatchedFiles
from tidegate.spark.packing.columns import transport_type
from tidegate.spark.packing.packed_rows import CHECK
from tidegate.spark.packing.type_encoding import encoding_of
from tidegate.spark.pool.shares import Grant
from tidegate.spark.state.clock import Clock
from tidegate.spark.state.difference import ROWS
from tidegate.spark.state.evolution import check_restart, plan_migration
from tidegate.spark.state.layout import check_owner
from tidegate.spark.state.log import StateLog
from tidegate.spark.state.payload import PayloadStore
from tidegate.types import SIDES, InputError

if TYPE_CHECKING:
    from tidegate.spark.sample.bucket_reservoir import BucketReservoir
    from tidegate.types import Array, Side

VERSION: Final = 2
"""Version 1 has no `arrivals` in its clock, and the results of a reservoir as one array."""
_OPERATOR: Final = "operator."
_RESERVOIR: Final = "reservoir"
"""The name of a reservoir's results among the payload."""


@dataclass(frozen=True)
class BucketProgress:
    """The counts and times of a bucket."""

    counts: ArrivalCounts
    clock: Clock
    clocks: SideClocks
    timer: int

    def to_json(self) -> bytes:
        """The JSON for a state."""
        times = {"now": self.clocks.now.now, "clocks": self.clocks.to_dict(), "timer": self.timer}
        return json.dumps(
            {"version": VERSION, "counts": vars(self.counts), "clock": self.clock.to_dict()} | times
        ).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """Read what `to_json` wrote."""
        fields = json.loads(data)
        if fields["version"] not in range(1, VERSION + 1):
            raise InputError(
                f"the checkpoint has a state of version {fields['version']}, and this release reads versions 1 to "
                f"{VERSION}; continue with the release that wrote it, or start with a new checkpointLocation"
            )
        return cls(
            ArrivalCounts(**fields["counts"]),
            Clock.from_dict(fields["clock"]),
            # Older states have one clock for both sides.
            SideClocks.from_dict(fields["clocks"])
            if "clocks" in fields
            else SideClocks.starting_at(fields["now"]),
            fields["timer"],
        )


@dataclass(frozen=True)
class SavedBucket:
    """A saved state, read without the query that wrote it."""

    arrays: dict[str, Array]
    layout: dict[str, Any]
    settings: SavedSettings
    progress: BucketProgress
    payload: dict[Side, PayloadStore]
    held_results: PayloadStore
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
            SavedSettings.from_json(arrays["settings"].tobytes()),
            BucketProgress.from_json(arrays["progress"].tobytes()),
            {side: log.payload(side) for side in SIDES},
            log.payload(_RESERVOIR),
            Grant(**json.loads(arrays["grant"].tobytes())) if "grant" in arrays else None,
            SavedImportance.of(arrays),
            json.loads(arrays["sampling"].tobytes()) if "sampling" in arrays else None,
        )

    @cached_property
    def operator_arrays(self) -> dict[str, Array]:
        """The operator's state."""
        names = {name: name.removeprefix(ROWS).removeprefix(_OPERATOR) for name in self.arrays}
        return {own: self.arrays[name] for name, own in names.items() if own != name}

    @cached_property
    def operator(self) -> JoinState:
        """The operator's rows and tally."""
        return JoinState.read(self.operator_arrays)

    @cached_property
    def sample(self) -> BucketReservoir | None:
        """The reservoir, if the state has one."""
        # Imported here: a join without a sample needs no samplers.
        from tidegate.spark.sample.bucket_reservoir import BucketReservoir  # noqa: PLC0415

        return BucketReservoir.of(self.arrays, self.held_results)

    def scorer(self, policy: Policy | type[Policy] | None) -> Operator | None:
        """The operator with this policy, or with the query's own, created again from its class.

        If it is the query's policy, what it has learned is restored. None if the policy cannot be created again, and
        for a sample, which has no policy.
        """
        if self.sampling is not None:
            return None
        chosen = policy if isinstance(policy, Policy) else self.settings.create_policy(policy)
        if chosen is None:
            return None
        operator = Operator(self.settings.join(chosen))
        operator.restore(self.operator_arrays, policy=chosen.label() == self.settings.policy)
        for buffer in operator.buffers.values():
            check_rows(chosen, buffer.rows)
        return operator


def save(bucket: BucketJoin, log: StateLog) -> None:
    """Save the state of a bucket. It replaces the state that the bucket was loaded from."""
    for side in SIDES:
        bucket.payload[side].compact(np.sort(bucket.operator.buffers[side].rows.id))
    payload: dict[str, PayloadStore] = dict(bucket.payload.items())
    if bucket.sample:
        payload[_RESERVOIR] = bucket.sample.payload()
    log.write(_arrays(bucket), payload, f"{bucket.clock.batch}")


def _arrays(bucket: BucketJoin) -> dict[str, Array | bytes]:
    """The state of a bucket without its payload."""
    plan, counts = bucket.plan, bucket.intake.counts
    state: dict[str, Array | bytes] = {
        "layout": json.dumps(plan.layout, sort_keys=True).encode(),
        "settings": SavedSettings.of(bucket.operator.join).to_json(),
        "progress": BucketProgress(counts, bucket.clock, bucket.clocks, bucket.timer).to_json(),
    }
    for name, values in bucket.operator.arrays().items():
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
        bucket.operator.restore(saved.operator_arrays)
    else:
        # The plan has the settings. The saved ones are needed for the name of the policy that wrote the state.
        same_policy = saved.settings.policy == find(plan.join.policy).label()
        bucket.operator.restore(saved.operator_arrays, policy=same_policy)
    progress = saved.progress
    bucket.intake.counts, bucket.clock = replace(progress.counts), replace(progress.clock)
    # A copy: a micro-batch that is run again starts from the same saved clocks.
    bucket.clocks, bucket.timer = SideClocks.from_dict(progress.clocks.to_dict()), progress.timer
    bucket.grant = saved.grant
    for side, store in saved.payload.items():
        convert = plan_migration(
            side, saved.layout, plan.layout, (CHECK,) if plan.checked else (), _arrow_type, compute
        )
        segments = store.segments if convert is None else [s.map_columns(convert) for s in store.segments]
        bucket.payload[side] = PayloadStore(segments)
    for side in SIDES:
        if f"evicted_until.{side}" in saved.arrays:
            bucket.evicted_partners.until[side] = saved.arrays[f"evicted_until.{side}"].copy()
        _measure(bucket, side)
    if bucket.sample and not isinstance(bucket.operator, Operator):
        bucket.sample.restore(saved.arrays, saved.held_results).limit_join(bucket.operator)
    bucket.valuation.resume(saved.importance)
    return bucket


def _arrow_type(kind: str) -> pa.DataType:
    """The Arrow type, in the state, of a column of a Spark type in JSON."""
    parsed = _parse_datatype_json_string(kind)
    encoding = encoding_of(parsed, "")
    return transport_type(to_arrow_type(encoding.type if encoding else parsed, timezone="UTC"))


def _measure(bucket: BucketJoin, side: Side) -> None:
    """Set the sizes of restored rows if the budget counts bytes, and remove them otherwise."""
    rows = bucket.operator.buffers[side].rows
    budget = bucket.plan.join.budget
    in_bytes = budget is not None and budget.unit == "bytes"
    if in_bytes and rows.payload is None:
        sizes = bucket.intake.sizes(bucket.payload[side].take(rows.id) if len(rows) else None)
        bucket.operator.buffers[side] = Buffer.of(replace(rows, payload=sizes))
    elif not in_bytes and rows.payload is not None:
        bucket.operator.buffers[side] = Buffer.of(replace(rows, payload=None))
