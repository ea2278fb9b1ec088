"""What a saved bucket says of itself, and whether a query may go on from it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa

from tidegate.engine.operator import Join, Operator
from tidegate.engine.snapshot import unpack
from tidegate.policies import Policy
from tidegate.spark.held_sample import HeldSample
from tidegate.spark.packing import from_bytes
from tidegate.spark.pool_shares import Standing
from tidegate.spark.settings import Settings
from tidegate.spark.valuation import Noted
from tidegate.types import SIDES, InputError, Window

if TYPE_CHECKING:
    from tidegate.types import Array, Side

NAME: Final = "tidegate"
"""What a join is called that was given no name."""


@dataclass
class Counts:
    """What a bucket counts beside the operator's tally."""

    rows_left: int = 0
    rows_right: int = 0
    late: int = 0
    null_keys: int = 0


@dataclass(frozen=True)
class Saved:
    """What a saved state says of itself, without the plan that wrote it."""

    layout: dict[str, Any]
    settings: Settings
    counts: Counts
    now: int
    operator: Operator
    snapshot: bytes
    payload: dict[Side, pa.Table]
    standing: Standing | None
    noted: Noted | None
    sample: HeldSample | None
    sampling: dict[str, Any] | None

    @classmethod
    def of(cls, data: bytes) -> Self:
        """Read what `BucketJoin.save` wrote."""
        state = unpack(data)
        operator = Operator(Join(Window(None, None)))
        snapshot = state["operator"].tobytes()
        operator.restore(snapshot, policy=False)
        *counts, now, _, _, _, _ = state["counts"].tolist()
        return cls(
            json.loads(state["layout"].tobytes()),
            Settings.from_json(state["settings"].tobytes()),
            Counts(*counts),
            now,
            operator,
            snapshot,
            {
                side: from_bytes(state[f"payload.{side}"].tobytes())
                for side in SIDES
                if f"payload.{side}" in state
            },
            standing(state),
            Noted.of(state),
            HeldSample.of(state),
            json.loads(state["sampling"].tobytes()) if "sampling" in state else None,
        )

    def scorer(self, policy: Policy | type[Policy] | None) -> Operator | None:
        """The operator as it would go on with a policy, or with the query's own, made again from its class.

        What was learned is restored where that policy learned it. None if the policy cannot be made again.
        """
        chosen = policy if isinstance(policy, Policy) else self.settings.made(policy)
        if chosen is None:
            return None
        operator = Operator(self.settings.join(chosen))
        operator.restore(self.snapshot, policy=chosen.label() == self.settings.policy)
        for buffer in operator.buffers.values():
            chosen.require(buffer.rows)
        return operator


def standing(state: dict[str, Array]) -> Standing | None:
    """What a pool let the bucket hold, if it was in one."""
    return Standing(**json.loads(state["pool"].tobytes())) if "pool" in state else None


def name_of(layout: dict[str, Any]) -> str:
    """The name of the join that saved a state; the default where states did not have one yet."""
    return str(layout.get("name", NAME))


def checked_name(name: object) -> str:
    """The name that a join is given, if it is one."""
    if not isinstance(name, str) or not name:
        raise InputError(f"name={name!r} is no name; give a text such as 'bids'")
    return name


def check_layout(saved: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Refuse to go on from a state that another query wrote, and say what differs."""
    if name_of(saved) not in (NAME, name_of(wanted)):
        # Spark goes by the order of a query's operators: these may have changed places.
        raise InputError(
            f"the checkpoint has the state of {name_of(saved)!r} where the query now has {name_of(wanted)!r}; give "
            "the joins of the query the order and names that they had, or start with a new checkpointLocation"
        )
    for name, value in wanted.items():
        if name == "name":
            continue
        if saved.get(name) != value:
            raise InputError(
                f"the checkpoint was written with {name}={saved.get(name)!r}, the query now has {value!r}; "
                f"change it back, or start with a new checkpointLocation"
            )
