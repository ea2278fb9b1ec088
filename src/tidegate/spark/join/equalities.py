"""`on=` as a comparison of columns, `left.id == right.id`: from Spark's expression to pairs of names.

Spark has no public way to look into a Column. What is read here is what its classic and its Connect columns are made
of; anything else than equalities of plain columns, joined by `&`, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn

from pyspark.sql import Column

from tidegate.types import SIDES, InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidegate.types import Side

_EQUAL: Final = ("=", "==")
_PART: Final = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")
_WAYS: Final = (
    "write left.id == right.id, several joined by &, or names: on='id', on=[('left_id', 'right_id')]"
)


@dataclass(frozen=True)
class _Reference:
    """A column by its name, the DataFrames that it may belong to by their marks, and the alias before its name."""

    name: str
    marks: tuple[object, ...] = ()
    alias: str | None = None


@dataclass(frozen=True)
class _Call:
    function: str
    arguments: tuple[_Call | _Reference | None, ...]


@dataclass(frozen=True)
class _Known:
    """What a DataFrame's columns are called, and by what a reference to them is known."""

    names: list[str]
    marks: frozenset[object]
    aliases: frozenset[str]


def compares(on: object) -> bool:
    """Whether a key is given as a comparison of columns."""
    return isinstance(on, Column) or (
        isinstance(on, Sequence) and not isinstance(on, str) and any(isinstance(part, Column) for part in on)
    )


def pairs_compared(on: object, left: DataFrame, right: DataFrame) -> list[str | tuple[str, str]]:
    """The key as pairs of names (left, right); parts that are names stay as they are."""
    known: dict[Side, _Known] = {side: _known(f) for side, f in zip(SIDES, (left, right), strict=True)}
    parts: Sequence[Any] = [on] if isinstance(on, Column) else on  # type: ignore[assignment] # `compares` looked
    pairs: list[str | tuple[str, str]] = []
    for part in parts:
        if isinstance(part, Column):
            pairs += [_pair(part, equality, known) for equality in _equalities(part, _tree(part))]
        else:
            pairs.append(part)
    return pairs


def _equalities(on: Column, tree: _Call | _Reference | None) -> Iterator[_Call]:
    if isinstance(tree, _Call) and tree.function == "and":
        for part in tree.arguments:
            yield from _equalities(on, part)
    elif isinstance(tree, _Call) and tree.function in _EQUAL:
        yield tree
    else:
        _refuse(on)


def _refuse(on: Column, why: str = "is not an equality of plain columns") -> NoReturn:
    raise InputError(
        f"on={str(on)!r} {why}; {_WAYS}; what is no equality goes to where='l.amount > r.amount' or condition="
    )


def _pair(on: Column, equality: _Call, known: dict[Side, _Known]) -> tuple[str, str]:
    """Which of the two columns is the left's, and which the right's."""
    one, other = equality.arguments
    if not isinstance(one, _Reference) or not isinstance(other, _Reference):
        _refuse(on)
    ways = [
        (a.name, b.name)
        for a, b in ((one, other), (other, one))
        if "left" in _sides(a, known) and "right" in _sides(b, known)
    ]
    if not ways:
        for column in (one, other):
            if not _sides(column, known):
                listed = "; ".join(f"{side} has {', '.join(of.names)}" for side, of in known.items())
                raise InputError(f"on={str(on)!r} names {column.name!r}, which is no column: {listed}")
        _refuse(on, "compares two columns of one side")
    if len(set(ways)) > 1:
        _refuse(
            on,
            f"does not tell which of {one.name!r} and {other.name!r} is the left's, since both sides have both",
        )
    return ways[0]


def _sides(column: _Reference, known: dict[Side, _Known]) -> list[Side]:
    """The sides that a column may belong to."""
    sides: list[Side] = [side for side in SIDES if column.name in known[side].names]
    if column.alias is not None:
        return [side for side in sides if column.alias in known[side].aliases]
    # The first mark that one side alone has decides; where rows of one DataFrame are joined, the first is in both.
    for mark in column.marks:
        marked = [side for side in sides if mark in known[side].marks]
        if len(marked) == 1:
            return marked
    return sides


def _tree(column: Column) -> _Call | _Reference | None:
    """What a Column is made of; None for what is neither a call nor a reference."""
    if _through_connect(column):
        return _connect(column._expr)  # noqa: SLF001 - there is no other way
    java: Any = column._jc  # noqa: SLF001 - as above
    return _classic(java.node())


def _through_connect(thing: Column | DataFrame) -> bool:
    # By its class: a Column has every attribute that one asks for.
    return type(thing).__module__.startswith("pyspark.sql.connect")


def _classic(node: Any) -> _Call | _Reference | None:  # noqa: ANN401 - of the JVM
    kind = node.getClass().getSimpleName()
    if kind == "UnresolvedFunction":
        arguments = node.arguments()
        inner = tuple(_classic(arguments.apply(i)) for i in range(arguments.size()))
        return _Call(node.functionName(), inner)
    if kind == "UnresolvedAttribute":
        parts = node.nameParts()
        return _named([parts.apply(i) for i in range(parts.size())])
    if kind == "ExpressionColumnNode":
        attribute = node.expression()
        if attribute.getClass().getSimpleName() == "AttributeReference":
            told, metadata = [], attribute.metadata()
            if metadata.contains("__dataset_id"):
                told.append(("dataset", metadata.getLong("__dataset_id")))
            return _Reference(attribute.name(), (*told, ("expression", attribute.exprId().id())))
    return None


def _connect(expression: Any) -> _Call | _Reference | None:  # noqa: ANN401 - of Connect
    kind = type(expression).__name__
    if kind == "UnresolvedFunction":
        return _Call(expression._name, tuple(map(_connect, expression._args)))  # noqa: SLF001 - there is no other way
    if kind == "ColumnReference":
        name, plan = expression._unparsed_identifier, expression._plan_id  # noqa: SLF001 - as above
        return _named(_parts(name), () if plan is None else (("self", plan), ("plan", plan)))
    return None


def _parts(name: str) -> list[str]:
    """A name by its parts: `a`.`b c`, or a.b."""
    if "`" not in name:
        return name.split(".")
    parts = [quoted or plain for quoted, plain in _PART.findall(name)]
    return [part.replace("``", "`") for part in parts]


def _named(parts: list[str], marks: tuple[object, ...] = ()) -> _Reference | None:
    if len(parts) == 1:
        return _Reference(parts[0], marks)
    return _Reference(parts[1], marks, parts[0]) if len(parts) == len(SIDES) else None


def _known(frame: DataFrame) -> _Known:
    if not _through_connect(frame):
        output = frame._jdf.queryExecution().analyzed().output()  # noqa: SLF001 - as above
        attributes = [output.apply(i) for i in range(output.size())]
        marks = {("expression", attribute.exprId().id()) for attribute in attributes}
        aliases = {
            attribute.qualifier().apply(i)
            for attribute in attributes
            for i in range(attribute.qualifier().size())
        }
        return _Known(frame.columns, frozenset(marks | {("dataset", frame._jdf.id())}), frozenset(aliases))  # noqa: SLF001 - as above
    plans = list(_plans(frame._plan))  # noqa: SLF001 - as above
    aliases = {plan._alias for plan in plans if type(plan).__name__ == "SubqueryAlias"}  # noqa: SLF001 - as above
    ids = [plan._plan_id for plan in plans]  # noqa: SLF001 - as above
    return _Known(
        frame.columns, frozenset({("self", ids[0]), *(("plan", one) for one in ids)}), frozenset(aliases)
    )


def _plans(plan: Any) -> Iterator[Any]:  # noqa: ANN401 - of Connect
    """A plan of Connect and all that it is made of."""
    yield plan
    if getattr(plan, "_child", None) is not None:
        yield from _plans(plan._child)  # noqa: SLF001 - as above
