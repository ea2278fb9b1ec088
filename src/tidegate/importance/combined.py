"""Importance by several attributes, and a definition for each side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from tidegate.importance.definition import Attributes, Definition, DefinitionLike, ReadFile
from tidegate.types import SIDES, Combine, InputError, check_choice

if TYPE_CHECKING:
    from tidegate.types import Array, Side

_REDUCE: Final[dict[Combine, Callable[[Any], Any]]] = {
    "min": np.minimum.reduce,
    "max": np.maximum.reduce,
    "sum": np.add.reduce,
    "product": np.multiply.reduce,
    "mean": lambda parts: np.mean(parts, axis=0),
}


@dataclass(frozen=True)
class Combined(Definition):
    """Importance by several attributes: the minimum, maximum, sum, product or mean of other definitions.

    Parameters
    ----------
    how
        "min", "max", "sum", "product" or "mean".
    definitions
        The parts: definitions, names of columns, or numbers.

    Examples
    --------
    >>> import tidegate as tg
    >>> bids = {"key": [1, 1], "time": [0, 1], "price": [5, 2], "member": [True, False]}
    >>> members = tg.importance.Categories("member", {True: 2, False: 1})
    >>> both = tg.importance.Combined("product", ["price", members])
    >>> tg.simulate(bids, bids, window=(9, 9), importance=both).importance
    16.0
    """

    kind: ClassVar[str] = "combined"
    how: Combine
    definitions: Sequence[DefinitionLike]

    def __post_init__(self) -> None:
        check_choice(self.how, Combine, "how to combine")
        parts = self.definitions
        if isinstance(parts, str | Mapping) or not isinstance(parts, Sequence) or not parts:
            raise InputError(f"definitions to combine are {parts!r}; give a list of at least one definition")
        object.__setattr__(self, "definitions", tuple(map(Definition.of, parts)))

    def parts(self) -> tuple[Definition, ...]:
        """The definitions that are combined."""
        return tuple(map(Definition.of, self.definitions))

    def on(self, side: Side) -> Definition:
        """The parts on one side."""
        return Combined(self.how, [part.on(side) for part in self.parts()])

    def with_files(self, read: ReadFile) -> Definition:
        """The same with definitions in place of files."""
        return Combined(self.how, [part.with_files(read) for part in self.parts()])

    def evaluate(self, rows: Attributes) -> Array:
        """Combine the importance by each part."""
        parts = np.stack([part.evaluate(rows) for part in self.parts()])
        with np.errstate(over="ignore"):  # the result is checked later
            combined: Array = _REDUCE[self.how](parts)
        return combined


@dataclass(frozen=True)
class Sides(Definition):
    """One definition for the left side and one for the right; can be written as a pair `(left, right)`."""

    kind: ClassVar[str] = "sides"
    left: DefinitionLike
    right: DefinitionLike

    def __post_init__(self) -> None:
        object.__setattr__(self, "left", Definition.of(self.left))
        object.__setattr__(self, "right", Definition.of(self.right))

    def parts(self) -> tuple[Definition, ...]:
        """The definitions of both sides."""
        return Definition.of(self.left), Definition.of(self.right)

    def on(self, side: Side) -> Definition:
        """The definition of that side."""
        return self.parts()[SIDES.index(side)].on(side)

    def with_files(self, read: ReadFile) -> Definition:
        """The same with definitions in place of files."""
        return Sides(*(part.with_files(read) for part in self.parts()))

    def evaluate(self, rows: Attributes) -> Array:
        """The importance by the definition of that side."""
        return self.on(rows.side).evaluate(rows)
