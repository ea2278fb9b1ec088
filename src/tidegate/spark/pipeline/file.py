"""Load a pipeline file: two sources, a join and a sink.

Everything in a file is data. Expressions are Spark SQL over the columns of rows, and may call only functions that
compute with their arguments (`functions`). All that can be checked without Spark is checked when the file is loaded.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from tidegate.documents import parse_toml
from tidegate.spark.pipeline.conflicts import conflicts
from tidegate.spark.pipeline.models import Pipeline
from tidegate.spark.pipeline.problems import report, report_invalid
from tidegate.spark.pipeline.values import FILE_FORMATS, has_scheme
from tidegate.types import SIDES, InputError

_LARGEST: Final = 1 << 20


def load(path: str | Path) -> Pipeline:
    """Read a pipeline file and check all of it that needs no Spark.

    Raises
    ------
    InputError
        Every problem of the keys and values, a line each: `auctions.toml: join.budget: ...`. If there is none, every
        conflict between keys.
    """
    file = Path(path)
    try:
        pipeline = Pipeline.model_validate(_read(file), context={"file": file})
    except ValidationError as error:
        report_invalid(file, error, Pipeline)
        raise
    report(file, conflicts(pipeline))
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
            data = opened.read(_LARGEST + 1)
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}; give the path of a TOML file") from error
    if len(data) > _LARGEST:
        raise InputError(f"{file}: is larger than {_LARGEST >> 20} MiB; give a pipeline file")
    try:
        return parse_toml(data.decode())
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not TOML: {error}; save it as UTF-8") from error
    except InputError as error:
        raise InputError(f"{file}: {error}") from error
