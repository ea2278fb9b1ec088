"""Sketches of the keys that are not counted exactly: which of them are frequent, and how many there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Self

import numpy as np

from tidegate.compiled import kernel
from tidegate.draws import hash64
from tidegate.models.frequencies.key_table import (
    FREE,
    Entries,
    KeyTable,
    empty_table,
    entries,
    fill,
    slot_of,
)
from tidegate.types import ArrayField, Record, Stateful

if TYPE_CHECKING:
    from tidegate.types import Array, State

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


SKETCH_KEYS: Final = 768
"""The maximum number of keys in a sketch of frequent keys."""
_USED, _ERROR, _TOTAL = range(3)
"""Positions in the tally: the number of keys; the maximum error of a weight; the weight of all that was added."""


class FrequentCandidates(Stateful):
    """The frequent keys among those that were added since the last `drain`, in memory for `SKETCH_KEYS` keys.

    A sketch of Misra and Gries, for weights, that makes room in bulk. If a key needs a place and there is none, the
    median weight is subtracted from all keys, and at least half of them leave. So a weight is a lower bound. It is
    short of the true weight by at most the sum of these medians, which is at most `2 / SKETCH_KEYS` of the total.

    References
    ----------
    A High-Performance Algorithm for Identifying Frequent Items in Data Streams (Anderson et al., 2017).

    Deviations
    ----------
    The paper estimates the median from a sample of the keys. Here it is exact: it depends on no random number and
    on no slot, so a sketch that was stored and restored continues in the same way.
    """

    state: ClassVar[State] = {
        "sketch_": Record("_entries", Entries, copied=False),
        "sketch_tally": ArrayField("_tally"),
    }

    def __init__(self) -> None:
        self._table = empty_table(SKETCH_KEYS)
        self._tally = np.zeros(3)

    @property
    def total(self) -> float:
        """The weight of all keys that were added."""
        return float(self._tally[_TOTAL])

    @property
    def error(self) -> float:
        """The maximum by which the weight of a key is too small; the weight of any key that is not there."""
        return float(self._tally[_ERROR])

    def add(self, keys: Array, weights: Array) -> None:
        """Add keys with their weights."""
        _add_weights(self._table, self._tally, SKETCH_KEYS, keys, weights)

    def drain(self) -> tuple[Array, Array]:
        """The keys that certainly weigh more than all others, and a lower bound of each weight; then start over."""
        keys, weights = entries(self._table)
        order = np.argsort(keys)
        frequent = order[weights[order] > self.error]
        self._table, self._tally = empty_table(SKETCH_KEYS), np.zeros(3)
        return keys[frequent], weights[frequent]

    def restore(self, state: dict[str, Array]) -> Self:
        """Continue from what `snapshot` returned, or from a sketch of earlier checkpoints."""
        if "sketch" in state:
            rest = {name: array for name, array in state.items() if name not in ("sketch", "draws")}
            state = rest | _read_datasketch(state["sketch"], float(state["draws"][0]))
        return super().restore(state)

    @property
    def _entries(self) -> Entries:
        return entries(self._table)

    @_entries.setter
    def _entries(self, saved: Entries) -> None:
        self._table = empty_table(SKETCH_KEYS)
        fill(self._table, *saved)


@kernel
def _add_weights(table: KeyTable, tally: Array, capacity: int, key: Array, weight: Array) -> None:
    keys, weights = table
    for i in range(len(key)):
        slot = slot_of(table, key[i])
        if weights[slot] >= 0:
            weights[slot] += weight[i]
        else:
            keys[slot] = key[i]
            weights[slot] = weight[i]
            tally[_USED] += 1
            if tally[_USED] > capacity:
                _subtract_median(table, tally)
        tally[_TOTAL] += weight[i]


@kernel
def _subtract_median(table: KeyTable, tally: Array) -> None:
    """Subtract the median weight from all keys; those with no weight left leave."""
    keys, weights = entries(table)
    median = np.partition(weights, len(weights) // 2)[len(weights) // 2]
    tally[_ERROR] += median
    stays = weights > median
    tally[_USED] = stays.sum()
    table.amounts[:] = FREE
    fill(table, keys[stays], weights[stays] - median)


_DATASKETCH_HEADER: Final = np.dtype(
    [
        ("words", "u1"),
        ("sizes", "u1", 7),
        ("used", "<u4"),
        ("unused", "<u4"),
        ("total", "<i8"),
        ("error", "<i8"),
    ]
)
_DATASKETCH_ONE: Final = 2.0**-20
"""Datasketches added integers; 2**20 was a weight of 1."""


def _read_datasketch(stored: Array, sampled: float) -> dict[str, Array]:
    """The state of a sketch that the package `datasketches` stored, as checkpoints once did.

    An empty one is a single word. Otherwise the header is followed by the weights and then by the keys. Keys lighter
    than `sampled` were added as a sample.
    """
    data = stored.tobytes()
    if data[0] == 1:
        return {
            "sketch_keys": np.empty(0, np.int64),
            "sketch_weights": np.empty(0),
            "sketch_tally": np.zeros(3),
        }
    header = np.frombuffer(data, _DATASKETCH_HEADER, 1)[0]
    used = int(header["used"])
    weights, keys = np.frombuffer(data, "<i8", 2 * used, _DATASKETCH_HEADER.itemsize).reshape(2, used)
    error = max(sampled, header["error"] * _DATASKETCH_ONE)
    tally = np.array([used, error, header["total"] * _DATASKETCH_ONE])
    return {
        "sketch_keys": keys.astype(np.int64),
        "sketch_weights": weights * _DATASKETCH_ONE,
        "sketch_tally": tally,
    }
