"""Decayed counts of one side's keys: exact for the most frequent keys, one sum for the others.

Weights grow with time instead of shrinking (forward decay): an arrival at time `t` weighs `2**((t - reference) /
horizon)`, and its weight never changes, so counting it updates its own key only. Shares are quotients of weights. The
reference moves before weights could overflow.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

import numpy as np

from tidegate.compiled import inlined, kernel
from tidegate.models.frequencies.key_sketches import DistinctCount, FrequentCandidates, add_key, add_keys
from tidegate.models.frequencies.key_table import (
    SLOTS_PER_KEY,
    Entries,
    KeyTable,
    empty_table,
    entries,
    fill,
    look_up,
    slot_of,
    weighted_sample,
)
from tidegate.types import ArrayField, Nested, Numbers, Record, Stateful

if TYPE_CHECKING:
    from tidegate.types import Array, State

_REFERENCE, _TOTAL, _OTHERS, _LEAST, _MEAN = range(5)
"""Positions in the tally: the time at which an arrival weighs 1; the weight of all arrivals; that of the other keys;
a lower bound of the weight of every counted key; the mean weight of the other keys."""

MAX_HALF_LIVES: Final = 256.0
"""The number of half-lives after which the reference moves."""
_MIN_PERIOD: Final = 1024
_ESTIMATE_ERROR: Final = 1 / 16


class _UncountedRows(NamedTuple):
    """The rows of a step whose keys are not counted, and the number of these rows."""

    key: Array
    weight: Array
    rows: Array


class KeyCounts(Stateful):
    """The weights of up to `capacity` keys, and a summary of all other keys."""

    state: ClassVar[State] = {
        "": (Record("_entries", Entries, copied=False), Nested("_candidates")),
        "tally": Numbers(_tally=np.ndarray, _rows_since_review=int, _newest=float, _rotated=float),
        "settings": Numbers(_learned_with=tuple),
        "young": ArrayField("_distinct.young"),
        "old": ArrayField("_distinct.old"),
    }

    def __init__(self, capacity: int, horizon: float) -> None:
        self._capacity, self._horizon = self._learned_with = capacity, horizon
        self.table, self._used = empty_table(0), 0
        self._tally = np.array([math.nan, 0.0, 0.0, math.inf, 0.0])
        self._candidates, self._distinct = FrequentCandidates(), DistinctCount()
        # Rows of other keys between reviews, and since the last review.
        self._period, self._rows_since_review = max(_MIN_PERIOD, capacity), 0
        self._newest = self._rotated = math.nan

    def observe(self, key: Array, time: Array, each: Array) -> None:
        """Count arrivals, at least one; each counts `each` times."""
        if math.isnan(self._newest):
            self._newest = self._rotated = self._tally[_REFERENCE] = time[0]
        self._newest = max(self._newest, float(time.max()))
        passed = self._newest - self._rotated
        if passed >= self._horizon:
            self._review()
            self._distinct.rotate(both=passed >= 2 * self._horizon)
            self._rotated = self._newest
            add_keys(self._distinct.young, entries(self.table)[0])
        begin = 0
        while begin < len(key):
            room = min(len(key) - begin, self._period - self._rows_since_review)
            uncounted = _UncountedRows(np.empty(room, np.int64), np.empty(room), np.zeros(1, np.int64))
            begin, self._used = _count(
                self.table, self._tally, self._used, self._capacity, self._horizon,
                key, time, each, begin, uncounted, self._distinct.young,
            )  # fmt: skip
            if uncounted.rows[0]:
                self._learn_from(uncounted)
            elif begin < len(key):
                self._rebuild(*entries(self.table), room=self._used + 1)

    def _learn_from(self, uncounted: _UncountedRows) -> None:
        rows = int(uncounted.rows[0])
        self._candidates.add(uncounted.key[:rows], uncounted.weight[:rows] / self._unit())
        self._rows_since_review += rows
        self._update_mean()
        if self._rows_since_review == self._period:
            self._review()

    def _unit(self) -> float:
        """The weight of an arrival at the last rotation, the unit of the candidates; so no arrival exceeds 2."""
        return float(np.exp2((self._rotated - self._tally[_REFERENCE]) / self._horizon))

    def _rebuild(self, keys: Array, weights: Array, room: int) -> None:
        self.table, self._used = empty_table(room), len(keys)
        fill(self.table, keys, weights)

    def _update_mean(self) -> None:
        # Counted keys are in the estimate too, so the difference is the other keys, to its precision.
        distinct = self._distinct.estimate()
        self._tally[_MEAN] = self._tally[_OTHERS] / max(
            1.0, distinct - self._used, distinct * _ESTIMATE_ERROR
        )

    def _review(self) -> None:
        """Update the set of counted keys.

        The heaviest keys stay, among counted keys and candidates. But a counted key leaves if the mean of the other
        keys is over twice its weight, even if no single candidate is frequent.
        """
        if not self._rows_since_review:
            return
        counted, weights = entries(self.table)
        frequent, least = self._candidates.drain()
        # No key is in both: candidates are added only while the table is full.
        keys = np.concatenate([counted, frequent])
        weights = np.concatenate([weights, least * self._unit() + self._tally[_MEAN]])
        stays = weights >= self._tally[_MEAN] / 2
        excess = int(stays.sum()) - self._capacity
        if excess > 0:
            order = np.flatnonzero(stays)
            stays[order[np.argpartition(weights[order], excess)[:excess]]] = False
        self._rebuild(keys[stays], weights[stays], room=int(stays.sum()))
        self._tally[_OTHERS] = max(0.0, self._tally[_TOTAL] - weights[stays].sum())
        self._tally[_LEAST] = weights[stays].min(initial=math.inf)
        self._rows_since_review = 0
        self._update_mean()

    def share(self, keys: Array) -> Array:
        """The weight of each key as a fraction of all."""
        shares = self._weights(keys)
        if self._tally[_TOTAL] > 0:
            shares /= self._tally[_TOTAL]
        return shares

    def count(self, keys: Array) -> Array:
        """The weight of each key, where the newest arrival weighs 1."""
        return self._weights(keys) / self._newest_weight()

    def _weights(self, keys: Array) -> Array:
        return look_up(self.table, keys, min(self._tally[_MEAN], self._tally[_LEAST]))

    def _newest_weight(self) -> float:
        """The weight of the newest arrival; 1 before the first."""
        if math.isnan(self._newest):
            return 1.0
        return float(np.exp2((self._newest - self._tally[_REFERENCE]) / self._horizon))

    def sample_keys(self, count: int) -> tuple[Array, Array]:
        """A sample of the counted keys, and the weight that each represents."""
        return weighted_sample(self.table, self._used, self._tally[_TOTAL], count)

    def total(self) -> float:
        """The weight of all arrivals, where the newest weighs 1."""
        return float(self._tally[_TOTAL] / self._newest_weight())

    def _convert(self, horizon: float) -> None:
        """Convert a state that was learned with another capacity or horizon."""
        own_horizon, self._horizon = self._horizon, horizon
        self._rows_since_review = max(self._rows_since_review, 1)
        self._review()
        scale = np.exp2((self._tally[_REFERENCE] - self._newest) / horizon)
        self._tally[1:] *= scale
        keys, weights = entries(self.table)
        self._rebuild(keys, weights * scale, room=len(keys))
        # The newest arrival now weighs 1 by either horizon.
        self._tally[_REFERENCE] = self._rotated = self._newest
        self._horizon = own_horizon

    def after_restore(self) -> None:
        """Convert a state that was learned with another capacity or horizon."""
        _, horizon = self._learned_with
        settings = self._capacity, self._horizon
        if self._learned_with != settings and not math.isnan(self._newest):
            self._convert(horizon)
        self._learned_with = settings

    @property
    def _entries(self) -> Entries:
        return entries(self.table)

    @_entries.setter
    def _entries(self, saved: Entries) -> None:
        self._rebuild(*saved, room=len(saved.keys))


@inlined
def arrival_weight(time: float, reference: float, horizon: float) -> float:
    """The weight of an arrival; 1 at the reference time."""
    return np.exp2((time - reference) / horizon)  # type: ignore[no-any-return]


@inlined
def share_of_total(weight: float, total: float) -> float:
    """A weight as a fraction of the total, as in `KeyCounts.share`."""
    return weight / total if total > 0 else weight


@kernel
def _count(
    table: KeyTable, tally: Array, used: int, capacity: int, horizon: float,
    key: Array, time: Array, each: Array, begin: int, uncounted: _UncountedRows, registers: Array,
) -> tuple[int, int]:  # fmt: skip
    """Count rows until the table or the list of other rows is full.

    Returns the first row that was not counted, and the number of counted keys.
    """
    keys, weights = table
    rest_key, rest_weight, rest_rows = uncounted
    last, unit = np.nan, 0.0
    for i in range(begin, len(key)):
        if time[i] != last:
            last = time[i]
            ahead = (last - tally[_REFERENCE]) / horizon
            if ahead > MAX_HALF_LIVES:
                _move_reference(np.floor(ahead), weights, tally, horizon, rest_weight)
                ahead = (last - tally[_REFERENCE]) / horizon
            unit = arrival_weight(last, tally[_REFERENCE], horizon)
        weight = each[i] * unit
        slot = slot_of(table, key[i])
        if weights[slot] >= 0:
            weights[slot] += weight
        elif used < capacity:
            if SLOTS_PER_KEY * (used + 1) > len(keys):
                return i, used
            initial = min(tally[_MEAN], tally[_OTHERS])
            tally[_OTHERS] -= initial
            add_key(registers, key[i])
            keys[slot] = key[i]
            weights[slot] = weight + initial
            tally[_LEAST] = min(tally[_LEAST], weight + initial)
            used += 1
        else:
            n = rest_rows[0]
            if n == len(rest_key):
                return i, used
            tally[_OTHERS] += weight
            add_key(registers, key[i])
            rest_key[n] = key[i]
            rest_weight[n] = weight
            rest_rows[0] = n + 1
        tally[_TOTAL] += weight
    return len(key), used


@kernel
def _move_reference(
    horizons: float, weights: Array, tally: Array, horizon: float, rest_weight: Array
) -> None:
    """Move the reference by whole half-lives, so that halving every weight is exact."""
    scale = np.exp2(-horizons)
    tally[_REFERENCE] += horizons * horizon
    for place in (_TOTAL, _OTHERS, _LEAST, _MEAN):
        tally[place] *= scale
    for i in range(len(weights)):
        if weights[i] >= 0:
            weights[i] *= scale
    rest_weight *= scale
