"""A definition of importance in a file, which may change while a query runs.

The file is read where the definition is evaluated, not once on the driver. A change is found by a digest of the
content, so that neither clocks nor modification times matter.
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
from tidegate.importance.definition import Attributes, Definition, ReadFile, number, walk
from tidegate.types import InputError, first_missing

if TYPE_CHECKING:
    from tidegate.types import Array


def _csv(data: pa.BufferReader) -> pa.Table:
    """A CSV table whose column `value` stays text, so that no leading zero is lost."""
    return csv.read_csv(data, convert_options=csv.ConvertOptions(column_types={"value": pa.string()}))


_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_TEXTS: Final[dict[str, Callable[[str], Any]]] = {".json": json.loads, ".toml": parse_toml}
_TABLES: Final[dict[str, Callable[[pa.BufferReader], pa.Table]]] = {
    ".csv": _csv,
    ".parquet": parquet.read_table,
}
_COLUMNS: Final = ("value", "importance")


class FileContent(NamedTuple):
    """The content of a file: a digest of its bytes, and the definition that was read from it."""

    digest: str
    definition: Definition


@dataclass(frozen=True)
class DefinitionFile(Definition):
    r"""A definition in a file; when the file changes, all rows get new importances, buffered rows too.

    A streaming join reads the file in each micro-batch. A new definition applies from the next micro-batch on, so
    that a micro-batch that Spark repeats gives its rows the same importances. While the file is missing or invalid,
    the last valid definition applies, and `tidegate.inspect` reports it. Replace the file as a whole, by moving a
    new file over it. A file that is half written is skipped if it is invalid; a table without its last lines is
    valid.

    Elsewhere (`tidegate.simulate`, joins of batch DataFrames) the file is read once, at the start.

    Parameters
    ----------
    path
        A path or a URI (`s3://...`) that all Spark workers can read, since workers evaluate importance. Either a
        JSON or TOML file with a definition as `to_dict` gives it, or a CSV or Parquet file (or a folder of Parquet
        files) with the columns `value` and `importance`.
    column
        For a table: the attribute that its column `value` lists.
    default
        For a table: the importance of values that are not listed; None refuses such rows.

    Examples
    --------
    >>> import tempfile
    >>> import tidegate as tg
    >>> file = Path(tempfile.mkdtemp()) / "topics.toml"
    >>> _ = file.write_text('kind = "categories"\ncolumn = "topic"\nvalues = {politics = 5}\ndefault = 1')
    >>> tg.importance.DefinitionFile(file).read().definition
    Categories(column='topic', values={'politics': 5.0}, default=1.0)

    References
    ----------
    iJoin, sections 1 (importance that changes with the time of day) and 4.2 (the user redefines importance).
    """

    kind: ClassVar[str] = "file"
    path: str | Path
    column: str | None = None
    default: float | None = None

    def __post_init__(self) -> None:
        path = str(self.path).removeprefix("file://").removeprefix("file:")
        object.__setattr__(self, "path", path if _SCHEME.match(path) else str(Path(path).absolute()))
        if self.default is not None:
            object.__setattr__(self, "default", number(self.default, "default"))
        if self._is_table and not self.column:
            raise InputError(
                f"{self.path} is a table of values; name their column: DefinitionFile(path, column='topic')"
            )
        if not self._is_table and (self.column or self.default is not None):
            raise InputError(
                f"{self.path} names its column and default itself; leave out column= and default="
            )

    @property
    def _suffix(self) -> str:
        return Path(str(self.path)).suffix.lower()

    @property
    def _is_table(self) -> bool:
        return self._suffix not in _TEXTS

    def with_files(self, read: ReadFile) -> Definition:
        """The definition in the file."""
        return read(self)

    def evaluate(self, rows: Attributes) -> Array:
        """Evaluate the definition that the file has now."""
        return self.read().definition.on(rows.side).evaluate(rows)

    def read(self, known: FileContent | None = None) -> FileContent:
        """The content of the file; `known` itself if the file has not changed."""
        try:
            files = self._files()
        except (OSError, pa.ArrowException) as error:
            raise InputError(
                f"importance: {self.path} cannot be read ({_first_line(error)}); {_REMEDY}"
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
                f"importance: {self.path} is not a definition ({_first_line(error)}); {_REMEDY}"
            ) from error
        for part in walk(definition):
            if isinstance(part, DefinitionFile | Expression):
                raise InputError(
                    f"importance: {self.path} contains {part!r}, which must be known before the query starts; "
                    "combine it with DefinitionFile in Combined"
                )
        return FileContent(digest, definition)

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
        contents = []
        for path in paths:
            with system.open_input_stream(path, compression=None) as stream:
                contents.append(stream.read())
        return contents

    def _table(self, files: list[bytes]) -> Definition:
        reader = _TABLES.get(self._suffix, parquet.read_table)
        table = pa.concat_tables([reader(pa.BufferReader(data)) for data in files])
        absent = first_missing(_COLUMNS, table.column_names)
        if absent is not None:
            raise InputError(f"it has no column {absent!r}; it has {', '.join(table.column_names)}")
        values, importances = (table.column(name).to_pylist() for name in _COLUMNS)
        listed = dict(zip(map(_scalar, values), importances, strict=True))
        if len(listed) < len(values):
            raise InputError("a value is listed twice")
        return Categories(str(self.column), listed, self.default)


_REMEDY: Final = "give a JSON or TOML file of a definition, or a CSV or Parquet table of value and importance"


def _scalar(value: object) -> Any:  # noqa: ANN401 - Categories refuses other types
    """A value as `Categories` accepts it: a date or a decimal as text."""
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
