"""The importance of rows in a bucket: the definition that holds, its watched files, and the buffered rows.

Where importance is defined in a file, each bucket keeps the content that holds in its state. A micro-batch values its
rows by that content; a new content of the file holds from the next micro-batch on. So a micro-batch that Spark runs
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

from tidegate.engine.operator import Operator
from tidegate.importance import Attributes, Definition, DefinitionFile, FileContent, evaluate_importance
from tidegate.types import SIDES, InputError

if TYPE_CHECKING:
    from tidegate.engine.sampling_operator import SamplingOperator
    from tidegate.spark.state.payload import PayloadStore
    from tidegate.types import Array, Side

VERSION: Final = 1


@dataclass(frozen=True)
class Valuation:
    """How workers value rows.

    Parameters
    ----------
    given
        The definition of importance as the user wrote it.
    found
        The content of each watched file when the query started.
    names
        For each side, the packed name of each column that a definition may use.
    types
        The types of these columns.
    computed
        For each side, the hidden column that holds each Spark expression.
    """

    given: Definition
    found: dict[DefinitionFile, FileContent]
    names: dict[Side, dict[str, str]]
    types: dict[Side, dict[str, pa.DataType]]
    computed: dict[Side, dict[str, str]]

    @cached_property
    def digest(self) -> str:
        """Identifies the definition."""
        plain = json.dumps(self.given.to_dict(), sort_keys=True, default=repr)
        return hashlib.blake2b(plain.encode()).hexdigest()

    def settled(self, found: dict[DefinitionFile, FileContent]) -> Definition:
        """The definition, with the content of the files in it."""
        return self.given.with_files(lambda file: found[file].definition)

    def worth(self, definition: Definition, side: Side, table: pa.Table) -> Array:
        """The importance of rows of a side, by a settled definition."""
        columns = {name: table.column(at) for name, at in self.names[side].items()}
        computed = {sql: table.column(at) for sql, at in self.computed[side].items()}
        return evaluate_importance(definition, Attributes(side, table.num_rows, columns, computed))

    def check(self, definition: Definition) -> None:
        """Refuse a definition that does not fit the columns, before there are any rows."""
        for side in SIDES:
            columns = {name: pa.nulls(0, kind) for name, kind in self.types[side].items()}
            computed = {sql: pa.nulls(0, pa.float64()) for sql in self.computed[side]}
            evaluate_importance(definition, Attributes(side, 0, columns, computed))


class WatchedFiles:
    """The watched files of a task, each read at most once; a file that could not be read is not tried again."""

    def __init__(self) -> None:
        self._seen: dict[DefinitionFile, FileContent | InputError] = {}

    def read(self, file: DefinitionFile, known: FileContent) -> FileContent:
        """The content of a file; `known` again if that has not changed."""
        if file not in self._seen:
            try:
                self._seen[file] = file.read(known)
            except InputError as error:
                self._seen[file] = error
        seen = self._seen[file]
        if isinstance(seen, InputError):
            raise seen
        return known if seen.digest == known.digest else seen


@dataclass
class ImportanceState:
    """Which definition of importance holds in a bucket.

    Parameters
    ----------
    found
        The content of the watched files that holds now.
    redefined
        How often another definition came to hold.
    refused
        In how many micro-batches a file could not be used.
    refusal
        Why, the last time.
    """

    found: dict[DefinitionFile, FileContent]
    redefined: int = 0
    refused: int = 0
    refusal: str | None = None

    def reread(self, files: WatchedFiles) -> tuple[dict[DefinitionFile, FileContent], list[str]]:
        """The present content of the files, the old where one cannot be used, and why not."""
        found, problems = {}, []
        for file, known in self.found.items():
            try:
                found[file] = files.read(file, known)
            except InputError as error:
                found[file] = known
                problems.append(str(error))
        return found, problems

    def differs(self, found: dict[DefinitionFile, FileContent]) -> bool:
        """Whether some content is not the one that holds."""
        return any(content.digest != self.found[file].digest for file, content in found.items())

    def to_json(self, valuation: Valuation) -> bytes:
        """Write it for a state."""
        files = [[content.digest, content.definition.to_dict()] for content in self.found.values()]
        counts = {"redefined": self.redefined, "refused": self.refused, "refusal": self.refusal}
        return json.dumps({"version": VERSION, "given": valuation.digest, "files": files} | counts).encode()


@dataclass(frozen=True)
class SavedImportance:
    """An `ImportanceState` as a saved bucket has it, read without the query that wrote it."""

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
                f"the checkpoint has importance of version {saved.version}, not {VERSION}; go on with the release "
                "that wrote it, or start with a new checkpointLocation"
            )
        return saved

    def restored(self, valuation: Valuation) -> ImportanceState:
        """The state that goes on; with another definition, only the counts go on."""
        counts = {k: v for k, v in asdict(self).items() if k in ("redefined", "refused", "refusal")}
        if self.given != valuation.digest:
            return ImportanceState(dict(valuation.found), **counts | {"redefined": self.redefined + 1})
        contents = (FileContent(digest, Definition.of(plain)) for digest, plain in self.files)
        return ImportanceState(dict(zip(valuation.found, contents, strict=True)), **counts)


class BucketValuation:
    """Gives the rows of one bucket their importance.

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
        operator: Operator | SamplingOperator,
        payload: Mapping[Side, PayloadStore],
        files: WatchedFiles | None = None,
    ) -> None:
        self._valuation = valuation
        self._operator = operator
        self._payload = payload
        self._files = files or WatchedFiles()
        self.state = ImportanceState(dict(valuation.found) if valuation else {})

    def of_arrivals(self, arrivals: Mapping[Side, pa.Table]) -> dict[Side, Array]:
        """The importance of arrivals by side; empty without a definition."""
        if not self._valuation:
            return {}
        try:
            return self._valued(self._valuation, self.state.found, arrivals)
        except InputError:
            # Without this the query would fail again after every restart, though the file was repaired.
            found, _ = self.state.reread(self._files)
            if not self.state.differs(found):
                raise
            importance = self._valued(self._valuation, found, arrivals)
            self._apply(self._valuation, found)
            return importance

    def reload_importance(self) -> None:
        """At the end of a micro-batch, take up a new content of the files for the next one.

        Files that cannot be used, or do not value the buffered rows, change nothing and are counted.
        """
        if not self._valuation:
            return
        found, problems = self.state.reread(self._files)
        if self.state.differs(found):
            try:
                self._apply(self._valuation, found)
            except InputError as error:
                problems.append(str(error))
        if problems:
            self.state.refused += 1
            self.state.refusal = problems[0]

    def resume(self, saved: SavedImportance | None) -> None:
        """Go on from a saved state; buffered rows are valued again where its definition was another."""
        if saved and self._valuation:
            self.state = saved.restored(self._valuation)
            if saved.given != self._valuation.digest:
                self._revalue(self._valuation, self.state.found)
        elif self._valuation:
            self._revalue(self._valuation, self.state.found)
        elif saved:
            self._set({})

    def to_json(self) -> bytes:
        """Write the state of a bucket whose rows have importance."""
        if not self._valuation:
            raise ValueError("rows have no importance")
        return self.state.to_json(self._valuation)

    def _apply(self, valuation: Valuation, found: dict[DefinitionFile, FileContent]) -> None:
        self._revalue(valuation, found)
        self.state.found = found
        self.state.redefined += 1

    def _revalue(self, valuation: Valuation, found: dict[DefinitionFile, FileContent]) -> None:
        """Give buffered rows the importance that follows from some content of the files."""
        valuation.check(valuation.settled(found))
        held = {side: self._operator.buffers[side].rows.id for side in SIDES}
        tables = {side: self._payload[side].take(ids) for side, ids in held.items() if len(ids)}
        self._set(self._valued(valuation, found, tables))

    def _set(self, importance: Mapping[Side, Array]) -> None:
        # A sample's rows have no importance.
        if isinstance(self._operator, Operator):
            for side in SIDES:
                self._operator.revalue(side, importance.get(side))

    @staticmethod
    def _valued(
        valuation: Valuation, found: dict[DefinitionFile, FileContent], tables: Mapping[Side, pa.Table]
    ) -> dict[Side, Array]:
        definition = valuation.settled(found)
        return {
            side: valuation.worth(definition, side, tables[side]) if side in tables else np.empty(0)
            for side in SIDES
        }
