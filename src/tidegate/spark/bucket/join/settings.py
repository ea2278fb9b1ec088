"""The settings that scores depend on. They are part of every saved state, so it can be scored without the query."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np

from tidegate.engine.join import Join
from tidegate.policies import Policy, find
from tidegate.types import Budget, InputError, Window

VERSION: Final = 1


@dataclass(frozen=True)
class SavedSettings:
    """The settings of one bucket's join, as values that JSON can represent.

    Parameters
    ----------
    policy, parameters
        The policy's label and its parameters; None if JSON cannot represent them.
    window
        In microseconds; None is no limit.
    budget
        This bucket's share by its unit, "rows" or "bytes"; None is no limit.
    split, seed, partition, numeric
        As in `Join`. Older checkpoints have no `numeric`, nor anything learned that needs it.
    """

    policy: str
    parameters: dict[str, Any] | None
    window: list[Any]
    budget: dict[str, int] | None
    split: Any
    seed: int
    partition: int
    numeric: bool = False

    @classmethod
    def of(cls, join: Join) -> Self:
        """The settings of a join."""
        policy, budget = find(join.policy), join.budget
        return cls(
            policy.label(),
            policy.parameters(),
            [join.window.left, join.window.right],
            None if budget is None else {budget.unit: budget.limit},
            join.split,
            join.seed,
            join.partition,
            join.integer_keys,
        )

    def to_json(self) -> bytes:
        """The JSON for a state, without parameters that JSON cannot represent."""
        fields = {"version": VERSION} | vars(self)
        try:
            return json.dumps(fields, default=_to_python).encode()
        except (TypeError, ValueError):
            return json.dumps(fields | {"parameters": None}, default=_to_python).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """Read what `to_json` wrote."""
        fields = json.loads(data)
        version = fields.pop("version")
        if version != VERSION:
            raise InputError(
                f"the checkpoint has settings of version {version}, not {VERSION}; continue with the release "
                f"that wrote it, or start with a new checkpointLocation"
            )
        return cls(**fields)

    @property
    def limit(self) -> int:
        """The budget as a number, -1 for none."""
        return -1 if self.budget is None else next(iter(self.budget.values()))

    def create_policy(self, kind: type[Policy] | None) -> Policy | None:
        """Create the query's policy again; None if it is of another class or has no saved parameters."""
        if kind is None or kind.label() != self.policy or self.parameters is None:
            return None
        return kind.from_parameters(self.parameters)

    def join(self, policy: Policy) -> Join:
        """A join with these settings and a policy."""
        split = tuple(self.split) if isinstance(self.split, list) else self.split
        budget = None if self.budget is None else Budget(**self.budget)
        return Join(
            Window(*self.window),
            budget,
            policy,
            split,
            seed=self.seed,
            partition=self.partition,
            integer_keys=self.numeric,
        )


def online_policy(policy: Policy | str) -> Policy:
    """Find a policy, and refuse one that needs the future of the streams."""
    chosen = find(policy)
    if "future" in chosen.needs:
        raise InputError(
            f"policy {chosen.label()!r} needs to know what will arrive, which a query cannot; "
            "use it in tidegate.simulate, on recorded streams"
        )
    return chosen


def _to_python(value: object) -> object:
    """Convert a NumPy number to a Python number."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} is not a plain value")
