"""What the rows of a query are worth: what workers are told of it, and what a bucket remembers.

Where importance stands in a file, each bucket keeps what it last found there in its state. A micro-batch values its
rows by what its state says, and what it finds in the file meanwhile holds from the next one on: so a micro-batch that
Spark runs again does what it did the first time, whatever has become of the file.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa

from tidegate.importance import Attributes, Content, Definition, Watched, valued
from tidegate.types import SIDES, InputError

if TYPE_CHECKING:
    from tidegate.types import Array, Side

VERSION: Final = 1


@dataclass(frozen=True)
class Valuation:
    """What workers are told.

    Parameters
    ----------
    given
        What the user wrote.
    found
        What each file that it watches held when the query started.
    names
        For each side, under which name each column travels that a definition may look at.
    types
        The types of these columns.
    computed
        For each side, the hidden column that holds each of Spark's expressions.
    """

    given: Definition
    found: dict[Watched, Content]
    names: dict[Side, dict[str, str]]
    types: dict[Side, dict[str, pa.DataType]]
    computed: dict[Side, dict[str, str]]

    @cached_property
    def digest(self) -> str:
        """What tells this definition from another."""
        plain = json.dumps(self.given.plain(), sort_keys=True, default=repr)
        return hashlib.blake2b(plain.encode()).hexdigest()

    def settled(self, found: dict[Watched, Content]) -> Definition:
        """The definition, with what was found in the files."""
        return self.given.settled(lambda file: found[file].definition)

    def worth(self, definition: Definition, side: Side, table: pa.Table) -> Array:
        """What rows of a side are worth by a settled definition."""
        columns = {name: table.column(at) for name, at in self.names[side].items()}
        computed = {sql: table.column(at) for sql, at in self.computed[side].items()}
        return valued(definition, Attributes(side, table.num_rows, columns, computed))

    def check(self, definition: Definition) -> None:
        """Refuse a definition that does not fit the columns, before there are any rows."""
        for side in SIDES:
            columns = {name: pa.nulls(0, kind) for name, kind in self.types[side].items()}
            computed = {sql: pa.nulls(0, pa.float64()) for sql in self.computed[side]}
            valued(definition, Attributes(side, 0, columns, computed))


class Files:
    """The watched files, each read at most once; what could not be read is remembered, too."""

    def __init__(self) -> None:
        self._seen: dict[Watched, Content | InputError] = {}

    def read(self, file: Watched, known: Content) -> Content:
        """What a file holds; `known` again if that has not changed."""
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
class Held:
    """What a bucket remembers of how its rows are valued.

    Parameters
    ----------
    found
        What the watched files said that holds now.
    redefined
        How often another definition came to hold.
    refused
        In how many micro-batches a file could not be used.
    refusal
        Why, the last time.
    """

    found: dict[Watched, Content]
    redefined: int = 0
    refused: int = 0
    refusal: str | None = None

    def renewed(self, files: Files) -> tuple[dict[Watched, Content], list[str]]:
        """What the files say now, the old where one cannot be used, and why not."""
        found, problems = {}, []
        for file, known in self.found.items():
            try:
                found[file] = files.read(file, known)
            except InputError as error:
                found[file] = known
                problems.append(str(error))
        return found, problems

    def changed(self, found: dict[Watched, Content]) -> bool:
        """Whether this is not what holds already."""
        return any(content.digest != self.found[file].digest for file, content in found.items())

    def to_json(self, valuation: Valuation) -> bytes:
        """Write it down for a state."""
        files = [[content.digest, content.definition.plain()] for content in self.found.values()]
        counts = {"redefined": self.redefined, "refused": self.refused, "refusal": self.refusal}
        return json.dumps({"version": VERSION, "given": valuation.digest, "files": files} | counts).encode()


@dataclass(frozen=True)
class Noted:
    """What a state says of how its rows are valued, without the query that wrote it."""

    version: int
    given: str
    files: list[list[Any]] = field(default_factory=list)
    redefined: int = 0
    refused: int = 0
    refusal: str | None = None

    @classmethod
    def of(cls, state: dict[str, Array]) -> Self | None:
        """Read what `Held.to_json` wrote, if it is there."""
        if "importance" not in state:
            return None
        noted = cls(**json.loads(state["importance"].tobytes()))
        if noted.version != VERSION:
            raise InputError(
                f"the checkpoint has importance of version {noted.version}, not {VERSION}; go on with the release "
                "that wrote it, or start with a new checkpointLocation"
            )
        return noted

    def held(self, valuation: Valuation) -> Held:
        """Go on with what held; with another definition, only the counts go on."""
        noted = {k: v for k, v in asdict(self).items() if k in ("redefined", "refused", "refusal")}
        if self.given != valuation.digest:
            return Held(dict(valuation.found), **noted | {"redefined": self.redefined + 1})
        contents = (Content(digest, Definition.of(plain)) for digest, plain in self.files)
        return Held(dict(zip(valuation.found, contents, strict=True)), **noted)
