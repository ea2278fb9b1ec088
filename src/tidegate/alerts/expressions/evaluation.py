"""Evaluation of an expression on columns, for all rows at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Final

import numpy as np

from tidegate.alerts.expressions.nodes import Name, Node, Number
from tidegate.types import Array


def evaluate(tree: Node, columns: Mapping[str, Array]) -> Array:
    """The value of an expression on columns of floats; NaN where it is not defined."""
    if isinstance(tree, Number):
        return np.asarray(tree.value)
    if isinstance(tree, Name):
        return columns[tree.name]
    values = [evaluate(part, columns) for part in tree.arguments]
    if tree.function in FUNCTIONS:
        return FUNCTIONS[tree.function](values[0])
    return np.asarray(_OPERATORS[tree.function](*values))


def _divide(u: Array, v: Array) -> Array:
    return np.divide(u, np.where(v == 0, np.nan, v))


def _power(base: Array, exponent: Array) -> Array:
    return np.power(np.where((base == 0) & (exponent < 0), np.nan, base), exponent)


def _logarithm(function: Callable[[Array], Array], x: Array) -> Array:
    return np.where(x > 0, function(np.where(x > 0, x, 1.0)), np.nan)


_OPERATORS: Final[dict[str, Callable[..., Array]]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": _divide,
    "pow": _power,
    "negate": np.negative,
    # Missing values are skipped, as Spark skips null.
    "greatest": lambda *values: reduce(np.fmax, values),
    "least": lambda *values: reduce(np.fmin, values),
}

FUNCTIONS: Final[dict[str, Callable[[Array], Array]]] = {
    "ln": lambda x: _logarithm(np.log, x),
    "log10": lambda x: _logarithm(np.log10, x),
    "log2": lambda x: _logarithm(np.log2, x),
    "exp": np.exp,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "atan": np.arctan,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
}
"""The functions of one argument, by their name in the syntax tree; NaN where a function is not defined."""
