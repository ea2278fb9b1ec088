"""How the buckets of several queries divide one budget while they run: the rules, without Spark or files.

Every bucket runs micro-batches at its own pace and may run one again. It sees only what the others last wrote: their
`BucketStatus`. An `Epoch` gives each bucket its share of the budget. One bucket, the leader, proposes the next epoch.
A bucket has *adopted* an epoch when a micro-batch that it decided under that epoch is committed. It writes this
at the start of the next one. Once all buckets have adopted an epoch, the leader puts it *in force*.

The limit of a bucket is what it may hold after a micro-batch. Under the epoch in force, the limit is the bucket's
share. Under a newer epoch, it is the smaller one of its share and its last limit.

**The limits never add up to more than the budget.** Let `F` be the epoch in force. Then every limit, committed or
decided for a running micro-batch, is at most the bucket's share under `F`; and shares add up to at most the budget.

- At the start all buckets have their first share.
- Until the next epoch comes into force: a limit decided under `F` is at most the share under `F`, and one decided
  under a newer epoch is at most the limit before it.
- When the next epoch comes into force: every bucket has committed a limit under it before it was in force, so that
  limit is at most the new share. Later decisions are under the new epoch too, since epochs never go back.

A micro-batch that is run again takes the limit that it wrote the first time. If that was lost it decides again, and
the argument still holds: only what is committed counts as adopted.

An epoch is identified by its number and its shares. If two attempts of the leader's micro-batch propose different
shares under one number, these are two epochs. The later by name counts, and adopting one does not adopt the other.

References
----------
Memory-Limited Execution of Windowed Stream Joins, section 5: the division among joins.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from typing import Any, Final, Self, TypeAlias

from tidegate.allocation import allocate, in_proportion, optimal_division
from tidegate.engine.operator import Operator
from tidegate.models import Payoff
from tidegate.types import InputError, Pairs

Shares: TypeAlias = "dict[str, list[int]]"
WrittenPayoff: TypeAlias = "tuple[list[float], list[float]]"
"""A payoff as JSON holds it: memory, and results."""

MIN_SHARE: Final = 2
"""The smallest share of a bucket: a row of each side."""

_MIN_FRACTION: Final = 10
"""Every bucket keeps a tenth of its first share, so that its policy can still learn."""

_SEGMENTS: Final = 16
_STEPS_TO_LEARN: Final = 8
"""A bucket whose policy has no payoff after this many steps is assumed to gain nothing from memory."""

_SMALLEST_CHANGE: Final = 20
"""Shares change only if one changes by more than a twentieth of itself, or of its first share if that is more."""


@dataclass(frozen=True)
class Epoch:
    """A division of the budget: the share of every bucket of every member.

    Names sort by number. The first epoch is not written: every bucket can compute its own share.
    """

    name: str
    shares: Shares

    @classmethod
    def numbered(cls, number: int, shares: Shares) -> Self:
        """The epoch of that number and those shares."""
        digest = hashlib.sha256(json.dumps(shares, sort_keys=True).encode()).hexdigest()[:12]
        return cls(f"{number:09d}-{digest}", shares)


FIRST: Final = f"{0:09d}"


def number_of(epoch: str) -> int:
    """The number in an epoch's name."""
    return int(epoch.partition("-")[0])


@dataclass(frozen=True)
class Grant:
    """What a bucket may hold after a micro-batch, and the pool and epoch under which this was decided."""

    pool: str
    epoch: str
    limit: int


@dataclass(frozen=True)
class BucketStatus:
    """What a bucket last wrote for the others.

    Parameters
    ----------
    query, batch
        The micro-batch that it began, and its query.
    epoch, limit
        Its decision for this micro-batch.
    adopted
        The epoch of the last micro-batch that is committed.
    buckets
        The number of buckets of its member.
    payoff
        Results by memory in this bucket, in the budget's unit; None while its policy has not learned it.
    in_force
        Of the leader: the last epoch that all buckets have adopted.
    """

    query: str
    batch: int
    epoch: str
    limit: int
    adopted: str
    buckets: int
    payoff: WrittenPayoff | None
    in_force: str = FIRST

    def plain(self) -> dict[str, Any]:
        """Values that JSON can hold."""
        return asdict(self)


Statuses: TypeAlias = "Mapping[tuple[str, int], BucketStatus]"
"""By member and bucket."""


def decide(now: Grant, last: BucketStatus | None, newest: str, share: int, in_force: str) -> Grant:
    """Decide what a bucket may hold after a micro-batch that it has not begun before.

    Parameters
    ----------
    now
        The grant in its committed state.
    last
        What it last wrote, if anything. A query with a new checkpoint may hold no more than the one before it.
    newest, share
        The newest epoch, and this bucket's share under it.
    in_force
        The last epoch that all buckets have adopted.
    """
    if newest < now.epoch:
        return now
    if newest == in_force:
        return replace(now, epoch=newest, limit=share)
    return replace(now, epoch=newest, limit=min(share, now.limit, last.limit if last else now.limit))


def all_adopted(members: Sequence[str], statuses: Statuses, epoch: str) -> bool:
    """Whether every bucket of every member has adopted an epoch."""
    counts = buckets_of(statuses)
    return all(
        name in counts
        and all((name, i) in statuses and statuses[name, i].adopted == epoch for i in range(counts[name]))
        for name in members
    )


def buckets_of(statuses: Statuses) -> dict[str, int]:
    """The number of buckets of each member that has written its status."""
    return {name: status.buckets for (name, _), status in statuses.items()}


def first_shares(total: int, weights: Mapping[str, float], buckets: Mapping[str, int]) -> Shares:
    """Divide by weight among members and evenly among the buckets of each.

    Examples
    --------
    >>> first_shares(100, {"a": 1.0, "b": 2.0}, {"a": 2, "b": 3})
    {'a': [17, 16], 'b': [23, 22, 22]}
    """
    parts = zip(weights, in_proportion(list(weights.values()), total), strict=True)
    shares = {}
    for name, part in parts:
        share, extra = divmod(part, buckets[name])
        shares[name] = [share + (i < extra) for i in range(buckets[name])]
    return shares


def best_shares(total: int, weights: Mapping[str, float], statuses: Statuses) -> Shares | None:
    """The best division by the payoffs of all buckets; None if one is not known yet.

    Recall of the members is in proportion to their weights, as far as possible. The buckets of a member divide its
    share so that it produces the most results. Each bucket keeps a part of its first share.
    """
    counts = buckets_of(statuses)
    payoffs: dict[str, list[Payoff]] = {}
    for name in weights:
        written = [statuses[name, i].payoff for i in range(counts[name])]
        payoffs[name] = [Payoff(*payoff) for payoff in written if payoff]
        if len(payoffs[name]) < len(written):
            return None
    least = {
        name: [max(MIN_SHARE, share // _MIN_FRACTION) for share in shares]
        for name, shares in first_shares(total, weights, counts).items()
    }
    joint = [reduce(Payoff.shared, some) for some in payoffs.values()]
    target = allocate(joint, total, list(weights.values())).memory
    parts = dict(
        zip(weights, _raise_to_minimum(target, [sum(some) for some in least.values()], total), strict=True)
    )
    return {
        name: _raise_to_minimum(optimal_division(some, parts[name]), least[name], parts[name])
        for name, some in payoffs.items()
    }


def _raise_to_minimum(shares: Sequence[int], least: Sequence[int], total: int) -> list[int]:
    """Raise shares to their minimum; the others give up the difference, in proportion."""
    if sum(least) > total:
        raise InputError(f"a budget of {total} is too little for {len(least)} parts; give {sum(least)}")
    above = [max(share - lowest, 0) for share, lowest in zip(shares, least, strict=True)]
    free = total - sum(least)
    extra = [part * free // max(sum(above), 1) for part in above]
    extra[extra.index(max(extra))] += free - sum(extra)
    return [part + lowest for part, lowest in zip(extra, least, strict=True)]


def next_epoch(
    total: int, weights: Mapping[str, float], statuses: Statuses, present: Epoch | None
) -> Epoch | None:
    """The epoch after the present one (None: the first), if shares change enough.

    None until every bucket has reached its present share: under a new epoch limits can only fall, so with models that
    change all the time they would never rise.
    """
    shares = best_shares(total, weights, statuses)
    if shares is None:
        return None
    first = first_shares(total, weights, buckets_of(statuses))
    old = first if present is None else present.shares
    if any(
        statuses[name, bucket].limit != share for name in weights for bucket, share in enumerate(old[name])
    ):
        return None
    changed = any(
        abs(new - old_share) * _SMALLEST_CHANGE > max(old_share, first_share)
        for name in weights
        for new, old_share, first_share in zip(shares[name], old[name], first[name], strict=True)
    )
    number = 0 if present is None else number_of(present.name)
    return Epoch.numbered(number + 1, shares) if changed else None


def measured_payoff(operator: Operator[Pairs]) -> WrittenPayoff | None:
    """Results by memory in a bucket, coarse and in its budget's unit; None while its policy has not learned it."""
    payoffs = operator.retention.payoffs()
    if payoffs is None:
        return ([0.0], [0.0]) if operator.retention.observed >= _STEPS_TO_LEARN else None
    both: Payoff = payoffs[0].shared(payoffs[1]).coarse(_SEGMENTS)
    budget = operator.join.budget
    size = operator.nbytes / operator.rows if operator.rows else 0.0
    if budget is None or budget.unit == "rows":
        size = 1.0
    elif not size:
        size = operator.tally.peak_bytes / max(operator.tally.peak_rows, 1)
    # The size of a row is not known before one was buffered.
    return ((both.memory * size).tolist(), both.results.tolist()) if size else None
