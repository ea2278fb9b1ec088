"""Results of a sample, with their probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from tidegate.types.rows import Pairs
from tidegate.types.window import Array


class Sampled(Pairs):
    """Results of a sample: both partners, the probability of each result, and how it was drawn.

    `owner` is the older of its rows, by its number among all that ever arrived. `shown` is the probability with
    which the owner was kept for this result: any two results of one owner are in the sample together with the
    product of their probabilities, divided by the greater `shown` of the two. It is 1 for a result that was drawn
    independently.
    """

    probability: Array
    owner: Array
    shown: Array

    def __new__(cls, left: Array, right: Array, probability: Array, owner: Array, shown: Array) -> Self:
        """Make a sample from columns of equal length."""
        made = super().__new__(cls, left, right)
        made.probability, made.owner, made.shown = probability, owner, shown
        return made

    @classmethod
    def none(cls) -> Self:
        """No results."""
        empty = np.empty(0, np.int64)
        return cls(empty, empty, np.empty(0), empty, np.empty(0))

    def take(self, places: Array) -> Self:
        """The results at these places."""
        columns = (self.left, self.right, self.probability, self.owner, self.shown)
        return type(self)(*(column[places] for column in columns))

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """Several samples as one."""
        every = (cls.none(), *parts)
        columns = ((part.left, part.right, part.probability, part.owner, part.shown) for part in every)
        return cls(*map(np.concatenate, zip(*columns, strict=True)))
