"""Importance by several attributes, and a definition for each side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from tidegate.importance.definition import Attributes, Definition, Found, Stated
from tidegate.types import SIDES, Combine, InputError, check_choice

if TYPE_CHECKING:
    from tidegate.types import Array, Side

_REDUCE: Final[dict[Combine, Callable[[Any], Any]]] = {
    "min": np.minimum.reduce,
    "max": np.maximum.reduce,
    "sum": np.add.reduce,
    "product": np.multiply.reduce,
    "mean": lambda worths: np.mean(worths, axis=0),
}


@dataclass(frozen=True)
class Combined(Definition):
    """Importance by several attributes: the product, sum, least, largest or mean of other definitions.

    Parameters
    ----------
    how
        "min", "max", "sum", "product" or "mean".
    definitions
        What is combined: definitions, names of columns, numbers.

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
    definitions: Sequence[Stated]

    def __post_init__(self) -> None:
        check_choice(self.how, Combine, "how to combine")
        given = self.definitions
        if isinstance(given, str | Mapping) or not isinstance(given, Sequence) or not given:
            raise InputError(f"what is combined is {given!r}; give a list of at least one definition")
        object.__setattr__(self, "definitions", tuple(map(Definition.of, given)))

    def parts(self) -> tuple[Definition, ...]:
        """What is combined."""
        return tuple(map(Definition.of, self.definitions))

    def on(self, side: Side) -> Definition:
        """The parts on one side."""
        return Combined(self.how, [part.on(side) for part in self.parts()])

    def settled(self, found: Found) -> Definition:
        """The parts, settled."""
        return Combined(self.how, [part.settled(found) for part in self.parts()])

    def worth(self, rows: Attributes) -> Array:
        """Combine what the parts say."""
        worths = np.stack([part.worth(rows) for part in self.parts()])
        with np.errstate(over="ignore"):  # what is not finite is refused in the end
            worth: Array = _REDUCE[self.how](worths)
        return worth


@dataclass(frozen=True)
class Sides(Definition):
    """One definition for the left and another for the right; a pair `(left, right)` is read as this."""

    kind: ClassVar[str] = "sides"
    left: Stated
    right: Stated

    def __post_init__(self) -> None:
        object.__setattr__(self, "left", Definition.of(self.left))
        object.__setattr__(self, "right", Definition.of(self.right))

    def parts(self) -> tuple[Definition, ...]:
        """Both."""
        return Definition.of(self.left), Definition.of(self.right)

    def on(self, side: Side) -> Definition:
        """That side's."""
        return self.parts()[SIDES.index(side)].on(side)

    def settled(self, found: Found) -> Definition:
        """Both, settled."""
        return Sides(*(part.settled(found) for part in self.parts()))

    def worth(self, rows: Attributes) -> Array:
        """What that side's says."""
        return self.on(rows.side).worth(rows)
