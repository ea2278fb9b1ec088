"""How the buckets of several queries divide one budget while they run: the rules, without Spark or files.

Every bucket runs micro-batches at its own pace, may run one again, and knows of the others only what they wrote
down: their last `Word`. An `Epoch` says what share of the budget each has. One bucket, the leader, proposes the
next epoch, and grants it once all others are within it. A bucket is within an epoch when a micro-batch that it
decided on under that epoch is committed, which it knows and tells (`acked`) at the start of the next.

What a bucket may hold after a micro-batch is its limit. Under an epoch that is granted, that is its share;
under one that is not yet, its share or what it had, whichever is less.

**The limits never add up to more than the budget.** Let `G` be the epoch granted last. Then every limit, committed
or decided on for a micro-batch under way, is at most the bucket's share under `G`; and shares add up to at most
the budget. This holds at the start, where all have their first share. It goes on to hold until the next grant: a
limit that is decided on under `G` is at most the share under `G`, and one under a later epoch is at most the limit
before it. And it holds at that grant: every bucket has then committed a limit under the new epoch, which was not
granted, so that it is at most the new share; and what it decides on afterwards is under the new epoch as well,
since epochs never go back. A micro-batch that is run again takes the limit that it wrote down the first time.
Where that was lost it decides anew, and all of this holds as before: acknowledged is only what is committed.

An epoch is known by its number and its shares. So should two attempts of the leader's micro-batch propose
different ones under one number, these are two epochs, the later by name counts, and acknowledging one is not
acknowledging the other.

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
from tidegate.types import InputError

Shares: TypeAlias = "dict[str, list[int]]"
Told: TypeAlias = "tuple[list[float], list[float]]"
"""A payoff as it is written down: memory, and results."""

LEAST: Final = 2
"""What every bucket has at least: room for a row of each side, in rows."""

_KEPT: Final = 10
"""Every bucket keeps this part of its first share, or its policy could learn no more."""

_SEGMENTS: Final = 16
_PATIENCE: Final = 8
"""A bucket that could not tell what memory yields after so many steps has nothing to gain from it."""

_STIRRED: Final = 20
"""Shares move only if one changes by more than this part of itself (or of its first share, if that is more)."""


@dataclass(frozen=True)
class Epoch:
    """A division of the budget: the share of every bucket of every member.

    Names sort by number. The first epoch needs no writing down: everyone can tell its own share.
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
class Standing:
    """Under which epoch of which pool a bucket decided for a micro-batch, and what it may hold after it."""

    pool: str
    epoch: str
    limit: int


@dataclass(frozen=True)
class Word:
    """What a bucket last told the others.

    Parameters
    ----------
    query, batch
        Which micro-batch of which query it began.
    epoch, limit
        What it decided for it.
    acked
        Under which epoch the micro-batch before was decided, which is committed.
    buckets
        How many its member has.
    payoff
        What memory yields in it, in the budget's unit; None while it cannot tell.
    granted
        Of the leader's word: the last epoch that all are within.
    """

    query: str
    batch: int
    epoch: str
    limit: int
    acked: str
    buckets: int
    payoff: Told | None
    granted: str = FIRST

    def plain(self) -> dict[str, Any]:
        """Values that JSON can hold."""
        return asdict(self)


Words: TypeAlias = "Mapping[tuple[str, int], Word]"
"""By member and bucket."""


def decide(now: Standing, last: Word | None, newest: str, share: int, granted: str) -> Standing:
    """What a bucket may hold after a micro-batch that it has not begun before.

    Parameters
    ----------
    now
        As its committed state says.
    last
        What it last told, if anything. A state that begins anew may hold no more than the one that is gone.
    newest, share
        The newest epoch, and this bucket's share under it.
    granted
        The last epoch that all are within.
    """
    if newest < now.epoch:
        return now
    if newest == granted:
        return replace(now, epoch=newest, limit=share)
    return replace(now, epoch=newest, limit=min(share, now.limit, last.limit if last else now.limit))


def all_within(members: Sequence[str], words: Words, epoch: str) -> bool:
    """Whether every bucket of every member is within an epoch."""
    counts = buckets_of(words)
    return all(
        name in counts
        and all((name, i) in words and words[name, i].acked == epoch for i in range(counts[name]))
        for name in members
    )


def buckets_of(words: Words) -> dict[str, int]:
    """How many buckets each member has that was heard of."""
    return {name: word.buckets for (name, _), word in words.items()}


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


def divided(total: int, weights: Mapping[str, float], words: Words) -> Shares | None:
    """The best division by what every bucket told; None if one told nothing yet.

    Among members recall is equal in proportion to weights, as far as can be; the buckets of each share so that
    it yields the most results. Each keeps a part of what it had at first.
    """
    counts = buckets_of(words)
    payoffs: dict[str, list[Payoff]] = {}
    for name in weights:
        told = [words[name, i].payoff for i in range(counts[name])]
        payoffs[name] = [Payoff(*payoff) for payoff in told if payoff]
        if len(payoffs[name]) < len(told):
            return None
    least = {
        name: [max(LEAST, share // _KEPT) for share in shares]
        for name, shares in first_shares(total, weights, counts).items()
    }
    joint = [reduce(Payoff.shared, some) for some in payoffs.values()]
    wanted = allocate(joint, total, list(weights.values())).memory
    parts = dict(zip(weights, _raised(wanted, [sum(some) for some in least.values()], total), strict=True))
    return {
        name: _raised(optimal_division(some, parts[name]), least[name], parts[name])
        for name, some in payoffs.items()
    }


def _raised(shares: Sequence[int], least: Sequence[int], total: int) -> list[int]:
    """Raise shares to their least; those above theirs give up what that takes, in proportion."""
    if sum(least) > total:
        raise InputError(f"a budget of {total} is too little for {len(least)} parts; give {sum(least)}")
    above = [max(share - few, 0) for share, few in zip(shares, least, strict=True)]
    room = total - sum(least)
    kept = [part * room // max(sum(above), 1) for part in above]
    kept[kept.index(max(kept))] += room - sum(kept)
    return [part + few for part, few in zip(kept, least, strict=True)]


def proposed(total: int, weights: Mapping[str, float], words: Words, present: Epoch | None) -> Epoch | None:
    """The epoch after the present one (None: the first), if it is worth the stir.

    Only once every bucket has taken up its present share: a next epoch withdraws the leave to grow, and where
    models never rest, limits would only ever fall.
    """
    shares = divided(total, weights, words)
    if shares is None:
        return None
    first = first_shares(total, weights, buckets_of(words))
    old = first if present is None else present.shares
    if any(words[name, bucket].limit != share for name in weights for bucket, share in enumerate(old[name])):
        return None
    stir = any(
        abs(new - was) * _STIRRED > max(was, began)
        for name in weights
        for new, was, began in zip(shares[name], old[name], first[name], strict=True)
    )
    number = 0 if present is None else number_of(present.name)
    return Epoch.numbered(number + 1, shares) if stir else None


def told(operator: Operator) -> Told | None:
    """What memory yields in a bucket, in its budget's unit and not too finely; None while it cannot tell."""
    payoffs = operator.policy.payoffs()
    if payoffs is None:
        return ([0.0], [0.0]) if operator.shown >= _PATIENCE else None
    both: Payoff = payoffs[0].shared(payoffs[1]).coarse(_SEGMENTS)
    budget = operator.join.budget
    size = operator.nbytes / operator.rows if operator.rows else 0.0
    if budget is None or budget.unit == "rows":
        size = 1.0
    elif not size:
        size = operator.tally.peak_bytes / max(operator.tally.peak_rows, 1)
    # Of a row nothing is known before one was held.
    return ((both.memory * size).tolist(), both.results.tolist()) if size else None
