"""Given frequencies of keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from tidegate.models.frequencies.key_table import (
    KeyRange,
    KeyTable,
    as_keys,
    build_table,
    look_up,
    look_up_range,
    weighted_sample,
)
from tidegate.models.payoff import Payoff
from tidegate.models.value_object import ValueObject
from tidegate.types import SIDES, InputError, Side, check_choice

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from tidegate.types import Array, Time

_TOLERANCE: Final = 1e-6


@dataclass(frozen=True, eq=False)
class Frequency(ValueObject):
    """The frequency-based model: each key makes up a fixed fraction of a side's arrivals.

    A left row with key `v` has `r_right * w_left * share("right", [v])` partners in its window, so the best rows to
    keep are those whose key is most frequent on the other side.

    Parameters
    ----------
    left, right
        The shares of each side, which add up to one: a mapping from key to share, or a pair of arrays
        (keys, shares). They are stored as such a pair.

    Examples
    --------
    >>> model = Frequency(left={1: 0.5, 2: 0.5}, right=([1, 3], [0.9, 0.1]))
    >>> model.share("right", [1, 2, 3])
    array([0.9, 0. , 0.1])

    With 10 rows per unit of time on each side, 50 rows of memory hold every left row with key 1 for its whole
    window. Each of them has 9 partners per unit of time; the other left rows have none.

    >>> left, right = model.payoff(rates=(10, 10), window=(10, 0))
    >>> left.at(np.array([25, 50, 100]))
    array([225., 450., 450.])

    References
    ----------
    Memory-Limited Execution of Windowed Stream Joins, definition 2.1 and section 3.3.

    Deviations
    ----------
    Section 3.3 counts a key only if memory holds all of its rows. If one hot key has all results, its prediction may
    be 0. Here a key whose rows are held in part counts with that part.
    """

    left: Mapping[int, float] | tuple[ArrayLike, ArrayLike]
    right: Mapping[int, float] | tuple[ArrayLike, ArrayLike]
    _tables: dict[Side, KeyTable | KeyRange] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        tables: dict[Side, KeyTable | KeyRange] = {}
        for side in SIDES:
            keys, shares = _check_shares(getattr(self, side), side)
            tables[side] = build_table(keys, shares)
            object.__setattr__(self, side, (keys, shares))
        object.__setattr__(self, "_tables", tables)

    def share(self, side: Side, keys: Array) -> Array:
        """The fraction of a side's arrivals that has each of these keys; 0 for a key it does not have."""
        check_choice(side, Side, "side")
        table = self._tables[side]
        if isinstance(table, KeyRange):
            return look_up_range(table, as_keys(keys))
        return look_up(table, as_keys(keys), 0.0)

    def keys(self, side: Side) -> Array:
        """The keys of a side."""
        check_choice(side, Side, "side")
        keys: Array = getattr(self, side)[0]
        return keys

    def sample_keys(self, side: Side, count: int) -> tuple[Array, Array]:
        """About `count` of a side's keys, and the share that each represents."""
        keys = self.keys(side)
        return weighted_sample(KeyTable(*getattr(self, side)), len(keys), 1.0, count)

    def payoff(self, *, rates: tuple[float, float], window: tuple[Time, Time]) -> tuple[Payoff, Payoff]:
        """Results per unit of time by memory, on the left and on the right.

        Parameters
        ----------
        rates
            Rows per unit of time, of the left and of the right.
        window
            How long a row of each side stays joinable.
        """
        for what, pair in (("rates", rates), ("window", window)):
            if len(pair) != len(SIDES) or not np.isfinite(pair).all() or min(pair) < 0:
                raise InputError(f"{what}={pair!r} must be two finite numbers, each at least 0")
        return self._side_payoff("left", "right", rates, window[0]), self._side_payoff(
            "right", "left", rates[::-1], window[1]
        )

    def _side_payoff(self, side: Side, other: Side, rates: tuple[float, float], length: Time) -> Payoff:
        keys, shares = getattr(self, side)
        present = shares > 0
        other_shares = self.share(other, keys[present])
        return Payoff.from_segments(rates[0] * length * shares[present], rates[1] * other_shares)


def _check_shares(
    values: Mapping[int, float] | tuple[ArrayLike, ArrayLike], side: Side
) -> tuple[Array, Array]:
    pair = (list(values), list(values.values())) if isinstance(values, Mapping) else values
    if (
        not isinstance(pair, tuple | list)
        or len(pair) != len(SIDES)
        or np.shape(pair[0]) != np.shape(pair[1])
    ):
        raise InputError(f"{side} must be a mapping from keys to shares or a pair of arrays of equal length")
    keys, shares = as_keys(pair[0]), np.array(pair[1], np.float64)
    if not len(keys):
        raise InputError(f"{side} has no keys; give at least one, with the share 1.0")
    distinct, counts = np.unique(keys, return_counts=True)
    if len(distinct) < len(keys):
        raise InputError(f"{side} names key {distinct[counts > 1][0]} more than once; add its shares up")
    bad = np.flatnonzero(~(shares >= 0))
    if len(bad):
        raise InputError(
            f"{side} gives key {keys[bad[0]]} the share {shares[bad[0]]}; give fractions from 0 to 1"
        )
    total = shares.sum()
    if not abs(total - 1) <= _TOLERANCE:
        raise InputError(f"the shares on the {side} add up to {total:g}, not to 1; divide each by {total:g}")
    return keys, shares
