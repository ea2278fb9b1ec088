"""Conflicts between arguments of `tidegate.join`, found without a DataFrame, for pipeline files as well."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tidegate import models
from tidegate.engine.join import Join
from tidegate.policies import find
from tidegate.spark.frames.keys import On, key_pairs
from tidegate.spark.session.task import bucket_count
from tidegate.types import SIDES, InputError

if TYPE_CHECKING:
    from tidegate.importance import DefinitionLike


def find_conflicts(
    core: Join,
    on: On,
    by: str | tuple[str, str] | None,
    importance: DefinitionLike | None,
    buckets: int | None,
) -> Iterator[tuple[str, str]]:
    """Each argument that conflicts with another, and a message; `on` must name columns."""
    policy, condition = find(core.policy), core.condition
    given = (getattr(policy, side, None) for side in SIDES)
    if any(isinstance(each, models.Process) for each in given if each is not None):
        message = (
            f"policy {policy.label()!r} was given processes (left=, right=), which advance with each unit of "
            "time, and on Spark the unit is a microsecond; omit processes: 'heeb' learns them, row by row"
        )
        yield "policy", message
    if importance is None and "importance" in policy.needs:
        message = (
            f"policy {policy.label()!r} needs the importance of rows; give importance=, such as the name of a "
            "column, or one of tidegate.importance"
        )
        yield "importance", message
    try:
        bucket_count(buckets, 1)
        if core.budget is not None and buckets is not None:
            core.budget.divided(buckets)
    except InputError as error:
        yield "buckets", str(error)
    if condition == "=" and by is not None:
        yield "by", f"by={by!r} needs a condition other than '='; add it to on= instead"
    if condition != "=" and len(pairs := key_pairs(on)) != 1:
        yield "on", f"the condition {condition!r} compares one column; got {pairs}; name one with on="
    if condition != "=" and by is None and (buckets or 1) != 1:
        yield "buckets", f"buckets={buckets} needs by=: without it, any row may match any other"
