"""`on=` as a comparison of columns, `left.id == right.id`: from Spark's expression to pairs of names.

Spark has no public interface to the parts of a Column. This module reads the internals of its classic and its Connect
columns. Only equalities of plain columns, joined by `&`, are accepted.
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
_NAME_PART: Final = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")
_ACCEPTED_FORMS: Final = (
    "write left.id == right.id, several joined by &, or names: on='id', on=[('left_id', 'right_id')]"
)


@dataclass(frozen=True)
class _Reference:
    """A reference to a column: its name, identifiers of the DataFrames that it may belong to, and its alias."""

    name: str
    identifiers: tuple[object, ...] = ()
    alias: str | None = None


@dataclass(frozen=True)
class _Call:
    function: str
    arguments: tuple[_Call | _Reference | None, ...]


@dataclass(frozen=True)
class _FrameIdentity:
    """The names of a DataFrame's columns, and the identifiers and aliases by which they are referenced."""

    names: list[str]
    identifiers: frozenset[object]
    aliases: frozenset[str]


def has_comparison(on: object) -> bool:
    """Whether `on` contains a comparison of columns."""
    return isinstance(on, Column) or (
        isinstance(on, Sequence) and not isinstance(on, str) and any(isinstance(part, Column) for part in on)
    )


def read_key_pairs(on: object, left: DataFrame, right: DataFrame) -> list[str | tuple[str, str]]:
    """The key as pairs of names (left, right); parts that are names stay as they are."""
    known: dict[Side, _FrameIdentity] = {
        side: _identify(f) for side, f in zip(SIDES, (left, right), strict=True)
    }
    parts: Sequence[Any] = [on] if isinstance(on, Column) else on  # type: ignore[assignment] # see `has_comparison`
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
        f"on={str(on)!r} {why}; {_ACCEPTED_FORMS}; "
        "give other conditions as where='l.amount > r.amount' or condition="
    )


def _pair(on: Column, equality: _Call, known: dict[Side, _FrameIdentity]) -> tuple[str, str]:
    """The names of the left and the right column of an equality."""
    one, other = equality.arguments
    if not isinstance(one, _Reference) or not isinstance(other, _Reference):
        _refuse(on)
    assignments = [
        (a.name, b.name)
        for a, b in ((one, other), (other, one))
        if "left" in _sides(a, known) and "right" in _sides(b, known)
    ]
    if not assignments:
        for column in (one, other):
            if not _sides(column, known):
                listed = "; ".join(f"{side} has {', '.join(of.names)}" for side, of in known.items())
                raise InputError(f"on={str(on)!r} names {column.name!r}, which is not a column; {listed}")
        _refuse(on, "compares two columns of one side")
    if len(set(assignments)) > 1:
        _refuse(
            on,
            f"does not state which of {one.name!r} and {other.name!r} is the left's: both sides have both",
        )
    return assignments[0]


def _sides(column: _Reference, known: dict[Side, _FrameIdentity]) -> list[Side]:
    """The sides that a column may belong to."""
    sides: list[Side] = [side for side in SIDES if column.name in known[side].names]
    if column.alias is not None:
        return [side for side in sides if column.alias in known[side].aliases]
    # The first identifier that only one side has decides. In a self-join, both sides may have the first.
    for identifier in column.identifiers:
        identified = [side for side in sides if identifier in known[side].identifiers]
        if len(identified) == 1:
            return identified
    return sides


def _tree(column: Column) -> _Call | _Reference | None:
    """The expression of a Column; None if it is neither a call nor a reference."""
    if _is_connect(column):
        return _connect(column._expr)  # noqa: SLF001 - there is no other way
    java: Any = column._jc  # noqa: SLF001 - as above
    return _classic(java.node())


def _is_connect(value: Column | DataFrame) -> bool:
    # By its class: `hasattr` is true for every attribute of a Column.
    return type(value).__module__.startswith("pyspark.sql.connect")


def _classic(node: Any) -> _Call | _Reference | None:  # noqa: ANN401 - of the JVM
    kind = node.getClass().getSimpleName()
    if kind == "UnresolvedFunction":
        arguments = node.arguments()
        inner = tuple(_classic(arguments.apply(i)) for i in range(arguments.size()))
        return _Call(node.functionName(), inner)
    if kind == "UnresolvedAttribute":
        parts = node.nameParts()
        return _reference([parts.apply(i) for i in range(parts.size())])
    if kind == "ExpressionColumnNode":
        attribute = node.expression()
        if attribute.getClass().getSimpleName() == "AttributeReference":
            identifiers, metadata = [], attribute.metadata()
            if metadata.contains("__dataset_id"):
                identifiers.append(("dataset", metadata.getLong("__dataset_id")))
            return _Reference(attribute.name(), (*identifiers, ("expression", attribute.exprId().id())))
    return None


def _connect(expression: Any) -> _Call | _Reference | None:  # noqa: ANN401 - of Connect
    kind = type(expression).__name__
    if kind == "UnresolvedFunction":
        return _Call(expression._name, tuple(map(_connect, expression._args)))  # noqa: SLF001 - there is no other way
    if kind == "ColumnReference":
        name, plan = expression._unparsed_identifier, expression._plan_id  # noqa: SLF001 - as above
        return _reference(_parts(name), () if plan is None else (("self", plan), ("plan", plan)))
    return None


def _parts(name: str) -> list[str]:
    """The parts of a qualified name: `a`.`b c`, or a.b."""
    if "`" not in name:
        return name.split(".")
    parts = [quoted or unquoted for quoted, unquoted in _NAME_PART.findall(name)]
    return [part.replace("``", "`") for part in parts]


def _reference(parts: list[str], identifiers: tuple[object, ...] = ()) -> _Reference | None:
    if len(parts) == 1:
        return _Reference(parts[0], identifiers)
    return _Reference(parts[1], identifiers, parts[0]) if len(parts) == len(SIDES) else None


def _identify(frame: DataFrame) -> _FrameIdentity:
    if not _is_connect(frame):
        output = frame._jdf.queryExecution().analyzed().output()  # noqa: SLF001 - as above
        attributes = [output.apply(i) for i in range(output.size())]
        identifiers = {("expression", attribute.exprId().id()) for attribute in attributes}
        aliases = {
            attribute.qualifier().apply(i)
            for attribute in attributes
            for i in range(attribute.qualifier().size())
        }
        identifiers.add(("dataset", frame._jdf.id()))  # noqa: SLF001 - as above
        return _FrameIdentity(frame.columns, frozenset(identifiers), frozenset(aliases))
    plans = list(_plans(frame._plan))  # noqa: SLF001 - as above
    aliases = {plan._alias for plan in plans if type(plan).__name__ == "SubqueryAlias"}  # noqa: SLF001 - as above
    ids = [plan._plan_id for plan in plans]  # noqa: SLF001 - as above
    return _FrameIdentity(
        frame.columns, frozenset({("self", ids[0]), *(("plan", one) for one in ids)}), frozenset(aliases)
    )


def _plans(plan: Any) -> Iterator[Any]:  # noqa: ANN401 - of Connect
    """Yield a plan of Connect and all plans that it contains."""
    yield plan
    if getattr(plan, "_child", None) is not None:
        yield from _plans(plan._child)  # noqa: SLF001 - as above
