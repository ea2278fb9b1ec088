"""The plan of a query and of each of its buckets, which is sent to every worker."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa

from tidegate.engine.join import Join
from tidegate.spark.packing.buckets import labels
from tidegate.types import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.sampling import GroupedJoinReservoir, JoinReservoir, ProgressiveJoinReservoir, Sampler
    from tidegate.spark.bucket.join.pair_condition import PairCondition
    from tidegate.spark.bucket.join.valuation import Valuation
    from tidegate.spark.pool.pool import PoolMember
    from tidegate.types import Side

How = Literal["inner", "left", "right", "full", "left_semi", "left_anti"]
LEFT_ONLY: Final = ("left_semi", "left_anti")
"""The join types whose results have the columns of the left side only."""
WITH_UNMATCHED: Final = ("left", "right", "full", "left_anti")
"""The join types that emit rows without a match."""
UNCERTAIN: Final = "uncertain"


@dataclass(frozen=True)
class SideColumns:
    """The user's columns of one side in packed rows.

    Parameters
    ----------
    names
        Their names, in order.
    time
        The name of the column of event time.
    """

    names: tuple[str, ...]
    time: str


@dataclass(frozen=True)
class OutputColumn:
    """A column of the result: from the left, from the right, or a key, from either side."""

    left: str | None
    right: str | None
    type: pa.DataType


@dataclass(frozen=True)
class SamplePlan:
    """How results are sampled: the sampler, the reservoir, if there is one, and the columns of its groups."""

    sampler: Sampler
    reservoir: JoinReservoir | ProgressiveJoinReservoir | GroupedJoinReservoir | None = None
    by: tuple[str, ...] = ()

    @property
    def described(self) -> list[str]:
        """The part of the layout that must equal the saved one: other samplers draw from other distributions."""
        return [repr(self.sampler), *([repr(self.reservoir)] if self.reservoir else []), *self.by]

    def resolve_columns(self, names: Sequence[str], output: Sequence[OutputColumn]) -> SamplePlan:
        """The same plan, with the columns of groups by their position in the result."""
        places = []
        for name in self.by:
            if name not in names:
                raise InputError(f"by={name!r} is not a column of the result, which has {', '.join(names)}")
            places.append(names.index(name))
            if pa.types.is_nested(output[places[-1]].type):
                raise InputError(
                    f"by={name!r} is of a nested type; group by a column of a simple type, or by a field of it"
                )
        return replace(self, by=tuple(f"o{place}" for place in places))


@dataclass(frozen=True)
class BucketPlan:
    """The configuration of a bucket, which is sent to the workers.

    Parameters
    ----------
    join
        The core's configuration, with this bucket's share of the budget.
    how
        The join type: which rows are emitted in addition to the pairs.
    left, right
        The columns of the two sides.
    output
        The columns of the result.
    is_hashed
        Whether rows are matched by hashes. A second hash confirms equal ones.
    where
        A further condition on pairs.
    layout
        What must equal the layout of a saved state for a restart.
    valuation
        How the importance of rows is computed, if it is defined.
    sampling
        How results are sampled, if they are.
    """

    join: Join
    how: How
    left: SideColumns
    right: SideColumns
    output: tuple[OutputColumn, ...]
    is_hashed: bool
    where: PairCondition | None
    layout: dict[str, Any]
    valuation: Valuation | None = None
    sampling: SamplePlan | None = None

    def side(self, side: Side) -> SideColumns:
        """The columns of one side."""
        return self.left if side == "left" else self.right

    @property
    def flags_uncertain(self) -> bool:
        """Whether results have the column `uncertain`."""
        return self.how in WITH_UNMATCHED

    def emits_unmatched(self, side: Side) -> bool:
        """Whether rows of this side without a match are emitted."""
        return emits_unmatched(self.how, side)


def emits_unmatched(how: str, side: Side) -> bool:
    """Whether a join of this type emits rows of a side that have no match."""
    return how in (side, "full") or (how == "left_anti" and side == "left")


@dataclass(frozen=True)
class QueryPlan:
    """The plan of all buckets of a query.

    Parameters
    ----------
    bucket
        The plan of a bucket, with the budget of the whole query.
    buckets
        The number of buckets.
    member
        The query's member of a pool, if it is in one.
    buckets_given
        Whether the number of buckets was given. Otherwise it is that of the running query's partitions.
    """

    bucket: BucketPlan
    buckets: int
    member: PoolMember | None = None
    buckets_given: bool = True

    def with_buckets(self, count: int) -> QueryPlan:
        """The plan with a given number of buckets."""
        layout = self.bucket.layout | {"buckets": count}
        return replace(self, bucket=replace(self.bucket, layout=layout), buckets=count, buckets_given=True)

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
        """Refuse a budget that is too small for the number of buckets."""
        budget, split = self.bucket.join.budget, self.bucket.join.split
        try:
            self.of(labels(self.buckets)[-1])
        except InputError as error:
            least = self.buckets * (2 if split in ("even", "optimal") else 1)
            raise InputError(
                f"a budget of {budget and budget.limit} {budget and budget.unit} with split={split!r} leaves nothing "
                f"for some of {self.buckets} buckets; give at least {least}, or fewer buckets"
            ) from error


def _share(total: int, parts: int, number: int) -> int:
    share, extra = divmod(total, parts)
    return share + (number < extra)
