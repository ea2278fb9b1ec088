"""Load a pipeline file: two sources, a join and a sink.

Everything in a file is data. Expressions are Spark SQL over the columns of rows, and may call only functions that
compute with their arguments (`functions`). All that can be checked without Spark is checked when the file is loaded.
Each problem is reported on a line of its own: the key, the value and the remedy.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ValidationError

from tidegate.documents import parse_toml
from tidegate.spark.pipeline.conflicts import find_conflicts
from tidegate.spark.pipeline.models import Pipeline
from tidegate.spark.pipeline.values import FILE_FORMATS, has_scheme, shown
from tidegate.types import SIDES, InputError, perhaps

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic_core import ErrorDetails

_MAX_BYTES: Final = 1 << 20
_MAX_PROBLEMS: Final = 20
_MAX_LENGTH: Final = 1000
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


def load(path: str | Path) -> Pipeline:
    """Read a pipeline file and check all of it that needs no Spark.

    Raises
    ------
    InputError
        Every problem of the keys and values, one per line: `auctions.toml: join.budget: ...`. If there is none, every
        conflict between keys.
    """
    file = Path(path)
    try:
        pipeline = Pipeline.model_validate(_read(file), context={"file": file})
    except ValidationError as error:
        _report_invalid(file, error, Pipeline)
        raise
    _report(file, find_conflicts(pipeline))
    return pipeline


def check_inputs(pipeline: Pipeline) -> None:
    """Refuse input paths that do not exist, if Spark sees this machine's files."""
    if not pipeline.spark.local:
        return
    for side in SIDES:
        source = pipeline.source(side)
        if source.path is None or has_scheme(source.path) or re.search(r"[*?{\[]", source.path):
            continue
        path, key = Path(source.path), f"{pipeline.file}: {side}.path"
        if not path.exists():
            raise InputError(
                f"{key}: {path} does not exist; a relative path starts from the folder of the pipeline file"
            )
        if pipeline.streaming and source.format in FILE_FORMATS and not path.is_dir():
            raise InputError(f"{key}: {path} is a file; a stream of files reads a folder: {path.parent}")


def _read(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as opened:
            data = opened.read(_MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}; give the path of a TOML file") from error
    if len(data) > _MAX_BYTES:
        raise InputError(f"{file}: is larger than {_MAX_BYTES >> 20} MiB; give a pipeline file")
    try:
        return parse_toml(data.decode())
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not TOML: {error}; save it as UTF-8") from error
    except InputError as error:
        raise InputError(f"{file}: {error}") from error


def _report(file: Path, problems: Iterable[tuple[str, str]], more: int = 0) -> None:
    """Raise an error if there are problems: pairs of a key and a message, one per line.

    `more` is the number of further problems.
    """
    lines = [f"{file}: {_shorten(key)}: {_shorten(message)}" for key, message in problems]
    if more > 0:
        lines.append(f"{file}: and {more:,} more problems")
    if lines:
        raise InputError("\n".join(lines))


def _report_invalid(file: Path, error: ValidationError, model: type[BaseModel]) -> None:
    """Raise the problems that pydantic found in the keys and values of a model, as our messages."""
    tables = {"": model} | {name: field.annotation for name, field in model.model_fields.items()}
    keys = {
        name: [field.alias or key for key, field in table.model_fields.items()]
        for name, table in tables.items()
        if isinstance(table, type) and issubclass(table, BaseModel)
    }
    errors = error.errors(include_url=False)
    problems = [(_key(detail["loc"]), _message(detail, keys)) for detail in errors[:_MAX_PROBLEMS]]
    _report(file, problems, more=len(errors) - _MAX_PROBLEMS)


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}..."


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
    tables = [name for name, known in keys.items() if key in known]
    if "" in tables:
        return f"move {key} to the top of the file, above the first [table]"
    if tables:
        return f"{key} belongs in {' or '.join(f'[{name}]' for name in tables)}"
    return f"the keys here are {', '.join(sorted(keys[table]))}"
