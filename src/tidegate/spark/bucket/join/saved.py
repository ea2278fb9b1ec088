"""The state of a bucket between micro-batches, as it is saved.

A state is named arrays (`tidegate.spark.state.log`), and segments of payload:

| name | content |
|---|---|
| `layout` | what a query must agree on to continue from the state |
| `settings` | the policy, its parameters and all else that scores depend on |
| `progress` | counts and times |
| `rows.<side>.<column>` | the buffered rows: key, time, id, matches, and the columns of the policy |
| `operator.<name>` | the rest of the operator's snapshot |
| `evicted_until.<side>` | in an outer or anti join: until when evicted rows could have matched |
| `grant` | in a pool: how much the bucket may buffer |
| `importance` | if rows have importance: the definition that applies |
| `sampling`, `reservoir...` | in a sample: its sampler and its reservoir; its results are payload |
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import pyarrow as pa

from tidegate.engine.clocks import SideClocks
from tidegate.engine.join_state import JoinState
from tidegate.engine.operator import Operator
from tidegate.engine.policy_retention import PolicyRetention
from tidegate.policies import Policy
from tidegate.policies.policy import check_rows
from tidegate.spark.bucket.join.intake import ArrivalCounts
from tidegate.spark.bucket.join.settings import SavedSettings
from tidegate.spark.bucket.join.valuation import SavedImportance
from tidegate.spark.packing.buckets import labels
from tidegate.spark.state.clock import Clock
from tidegate.spark.state.difference import ROWS
from tidegate.spark.state.log import StateLog, saved_logs
from tidegate.spark.state.payload import PayloadStore
from tidegate.types import SIDES, InputError

if TYPE_CHECKING:
    from tidegate.spark.bucket.join.reservoir import BucketReservoir
    from tidegate.spark.pool.shares import Grant
    from tidegate.types import Array, Side

VERSION: Final = 2
"""Version 1 has no `arrivals` in its clock, and the results of a reservoir as one array."""
OPERATOR: Final = "operator."
"""Begins the names of the operator's arrays, except for those of rows."""
RESERVOIR: Final = "reservoir"
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
    results: PayloadStore
    grant: Grant | None
    importance: SavedImportance | None
    sampling: dict[str, Any] | None

    @classmethod
    def read(cls, log: StateLog) -> Self | None:
        """Read what `BucketJoin.save` wrote; None if nothing is saved."""
        arrays = log.read()
        if arrays is None:
            return None
        return cls(
            arrays,
            json.loads(arrays["layout"].tobytes()),
            SavedSettings.from_json(arrays["settings"].tobytes()),
            BucketProgress.from_json(arrays["progress"].tobytes()),
            {side: log.payload(side) for side in SIDES},
            log.payload(RESERVOIR),
            _read_grant(arrays["grant"].tobytes()) if "grant" in arrays else None,
            SavedImportance.of(arrays),
            json.loads(arrays["sampling"].tobytes()) if "sampling" in arrays else None,
        )

    @cached_property
    def operator_arrays(self) -> dict[str, Array]:
        """The operator's state."""
        names = {name: name.removeprefix(ROWS).removeprefix(OPERATOR) for name in self.arrays}
        return {own: self.arrays[name] for name, own in names.items() if own != name}

    @cached_property
    def operator(self) -> JoinState:
        """The operator's rows and tally."""
        return JoinState.read(self.operator_arrays)

    @cached_property
    def sample(self) -> BucketReservoir | None:
        """The reservoir, if the state has one."""
        # Imported here: a join without a sample needs no samplers.
        from tidegate.spark.bucket.join.reservoir import BucketReservoir  # noqa: PLC0415

        return BucketReservoir.of(self.arrays, self.results)

    def restore_policy(self, policy: Policy | type[Policy] | None) -> RestoredPolicy | None:
        """A policy, by default the query's own, with the saved rows.

        If it is the query's policy, what it has learned is restored. None if the policy cannot be created again, and
        for a sample, which has no policy.
        """
        if self.sampling is not None:
            return None
        chosen = policy if isinstance(policy, Policy) else self.settings.create_policy(policy)
        if chosen is None:
            return None
        join = self.settings.join(chosen)
        retention = PolicyRetention(join)
        operator = Operator(join, retention)
        operator.restore(self.operator_arrays, learned=chosen.label() == self.settings.policy)
        for buffer in operator.buffers.values():
            check_rows(chosen, buffer.rows)
        return RestoredPolicy(retention, operator.state)


class RestoredPolicy(NamedTuple):
    """A policy with the buffered rows of a saved state, for inspection."""

    retention: PolicyRetention
    state: JoinState

    def scores(self, side: Side) -> Array:
        """The scores of the buffered rows of a side."""
        return self.retention.scores(self.state.buffers[side].rows, self.state)


def _read_grant(data: bytes) -> Grant:
    from tidegate.spark.pool.shares import Grant  # noqa: PLC0415 - in a pool only

    return Grant(**json.loads(data))


def saved_buckets(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, SavedBucket]]:
    """The saved states of buckets, by the number of the bucket."""
    for label, log in saved_logs(batches):
        saved = SavedBucket.read(log)
        if saved is not None:
            yield labels(saved.layout["buckets"]).index(label), saved
