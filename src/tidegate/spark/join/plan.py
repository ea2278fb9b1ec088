"""What every worker is told: the plan of a query and of each of its buckets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import pyarrow as pa

from tidegate.engine.operator import Join
from tidegate.spark.join.pair_condition import PairCondition
from tidegate.spark.join.valuation import Valuation
from tidegate.spark.packing.buckets import labels
from tidegate.spark.pool.pool import PoolMember
from tidegate.spark.state.task import task_buckets
from tidegate.types import InputError, perhaps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.sampling import GroupedJoinReservoir, JoinReservoir, ProgressiveJoinReservoir, Sampler
    from tidegate.types import Side

How = Literal["inner", "left", "right", "full", "left_semi"]
_SPELLINGS: Final[dict[str, How]] = {
    "inner": "inner",
    "left": "left",
    "leftouter": "left",
    "right": "right",
    "rightouter": "right",
    "outer": "full",
    "full": "full",
    "fullouter": "full",
    "semi": "left_semi",
    "leftsemi": "left_semi",
}
_REFUSED: Final = {
    "anti": " (for rows without a match, take how='left' and those whose right columns are null)",
    "leftanti": " (for rows without a match, take how='left' and those whose right columns are null)",
    "cross": " (for every pair within the window, join on a column that is the same in all rows)",
}
OUTER: Final = ("left", "right", "full")
UNCERTAIN: Final = "uncertain"


def how_of(value: object, known: tuple[str, ...] = get_args(How)) -> How:
    """Read a kind of join in any of Spark's spellings, if it is one of those that are known.

    Examples
    --------
    >>> how_of("LEFT_OUTER"), how_of("outer"), how_of("semi")
    ('left', 'full', 'left_semi')
    """
    spelled = value.replace("_", "").lower() if isinstance(value, str) else ""
    if _SPELLINGS.get(spelled) in known:
        return _SPELLINGS[spelled]
    hint = _REFUSED.get(spelled, "") or perhaps(
        spelled, [name for name, how in _SPELLINGS.items() if how in known]
    )
    raise InputError(
        f"how={value!r} is not supported; use {', '.join(map(repr, known))}, or another of Spark's names for "
        f"these{hint}"
    )


@dataclass(frozen=True)
class SideColumns:
    """What one side sends.

    Parameters
    ----------
    names
        Its columns in the packed rows that belong to the user, in order.
    time
        Which of them holds the event time.
    """

    names: tuple[str, ...]
    time: str


@dataclass(frozen=True)
class Output:
    """A column of the result: from the left, from the right, or a key that either side may give."""

    left: str | None
    right: str | None
    type: pa.DataType


@dataclass(frozen=True)
class SamplePlan:
    """How results are sampled: which leave, the reservoir that holds them, if any, and the columns of its groups."""

    sampler: Sampler
    reservoir: JoinReservoir | ProgressiveJoinReservoir | GroupedJoinReservoir | None = None
    by: tuple[str, ...] = ()

    @property
    def described(self) -> list[str]:
        """What a state must agree on to be taken up again: rows drawn otherwise are no sample of this one's."""
        return [repr(self.sampler), *([repr(self.reservoir)] if self.reservoir else []), *self.by]

    def placed(self, names: Sequence[str], output: Sequence[Output]) -> SamplePlan:
        """The same, with the columns of groups by their place among those of the result."""
        places = []
        for name in self.by:
            if name not in names:
                raise InputError(f"by={name!r} is no column of the result; it has {', '.join(names)}")
            places.append(names.index(name))
            if pa.types.is_nested(output[places[-1]].type):
                raise InputError(
                    f"by={name!r} is of a nested type; group by a plain column, or by a part of it"
                )
        return replace(self, by=tuple(f"o{place}" for place in places))


@dataclass(frozen=True)
class BucketPlan:
    """Everything that a bucket needs to know; shipped to the workers.

    Parameters
    ----------
    join
        The core's configuration, with this bucket's share of the budget.
    how
        What leaves beside the matched pairs.
    left, right
        The columns of the two sides.
    output
        The columns of the result.
    checked
        Whether equal hashes are confirmed by a second one, in the column `x`.
    where
        A further condition on pairs.
    layout
        What a state must agree on to be taken up again.
    valuation
        What rows are worth, where that was said.
    sampling
        How results are sampled, where they are.
    """

    join: Join
    how: How
    left: SideColumns
    right: SideColumns
    output: tuple[Output, ...]
    checked: bool
    where: PairCondition | None
    layout: dict[str, Any]
    valuation: Valuation | None = None
    sampling: SamplePlan | None = None

    def side(self, side: Side) -> SideColumns:
        """The columns of one side."""
        return self.left if side == "left" else self.right

    @property
    def flags_uncertain(self) -> bool:
        """Whether results say if their lack of a match is uncertain."""
        return self.how in OUTER

    def keeps_unmatched(self, side: Side) -> bool:
        """Whether rows of this side leave without a match."""
        return self.how in (side, "full")


@dataclass(frozen=True)
class QueryPlan:
    """What every bucket of a query has in common, how many there are, and in which pool they share.

    Where `fixed` is false no number of buckets was given, and it follows from the partitions of the running query.
    """

    bucket: BucketPlan
    buckets: int
    member: PoolMember | None = None
    fixed: bool = True

    def for_task(self) -> QueryPlan:
        """The plan with the number of buckets that the running query has."""
        if self.fixed:
            return self
        count = task_buckets(self.buckets)
        layout = self.bucket.layout | {"buckets": count}
        return replace(self, bucket=replace(self.bucket, layout=layout), buckets=count, fixed=True)

    def of(self, label: int) -> BucketPlan:
        """The plan of one bucket: its share of the budget and its own seed."""
        number = labels(self.buckets).index(label)
        join = self.bucket.join
        budget, split = join.budget, join.split
        if budget is not None:
            share = _share(budget.limit, self.buckets, number)
            if isinstance(split, tuple):
                split = (_share(split[0], self.buckets, number), _share(split[1], self.buckets, number))
                share = sum(split)
            budget = replace(budget, **{budget.unit: share})
        return replace(self.bucket, join=replace(join, budget=budget, split=split, partition=number))

    def check(self) -> None:
        """Refuse a budget that some bucket could not use."""
        budget, split = self.bucket.join.budget, self.bucket.join.split
        try:
            self.of(labels(self.buckets)[-1])
        except InputError as error:
            least = self.buckets * (2 if split in ("even", "optimal") else 1)
            raise InputError(
                f"a budget of {budget and budget.limit} {budget and budget.unit} with split={split!r} leaves nothing "
                f"for some of {self.buckets} buckets; give at least {least}, or fewer buckets"
            ) from error


def _share(whole: int, parts: int, number: int) -> int:
    share, extra = divmod(whole, parts)
    return share + (number < extra)
