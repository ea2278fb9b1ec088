"""`where=`: a further condition on pairs, written as a Spark SQL expression.

The expression is parsed and split. A part that uses one side only is computed by Spark before the join, as a hidden
column of that side, and may use all of Spark's functions. The operators that use both sides become a
`PairCondition`, which workers evaluate. Nothing is ever evaluated as Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark

from tidegate.spark.bucket.join.pair_condition import Node, PairCondition, evaluate
from tidegate.types import InputError

if TYPE_CHECKING:
    from tidegate.types import Side

COMPARISONS: Final[dict[type[exp.Expression], str]] = {
    exp.EQ: "equal",
    exp.NEQ: "not_equal",
    exp.LT: "less",
    exp.LTE: "less_equal",
    exp.GT: "greater",
    exp.GTE: "greater_equal",
}
_LOGICAL: Final[dict[type[exp.Expression], str]] = {exp.And: "and_kleene", exp.Or: "or_kleene"}
_UNARY: Final[dict[type[exp.Expression], str]] = {exp.Not: "invert", exp.Abs: "abs_checked"}
ARITHMETIC: Final[dict[type[exp.Expression], str]] = {
    exp.Add: "add_checked",
    exp.Sub: "subtract_checked",
    exp.Mul: "multiply_checked",
}


_TYPED_FUNCTIONS: Final = ("ABS", "ARRAY", "COALESCE")
_SPECIAL_SYNTAX: Final = ("CAST", "EXTRACT", "OVERLAY", "POSITION", "SUBSTRING", "TRIM", "TRY_CAST")


class _Spark4Dialect(Spark):
    """The SQL of Spark since version 4, generated as it was written.

    A doubled quote is an escaped quote. sqlglot knows most of Spark's functions by a class of each, and would write
    some as other functions, such as `percentile_cont` as `percentile_approx`. Here they are just names.
    """

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar[list[str]] = ["'", "\\"]

    class Parser(Spark.Parser):  # type: ignore[misc, valid-type] # sqlglot assigns it
        FUNCTIONS: ClassVar[dict[str, Any]] = {
            name: Spark.Parser.FUNCTIONS[name] for name in _TYPED_FUNCTIONS
        }
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: Spark.Parser.FUNCTION_PARSERS[name] for name in _SPECIAL_SYNTAX
        }
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            "CASE": Spark.Parser.NO_PAREN_FUNCTION_PARSERS["CASE"]
        }
        TYPE_LITERAL_PARSERS: ClassVar[dict[Any, Any]] = dict.fromkeys(
            exp.DataType.Type, lambda _, value, kind: exp.Introducer(this=kind, expression=value)
        )


SPARK: Final = _Spark4Dialect
_TERMINAL_CODE: Final = re.compile(r"\x1b\[[0-9;]*m")


class TwoSidedExpressionError(InputError):
    """An operator uses both sides and cannot be evaluated on pairs."""


def parse(text: str, left: list[str], right: list[str]) -> exp.Expression:
    """Parse an expression over `l.` and `r.`, and qualify its bare names; such a name must be on one side only.

    Examples
    --------
    >>> to_sql(parse("amount > r.price", ["amount"], ["price"]))
    '`l`.`amount` > `r`.`price`'
    """
    tree = syntax_tree(text)
    owners = {"l": {n.casefold(): n for n in left}, "r": {n.casefold(): n for n in right}}

    def qualify(node: exp.Expression) -> exp.Expression:
        if not isinstance(node, exp.Column):
            return node
        name_parts = [part.name for part in node.parts]
        if name_parts[0].casefold() in owners and len(name_parts) > 1:
            alias, name, *fields = name_parts[0].casefold(), *name_parts[1:]
        else:
            name, *fields = name_parts
            owning_aliases = [alias for alias, names in owners.items() if name.casefold() in names]
            if len(owning_aliases) != 1:
                where = "both sides" if owning_aliases else "neither side"
                raise InputError(f"where={text!r}: column {name!r} is on {where}; write l.{name} or r.{name}")
            alias = owning_aliases[0]
        if name.casefold() not in owners[alias]:
            known = ", ".join([f"l.{n}" for n in left] + [f"r.{n}" for n in right])
            raise InputError(f"where={text!r}: there is no column {alias}.{name}; there are {known}")
        column: exp.Expression = exp.column(owners[alias][name.casefold()], table=alias, quoted=True)
        for field in fields:
            column = exp.Dot(this=column, expression=exp.to_identifier(field, quoted=True))
        return column

    return tree.transform(qualify)


def to_sql(tree: exp.Expression) -> str:
    """The SQL of an expression, without the comments that its text had."""
    return tree.sql(SPARK, comments=False)


def syntax_tree(text: str) -> exp.Expression:
    """The only expression of a text."""
    if not isinstance(text, str):
        raise InputError(
            f"where={text!r} is of type {type(text).__name__}; write the condition as SQL over l. and r., such as "
            "where='l.price < r.price'"
        )
    try:
        trees = sqlglot.parse(text, read=SPARK)
        for tree in filter(None, trees):
            to_sql(cast("exp.Expression", tree))  # generating can need a deeper stack than parsing
    except sqlglot.errors.ParseError as error:
        raise InputError(f"where={text!r} cannot be parsed: {_syntax_error(error)}") from error
    except sqlglot.errors.SqlglotError as error:
        raise InputError(f"where={text!r} cannot be parsed: {_plain(str(error))}") from error
    except RecursionError as error:
        raise InputError(f"where={text[:80]!r}... is nested too deep to be parsed; simplify it") from error
    if len(trees) != 1 or trees[0] is None:
        raise InputError(f"where={text!r} cannot be parsed as one condition; write a single expression")
    if trees[0].find(exp.Query) is not None:
        raise InputError(f"where={text!r} has a sub-query; add its result to a side before the join")
    return cast("exp.Expression", trees[0])


def _syntax_error(error: sqlglot.errors.ParseError) -> str:
    """Where an expression cannot be parsed, without the parser's classes and terminal codes."""
    if not error.errors:
        return _plain(str(error))
    first = error.errors[0]
    place = f"at {first['highlight']!r}, character {first['col']}"
    if "Required keyword" in first["description"]:
        return f"something is missing {place}"
    return f"{_plain(first['description']).rstrip('.')}, {place}"


def _plain(text: str) -> str:
    """A message in one line, without terminal codes."""
    return " ".join(_TERMINAL_CODE.sub("", text).split())


def sides_of(tree: exp.Expression) -> set[Side]:
    """Which sides an expression uses."""
    return {"left" if column.table == "l" else "right" for column in tree.find_all(exp.Column)}


def split_condition(tree: exp.Expression) -> PairCondition:
    """Separate the parts that use one side from the operators that use both.

    Examples
    --------
    >>> where = split_condition(parse("l.a != 0 and r.b > 10 / l.a", ["a"], ["b"]))
    >>> where.left["w1"]
    'CASE WHEN (`a` <> 0) THEN 10 / `a` END'
    """
    parts: dict[Side, dict[str, str]] = {"left": {}, "right": {}}
    return PairCondition(_pair_node(tree, parts, {"left": [], "right": []}), parts["left"], parts["right"])


def _one_sided_sql(tree: exp.Expression) -> str:
    """The SQL of a one-sided expression, over the columns of its side."""
    stripped = tree.copy().transform(
        lambda n: exp.column(n.name, quoted=True) if isinstance(n, exp.Column) else n
    )
    return to_sql(stripped)


def _pair_node(
    tree: exp.Expression, parts: dict[Side, dict[str, str]], guards: dict[Side, list[str]]
) -> Node:
    sides = sides_of(tree)
    if len(sides) <= 1:
        side: Side = next(iter(sides), "left")
        name = f"w{len(parts[side])}"
        sql = _one_sided_sql(tree)
        # Spark stops once AND or OR is decided, so a later part that could fail must not be computed.
        guard = " AND ".join(guards[side])
        parts[side][name] = f"CASE WHEN {guard} THEN {sql} END" if guard else sql
        return ("column", side, name)
    if isinstance(tree, exp.Paren):
        return _pair_node(tree.this, parts, guards)
    if type(tree) in _UNARY:
        return (_UNARY[type(tree)], _pair_node(tree.this, parts, guards))
    if isinstance(tree, exp.Between):
        low = exp.GTE(this=tree.this.copy(), expression=tree.args["low"].copy())
        high = exp.LTE(this=tree.this.copy(), expression=tree.args["high"].copy())
        return ("and_kleene", _pair_node(low, parts, guards), _pair_node(high, parts, guards))
    if type(tree) in _LOGICAL:
        return _chain_node(tree, parts, guards)
    for kinds in (COMPARISONS, ARITHMETIC):
        if type(tree) in kinds:
            return (
                kinds[type(tree)],
                _pair_node(tree.this, parts, guards),
                _pair_node(tree.expression, parts, guards),
            )
    raise TwoSidedExpressionError(
        f"where: {to_sql(tree)!r} uses both sides; between the sides use comparisons, AND, OR, NOT, "
        "BETWEEN, +, -, * and abs (within one side, use any Spark SQL expression)"
    )


def _chain_node(
    tree: exp.Expression, parts: dict[Side, dict[str, str]], guards: dict[Side, list[str]]
) -> Node:
    """A chain of ANDs or of ORs, in which a term guards later terms of the same side."""
    joined: Node | None = None
    for term in cast("Iterator[exp.Expression]", tree.flatten()):
        node = _pair_node(term, parts, guards)
        joined = node if joined is None else (_LOGICAL[type(tree)], joined, node)
        term_sides = sides_of(term)
        if len(term_sides) == 1:
            side = next(iter(term_sides))
            sql = _one_sided_sql(term)
            guard = f"({sql})" if isinstance(tree, exp.And) else f"NOT coalesce({sql}, false)"
            guards = guards | {side: [*guards[side], guard]}
    return joined or ()


def check_types(where: PairCondition, types: dict[Side, dict[str, pa.DataType]], text: str) -> None:
    """Evaluate a condition without pairs, to refuse types that it cannot be computed on."""
    try:
        result = evaluate(where.tree, lambda side, name: pa.nulls(0, types[side][name]))
    except pa.ArrowException as error:
        raise TwoSidedExpressionError(
            f"where={text!r} cannot be evaluated between the sides ({str(error).splitlines()[0]}); "
            "cast both to one type of number, string, date or time"
        ) from error
    if not pa.types.is_boolean(result.type):
        raise TwoSidedExpressionError(
            f"where={text!r} is of type {result.type}, not a condition; compare it with something"
        )
