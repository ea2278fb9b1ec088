"""What ranking rows takes, as data: every saved state carries it, and can be scored without the query."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np

from tidegate.engine.operator import Join
from tidegate.policies import Policy, find
from tidegate.types import Budget, InputError, Window

VERSION: Final = 1


@dataclass(frozen=True)
class Settings:
    """The settings of one bucket's join, all plain values.

    Parameters
    ----------
    policy, parameters
        The policy's label and what makes it again; None where JSON cannot hold that.
    window
        In microseconds; None is without end.
    budget
        This bucket's share by its unit, "rows" or "bytes"; None is no limit.
    split, seed, partition, numeric
        As in `Join`. Checkpoints from before `numeric` do not tell of it, nor of anything learned that asks for it.
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
        """Take down the settings of a join."""
        policy, budget = find(join.policy), join.budget
        return cls(
            policy.label(),
            policy.parameters(),
            [join.window.left, join.window.right],
            None if budget is None else {budget.unit: budget.limit},
            join.split,
            join.seed,
            join.partition,
            join.numeric,
        )

    def to_json(self) -> bytes:
        """Write them down, without parameters that JSON cannot hold."""
        plain = {"version": VERSION} | vars(self)
        try:
            return json.dumps(plain, default=_number).encode()
        except (TypeError, ValueError):
            return json.dumps(plain | {"parameters": None}, default=_number).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """Read what `to_json` wrote."""
        plain = json.loads(data)
        version = plain.pop("version")
        if version != VERSION:
            raise InputError(
                f"the checkpoint has settings of version {version}, not {VERSION}; go on with the release that "
                f"wrote it, or start with a new checkpointLocation"
            )
        return cls(**plain)

    @property
    def limit(self) -> int:
        """The budget as a number, -1 for none."""
        return -1 if self.budget is None else next(iter(self.budget.values()))

    def made(self, kind: type[Policy] | None) -> Policy | None:
        """The query's policy, if it is of this kind and can be made again."""
        if kind is None or kind.label() != self.policy or self.parameters is None:
            return None
        return kind.from_parameters(self.parameters)

    def join(self, policy: Policy) -> Join:
        """A join of these settings that ranks by a policy."""
        split = tuple(self.split) if isinstance(self.split, list) else self.split
        budget = None if self.budget is None else Budget(**self.budget)
        return Join(
            Window(*self.window),
            budget,
            policy,
            split,
            seed=self.seed,
            partition=self.partition,
            numeric=self.numeric,
        )


def online(policy: Policy | str) -> Policy:
    """The policy that is meant, if it can do without knowing what will arrive."""
    meant = find(policy)
    if "future" in meant.needs:
        raise InputError(
            f"policy {meant.label()!r} needs to know what will arrive, which no query does; "
            "use it in tidegate.simulate, on recorded streams"
        )
    return meant


def _number(value: object) -> object:
    """A number of NumPy's as Python's own."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} is not plain")
