"""What is wrong with a pipeline file, one line for each problem: the key, the value and the remedy."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, ValidationError

from tidegate.spark.pipeline.values import shown
from tidegate.types import InputError, perhaps

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic_core import ErrorDetails

_MOST: Final = 20
_LONGEST: Final = 1000
_EXPECTED: Final = {
    "bool_type": "true or false",
    "int_type": "a whole number",
    "model_type": "a table",
    "string_type": "a string",
    "too_short": 'a list like ["a", "b"]',
    "tuple_type": 'a list like ["a", "b"]',
}
_REMEDIES: Final = {
    "left": "add a table [left] with what to read",
    "right": "add a table [right] with what to read",
    "join": "add a table [join] with on, time, window and budget",
    "sink": "add a table [sink] with where results go",
    "join.on": 'name the key: on = "id", on = ["a", "b"], or on = [["a", "b"]] where names differ',
    "join.window": 'give how long rows stay joinable: window = ["10 minutes", "0 seconds"]',
}


def report(file: Path, problems: Iterable[tuple[str, str]], more: int = 0) -> None:
    """Raise an error if there are problems: pairs of a key and a message, a line each.

    `more` is how many further problems there are.
    """
    lines = [f"{file}: {_shortened(key)}: {_shortened(message)}" for key, message in problems]
    if more > 0:
        lines.append(f"{file}: and {more:,} more problems")
    if lines:
        raise InputError("\n".join(lines))


def report_invalid(file: Path, error: ValidationError, model: type[BaseModel]) -> None:
    """Raise what pydantic found wrong with the keys and values of a model, in our words."""
    tables = {"": model} | {name: field.annotation for name, field in model.model_fields.items()}
    keys = {
        name: [field.alias or key for key, field in table.model_fields.items()]
        for name, table in tables.items()
        if isinstance(table, type) and issubclass(table, BaseModel)
    }
    found = error.errors(include_url=False)
    problems = [(_key(detail["loc"]), _message(detail, keys)) for detail in found[:_MOST]]
    report(file, problems, more=len(found) - _MOST)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _key(loc: tuple[int | str, ...]) -> str:
    """The place of a value as the user would write it: `left.select[2]`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc).removeprefix(".")


def _message(detail: ErrorDetails, keys: dict[str, list[str]]) -> str:
    loc, value, context = detail["loc"], detail["input"], detail.get("ctx", {})
    match detail["type"]:
        case "value_error":
            message = str(context["error"])
        case "missing":
            message = f"missing; {_REMEDIES[_key(loc)]}"
        case "extra_forbidden":
            message = f"not a key here; {_hint(_key(loc[:-1]), str(loc[-1]), keys)}"
        case "literal_error":
            known = re.findall("'(.*?)'", context["expected"])
            message = f"{shown(value)} is not known; use {context['expected']}{perhaps(value, known)}"
        case "greater_than_equal":
            message = f"{value} is too small; give at least {context['ge']}"
        case kind:
            what = _EXPECTED.get(kind)
            message = f"expected {what}, got {shown(value)}" if what else detail["msg"]
    return message


def _hint(table: str, key: str, keys: dict[str, list[str]]) -> str:
    near = difflib.get_close_matches(key, keys[table], n=2, cutoff=0.6)
    if near:
        return f"did you mean {' or '.join(near)}?"
    homes = [home for home, known in keys.items() if key in known]
    if "" in homes:
        return f"move {key} to the top of the file, above the first [table]"
    if homes:
        return f"{key} belongs in {' or '.join(f'[{home}]' for home in homes)}"
    return f"the keys here are {', '.join(sorted(keys[table]))}"
