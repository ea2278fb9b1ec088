"""The condition of an alarm: parsed once from text, and evaluated on columns of joined rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tidegate.alerts.expressions.evaluation import evaluate
from tidegate.alerts.expressions.nodes import (
    COMPARISONS,
    Call,
    Node,
    Number,
    input_names,
    is_condition,
    to_sql,
)
from tidegate.types import Array, InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Condition:
    """A comparison of numbers, or several comparisons connected by AND and OR, as a margin above a threshold.

    `f > c` becomes the margin `f - c`. The condition is true where the margin is above 0 (for `>=`, where it is 0 or
    more). OR takes the greatest margin, AND the least.

    A comparison is unknown if a value is missing (NaN) or not defined, such as the logarithm of 0. An unknown
    condition raises no alarm. `greatest` and `least` skip missing values, as Spark's functions skip null.

    Parameters
    ----------
    tree
        The syntax tree of the condition; `Condition.parse` reads it from text.

    Examples
    --------
    >>> dew = Condition.parse("ln(h/100) + 18.678*a/(257.14+a) - s > 0")
    >>> dew.inputs
    ('h', 'a', 's')
    >>> dew.margin({"h": [50, 90], "a": [20, 20], "s": 0}).round(3)
    array([0.655, 1.243])
    >>> Condition.parse("a < 2 or b >= 3")
    Traceback (most recent call last):
    tidegate.InputError: 'a < 2 OR b >= 3' mixes strict and non-strict comparisons; use only < and >,
    or only <= and >=

    Deviations
    ----------
    In Spark NaN is larger than any number, so NaN > 0 is true; here it raises no alarm. All numbers are 64-bit
    floats here; Spark computes integers and decimals in their own types.
    """

    tree: Call

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Read a condition from text."""
        from tidegate.alerts.expressions.parsing import parse  # noqa: PLC0415 - it loads sqlglot

        tree = parse(text)
        if not isinstance(tree, Call) or not is_condition(tree):
            raise InputError(f"{text!r} is a number, not a condition; write a comparison, e.g. {text} > 0")
        return cls(tree)

    def __post_init__(self) -> None:
        if len(_include_equality(self.tree)) > 1:
            raise InputError(
                f"{self.sql!r} mixes strict and non-strict comparisons; use only < and >, or only <= and >="
            )

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The names of the streams whose values it uses, in the order in which they first occur."""
        return input_names(self.tree)

    @cached_property
    def sql(self) -> str:
        """The condition as Spark SQL."""
        return to_sql(self.tree)

    @property
    def includes_equality(self) -> bool:
        """Whether a margin of exactly 0 is an alarm."""
        return _include_equality(self.tree) == {True}

    @property
    def threshold(self) -> float:
        """The number that a margin must exceed: 0, or the float just below 0 if a margin of 0 is an alarm."""
        return float(np.nextafter(0.0, -1.0)) if self.includes_equality else 0.0

    @cached_property
    def expression(self) -> Node:
        """The margin as one expression."""
        return _expression(self.tree)

    def margin(self, columns: Mapping[str, ArrayLike]) -> Array:
        """By how much each row exceeds the threshold; NaN is unknown. Columns are broadcast."""
        floats = {name: _column(columns, name) for name in self.inputs}
        with np.errstate(all="ignore"):
            margins = _margins(self.tree, floats)
        return np.broadcast_to(margins, np.broadcast_shapes(*(column.shape for column in floats.values())))

    def alarms(self, columns: Mapping[str, ArrayLike]) -> Array:
        """Whether each row fulfils the condition."""
        return self.margin(columns) > self.threshold


def _margins(tree: Call, columns: Mapping[str, Array]) -> Array:
    left, right = tree.arguments
    if tree.function in COMPARISONS:
        sides = evaluate(left, columns), evaluate(right, columns)
        return np.asarray(sides[0] - sides[1] if tree.function in {">", ">="} else sides[1] - sides[0])
    parts = [_margins(part, columns) for part in (left, right) if isinstance(part, Call)]
    # As in SQL: true OR unknown is true; true AND unknown is unknown.
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


def _include_equality(tree: Node) -> set[bool]:
    """For each comparison, whether it is true for equal operands."""
    if isinstance(tree, Call) and tree.function in COMPARISONS:
        return {tree.function in {">=", "<="}}
    if not isinstance(tree, Call):
        return set()
    return set().union(*(_include_equality(part) for part in tree.arguments))


def _column(columns: Mapping[str, ArrayLike], name: str) -> Array:
    if name not in columns:
        raise InputError(f"there is no column {name!r}; the columns are: {', '.join(columns) or 'none'}")
    values = np.asarray(columns[name])
    if values.dtype.kind not in "iuf":
        raise InputError(
            f"column {name!r} is of type {values.dtype}; give numbers, and NaN for missing values"
        )
    return values.astype(np.float64, copy=False)
