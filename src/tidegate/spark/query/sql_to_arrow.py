"""Expressions of one side that can be computed for buffered rows, too, from the columns that are stored with them.

Spark computes the one-sided expressions of `where=` and of an importance for arriving rows. If a restarted query has
new ones, such as one with another constant, their values for buffered rows are computed from their columns, once.
That is possible for arithmetic and comparisons of columns and constants whose types Arrow handles as Spark does. The
driver describes such an expression as plain data in the layout (`arrow_expression.py`). So workers parse no SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, cast

import sqlglot
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from sqlglot import exp

from tidegate.spark.query.where_parser import ARITHMETIC, COMPARISONS, SPARK, to_sql

if TYPE_CHECKING:
    from tidegate.spark.frames.side import SideFrame
    from tidegate.spark.query.arrow_expression import ArrowExpression

_INTEGERS: Final = {"tinyint": "int8", "smallint": "int16", "int": "int32", "bigint": "int64"}
_NUMBERS: Final = _INTEGERS | {"float": "float", "double": "double"}
_PLAIN: Final = _NUMBERS | {"string": "string", "boolean": "bool"}
_TIMES: Final = ("timestamp", "timestamp_ntz")
_UNIT_MICROS: Final = {"MILLISECOND": 10**3, "SECOND": 10**6, "MINUTE": 60 * 10**6, "HOUR": 3600 * 10**6}
_MICROS_PER_DAY: Final = 86_400 * 10**6


class _NotTranslatableError(Exception):
    """A part of an expression that is not handled here."""


def arrow_expressions(
    frame: SideFrame, expressions: Iterable[str], *, as_double: bool = False
) -> dict[str, ArrowExpression]:
    """Translate those expressions of a side that can be computed from stored columns.

    Parameters
    ----------
    frame
        The side.
    expressions
        SQL over its columns.
    as_double
        Whether Spark casts their values to double.
    """
    translated = {}
    for sql in expressions:
        try:
            translated[sql] = _Translator(frame).expression(sql, as_double=as_double)
        except (_NotTranslatableError, PySparkException):
            # Without it, a restart refuses the expression if it is new. Spark cannot analyze every part alone.
            continue
    return translated


class _Translator:
    """Translates an expression that Spark has accepted."""

    def __init__(self, frame: SideFrame) -> None:
        self._frame, self._empty = frame, frame.empty()
        self._rules: dict[type[exp.Expression], Callable[[Any], ArrowExpression]] = {
            exp.Paren: lambda node: self._translate(node.this),
            exp.Column: lambda node: ["column", self._column(node)],
            exp.Boolean: lambda node: ["value", bool(node.this), "bool"],
            exp.Not: lambda node: ["invert", self._translate(node.this)],
            exp.And: lambda node: [
                "and_kleene",
                self._translate(node.this),
                self._translate(node.expression),
            ],
            exp.Or: lambda node: ["or_kleene", self._translate(node.this), self._translate(node.expression)],
            exp.Coalesce: lambda node: ["coalesce", *map(self._translate, [node.this, *node.expressions])],
            exp.Case: self._case,
            exp.Between: self._between,
        }

    def expression(self, sql: str, *, as_double: bool) -> ArrowExpression:
        """Translate an expression."""
        tree = cast("exp.Expression", sqlglot.parse_one(sql, read=SPARK))
        if not as_double:
            return self._translate(tree)
        if self._type(tree) not in _NUMBERS:
            raise _NotTranslatableError
        return self._number(tree, "double")

    def _type(self, node: exp.Expression) -> str:
        return self._empty.select(F.expr(to_sql(node))).schema.fields[0].dataType.simpleString()

    def _translate(self, node: exp.Expression) -> ArrowExpression:
        rule = self._rules.get(type(node))
        if rule is not None:
            return rule(node)
        if type(node) in COMPARISONS:
            return self._comparison(COMPARISONS[type(node)], node.this, node.expression)
        if isinstance(node, exp.Literal) and node.is_string:
            return ["value", node.this, "string"]
        kind = self._type(node)
        return self._shifted_time(node, kind) if kind in _TIMES else self._number(node, _kind_of(kind))

    def _between(self, node: exp.Between) -> ArrowExpression:
        ends = {"greater_equal": node.args["low"], "less_equal": node.args["high"]}
        return ["and_kleene", *(self._comparison(name, node.this, end) for name, end in ends.items())]

    def _column(self, node: exp.Column) -> str:
        names = {name.casefold(): name for name in self._frame.names}
        name = names.get(node.name.casefold())
        if name is None or len(node.parts) != 1 or self._frame.encoding(self._frame.column(name)):
            raise _NotTranslatableError
        return self._frame.column(name)

    def _case(self, node: exp.Case) -> ArrowExpression:
        branches = node.args["ifs"]
        if len(branches) != 1 or node.args.get("default") is not None or node.this is not None:
            raise _NotTranslatableError
        return ["when", self._translate(branches[0].this), self._translate(branches[0].args["true"])]

    def _comparison(self, function: str, left: exp.Expression, right: exp.Expression) -> ArrowExpression:
        """Both operands in the type in which Spark compares them."""
        kinds = [self._type(left), self._type(right)]
        if all(kind in _INTEGERS for kind in kinds):
            return [function, self._number(left, "int64"), self._number(right, "int64")]
        if "double" in kinds and not {"float", "string"} & set(kinds):
            return [function, self._number(left, "double"), self._number(right, "double")]
        if kinds[0] != kinds[1] or kinds[0] not in (*_PLAIN, *_TIMES, "date"):
            raise _NotTranslatableError
        return [function, self._translate(left), self._translate(right)]

    def _shifted_time(self, node: exp.Expression, kind: str) -> ArrowExpression:
        """A time plus or minus an interval of constant length."""
        if not isinstance(node, exp.Add | exp.Sub) or not isinstance(node.expression, exp.Interval):
            raise _NotTranslatableError
        interval = node.expression
        unit = str(interval.args.get("unit") or "").upper().removesuffix("S")
        if unit not in _UNIT_MICROS or not interval.this.name.removeprefix("-").isdigit():
            raise _NotTranslatableError
        micros = int(interval.this.name) * _UNIT_MICROS[unit]
        if kind == "timestamp" and abs(micros) >= _MICROS_PER_DAY:
            # Spark adds whole days in the time zone of the session, where a day may have 23 hours.
            raise _NotTranslatableError
        if self._type(node.this) != kind:
            raise _NotTranslatableError
        return [ARITHMETIC[type(node)], self._translate(node.this), ["value", micros, "duration[us]"]]

    def _number(self, node: exp.Expression, wanted: str) -> ArrowExpression:
        """A number in the type `wanted`, to which Spark converts it before it is used."""
        if isinstance(node, exp.Paren):
            return self._number(node.this, wanted)
        if isinstance(node, exp.Literal) and not node.is_string:
            is_float = wanted in ("float", "double")
            if not is_float and not node.this.isdigit():
                raise _NotTranslatableError
            return ["value", float(node.this) if is_float else int(node.this), wanted]
        if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
            operation, value, kind = self._number(node.this, wanted)
            return [operation, -value, kind]
        own = _kind_of(self._type(node))
        if isinstance(node, exp.Column):
            form: ArrowExpression = ["column", self._column(node)]
        elif isinstance(node, exp.Case):
            form = self._case(node)
        elif isinstance(node, exp.Neg | exp.Abs):
            function = "negate_checked" if isinstance(node, exp.Neg) else "abs_checked"
            form = [function, self._number(node.this, own)]
        elif type(node) in ARITHMETIC:
            function = ARITHMETIC[type(node)]
            form = [function, self._number(node.this, own), self._number(node.expression, own)]
        elif isinstance(node, exp.Div) and own == "double" and self._is_nonzero(node.expression):
            form = ["divide", self._number(node.this, own), self._number(node.expression, own)]
        else:
            raise _NotTranslatableError
        return form if own == wanted else ["cast", wanted, form]

    def _is_nonzero(self, node: exp.Expression) -> bool:
        return isinstance(node, exp.Literal) and not node.is_string and float(node.this) != 0


def _kind_of(kind: str) -> str:
    """The Arrow type of a type of Spark's numbers."""
    if kind not in _NUMBERS:
        raise _NotTranslatableError
    return _NUMBERS[kind]
