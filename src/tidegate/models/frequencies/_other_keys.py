"""The keys that are not counted one by one: which of them are frequent, and how many there are.

Both answers come from summaries that stay small whatever arrives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

import numpy as np
from datasketches import PyLongsSerDe, frequent_items_error_type, frequent_items_sketch

from tidegate.compiled import kernel
from tidegate.draws import hash64
from tidegate.models.frequencies.key_table import empty_table, entries, fill

if TYPE_CHECKING:
    from tidegate.types import Array

_REGISTERS: Final = 1 << 10
_HIGHEST_RANK: Final = 54
_FEW: Final = 2.5


class DistinctCount:
    """The number of distinct keys in the last one or two horizons, to about 3 %.

    A HyperLogLog in two generations: `turn` forgets the older one.
    """

    def __init__(self) -> None:
        self.young, self.old = _registers(), _registers()

    def estimate(self) -> float:
        """The estimated number of keys."""
        return _estimate(self.young, self.old)

    def turn(self, *, both: bool) -> None:
        """Begin a new generation, and discard the older one, or both."""
        self.young, self.old = _registers(), _registers() if both else self.young


def _registers() -> Array:
    return np.zeros(_REGISTERS, np.uint8)


@kernel
def add_key(registers: Array, key: int) -> None:
    """Add a key."""
    bits = hash64(~key)
    place = np.int64(bits) & (_REGISTERS - 1)
    bits >>= np.uint64(64 - _HIGHEST_RANK)
    rank = 1
    while rank < _HIGHEST_RANK and not bits & np.uint64(1):
        bits >>= np.uint64(1)
        rank += 1
    registers[place] = max(registers[place], rank)


@kernel
def add_keys(registers: Array, keys: Array) -> None:
    """Add keys."""
    for key in keys:
        add_key(registers, key)


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
"""The mean number of distinct keys per step that the sketch is given, at most: each costs a Python call."""

_LOG_SIZE: Final = 10
"""The sketch holds 3/4 of 2**10 keys. A larger one drops keys by a sample of its slots, so that it could behave
differently after it was stored and read again."""

_ONE: Final = 1 << 20
"""The sketch adds integers; this one is a weight of 1."""


class FrequentCandidates:
    """The frequent keys among those that were fed since the last `drain`."""

    def __init__(self) -> None:
        self._sketch = frequent_items_sketch(_LOG_SIZE)
        self._draw = 0.0
        self._turns = 0

    def feed(self, keys: Array, weights: Array) -> None:
        """Add keys with their weights, in any order and number.

        Of many distinct keys only a sample is used: heavy keys for certain, light keys with a probability in
        proportion to their weight (threshold sampling). Draws are hashes, so that they can be repeated.
        """
        sums = empty_table(len(keys))
        fill(sums, keys, weights)
        keys, weights = entries(sums)
        if len(keys) > _AT_ONCE:
            draw = weights.sum() / _AT_ONCE
            drawn = draw * _uniform(keys, self._turns) < weights
            keys, weights = keys[drawn], np.maximum(weights[drawn], draw)
            self._draw = max(self._draw, draw)
        self._turns += 1
        for key, weight in zip(keys.tolist(), np.rint(weights * _ONE).astype(np.int64).tolist(), strict=True):
            self._sketch.update(key, weight)

    def drain(self) -> tuple[Array, Array]:
        """The keys that weigh more than a sampled light key, and a lower bound of each weight; then start over."""
        beyond = max(1, int(np.ceil(self._draw * _ONE)))
        found = self._sketch.get_frequent_items(frequent_items_error_type.NO_FALSE_POSITIVES, beyond)
        keys, _, weights, _ = np.array(sorted(found), np.int64).reshape(-1, 4).T
        self._sketch, self._draw = frequent_items_sketch(_LOG_SIZE), 0.0
        return keys, weights / _ONE

    def snapshot(self) -> dict[str, Array]:
        """The state as plain arrays."""
        sketch = np.frombuffer(self._sketch.serialize(PyLongsSerDe()), np.uint8)
        return {"sketch": sketch, "draws": np.array([self._draw, self._turns])}

    def restore(self, state: dict[str, Array]) -> Self:
        """Restore the state that `snapshot` returned."""
        self._sketch = frequent_items_sketch.deserialize(state["sketch"].tobytes(), PyLongsSerDe())
        self._draw, self._turns = float(state["draws"][0]), int(state["draws"][1])
        return self


@kernel
def _uniform(keys: Array, turn: int) -> Array:
    """A draw from [0, 1) for each key, different at each turn."""
    salt = np.int64(hash64(turn))
    draws = np.empty(len(keys), np.float64)
    for i in range(len(keys)):
        draws[i] = (hash64(keys[i] ^ salt) >> np.uint64(11)) * 2.0**-53
    return draws
