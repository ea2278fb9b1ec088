"""Importance by one attribute of a row: a number, a category, a bin of a histogram, or its side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Final, NoReturn, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.importance.definition import Attributes, Definition, as_array, check_importance, number, numbers
from tidegate.types import InputError

if TYPE_CHECKING:
    from tidegate.types import Array

Value: TypeAlias = str | int | float | bool

_FILL: Final = "fill it (coalesce), or give a default="


@dataclass(frozen=True)
class Column(Definition):
    """A column that holds the importance itself.

    Parameters
    ----------
    name
        The column: numbers, 0 or more.
    default
        The importance of rows where the column is null or NaN; None refuses such rows.

    Examples
    --------
    >>> import tidegate as tg
    >>> bids = {"key": [1, 1], "time": [0, 1], "price": [5, 2]}
    >>> tg.simulate(bids, bids, window=(9, 9), importance=tg.importance.Column("price")).importance
    11.0
    """

    kind: ClassVar[str] = "column"
    name: str
    default: float | None = None

    def __post_init__(self) -> None:
        _check_name(self.name)
        _set_default(self)

    def evaluate(self, rows: Attributes) -> Array:
        """The numbers of the column."""
        what = f"{rows.side}.{self.name}"
        return _fill(numbers(rows.column(self.name), what), self.default, what)


@dataclass(frozen=True)
class Expression(Definition):
    """A Spark SQL expression over the columns of a row; only `tidegate.join` accepts it, since Spark computes it.

    Parameters
    ----------
    sql
        The expression, over the columns of one side.
    default
        The importance of rows where the expression is null or NaN; None refuses such rows.

    Examples
    --------
    >>> Expression("price * 2").to_dict()
    {'kind': 'expression', 'sql': 'price * 2'}
    """

    kind: ClassVar[str] = "expression"
    sql: str
    default: float | None = None

    def __post_init__(self) -> None:
        _check_name(self.sql)
        _set_default(self)

    def evaluate(self, rows: Attributes) -> Array:
        """The numbers that Spark computed."""
        if self.sql not in rows.computed:
            raise InputError(
                f"{self!r} is Spark SQL, which only tidegate.join computes; compute a column before, and use Column"
            )
        what = f"{self.sql!r} on the {rows.side}"
        return _fill(numbers(as_array(rows.computed[self.sql]), what), self.default, what)


@dataclass(frozen=True)
class Categories(Definition):
    """A lookup table: the importance of each value of an attribute.

    Parameters
    ----------
    column
        The attribute: text, whole numbers, dates or booleans.
    values
        The importance of each value: a mapping, or pairs. Dates are written as text, "2026-01-31".
    default
        The importance of values that are not listed, or null; None refuses such rows.

    Examples
    --------
    >>> import tidegate as tg
    >>> news = {"key": ["vote", "vote"], "time": [0, 1], "topic": ["politics", "weather"]}
    >>> topics = tg.importance.Categories("topic", {"politics": 5, "sports": 2}, default=1)
    >>> tg.simulate(news, news, window=(9, 9), importance=topics).importance
    8.0

    References
    ----------
    iJoin, section 3.1 (categorical attributes).
    """

    kind: ClassVar[str] = "categories"
    column: str
    values: Mapping[Value, float]
    default: float | None = None

    def __post_init__(self) -> None:
        _check_name(self.column)
        _set_default(self)
        try:
            table = dict(self.values)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"categories {self.values!r} are not a table; write {{value: importance}}, or pairs"
            ) from error
        if not table:
            raise InputError(f"categories of {self.column!r} are empty; list at least one value")
        for value in table:
            if not isinstance(value, str | int | float):
                raise InputError(
                    f"category {value!r} of {self.column!r} is not a text, a number, true or false; "
                    "leave it out, and give a default="
                )
        checked = {value: number(given, f"the importance of {value!r}") for value, given in table.items()}
        object.__setattr__(self, "values", checked)

    def evaluate(self, rows: Attributes) -> Array:
        """Look up every value."""
        column = rows.column(self.column)
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pa.types.is_string_view(column.type):
            column = column.cast(pa.string())
        value_set = self._value_set(column.type, f"{rows.side}.{self.column}")
        places = pc.index_in(column, value_set=value_set, skip_nulls=True)
        if places.null_count and self.default is None:
            value = column.filter(places.is_null())[0].as_py()
            raise InputError(
                f"importance: {rows.side}.{self.column} is {value!r}, which has no importance; "
                "list it in Categories, or give a default="
            )
        by_value = np.append(np.array(list(self.values.values()), np.float64), self.default or 0.0)
        indices: Array = places.fill_null(len(value_set)).to_numpy(zero_copy_only=False)
        importance: Array = by_value[indices]
        return importance

    def _value_set(self, kind: pa.DataType, what: str) -> pa.Array:
        """The values in the column's type."""
        try:
            if pa.types.is_decimal(kind):
                return pa.array([Decimal(str(value)) for value in self.values], kind)
            return pa.array(list(self.values)).cast(kind)
        except (pa.ArrowException, InvalidOperation, OverflowError, TypeError) as error:
            raise InputError(
                f"importance: {what} is of type {kind}, and the categories {_first_values(self.values)} are not "
                f"({str(error).splitlines()[0]}); list values of one type, that of the column"
            ) from error


@dataclass(frozen=True)
class Histogram(Definition):
    """The importance of an ordered attribute by the bin of its value.

    Parameters
    ----------
    column
        The attribute: numbers.
    edges
        The limits of the bins, ascending. A value at an edge belongs to the bin that begins there; at the last edge,
        to the last bin.
    values
        The importance of each bin, one fewer than there are edges.
    default
        The importance of values outside of all bins, or null; None refuses such rows.

    Examples
    --------
    >>> import tidegate as tg
    >>> visits = {"key": [1, 1], "time": [0, 1], "age": [17, 18]}
    >>> ages = tg.importance.Histogram("age", edges=[0, 18, 65], values=[1, 3])
    >>> tg.simulate(visits, visits, window=(9, 9), importance=ages).importance
    6.0

    References
    ----------
    iJoin, section 3.1 (ordered attributes).
    """

    kind: ClassVar[str] = "histogram"
    column: str
    edges: Sequence[float]
    values: Sequence[float]
    default: float | None = None

    def __post_init__(self) -> None:
        _check_name(self.column)
        _set_default(self)
        edges = _floats(self.edges, f"edges of {self.column!r}")
        values = _floats(self.values, f"values of {self.column!r}")
        for low, high in pairwise(edges):
            if low >= high:
                raise InputError(f"edges of {self.column!r} go from {low:g} to {high:g}; they must ascend")
        if len(edges) != len(values) + 1 or not values:
            raise InputError(
                f"a histogram of {self.column!r} has {len(edges)} edges and {len(values)} values; "
                "give one value fewer than edges, and at least one"
            )
        object.__setattr__(self, "edges", edges)
        object.__setattr__(
            self, "values", tuple(number(v, f"a value of {self.column!r}'s histogram") for v in values)
        )

    def evaluate(self, rows: Attributes) -> Array:
        """Find the bin of every value."""
        what = f"{rows.side}.{self.column}"
        column = numbers(rows.column(self.column), what)
        edges = np.array(self.edges)
        bins = np.searchsorted(edges, column, side="right") - 1
        bins[column == edges[-1]] = len(self.values) - 1
        outside = (bins < 0) | (bins >= len(self.values)) | np.isnan(column)
        if self.default is None and outside.any():
            value = column[outside][0]
            if np.isnan(value):
                _refuse_null(what)
            raise InputError(
                f"importance: {what} is {value:g}, outside of the edges {edges[0]:g} to {edges[-1]:g}; "
                "widen them, or give a default="
            )
        by_bin = np.append(np.array(self.values), self.default or 0.0)
        importance: Array = by_bin[np.where(outside, len(self.values), bins)]
        return importance


@dataclass(frozen=True)
class Source(Definition):
    """The importance of rows by their side.

    Examples
    --------
    >>> import tidegate as tg
    >>> stream = {"key": [1, 1], "time": [0, 1]}
    >>> weights = tg.importance.Source(left=2, right=1)
    >>> tg.simulate(stream, stream, window=(9, 9), importance=weights, combine="sum").importance
    12.0

    References
    ----------
    iJoin, section 1 (source-based importance).
    """

    kind: ClassVar[str] = "source"
    left: float
    right: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "left", number(self.left, "the importance of the left"))
        object.__setattr__(self, "right", number(self.right, "the importance of the right"))

    def evaluate(self, rows: Attributes) -> Array:
        """The same for all rows of a side."""
        return np.full(rows.count, self.left if rows.side == "left" else self.right)


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"importance of {name!r}: give the name of a column")


def _set_default(definition: Column | Expression | Categories | Histogram) -> None:
    if definition.default is not None:
        object.__setattr__(definition, "default", number(definition.default, "default"))


def _fill(importance: Array, default: float | None, what: str) -> Array:
    missing = np.isnan(importance)
    if missing.any():
        if default is None:
            _refuse_null(what)
        importance = np.where(missing, default, importance)
    check_importance(importance, what)
    return importance


def _refuse_null(what: str) -> NoReturn:
    raise InputError(f"importance: {what} is null or NaN; {_FILL}")


def _floats(values: Sequence[float], what: str) -> tuple[float, ...]:
    try:
        floats = tuple(float(value) for value in values)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} are {values!r}; give a list of numbers") from error
    if not np.isfinite(floats).all():
        raise InputError(f"{what} are {floats}; give finite numbers")
    return floats


def _first_values(values: Mapping[Value, float]) -> str:
    listed = list(values)[:3]
    return ", ".join(map(repr, listed)) + (", ..." if len(values) > len(listed) else "")
