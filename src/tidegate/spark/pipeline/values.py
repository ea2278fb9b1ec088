"""The values that a pipeline file may hold: types for pydantic, with error messages that name the remedy."""

from __future__ import annotations

import difflib
import os.path
import re
import typing
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainValidator,
    StrictInt,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from tidegate.importance import Definition, DefinitionLike, Expression
from tidegate.importance.definition import walk
from tidegate.policies import Policy
from tidegate.spark.bucket.join.plan import How
from tidegate.spark.bucket.join.settings import online_policy
from tidegate.spark.frames.durations import microseconds, parse_window
from tidegate.spark.pipeline.functions import check_expression
from tidegate.spark.query.how import parse_how
from tidegate.spark.query.where_parser import syntax_tree, to_sql
from tidegate.types import Band, Budget, Comparison, Condition, InputError, check_choice

FOREVER: Final = "forever"
_MAX_ENTRIES: Final = 10_000
"""The maximum length of a list; a longer list would take seconds to check."""
FILE_FORMATS: Final = ("parquet", "csv", "json", "orc", "text", "xml", "avro")
STREAM_FORMATS: Final = ("rate", "rate-micro-batch", "socket")
_SOURCE_FORMATS: Final = (*FILE_FORMATS, *STREAM_FORMATS, "kafka", "binaryfile", "delta", "iceberg")
_SINK_FORMATS: Final = (*FILE_FORMATS, "kafka", "console", "noop", "delta", "iceberg")


def shown(value: object) -> str:
    """A value as it is written in the file."""
    if isinstance(value, bool):
        return str(value).lower()
    return "a table" if isinstance(value, dict) else repr(value)


def _unexpected(what: str, value: object) -> InputError:
    return InputError(f"expected {what}, got {shown(value)}")


def has_scheme(path: str) -> bool:
    """Whether a path is a URL such as "s3a://bucket/rows"."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", path) is not None


def _expected(what: str) -> WrapValidator:
    """Report a value of the wrong form in one line: expected `what`, got the value."""

    def validate(value: object, handler: ValidatorFunctionWrapHandler) -> object:
        try:
            return handler(value)
        except ValidationError:
            raise _unexpected(what, value) from None

    return WrapValidator(validate)


def _not_blank(value: str) -> str:
    if not value.strip():
        raise InputError("must not be empty")
    return value


def _not_too_long(value: object) -> object:
    if isinstance(value, list) and len(value) > _MAX_ENTRIES:
        raise InputError(f"has {len(value):,} entries; give at most {_MAX_ENTRIES:,}")
    return value


def _format(known: tuple[str, ...]) -> Callable[[str], str]:
    def validate(name: str) -> str:
        if name.lower() in known:
            return name.lower()
        near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.75)
        if near:
            raise InputError(
                f"{name!r} is not known; did you mean {near[0]!r}? For another format give its full class name"
            )
        if name == "memory":
            raise InputError('"memory" is lost when the run ends; use "console", or a format of files')
        return name

    return validate


def _resolve(path: str, folder: Path) -> str:
    return path if has_scheme(path) else os.path.normpath(folder / path)


def _absolute(path: str, info: ValidationInfo) -> str:
    return _resolve(path, _folder(info))


def _folder(info: ValidationInfo) -> Path:
    """The folder of the pipeline file, where relative paths start."""
    return typing.cast("dict[str, Path]", info.context)["file"].resolve().parent


def _options(value: object) -> dict[str, str]:
    """Options as Spark takes them: strings by name; `a.b = 1` is the option "a.b"."""
    if not isinstance(value, dict):
        raise _unexpected("a table", value)
    options: dict[str, str] = {}
    for key, part in value.items():
        if isinstance(part, dict):
            options |= {f"{key}.{inner}": option for inner, option in _options(part).items()}
        elif isinstance(part, bool):
            options[key] = str(part).lower()
        elif isinstance(part, str | int | float):
            options[key] = str(part)
        else:
            raise InputError(f"{key}: expected a string, a number, or true or false, got {shown(part)}")
    return options


def _duration(value: object) -> int:
    if not isinstance(value, str):
        raise _unexpected('a duration like "10 minutes"', value)
    duration = microseconds(value, "the duration")
    if duration < 0:
        raise InputError(f"{value!r} is negative; give 0 seconds or more")
    return duration


def _expression(text: str) -> str:
    check_expression(text)
    return text


def _pair_condition(text: str) -> str:
    """Check both the text and the SQL that sqlglot generates from it, which `tidegate.join` gives to Spark."""
    check_expression(text)
    check_expression(to_sql(syntax_tree(text)))
    return text


def _window(value: object) -> tuple[str | None, str | None]:
    match value:
        case [str(), str()]:
            pass
        case _:
            raise _unexpected('[left, right] like ["10 minutes", "0 seconds"]', value)
    left, right = (None if end.strip().lower() == FOREVER else end for end in value)
    parse_window((left, right))
    return left, right


def _budget(value: object) -> Budget | None:
    if isinstance(value, bool) or not isinstance(value, int | str | dict):
        raise _unexpected('a number of rows like 50000, or bytes like "64 MB"', value)
    if not isinstance(value, dict):
        return Budget.of(value)
    unknown = [key for key in value if key not in ("rows", "bytes")]
    if unknown:
        raise InputError(f'{unknown[0]!r} is not a unit; write {{ rows = 50000 }} or {{ bytes = "64 MB" }}')
    return Budget(**value)


def _condition(value: object) -> Condition:
    if not isinstance(value, dict):
        check_choice(value, Comparison, "condition")
        return typing.cast("Comparison", value)
    if set(value) != {"low", "high"} or not all(_fits(end, float) for end in value.values()):
        raise InputError("a band is written { low = -5, high = 5 }: low <= r.key - l.key <= high")
    return Band(**value)


def _policy(value: object) -> Policy:
    if isinstance(value, str):
        return online_policy(value)
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise _unexpected('a name like "fifo", or a table like { name = "random", seed = 1 }', value)
    settings = dict(value)
    policy = online_policy(settings.pop("name"))
    known: list[str] = [item.name for item in fields(policy) if item.init] if is_dataclass(policy) else []
    hints = typing.get_type_hints(type(policy))
    for key, setting in settings.items():
        if key not in known:
            has = f"; its settings are {', '.join(known)}" if known else " and takes no settings"
            raise InputError(f"policy {policy.name!r} has no setting {key!r}{has}")
        if not _fits(setting, hints[key]):
            raise InputError(
                f"{key} of policy {policy.name!r} cannot be {shown(setting)}; see its documentation"
            )
    try:
        return type(policy).from_parameters((policy.parameters() or {}) | settings) if settings else policy
    except TypeError as error:
        raise InputError(f"policy {policy.name!r} does not accept {shown(settings)}: {error}") from error


def _fits(value: object, hint: object) -> bool:
    """Whether a plain value is of a plain type; every other type is left to the policy."""
    kinds = typing.get_args(hint) or (hint,)
    plain = [kind for kind in kinds if kind in (bool, int, float, str)]
    if len(plain) < len([kind for kind in kinds if kind is not type(None)]):
        return True
    return type(value) in plain or (float in plain and type(value) is int)


def _importance(value: object, info: ValidationInfo) -> Definition:
    definition = Definition.of(typing.cast("DefinitionLike", _with_absolute_paths(value, _folder(info))))
    for part in walk(definition):
        if isinstance(part, Expression):
            check_expression(part.sql)
    return definition


def _with_absolute_paths(value: object, folder: Path) -> object:
    if isinstance(value, list):
        return [_with_absolute_paths(part, folder) for part in value]
    if not isinstance(value, dict):
        return value
    from_file = value.get("kind") == "file"
    return {
        key: _resolve(part, folder)
        if from_file and key == "path" and isinstance(part, str)
        else _with_absolute_paths(part, folder)
        for key, part in value.items()
    }


Text: TypeAlias = Annotated[str, AfterValidator(_not_blank)]
Texts: TypeAlias = Annotated[tuple[Text, ...], Field(min_length=1), BeforeValidator(_not_too_long)]
PathOrUrl: TypeAlias = Annotated[Text, AfterValidator(_absolute)]
SourceFormat: TypeAlias = Annotated[Text, AfterValidator(_format(_SOURCE_FORMATS))]
SinkFormat: TypeAlias = Annotated[Text, AfterValidator(_format(_SINK_FORMATS))]
Options: TypeAlias = Annotated[dict[str, str], PlainValidator(_options)]
Microseconds: TypeAlias = Annotated[int, PlainValidator(_duration)]
Count: TypeAlias = Annotated[StrictInt, Field(ge=1)]
SqlText: TypeAlias = Annotated[Text, AfterValidator(_expression)]
SqlTexts: TypeAlias = Annotated[tuple[SqlText, ...], Field(min_length=1), BeforeValidator(_not_too_long)]
PairCondition: TypeAlias = Annotated[Text, AfterValidator(_pair_condition)]
ColumnOrPair: TypeAlias = Annotated[Text | tuple[Text, Text], _expected("a column, or [left, right]")]
KeyColumns: TypeAlias = Annotated[
    Text | Annotated[list[Text | tuple[Text, Text]], Field(min_length=1), BeforeValidator(_not_too_long)],
    _expected('a column, or a list of columns and of pairs like [["a", "b"]]'),
]
WindowEnds: TypeAlias = Annotated[tuple[str | None, str | None], PlainValidator(_window)]
BudgetValue: TypeAlias = Annotated[Budget | None, PlainValidator(_budget)]
PolicyValue: TypeAlias = Annotated[Policy, PlainValidator(_policy)]
HowValue: TypeAlias = Annotated[How, PlainValidator(parse_how)]
ConditionValue: TypeAlias = Annotated[Condition, PlainValidator(_condition)]
ImportanceValue: TypeAlias = Annotated[Definition | None, PlainValidator(_importance)]
SplitValue: TypeAlias = Annotated[
    Literal["shared", "even", "optimal"] | tuple[StrictInt, StrictInt],
    _expected('"shared", "even", "optimal" or [left, right] in the budget\'s unit'),
]
