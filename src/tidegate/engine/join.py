"""The configuration of a running join."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidegate.policies import find
from tidegate.types import (
    FOREVER,
    SIDES,
    Band,
    Budget,
    Combine,
    Comparison,
    Future,
    InputError,
    Order,
    Setting,
    Split,
    Window,
    check_choice,
)

if TYPE_CHECKING:
    from tidegate.policies import Policy, RunningPolicy
    from tidegate.types import Condition


@dataclass(frozen=True)
class Join:
    """The configuration of an operator.

    Parameters
    ----------
    window
        How long rows of each side stay joinable.
    budget
        What may be buffered after a step; None for no limit.
    policy
        Which rows stay, as an object or by name.
    split
        "shared" (one pool), "even", (left, right) in the budget's unit, or "optimal": by the policy's model, which
        may change as it learns.
    order
        "probe-first": match, then evict. "shed-first": evict, then match. Then a policy that scores by expected
        results needs a split that gives each side its own memory.
    condition
        How keys match: a comparison `l.key ? r.key`, or a `Band`.
    combine
        The importance of a result from its partners'.
    seed, partition
        All randomness derives from these and the step.
    integer_keys
        Whether keys are the user's own whole numbers, not codes or hashes.
    """

    window: Window
    budget: Budget | None = None
    policy: Policy | str = "fifo"
    split: Split = "shared"
    order: Order = "probe-first"
    condition: Condition = "="
    combine: Combine = "min"
    seed: int = 0
    partition: int = 0
    integer_keys: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "window", Window.of(self.window))
        object.__setattr__(self, "budget", Budget.of(self.budget))
        object.__setattr__(self, "policy", find(self.policy))
        check_choice(self.order, Order, "order")
        check_choice(self.combine, Combine, "combine")
        if not isinstance(self.condition, Band):
            check_choice(self.condition, Comparison, "condition")
        if self.condition != "=" and find(self.policy).by_key:
            raise InputError(
                f"{self.policy!r} scores by how often keys arrive, which does not work if keys match by "
                f"{self.condition!r}; use age, fifo, until_expiry, random, importance, ijoin "
                "or Size(counts='matches')"
            )
        self.shares()
        self._check_order()

    def shares(self) -> tuple[Budget | None, ...]:
        """The budget of the shared pool, or of each side; None for a side without memory."""
        budget = self.budget or Budget(rows=FOREVER)
        if self.split == "shared":
            return (budget,)
        if self.split == "even":
            return tuple(budget.divided(2))
        if self.split == "optimal":
            policy = find(self.policy)
            if not policy.predicts:
                raise InputError(
                    f"split 'optimal' needs a model, and policy {policy.label()!r} has none; use 'shared' or 'even'"
                )
            return tuple(budget.divided(2))
        parts = self.split
        if (
            not isinstance(parts, tuple)
            or len(parts) != len(SIDES)
            or not all(isinstance(part, int) and part >= 0 for part in parts)
        ):
            raise InputError(
                f"split {parts!r} is not known; use 'shared', 'even', 'optimal' or two whole numbers (left, right)"
            )
        if sum(parts) > budget.limit:
            raise InputError(
                f"split {parts} adds up to {sum(parts)}, more than the budget of {budget.limit} {budget.unit}"
            )
        return tuple(replace(budget, **{budget.unit: part}) if part else None for part in parts)

    def _check_order(self) -> None:
        """Refuse to divide memory by expected results if a row must stay in order to probe.

        Such a division values a row by the later rows that find it, as if those probed in any case. With shed-first
        the rows of one side may fill the memory, and then no row of the other stays to probe them.
        """
        if self.order != "shed-first" or self.budget is None:
            return
        policy = find(self.policy)
        compares = policy.by_key or policy.predicts
        if self.split == "optimal" or (self.split == "shared" and compares):
            raise InputError(
                f"with order='shed-first' a row finds partners only if it stays, but split={self.split!r} lets "
                f"policy {policy.label()!r} fill the memory with the rows of one side; use split='even', two numbers "
                "(left, right), or order='probe-first'"
            )

    def setting(self, future: Future | None = None) -> Setting:
        """What a policy or sampler may know of this join; `future` is what will arrive, in a recorded run."""
        return Setting(
            self.window,
            self.seed,
            self.partition,
            self.budget,
            self.shares(),
            self.order,
            self.condition,
            future,
            self.integer_keys,
            self.combine,
        )

    def start(self, future: Future | None = None) -> RunningPolicy:
        """Start the policy for this join."""
        return find(self.policy).start(self.setting(future))
