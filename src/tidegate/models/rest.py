"""What is known of the keys that are not counted one by one: which are frequent, and how many there are.

Both answers come from summaries that stay small whatever arrives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

import numpy as np
from datasketches import PyLongsSerDe, frequent_items_error_type, frequent_items_sketch

from tidegate.compiled import kernel
from tidegate.draws import scattered
from tidegate.models.key_table import entries, fill, table_for

if TYPE_CHECKING:
    from tidegate.types import Array

_REGISTERS: Final = 1 << 10
_HIGHEST_RANK: Final = 54
_FEW: Final = 2.5


class Distinct:
    """How many different keys there were, to some 3 %, in the last horizon or two.

    A HyperLogLog in two generations: `turn` forgets the older one.
    """

    def __init__(self) -> None:
        self.young, self.old = _registers(), _registers()

    def estimate(self) -> float:
        """How many keys there were."""
        return _estimate(self.young, self.old)

    def turn(self, *, both: bool) -> None:
        """Begin a new generation, after which the one before, or both, are forgotten."""
        self.young, self.old = _registers(), _registers() if both else self.young


def _registers() -> Array:
    return np.zeros(_REGISTERS, np.uint8)


@kernel
def mark(registers: Array, key: int) -> None:
    """Note that a key was there."""
    bits = scattered(~key)
    place = np.int64(bits) & (_REGISTERS - 1)
    bits >>= np.uint64(64 - _HIGHEST_RANK)
    rank = 1
    while rank < _HIGHEST_RANK and not bits & np.uint64(1):
        bits >>= np.uint64(1)
        rank += 1
    registers[place] = max(registers[place], rank)


@kernel
def mark_all(registers: Array, keys: Array) -> None:
    """Note that some keys were there."""
    for key in keys:
        mark(registers, key)


@kernel
def _estimate(young: Array, old: Array) -> float:
    size = float(len(young))
    inverse, untouched = 0.0, 0
    for i in range(len(young)):
        rank = max(young[i], old[i])
        inverse += 1.0 / (np.int64(1) << np.int64(rank))
        untouched += rank == 0
    if untouched:
        few: float = size * np.log(size / untouched)
        if few <= _FEW * size:
            return few
    many: float = 0.7213 / (1 + 1.079 / size) * size * size / inverse
    return many


_AT_ONCE: Final = 512
"""How many distinct keys of a step the sketch is told of on average, at most: each costs a Python call."""

_LOG_SIZE: Final = 10
"""The sketch holds 3/4 of 2**10 keys. A larger one would make room by looking at some of its keys only, which
ones depending on where they lie, and could not be sure to go on unchanged after it was stored."""

_ONE: Final = 1 << 20
"""The sketch adds up integers; this many stand for 1."""


class Challengers:
    """The frequent ones among the keys that were shown since the last `drain`."""

    def __init__(self) -> None:
        self._sketch = frequent_items_sketch(_LOG_SIZE)
        self._draw = 0.0
        self._turns = 0

    def feed(self, keys: Array, weights: Array) -> None:
        """Show keys, each with its weight, in any order and number.

        Of many distinct keys only a sample goes on: those of some weight for certain, of the others so many that
        each counts for what it weighs on average (threshold sampling). The draw is a hash, so it can be repeated.
        """
        sums = table_for(len(keys))
        fill(sums, keys, weights)
        keys, weights = entries(sums)
        if len(keys) > _AT_ONCE:
            draw = weights.sum() / _AT_ONCE
            lucky = draw * _uniform(keys, self._turns) < weights
            keys, weights = keys[lucky], np.maximum(weights[lucky], draw)
            self._draw = max(self._draw, draw)
        self._turns += 1
        for key, weight in zip(keys.tolist(), np.rint(weights * _ONE).astype(np.int64).tolist(), strict=True):
            self._sketch.update(key, weight)

    def drain(self) -> tuple[Array, Array]:
        """The keys that weigh more than a lucky draw, and what each weighs at least; then forget."""
        beyond = max(1, int(np.ceil(self._draw * _ONE)))
        found = self._sketch.get_frequent_items(frequent_items_error_type.NO_FALSE_POSITIVES, beyond)
        keys, _, weights, _ = np.array(sorted(found), np.int64).reshape(-1, 4).T
        self._sketch, self._draw = frequent_items_sketch(_LOG_SIZE), 0.0
        return keys, weights / _ONE

    def snapshot(self) -> dict[str, Array]:
        """What was shown, as plain arrays."""
        sketch = np.frombuffer(self._sketch.serialize(PyLongsSerDe()), np.uint8)
        return {"sketch": sketch, "draws": np.array([self._draw, self._turns])}

    def restore(self, state: dict[str, Array]) -> Self:
        """Take up what `snapshot` gave."""
        self._sketch = frequent_items_sketch.deserialize(state["sketch"].tobytes(), PyLongsSerDe())
        self._draw, self._turns = float(state["draws"][0]), int(state["draws"][1])
        return self


@kernel
def _uniform(keys: Array, turn: int) -> Array:
    """A draw from [0, 1) for each key, fresh at each turn."""
    salt = np.int64(scattered(turn))
    draws = np.empty(len(keys), np.float64)
    for i in range(len(keys)):
        draws[i] = (scattered(keys[i] ^ salt) >> np.uint64(11)) * 2.0**-53
    return draws
