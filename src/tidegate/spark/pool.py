"""One budget for several joins: what the user writes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from tidegate.models.numbers import positive
from tidegate.policies import Policy
from tidegate.spark.pool_shares import LEAST, first_shares
from tidegate.types import Budget, InputError, Split, Window

if TYPE_CHECKING:
    from types import TracebackType

_NAME: Final = re.compile(r"[A-Za-z0-9_.-]+")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True)
class Pool:
    """One budget that several streaming joins share, and all buckets inside them.

    At first the budget is divided by weight. While the joins run, their policies learn what memory yields in
    each bucket, and the budget is divided anew, without a restart: so that no join does too badly (recall is
    in proportion to the weights, as far as can be), and so that inside a join most results come of it. What all
    of them hold together is never more than the budget: a bucket gets more only after the others have made room.

    Parameters
    ----------
    budget
        For all together: a number of rows, a string of bytes ("64 MB"), or a `Budget`.
    path
        A folder that all of Spark's workers reach, a path or a URI, of this pool alone. There the buckets leave
        word for each other, in small files.
    members
        The names of the joins and their weights; a list of names for equal weights. A pool of one divides the
        budget of one join among its buckets.

    Examples
    --------
    >>> pool = Pool(budget=50_000, path="/shared/pool", members={"orders": 1.0, "clicks": 2.0})
    >>> pool.member("clicks").budget
    Budget(rows=33333, bytes=None)
    >>> pool.member("views")
    Traceback (most recent call last):
    tidegate.types.InputError: 'views' is not in the pool; use one of orders, clicks

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
            raise InputError("a pool without a limit has nothing to divide; give budget= in rows or bytes")
        weights = self.members if isinstance(self.members, Mapping) else _evenly(self.members)
        if not weights:
            raise InputError("a pool without members has nobody to divide among; name at least one")
        for name, weight in weights.items():
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise InputError(
                    f"member {name!r} cannot be part of a file's name; use letters, digits, '_', '.' and '-'"
                )
            positive(weight, f"the weight of {name!r}")
        if budget.limit < LEAST * len(weights):
            raise InputError(
                f"a budget of {budget.limit} {budget.unit} is too little for {len(weights)} members; "
                f"give at least {LEAST * len(weights)}"
            )
        given = str(self.path).removeprefix("file://").removeprefix("file:")
        object.__setattr__(self, "budget", budget)
        object.__setattr__(self, "path", given if _SCHEME.match(given) else str(Path(given).absolute()))
        object.__setattr__(self, "members", {name: float(weight) for name, weight in weights.items()})

    @property
    def total(self) -> Budget:
        """The budget, read."""
        budget = Budget.of(self.budget)
        if budget is None:
            raise InputError("a pool has a budget")
        return budget

    @property
    def weights(self) -> dict[str, float]:
        """The members' weights by name."""
        return dict(self.members) if isinstance(self.members, Mapping) else _evenly(self.members)

    def member(self, name: str) -> Member:
        """What `tidegate.join` takes as its budget; each is for one running query."""
        if name not in self.weights:
            raise InputError(f"{name!r} is not in the pool; use one of {', '.join(self.weights)}")
        return Member(self, name)

    def plain(self) -> dict[str, Any]:
        """What all queries of a pool must agree on."""
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
        """Nothing is held open."""


@dataclass(frozen=True)
class Member:
    """One join's part of a pool."""

    pool: Pool
    name: str

    @property
    def budget(self) -> Budget:
        """What it has at first."""
        total, weights = self.pool.total, self.pool.weights
        share = first_shares(total.limit, weights, dict.fromkeys(weights, 1))[self.name][0]
        return replace(total, **{total.unit: share})

    @property
    def leads(self) -> bool:
        """Whether its first bucket proposes how to divide."""
        return self.name == next(iter(self.pool.weights))

    def check(self, policy: Policy, split: Split, window: Window, buckets: int, *, streaming: bool) -> None:
        """Refuse a join that cannot be in a pool."""
        if not streaming:
            raise InputError(
                "a pool divides a budget among queries that run, and a batch join is none; "
                f"give it a budget of its own, e.g. {self.budget.unit}={self.budget.limit}"
            )
        if not policy.predicts:
            raise InputError(
                f"a pool needs a policy that tells what memory yields, and {policy!r} does not; {_USE}"
            )
        if isinstance(split, tuple):
            raise InputError(
                f"split={split} fixes what a pool would change; use 'shared', 'even' or 'optimal'"
            )
        if window.left is None or window.right is None:
            raise InputError(
                f"what memory yields is not known for a window without end, {window}; give it one"
            )
        if self.budget.limit < LEAST * buckets:
            raise InputError(
                f"{self.name!r} has {self.budget.limit} {self.budget.unit} of the pool, too little for {buckets} "
                f"buckets; give it at least {LEAST * buckets}, or fewer buckets"
            )


_USE: Final = "use prob, life or age"


def _evenly(names: Iterable[str]) -> dict[str, float]:
    if isinstance(names, str):
        raise InputError(f"members={names!r} is one name; give a list, such as [{names!r}]")
    listed = list(names)
    if len(set(listed)) < len(listed):
        raise InputError(f"members {listed} has a name twice; give each join its own")
    return dict.fromkeys(listed, 1.0)
