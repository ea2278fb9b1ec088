"""Sketches of the keys that are not counted exactly: which of them are frequent, and how many there are."""

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
_LINEAR_COUNTING: Final = 2.5


class DistinctCount:
    """The number of distinct keys in the last one or two horizons, to about 3 %.

    A HyperLogLog in two generations: `rotate` discards the older one.
    """

    def __init__(self) -> None:
        self.young, self.old = _registers(), _registers()

    def estimate(self) -> float:
        """The estimated number of keys."""
        return _estimate(self.young, self.old)

    def rotate(self, *, both: bool) -> None:
        """Begin a new generation, and discard the older one, or both."""
        self.young, self.old = _registers(), _registers() if both else self.young


def _registers() -> Array:
    return np.zeros(_REGISTERS, np.uint8)


@kernel
def add_key(registers: Array, key: int) -> None:
    """Add a key."""
    bits = hash64(~key)
    register = np.int64(bits) & (_REGISTERS - 1)
    bits >>= np.uint64(64 - _HIGHEST_RANK)
    rank = 1
    while rank < _HIGHEST_RANK and not bits & np.uint64(1):
        bits >>= np.uint64(1)
        rank += 1
    registers[register] = max(registers[register], rank)


@kernel
def add_keys(registers: Array, keys: Array) -> None:
    """Add keys."""
    for key in keys:
        add_key(registers, key)


@kernel
def _estimate(young: Array, old: Array) -> float:
    size = float(len(young))
    inverse, empty = 0.0, 0
    for i in range(len(young)):
        rank = max(young[i], old[i])
        inverse += 1.0 / (np.int64(1) << np.int64(rank))
        empty += rank == 0
    if empty:
        few: float = size * np.log(size / empty)
        if few <= _LINEAR_COUNTING * size:
            return few
    many: float = 0.7213 / (1 + 1.079 / size) * size * size / inverse
    return many


_MAX_PER_STEP: Final = 512
"""The maximum mean number of distinct keys per step that are added to the sketch: each costs a Python call."""

_LOG_SIZE: Final = 10
"""The sketch holds 3/4 of 2**10 keys. A larger one drops keys by a sample of its slots, so it could behave
differently after it is stored and restored."""

_ONE: Final = 1 << 20
"""The sketch adds integers; this one is a weight of 1."""


class FrequentCandidates:
    """The frequent keys among those that were added since the last `drain`."""

    def __init__(self) -> None:
        self._sketch = frequent_items_sketch(_LOG_SIZE)
        self._threshold = 0.0
        self._steps = 0

    def add(self, keys: Array, weights: Array) -> None:
        """Add keys with their weights, in any order and number.

        If there are many distinct keys, only a sample is used: heavy keys for certain, light keys with a probability
        in proportion to their weight (threshold sampling). Random numbers are hashes, so they are reproducible.
        """
        sums = empty_table(len(keys))
        fill(sums, keys, weights)
        keys, weights = entries(sums)
        if len(keys) > _MAX_PER_STEP:
            threshold = weights.sum() / _MAX_PER_STEP
            sampled = threshold * _uniform(keys, self._steps) < weights
            keys, weights = keys[sampled], np.maximum(weights[sampled], threshold)
            self._threshold = max(self._threshold, threshold)
        self._steps += 1
        for key, weight in zip(keys.tolist(), np.rint(weights * _ONE).astype(np.int64).tolist(), strict=True):
            self._sketch.update(key, weight)

    def drain(self) -> tuple[Array, Array]:
        """The keys that weigh more than a sampled light key, and a lower bound of each weight; then start over."""
        minimum = max(1, int(np.ceil(self._threshold * _ONE)))
        frequent = self._sketch.get_frequent_items(frequent_items_error_type.NO_FALSE_POSITIVES, minimum)
        keys, _, weights, _ = np.array(sorted(frequent), np.int64).reshape(-1, 4).T
        self._sketch, self._threshold = frequent_items_sketch(_LOG_SIZE), 0.0
        return keys, weights / _ONE

    def snapshot(self) -> dict[str, Array]:
        """The state as plain arrays."""
        sketch = np.frombuffer(self._sketch.serialize(PyLongsSerDe()), np.uint8)
        return {"sketch": sketch, "draws": np.array([self._threshold, self._steps])}

    def restore(self, state: dict[str, Array]) -> Self:
        """Restore the state that `snapshot` returned."""
        self._sketch = frequent_items_sketch.deserialize(state["sketch"].tobytes(), PyLongsSerDe())
        self._threshold, self._steps = float(state["draws"][0]), int(state["draws"][1])
        return self


@kernel
def _uniform(keys: Array, step: int) -> Array:
    """A random number from [0, 1) for each key, different in each step."""
    salt = np.int64(hash64(step))
    draws = np.empty(len(keys), np.float64)
    for i in range(len(keys)):
        draws[i] = (hash64(keys[i] ^ salt) >> np.uint64(11)) * 2.0**-53
    return draws
