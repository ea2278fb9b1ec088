"""The importance of rows in a bucket: the definition that applies, its watched files, and the buffered rows.

If importance is defined in a file, each bucket keeps the content that applies in its state. A micro-batch values its
rows by that content. A new content of the file applies from the next micro-batch on. So a micro-batch that Spark runs
again gives the same results, even if the file has changed in between.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import pyarrow as pa

from tidegate.types import SIDES, InputError, Pairs

if TYPE_CHECKING:
    from tidegate.engine.operator import Operator
    from tidegate.importance import Definition, DefinitionFile, FileContent
    from tidegate.spark.state.payload import PayloadStore
    from tidegate.types import Array, Side

VERSION: Final = 1


@dataclass(frozen=True)
class Valuation:
    """How workers compute the importance of rows.

    Parameters
    ----------
    definition
        The definition of importance as the user wrote it.
    contents
        The content of each watched file when the query started.
    names
        For each side, the packed name of each column that a definition may use.
    types
        The types of these columns.
    computed
        For each side, the hidden column of each Spark expression.
    """

    definition: Definition
    contents: dict[DefinitionFile, FileContent]
    names: dict[Side, dict[str, str]]
    types: dict[Side, dict[str, pa.DataType]]
    computed: dict[Side, dict[str, str]]

    @cached_property
    def digest(self) -> str:
        """A hash that identifies the definition."""
        content = json.dumps(self.definition.to_dict(), sort_keys=True, default=repr)
        return hashlib.blake2b(content.encode()).hexdigest()

    def resolve(self, contents: dict[DefinitionFile, FileContent]) -> Definition:
        """The definition, with files replaced by their content."""
        return self.definition.with_files(lambda file: contents[file].definition)

    def importance_of(self, definition: Definition, side: Side, table: pa.Table) -> Array:
        """The importance of rows of a side, by a resolved definition."""
        columns = {name: table.column(at) for name, at in self.names[side].items()}
        computed = {sql: table.column(at) for sql, at in self.computed[side].items()}
        return _evaluate(definition, side, table.num_rows, columns, computed)

    def hidden_columns(self, side: Side) -> dict[str, str]:
        """The hidden columns that Spark computes before the join: SQL by name of the column."""
        return {name: as_double(sql) for sql, name in self.computed[side].items()}

    def check(self, definition: Definition) -> None:
        """Refuse a definition that does not fit the columns, before there are any rows."""
        for side in SIDES:
            columns = {name: pa.nulls(0, kind) for name, kind in self.types[side].items()}
            computed = {sql: pa.nulls(0, pa.float64()) for sql in self.computed[side]}
            _evaluate(definition, side, 0, columns, computed)


def _evaluate(
    definition: Definition, side: Side, rows: int, columns: Mapping[str, Any], computed: Mapping[str, Any]
) -> Array:
    from tidegate.importance import Attributes, evaluate_importance  # noqa: PLC0415 - only if it is defined

    return evaluate_importance(definition, Attributes(side, rows, columns, computed))


def as_double(sql: str) -> str:
    """The SQL of the value of an expression that is a number."""
    return f"cast(({sql}) as double)"


class WatchedFiles:
    """The watched files of a task. Each is read at most once, also if reading fails."""

    def __init__(self) -> None:
        self._contents: dict[DefinitionFile, FileContent | InputError] = {}

    def read(self, file: DefinitionFile, known: FileContent) -> FileContent:
        """The content of a file; `known` if it has not changed."""
        if file not in self._contents:
            try:
                self._contents[file] = file.read(known)
            except InputError as error:
                self._contents[file] = error
        content = self._contents[file]
        if isinstance(content, InputError):
            raise content
        return known if content.digest == known.digest else content


@dataclass
class ImportanceState:
    """Which definition of importance applies in a bucket.

    Parameters
    ----------
    contents
        The content of the watched files that applies now.
    redefined
        How often the definition changed.
    refused
        The number of micro-batches in which a file could not be used.
    refusal
        The last reason.
    """

    contents: dict[DefinitionFile, FileContent]
    redefined: int = 0
    refused: int = 0
    refusal: str | None = None

    def reload(self, files: WatchedFiles) -> tuple[dict[DefinitionFile, FileContent], list[str]]:
        """The current content of the files, and problems; a file that cannot be used keeps its old content."""
        contents, problems = {}, []
        for file, known in self.contents.items():
            try:
                contents[file] = files.read(file, known)
            except InputError as error:
                contents[file] = known
                problems.append(str(error))
        return contents, problems

    def differs(self, contents: dict[DefinitionFile, FileContent]) -> bool:
        """Whether some content differs from the one that applies."""
        return any(content.digest != self.contents[file].digest for file, content in contents.items())

    def to_json(self, valuation: Valuation) -> bytes:
        """The JSON for a state."""
        files = [[content.digest, content.definition.to_dict()] for content in self.contents.values()]
        counts = {"redefined": self.redefined, "refused": self.refused, "refusal": self.refusal}
        return json.dumps({"version": VERSION, "given": valuation.digest, "files": files} | counts).encode()


@dataclass(frozen=True)
class SavedImportance:
    """The `ImportanceState` of a saved bucket, read without the query that wrote it."""

    version: int
    given: str
    files: list[list[Any]] = field(default_factory=list)
    redefined: int = 0
    refused: int = 0
    refusal: str | None = None

    @classmethod
    def of(cls, state: Mapping[str, Array]) -> Self | None:
        """Read what `ImportanceState.to_json` wrote, if it is there."""
        if "importance" not in state:
            return None
        saved = cls(**json.loads(state["importance"].tobytes()))
        if saved.version != VERSION:
            raise InputError(
                f"the checkpoint has importance of version {saved.version}, not {VERSION}; continue with the release "
                "that wrote it, or start with a new checkpointLocation"
            )
        return saved

    def restore(self, valuation: Valuation) -> ImportanceState:
        """The state of a restarted query; with another definition, only the counts are kept."""
        from tidegate.importance import Definition, FileContent  # noqa: PLC0415 - only if it is defined

        counts = {k: v for k, v in asdict(self).items() if k in ("redefined", "refused", "refusal")}
        if self.given != valuation.digest:
            return ImportanceState(dict(valuation.contents), **counts | {"redefined": self.redefined + 1})
        restored = (FileContent(digest, Definition.of(saved)) for digest, saved in self.files)
        return ImportanceState(dict(zip(valuation.contents, restored, strict=True)), **counts)


class BucketValuation:
    """Computes the importance of the rows of one bucket.

    Parameters
    ----------
    valuation
        How rows are valued; None if they have no importance.
    operator, payload
        The buffered rows of the bucket and their other columns, valued again when a definition changes.
    files
        The watched files, shared by the buckets of a task.
    """

    def __init__(
        self,
        valuation: Valuation | None,
        operator: Operator[Pairs],
        payload: Mapping[Side, PayloadStore],
        files: WatchedFiles | None = None,
    ) -> None:
        self._valuation = valuation
        self._operator = operator
        self._payload = payload
        self._files = files or WatchedFiles()
        self.state = ImportanceState(dict(valuation.contents) if valuation else {})

    def of_arrivals(self, arrivals: Mapping[Side, pa.Table]) -> dict[Side, Array]:
        """The importance of arrivals by side; empty without a definition."""
        if not self._valuation:
            return {}
        try:
            return self._evaluate(self._valuation, self.state.contents, arrivals)
        except InputError:
            # Otherwise the query would fail again after every restart, even if the file was repaired.
            contents, _ = self.state.reload(self._files)
            if not self.state.differs(contents):
                raise
            importance = self._evaluate(self._valuation, contents, arrivals)
            self._apply(self._valuation, contents)
            return importance

    def reload_importance(self) -> None:
        """At the end of a micro-batch, read the files again, for the next one.

        Files that cannot be used, or do not value the buffered rows, change nothing and are counted.
        """
        if not self._valuation:
            return
        contents, problems = self.state.reload(self._files)
        if self.state.differs(contents):
            try:
                self._apply(self._valuation, contents)
            except InputError as error:
                problems.append(str(error))
        if problems:
            self.state.refused += 1
            self.state.refusal = problems[0]

    def resume(self, saved: SavedImportance | None) -> None:
        """Continue from a saved state; if its definition was another, buffered rows are valued again."""
        if saved and self._valuation:
            self.state = saved.restore(self._valuation)
            if saved.given != self._valuation.digest:
                self._revalue(self._valuation, self.state.contents)
        elif self._valuation:
            self._revalue(self._valuation, self.state.contents)
        elif saved:
            self._set({})

    def to_json(self) -> bytes:
        """The JSON for a state of a bucket whose rows have importance."""
        if not self._valuation:
            raise ValueError("rows have no importance")
        return self.state.to_json(self._valuation)

    def _apply(self, valuation: Valuation, contents: dict[DefinitionFile, FileContent]) -> None:
        self._revalue(valuation, contents)
        self.state.contents = contents
        self.state.redefined += 1

    def _revalue(self, valuation: Valuation, contents: dict[DefinitionFile, FileContent]) -> None:
        """Set the importance of buffered rows by this content of the files."""
        valuation.check(valuation.resolve(contents))
        buffered_ids = {side: self._operator.buffers[side].rows.id for side in SIDES}
        tables = {side: self._payload[side].take(ids) for side, ids in buffered_ids.items() if len(ids)}
        self._set(self._evaluate(valuation, contents, tables))

    def _set(self, importance: Mapping[Side, Array]) -> None:
        for side in SIDES:
            self._operator.revalue(side, importance.get(side))

    @staticmethod
    def _evaluate(
        valuation: Valuation, contents: dict[DefinitionFile, FileContent], tables: Mapping[Side, pa.Table]
    ) -> dict[Side, Array]:
        definition = valuation.resolve(contents)
        return {
            side: valuation.importance_of(definition, side, tables[side]) if side in tables else np.empty(0)
            for side in SIDES
        }
