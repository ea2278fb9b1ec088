"""A definition that stands in a file, and may be redefined there while a query runs.

The file is read by whoever evaluates the definition, not once by the program that states it: whether it changed is
told by its content alone, so that neither clocks nor a file system's notion of time matter.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import pyarrow as pa
from pyarrow import csv, fs, parquet

from tidegate.documents import parse_toml
from tidegate.importance.attributes import Categories, Expression
from tidegate.importance.definition import Attributes, Definition, Found, number, walk
from tidegate.types import InputError, first_missing

if TYPE_CHECKING:
    from tidegate.types import Array


def _csv(data: pa.BufferReader) -> pa.Table:
    """A table whose values are text as they stand, so that none loses a leading zero; columns say what they are."""
    return csv.read_csv(data, convert_options=csv.ConvertOptions(column_types={"value": pa.string()}))


_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_TEXTS: Final[dict[str, Callable[[str], Any]]] = {".json": json.loads, ".toml": parse_toml}
_TABLES: Final[dict[str, Callable[[pa.BufferReader], pa.Table]]] = {
    ".csv": _csv,
    ".parquet": parquet.read_table,
}
_COLUMNS: Final = ("value", "importance")


class Content(NamedTuple):
    """What a file holds: a digest of its bytes, and the definition that they are."""

    digest: str
    definition: Definition


@dataclass(frozen=True)
class Watched(Definition):
    r"""A definition in a file; when the file changes, rows are valued anew, those that are buffered too.

    A streaming join looks at the file in each micro-batch. What it finds holds from the next one on, so that a
    micro-batch that Spark runs again values its rows as it did the first time. While the file is missing or
    cannot be used, the last that could be still holds, which `tidegate.inspect` tells. Replace the file as a whole,
    by moving another into its place: one that is half written is skipped if that shows, and a table of which some
    lines are missing does not show it.

    Elsewhere (`tidegate.simulate`, joins of batch DataFrames) the file is read once, at the start.

    Parameters
    ----------
    path
        A JSON or TOML file that describes a definition as `plain` does, or a CSV or Parquet file (or a folder of
        Parquet files) with the columns `value` and `importance`. A path or a URI (`s3://...`); all of Spark's workers
        must reach it, since no part of a query runs on the driver between two micro-batches.
    column
        For such a table: the attribute whose categories it lists.
    default
        For such a table: what a row is worth whose value is not listed; None: such a row is refused.

    Examples
    --------
    >>> import tempfile
    >>> import tidegate as tg
    >>> file = Path(tempfile.mkdtemp()) / "topics.toml"
    >>> _ = file.write_text('kind = "categories"\ncolumn = "topic"\nvalues = {politics = 5}\ndefault = 1')
    >>> tg.importance.Watched(file).read().definition
    Categories(column='topic', values={'politics': 5.0}, default=1.0)

    References
    ----------
    iJoin, sections 1 (importance that changes with the time of day) and 4.2 (the user redefines importance).
    """

    kind: ClassVar[str] = "watched"
    path: str | Path
    column: str | None = None
    default: float | None = None

    def __post_init__(self) -> None:
        given = str(self.path).removeprefix("file://").removeprefix("file:")
        object.__setattr__(self, "path", given if _SCHEME.match(given) else str(Path(given).absolute()))
        if self.default is not None:
            object.__setattr__(self, "default", number(self.default, "default"))
        if self._is_table and not self.column:
            raise InputError(
                f"{self.path} is a table of values; say whose they are: Watched(path, column='topic')"
            )
        if not self._is_table and (self.column or self.default is not None):
            raise InputError(
                f"{self.path} says itself which column it is about; leave out column= and default="
            )

    @property
    def _suffix(self) -> str:
        return Path(str(self.path)).suffix.lower()

    @property
    def _is_table(self) -> bool:
        return self._suffix not in _TEXTS

    def settled(self, found: Found) -> Definition:
        """What was found in the file."""
        return found(self)

    def worth(self, rows: Attributes) -> Array:
        """What the file says now."""
        return self.read().definition.on(rows.side).worth(rows)

    def read(self, known: Content | None = None) -> Content:
        """What the file holds; `known` again if that is what it holds still."""
        try:
            files = self._files()
        except (OSError, pa.ArrowException) as error:
            raise InputError(
                f"importance: {self.path} cannot be read ({_first(error)}); {_REMEDY}"
            ) from error
        digest = hashlib.blake2b(
            repr([hashlib.blake2b(data).digest() for data in files]).encode()
        ).hexdigest()
        if known is not None and known.digest == digest:
            return known
        try:
            definition = (
                self._table(files)
                if self._is_table
                else Definition.of(_TEXTS[self._suffix](files[0].decode()))
            )
        except (ValueError, TypeError, RecursionError, pa.ArrowException) as error:
            raise InputError(
                f"importance: {self.path} is no definition ({_first(error)}); {_REMEDY}"
            ) from error
        for part in walk(definition):
            if isinstance(part, Watched | Expression):
                raise InputError(
                    f"importance: {self.path} has {part!r}, which must be known before the query starts; "
                    "write it beside Watched, in Combined"
                )
        return Content(digest, definition)

    def _files(self) -> list[bytes]:
        """The bytes of the file, or of all Parquet files of a folder."""
        system, root = fs.FileSystem.from_uri(str(self.path))
        info = system.get_file_info(root)
        paths = [root]
        if info.type == fs.FileType.Directory:
            inside = system.get_file_info(fs.FileSelector(root))
            paths = sorted(i.path for i in inside if i.is_file and i.base_name[0] not in "._")
        if not paths:
            raise FileNotFoundError(f"no files in {root}")
        found = []
        for path in paths:
            with system.open_input_stream(path, compression=None) as stream:
                found.append(stream.read())
        return found

    def _table(self, files: list[bytes]) -> Definition:
        reader = _TABLES.get(self._suffix, parquet.read_table)
        table = pa.concat_tables([reader(pa.BufferReader(data)) for data in files])
        absent = first_missing(_COLUMNS, table.column_names)
        if absent is not None:
            raise InputError(f"it has no column {absent!r}, but {', '.join(table.column_names)}")
        values, worths = (table.column(name).to_pylist() for name in _COLUMNS)
        listed = dict(zip(map(_scalar, values), worths, strict=True))
        if len(listed) < len(values):
            raise InputError("it has a value twice")
        return Categories(str(self.column), listed, self.default)


_REMEDY: Final = "give a JSON or TOML file of a definition, or a CSV or Parquet table of value and importance"


def _scalar(value: object) -> Any:  # noqa: ANN401 - what is not a category is refused there
    """A value as a category is written: a date or a decimal by its text."""
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _first(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
