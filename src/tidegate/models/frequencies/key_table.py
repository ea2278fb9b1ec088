"""A compiled hash table from keys to amounts, for given and learned frequencies.

Open addressing with linear probing, at most a quarter full, so that most lookups need one access. A free slot has a
negative amount; any 64-bit integer can be a key. The number of slots depends on the number of keys only. `entries`
returns keys in an order such that filling a new table with them gives the same slots, so a table does not change when
its entries are stored and restored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tidegate.compiled import kernel
from tidegate.draws import hash64, spread
from tidegate.types import InputError

if TYPE_CHECKING:
    from tidegate.types import Array

FREE: Final = -1.0
SLOTS_PER_KEY: Final = 4
_MIN_KEYS: Final = 16
_MANY_LOOKUPS: Final = 8


class KeyTable(NamedTuple):
    """Keys and their amounts; slots with a negative amount are free."""

    keys: Array
    amounts: Array


class Entries(NamedTuple):
    """The keys of a table and their amounts."""

    keys: Array
    weights: Array


class KeyRange(NamedTuple):
    """The amounts of keys that lie close together, indexed from the smallest key."""

    least: int
    amounts: Array


def build_table(keys: Array, amounts: Array) -> KeyTable | KeyRange:
    """The fastest lookup for these distinct keys: a range, unless it is larger than a table.

    Examples
    --------
    >>> build_table(np.array([7, 5]), np.array([0.7, 0.5]))
    KeyRange(least=5, amounts=array([0.5, 0. , 0.7]))
    """
    least, span = int(keys.min()), int(keys.max()) - int(keys.min()) + 1
    if span <= SLOTS_PER_KEY * len(keys):
        spread = np.zeros(span)
        spread[keys - least] = amounts
        return KeyRange(least, spread)
    table = empty_table(len(keys))
    fill(table, keys, amounts)
    return table


def empty_table(count: int) -> KeyTable:
    """An empty table for `count` keys.

    Examples
    --------
    >>> table = empty_table(3)
    >>> fill(table, np.array([7, -7, 7]), np.array([1.0, 2.0, 3.0]))
    2
    >>> look_up(table, np.array([-7, 7, 8]), 0.0)
    array([2., 4., 0.])
    """
    slots = 1 << (SLOTS_PER_KEY * max(_MIN_KEYS, count) - 1).bit_length()
    # A key and its amount are adjacent, so that one memory access loads both.
    table = np.zeros(slots, [("key", np.int64), ("amount", np.float64)])
    table["amount"] = FREE
    return KeyTable(table["key"], table["amount"])


def as_keys(keys: object) -> Array:
    """The keys as a contiguous array of 64-bit integers; an error if they are not integers."""
    array = np.asarray(keys)
    if array.ndim != 1 or (array.dtype.kind != "i" and len(array)):
        raise InputError(
            f"keys of type {array.dtype} in {array.ndim} dimensions are not supported; give one array of integers"
        )
    return np.ascontiguousarray(array, np.int64)


@kernel
def slot_of(table: KeyTable, key: int) -> np.int64:
    """The slot of a key, or the free slot where it would be inserted."""
    keys, amounts = table
    mask = len(keys) - 1
    slot = np.int64(hash64(key)) & mask
    while amounts[slot] >= 0 and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


@kernel
def fill(table: KeyTable, key: Array, amount: Array) -> int:
    """Add amounts to keys; returns how many were new. The table must be large enough for them."""
    keys, amounts = table
    new = 0
    for i in range(len(key)):
        slot = slot_of(table, key[i])
        if amounts[slot] < 0:
            keys[slot] = key[i]
            amounts[slot] = amount[i]
            new += 1
        else:
            amounts[slot] += amount[i]
    return new


@kernel
def look_up(table: KeyTable, key: Array, missing: float) -> Array:
    """The amount of each key, or `missing`.

    Most keys are in their first slot or missing, so that slot is checked first for all keys, without a branch that
    the processor would have to predict. Of many keys most are usually missing. Then a small
    array of used slots is checked before, because it fits in the processor's cache and the table does not.
    """
    keys, amounts = table
    mask = len(keys) - 1
    result = np.full(len(key), missing)
    many = _MANY_LOOKUPS * len(key) > len(amounts)
    occupied = amounts >= 0 if many else np.empty(0, np.bool_)
    places, slots = np.empty(len(key), np.int32), np.empty(len(key), np.int32)
    likely = n = 0
    for i in range(len(key)):
        slot = np.int64(hash64(key[i])) & mask
        places[likely], slots[likely] = i, slot
        likely += occupied[slot] if many else True
    for j in range(likely):
        i, slot = places[j], slots[j]
        amount = amounts[slot]
        used, same = amount >= 0, keys[slot] == key[i]
        result[i] = amount if used & same else missing
        places[n] = i
        n += used & (not same)
    for i in places[:n]:
        amount = amounts[slot_of(table, key[i])]
        result[i] = amount if amount >= 0 else missing
    return result


@kernel
def look_up_range(table: KeyRange, key: Array) -> Array:
    """The amount of each key, or 0."""
    least, amounts = table
    result = np.zeros(len(key), np.float64)
    for i in range(len(key)):
        # The difference of a smaller key wraps around to at least 2**63 - least, past the last amount.
        if np.uint64(key[i] - least) < np.uint64(len(amounts)):
            result[i] = amounts[key[i] - least]
    return result


@kernel
def entries(table: KeyTable) -> Entries:
    """Keys and amounts, beginning after the first free slot, so that no run of adjacent keys is split."""
    keys, amounts = table
    mask = len(keys) - 1
    first = 0
    while amounts[first] >= 0:
        first += 1
    occupied = np.empty(len(keys) // SLOTS_PER_KEY + 1, np.int64)
    n = 0
    for i in range(first, first + len(keys)):
        # Without a branch that the processor has to predict.
        occupied[n] = i & mask
        n += amounts[i & mask] >= 0
    return Entries(keys[occupied[:n]], amounts[occupied[:n]])


@kernel
def weighted_sample(table: KeyTable, used: int, total: float, count: int) -> tuple[Array, Array]:
    """A sample of `count` to twice as many of the `used` keys, each with its amount over its inclusion probability.

    Probabilities are proportional to amounts, but equal for all amounts below the mean; if there are few keys, all
    are sampled. Keys have random slots, so the random numbers can be functions of the slots.
    """
    keys, amounts = table
    even, each, n = count / used, count / total, 0
    some = np.empty(used + 1, np.int64)
    for i in range(len(keys)):
        draw = spread(i)
        # Without a branch that the processor has to predict.
        some[n] = i
        n += (amounts[i] >= 0) & ((draw < even) | (draw < each * amounts[i]))
    some = some[:n]
    return keys[some], amounts[some] / np.minimum(1.0, np.maximum(even, each * amounts[some]))
