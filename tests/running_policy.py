"""Running policies, of an operator or by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.engine.policy_retention import PolicyRetention

if TYPE_CHECKING:
    from tidegate.engine import Operator
    from tidegate.policies import RunningPolicy
    from tidegate.types import Pairs, Setting, Step


def policy_of(operator: Operator[Pairs]) -> RunningPolicy:
    """The policy that chooses what the operator keeps."""
    assert isinstance(operator.retention, PolicyRetention)
    return operator.retention.policy


def observe(policy: RunningPolicy, setting: Setting, step: Step) -> None:
    """Let a policy that was started with this setting learn from a step, as an operator does."""
    setting.model.learn(step)
    policy.observe(step)
