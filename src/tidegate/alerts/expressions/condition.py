"""When an alarm is due: a condition over the values of joined rows, read once and evaluated on columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tidegate.alerts.expressions.evaluation import evaluate
from tidegate.alerts.expressions.nodes import COMPARISONS, Call, Node, Number, is_condition, names, sql
from tidegate.types import Array, InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Condition:
    """A comparison of numbers, or several connected by AND and OR, in threshold form.

    `f > c` becomes the margin `f - c`, and an alarm is due where it is above 0 (for `>=`, where it is 0 or more). Of
    conditions connected by OR the greatest margin counts, by AND the least.

    A value that is missing (NaN) or not defined, such as the logarithm of 0, makes its comparison unknown, and
    unknown raises no alarm; `greatest` and `least` pass over it, as Spark's do over null.

    Parameters
    ----------
    tree
        The condition; `Condition.parse` reads it from text.

    Examples
    --------
    >>> dew = Condition.parse("ln(h/100) + 18.678*a/(257.14+a) - s > 0")
    >>> dew.inputs
    ('h', 'a', 's')
    >>> dew.margin({"h": [50, 90], "a": [20, 20], "s": 0}).round(3)
    array([0.655, 1.243])
    >>> Condition.parse("a < 2 or b >= 3")
    Traceback (most recent call last):
    tidegate.types.InputError: 'a < 2 OR b >= 3' has open and closed comparisons; use < and > in all, or <= and >=

    Deviations
    ----------
    Spark holds NaN to be larger than any number, so that NaN > 0 is true there; here it raises no alarm. All numbers
    are 64-bit floats here, whereas Spark computes integers and decimals in types of their own.
    """

    tree: Call

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Read a condition from text."""
        from tidegate.alerts.expressions.parsing import parse  # noqa: PLC0415 - it loads sqlglot

        tree = parse(text)
        if not isinstance(tree, Call) or not is_condition(tree):
            raise InputError(f"{text!r} is a number, not a condition; compare it, e.g. {text} > 0")
        return cls(tree)

    def __post_init__(self) -> None:
        if len(_endings(self.tree)) > 1:
            raise InputError(
                f"{self.sql!r} has open and closed comparisons; use < and > in all, or <= and >="
            )

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The names of the streams whose values it looks at, in the order in which they occur."""
        return names(self.tree)

    @cached_property
    def sql(self) -> str:
        """The condition for Spark."""
        return sql(self.tree)

    @property
    def closed(self) -> bool:
        """Whether a margin of 0 is an alarm."""
        return _endings(self.tree) == {True}

    @property
    def threshold(self) -> float:
        """What a margin must exceed for an alarm: 0, or if 0 is one itself, the last number below it."""
        return float(np.nextafter(0.0, -1.0)) if self.closed else 0.0

    @cached_property
    def expression(self) -> Node:
        """The margin as one expression."""
        return _expression(self.tree)

    def margin(self, columns: Mapping[str, ArrayLike]) -> Array:
        """By how much the threshold is passed, for each row of the columns (they are broadcast); NaN is unknown."""
        floats = {name: _column(columns, name) for name in self.inputs}
        with np.errstate(all="ignore"):
            margins = _margins(self.tree, floats)
        return np.broadcast_to(margins, np.broadcast_shapes(*(column.shape for column in floats.values())))

    def alarms(self, columns: Mapping[str, ArrayLike]) -> Array:
        """Mark the rows for which an alarm is due."""
        return self.margin(columns) > self.threshold


def _margins(tree: Call, columns: Mapping[str, Array]) -> Array:
    left, right = tree.arguments
    if tree.function in COMPARISONS:
        sides = evaluate(left, columns), evaluate(right, columns)
        return np.asarray(sides[0] - sides[1] if tree.function in {">", ">="} else sides[1] - sides[0])
    parts = [_margins(part, columns) for part in (left, right) if isinstance(part, Call)]
    # True OR unknown is true; true AND unknown is unknown.
    return np.asarray((np.fmax if tree.function == "or" else np.minimum)(*parts))


def _expression(tree: Node) -> Node:
    if not isinstance(tree, Call):
        return tree
    left, right = tree.arguments
    if tree.function not in COMPARISONS:
        return Call("greatest" if tree.function == "or" else "least", (_expression(left), _expression(right)))
    above, below = (left, right) if tree.function in {">", ">="} else (right, left)
    if below == Number(0.0):
        return above
    return Call("negate", (below,)) if above == Number(0.0) else Call("-", (above, below))


def _endings(tree: Node) -> set[bool]:
    """Whether its comparisons are closed."""
    if isinstance(tree, Call) and tree.function in COMPARISONS:
        return {tree.function in {">=", "<="}}
    return set().union(*(_endings(part) for part in tree.arguments)) if isinstance(tree, Call) else set()


def _column(columns: Mapping[str, ArrayLike], name: str) -> Array:
    if name not in columns:
        raise InputError(f"there is no column {name!r} to evaluate; there are {', '.join(columns) or 'none'}")
    values = np.asarray(columns[name])
    if values.dtype.kind not in "iuf":
        raise InputError(f"column {name!r} is of type {values.dtype}; give numbers, NaN where one is missing")
    return values.astype(np.float64, copy=False)
