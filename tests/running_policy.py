"""The running policy of an operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.engine.policy_retention import PolicyRetention

if TYPE_CHECKING:
    from tidegate.engine import Operator
    from tidegate.policies import RunningPolicy
    from tidegate.types import Pairs


def policy_of(operator: Operator[Pairs]) -> RunningPolicy:
    """The policy that chooses what the operator keeps."""
    assert isinstance(operator.retention, PolicyRetention)
    return operator.retention.policy
