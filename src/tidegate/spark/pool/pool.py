"""`Pool`: one budget for several joins."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from tidegate.models.validation import positive
from tidegate.policies import Policy
from tidegate.spark.pool.shares import MIN_SHARE, first_shares
from tidegate.types import Budget, InputError, Split, Window

if TYPE_CHECKING:
    from types import TracebackType

_NAME: Final = re.compile(r"[A-Za-z0-9_.-]+")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True)
class Pool:
    """One budget that several streaming joins share, and all buckets inside them.

    At first the budget is divided by weight. While the joins run, their policies learn how many results memory
    yields in each bucket, and the budget is divided again, without a restart. Recall of the joins is in proportion to
    their weights, as far as possible, and inside a join the division yields the most results. All of them together
    never hold more than the budget: a bucket gets more only after others hold less.

    Parameters
    ----------
    budget
        The budget of all joins together: a number of rows, a string of bytes ("64 MB"), or a `Budget`.
    path
        A folder for this pool alone, as a path or a URI that all of Spark's workers can write. The buckets exchange
        their status there, in small files.
    members
        The names of the joins and their weights; a list of names for equal weights. A pool of one member divides
        the budget of one join among its buckets.

    Examples
    --------
    >>> pool = Pool(budget=50_000, path="/shared/pool", members={"orders": 1.0, "clicks": 2.0})
    >>> pool.member("clicks").budget
    Budget(rows=33333, bytes=None)
    >>> pool.member("views")
    Traceback (most recent call last):
    tidegate.InputError: 'views' is not in the pool; use one of orders, clicks

    References
    ----------
    Memory-Limited Execution of Windowed Stream Joins, section 5.
    """

    budget: Budget | int | str
    path: str | Path
    members: Mapping[str, float] | Iterable[str]

    def __post_init__(self) -> None:
        budget = Budget.of(self.budget)
        if budget is None:
            raise InputError("a pool needs a limit; give budget= in rows or bytes")
        weights = self.members if isinstance(self.members, Mapping) else _equal_weights(self.members)
        if not weights:
            raise InputError("a pool needs members; name at least one")
        for name, weight in weights.items():
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise InputError(
                    f"member {name!r} cannot be part of a file name; use letters, digits, '_', '.' and '-'"
                )
            positive(weight, f"the weight of {name!r}")
        if budget.limit < MIN_SHARE * len(weights):
            raise InputError(
                f"a budget of {budget.limit} {budget.unit} is too small for {len(weights)} members; "
                f"give at least {MIN_SHARE * len(weights)}"
            )
        path = str(self.path).removeprefix("file://").removeprefix("file:")
        object.__setattr__(self, "budget", budget)
        object.__setattr__(self, "path", path if _SCHEME.match(path) else str(Path(path).absolute()))
        object.__setattr__(self, "members", {name: float(weight) for name, weight in weights.items()})

    @property
    def total(self) -> Budget:
        """The budget as a `Budget`."""
        budget = Budget.of(self.budget)
        if budget is None:
            raise InputError("a pool needs a limit; give budget= in rows or bytes")
        return budget

    @property
    def weights(self) -> dict[str, float]:
        """The members' weights by name."""
        return dict(self.members) if isinstance(self.members, Mapping) else _equal_weights(self.members)

    def member(self, name: str) -> PoolMember:
        """A member to give to `tidegate.join` as its budget; each is for one running query."""
        if name not in self.weights:
            raise InputError(f"{name!r} is not in the pool; use one of {', '.join(self.weights)}")
        return PoolMember(self, name)

    def plain(self) -> dict[str, Any]:
        """The settings that all queries of a pool must share, as JSON holds them."""
        return {
            "version": 1,
            "total": self.total.limit,
            "unit": self.total.unit,
            "members": self.weights,
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Do nothing: no resource is open."""


@dataclass(frozen=True)
class PoolMember:
    """The part of one join in a pool."""

    pool: Pool
    name: str

    @property
    def budget(self) -> Budget:
        """The first share of this member."""
        total, weights = self.pool.total, self.pool.weights
        share = first_shares(total.limit, weights, dict.fromkeys(weights, 1))[self.name][0]
        return replace(total, **{total.unit: share})

    @property
    def leads(self) -> bool:
        """Whether its first bucket proposes the divisions."""
        return self.name == next(iter(self.pool.weights))

    def check(self, policy: Policy, split: Split, window: Window, buckets: int, *, streaming: bool) -> None:
        """Refuse a join that cannot be in a pool."""
        if not streaming:
            raise InputError(
                "a pool divides a budget among streaming joins, and this is a batch join; "
                f"give it a budget of its own, such as {self.budget.unit}={self.budget.limit}"
            )
        if not policy.predicts:
            raise InputError(
                f"a pool needs a policy that predicts results by memory; {policy!r} does not: use prob, life or age"
            )
        if isinstance(split, tuple):
            raise InputError(
                f"split={split} fixes what a pool would change; use 'shared', 'even' or 'optimal'"
            )
        if window.left is None or window.right is None:
            raise InputError(
                f"a pool needs a window with both ends, since policies predict results within it; got {window}"
            )
        if self.budget.limit < MIN_SHARE * buckets:
            raise InputError(
                f"{self.name!r} has {self.budget.limit} {self.budget.unit} of the pool, too few for {buckets} "
                f"buckets; give it at least {MIN_SHARE * buckets}, or fewer buckets"
            )


def _equal_weights(names: Iterable[str]) -> dict[str, float]:
    if isinstance(names, str):
        raise InputError(f"members={names!r} is one name; give a list, such as [{names!r}]")
    listed = list(names)
    if len(set(listed)) < len(listed):
        raise InputError(f"members {listed} contains a name twice; give each join its own name")
    return dict.fromkeys(listed, 1.0)
