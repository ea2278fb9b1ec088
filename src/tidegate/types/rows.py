"""Rows and results as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self

import numpy as np

from tidegate.types.window import Array, Side

POLICY_PREFIX: Final = "notes."
"""The prefix of the names of policy columns in `Rows.columns`, which saved states have, too."""


@dataclass(frozen=True)
class Rows:
    """Rows of one side, by columns.

    Parameters
    ----------
    side
        Which stream they belong to.
    key
        64-bit integers: whole numbers, or codes of other values.
    time
        Event time, all integers or all floats.
    id
        The row's number among all that ever arrived, both sides together.
    matches
        The number of results of each row so far.
    importance
        The importance of each row, if there is one.
    payload
        The bytes of each row's other columns, if a budget counts them.
    lefts, rights
        The number of rows of that side that had arrived when this one did, itself included; only for `Last` windows.
    policy_columns
        Columns that a running policy or sampler keeps with the rows, by name.
    """

    side: Side
    key: Array
    time: Array
    id: Array
    matches: Array
    importance: Array | None = None
    payload: Array | None = None
    lefts: Array | None = None
    rights: Array | None = None
    policy_columns: dict[str, Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.key)

    def columns(self) -> dict[str, Array]:
        """All columns that are present, by name; each policy column as `notes.<name>`.

        Examples
        --------
        >>> one = np.arange(1)
        >>> list(Rows("left", one, one, one, one, policy_columns={"priority": one}).columns())
        ['key', 'time', 'id', 'matches', 'notes.priority']
        """
        # Not by `fields`, which is slow: a step of one row needs them several times.
        columns = {name: column for name, column in vars(self).items() if column is not None}
        del columns["side"]
        for name, column in columns.pop("policy_columns").items():
            columns[POLICY_PREFIX + name] = column
        return columns

    @classmethod
    def from_columns(cls, side: Side, columns: Mapping[str, Array]) -> Self:
        """Make rows from what `columns` returned."""
        own: dict[str, Any] = {
            name: column for name, column in columns.items() if name[: len(POLICY_PREFIX)] != POLICY_PREFIX
        }
        if len(own) < len(columns):
            own["policy_columns"] = {
                name[len(POLICY_PREFIX) :]: column for name, column in columns.items() if name not in own
            }
        return cls(side, **own)

    def take(self, positions: Array | slice) -> Self:
        """The rows at these positions (or under this mask), in their order."""
        # Not by its constructor, which is slow: a step of one row does this several times.
        taken = object.__new__(type(self))
        fields = vars(taken)
        for name, column in vars(self).items():
            if column is None or name == "side":
                fields[name] = column
            elif name == "policy_columns":
                fields[name] = {own: values[positions] for own, values in column.items()}
            else:
                fields[name] = column[positions]
        return taken

    @property
    def row_bytes(self) -> int:
        """Bytes of one row's own columns, including the column of payload sizes."""
        return sum(column.dtype.itemsize for column in self.columns().values())

    def sizes(self) -> Array:
        """Bytes of each row, payload included."""
        own = np.full(len(self), self.row_bytes, dtype=np.int64)
        return own if self.payload is None else own + self.payload

    @property
    def nbytes(self) -> int:
        """Bytes of all rows, payload included."""
        return self.row_bytes * len(self) + (0 if self.payload is None else int(self.payload.sum()))


class Pairs(NamedTuple):
    """Results, as positions (or, in a report, original row numbers) of the left and the right partner."""

    left: Array
    right: Array

    def renumbered(self, left: Array, right: Array) -> Self:
        """The same results by other numbers, given for each number of either side."""
        return self._replace(left=left[self.left], right=right[self.right])


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

    def renumbered(self, left: Array, right: Array) -> Self:
        """The same results by other numbers, given for each number of either side."""
        return type(self)(left[self.left], right[self.right], self.probability, self.owner, self.shown)

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
