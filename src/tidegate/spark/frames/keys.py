"""The key of a join: its columns on both sides, and how they are sent and compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pyspark.sql import Column
from pyspark.sql.types import DataType, StructField

from tidegate.spark.frames.key_sql import hash_sql, integer_sql, is_exact, number_sql
from tidegate.spark.frames.side import INTEGERS, UNHASHABLE, SideFrame, check_names
from tidegate.spark.packing.columns import CHECK, KEY
from tidegate.spark.packing.type_encoding import contains_type
from tidegate.types import SIDES, InputError

if TYPE_CHECKING:
    from tidegate.types import Condition, Side

On: TypeAlias = "str | Column | Sequence[str | Column | tuple[str, str]]"
BY: Final = "b"
"""The hidden column with the hash of `by`."""


@dataclass(frozen=True)
class JoinKey:
    """The key of a join.

    Parameters
    ----------
    left, right
        The SQL of the hidden columns that contain it, by name.
    shared
        Pairs (left, right) of key columns with the same name; the result has each once.
    is_hashed
        Whether the key is a hash, or rows are distributed by one, so that a second hash is compared too.
    distributed_by
        The hidden column by which rows are distributed to buckets; None for one bucket.
    described
        The key as text, which must equal that in the checkpoint.
    columns
        By side, the columns that it is computed from.
    """

    left: dict[str, str]
    right: dict[str, str]
    shared: tuple[tuple[str, str], ...]
    is_hashed: bool
    distributed_by: str | None
    described: str
    columns: dict[Side, list[str]]

    @staticmethod
    def wider(left: StructField, right: StructField) -> DataType:
        """The type that can hold the keys of both sides: the larger integer type."""
        kinds = [type(left.dataType), type(right.dataType)]
        if all(kind in INTEGERS for kind in kinds):
            return max((left.dataType, right.dataType), key=lambda kind: INTEGERS.index(type(kind)))
        return left.dataType

    def expressions(self, side: Side) -> dict[str, str]:
        """The hidden columns of one side."""
        return self.left if side == "left" else self.right


def join_key(
    left: SideFrame,
    right: SideFrame,
    on: On,
    condition: Condition,
    by: str | tuple[str, str] | None,
) -> JoinKey:
    """Check the key columns, and choose how keys are sent and compared."""
    pairs = key_pairs(on)
    if not pairs:
        raise InputError("on= names no column; write on='key' or on=['a', 'b']")
    for a, b in pairs:
        check_names("left", [a], left.names)
        check_names("right", [b], right.names)
        _check_key(left.by_name(a), right.by_name(b))
    shared = tuple((a, b) for a, b in pairs if a == b) if condition == "=" else ()
    described = f"{pairs} {condition} by {by}"
    names: tuple[str, ...] = (by, by) if isinstance(by, str) else by or ()
    columns: dict[Side, list[str]] = {
        side: [*(pair[i] for pair in pairs), *names[i : i + 1]] for i, side in enumerate(SIDES)
    }
    if condition == "=":
        sides = [hash_sql(frame, [pair[i] for pair in pairs]) for i, frame in enumerate((left, right))]
        exact = all(is_exact(f.by_name(p[i]).dataType) for p in pairs for i, f in enumerate((left, right)))
        is_hashed = not (exact and len(pairs) == 1)
        if not is_hashed:
            sides = [{KEY: integer_sql(f, pairs[0][i])} for i, f in enumerate((left, right))]
        return JoinKey(sides[0], sides[1], shared, is_hashed, KEY, described, columns)
    numbers = [{KEY: number_sql(f, pairs[0][i], condition)} for i, f in enumerate((left, right))]
    if by is None:
        return JoinKey(
            numbers[0],
            numbers[1],
            shared,
            is_hashed=False,
            distributed_by=None,
            described=described,
            columns=columns,
        )
    for i, frame in enumerate((left, right)):
        check_names(frame.side, [names[i]], frame.names)
        hashes = hash_sql(frame, [names[i]])
        numbers[i] |= {BY: hashes[KEY], CHECK: hashes[CHECK]}
        numbers[i][KEY] = f"if({hashes[KEY]} is null, null, {numbers[i][KEY]})"
    _check_key(left.by_name(names[0]), right.by_name(names[1]))
    return JoinKey(
        numbers[0],
        numbers[1],
        shared,
        is_hashed=True,
        distributed_by=BY,
        described=described,
        columns=columns,
    )


def key_pairs(on: On) -> list[tuple[str, str]]:
    """The key as pairs of names: (left, right)."""
    if not isinstance(on, str | Sequence):
        raise InputError(
            f"on={on!r} names no column; write on='key', on=['a', 'b'] or on=[('left_id', 'right_id')]"
        )
    names = [on] if isinstance(on, str) else list(on)
    pairs: list[tuple[Any, ...]] = [
        (name, name) if isinstance(name, str) else tuple(name) if isinstance(name, tuple | list) else (name,)
        for name in names
    ]
    for pair in pairs:
        if len(pair) != 2 or not all(isinstance(name, str) for name in pair):  # noqa: PLR2004 - left and right
            raise InputError(f"on has {pair!r}; write a name, or a pair of names (left, right)")
    return [(pair[0], pair[1]) for pair in pairs]


def _check_key(left: StructField, right: StructField) -> None:
    for field in (left, right):
        if contains_type(field.dataType, *UNHASHABLE):
            raise InputError(
                f"{field.name!r} of type {field.dataType.simpleString()} cannot be a key: Spark defines no equality "
                "for it; use a column derived from it, e.g. to_json(...) or st_asbinary(...)"
            )
        if "collate" in field.dataType.simpleString():
            raise InputError(
                f"the key {field.name!r} is {field.dataType.simpleString()}; keys compare by their bytes: "
                f"use lower({field.name}) or {field.name} COLLATE UTF8_BINARY"
            )
    a, b = left.dataType, right.dataType
    if a.simpleString() != b.simpleString() and not (isinstance(a, INTEGERS) and isinstance(b, INTEGERS)):
        raise InputError(
            f"the left key {left.name!r} is {a.simpleString()}, the right one {right.name!r} is "
            f"{b.simpleString()}; cast one, e.g. F.col({right.name!r}).cast({a.simpleString()!r})"
        )
