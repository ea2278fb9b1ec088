"""Named values of one bucket in Spark's state store, and large data in several of them.

Spark moves one large value slowly, so data is written in chunks. The bucket's manifest (`log.py`) has the name, size
and checksum of each piece of data. A chunk that is missing, damaged or from another state is detected before it is
used.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field, replace
from io import RawIOBase
from typing import TYPE_CHECKING, Any, Final, Protocol

from tidegate.types import InputError

if TYPE_CHECKING:
    import pyarrow as pa
    from _typeshed import ReadableBuffer

CHUNK_BYTES: Final = 1 << 20


class ValueStore(Protocol):
    """A small key-value store."""

    def get(self, name: str) -> bytes | None:
        """The value of this name, if there is one."""

    def put(self, name: str, value: bytes) -> None:
        """Set a value."""

    def remove(self, name: str) -> None:
        """Remove a value."""


@dataclass
class DictValueStore:
    """Values in memory, for inspecting a saved state or running a bucket without Spark."""

    content: dict[str, bytes] = field(default_factory=dict)

    def get(self, name: str) -> bytes | None:
        """The value of this name, if there is one."""
        return self.content.get(name)

    def put(self, name: str, value: bytes) -> None:
        """Set a value."""
        self.content[name] = value

    def remove(self, name: str) -> None:
        """Remove a value."""
        self.content.pop(name, None)


class DamagedStateError(InputError):
    """A part of a saved state is missing, or is not what was written."""


@dataclass(frozen=True)
class Blob:
    """Data in the chunks of a store, and how to check it.

    Parameters
    ----------
    name
        The name of the data, which a bucket uses only once.
    size
        Its bytes.
    checksum
        Its CRC-32.

    Examples
    --------
    >>> values = DictValueStore()
    >>> blob = Blob.write(values, "rows-1", b"abc")
    >>> blob.read(values)
    b'abc'
    >>> values.put("rows-1/0", b"abd")
    >>> blob.read(values)
    Traceback (most recent call last):
    tidegate.spark.state.values.DamagedStateError: 'rows-1' is damaged: its checksum is not the one that was written
    """

    name: str
    size: int
    checksum: int

    @classmethod
    def write(cls, values: ValueStore, name: str, data: bytes | pa.Buffer) -> Blob:
        """Write data under a new name."""
        with BlobWriter(values, name) as writer:
            writer.write(data)
        return writer.blob

    @classmethod
    def of(cls, described: list[Any]) -> Blob:
        """The blob with this description."""
        return cls(*described)

    @property
    def described(self) -> list[Any]:
        """The blob as plain values, for a manifest."""
        return [self.name, self.size, self.checksum]

    def read(self, values: ValueStore) -> bytes:
        """Read the data, and check it."""
        parts = [values.get(name) for name in self._chunks()]
        missing = sum(part is None for part in parts)
        if missing:
            raise DamagedStateError(
                f"{self.name!r} is damaged: {missing} of its {len(parts)} chunks are missing"
            )
        data = b"".join(part for part in parts if part is not None)
        if len(data) != self.size:
            raise DamagedStateError(f"{self.name!r} is damaged: it has {len(data)} bytes, not {self.size}")
        if zlib.crc32(data) != self.checksum:
            raise DamagedStateError(f"{self.name!r} is damaged: its checksum is not the one that was written")
        return data

    def remove(self, values: ValueStore) -> None:
        """Remove the data."""
        for name in self._chunks():
            values.remove(name)

    def _chunks(self) -> list[str]:
        return [f"{self.name}/{number}" for number in range(-(-self.size // CHUNK_BYTES))]


class BlobWriter(RawIOBase):
    """A file whose content becomes the chunks of a blob while it is written; `blob` is there when it is closed."""

    def __init__(self, values: ValueStore, name: str) -> None:
        self.blob = Blob(name, 0, 0)
        self._values = values
        self._pending = bytearray()
        self._chunks = 0

    def writable(self) -> bool:
        """Whether it can be written."""
        return True

    def write(self, data: ReadableBuffer) -> int:
        """Write the next bytes."""
        view = memoryview(data)
        self.blob = replace(
            self.blob, size=self.blob.size + view.nbytes, checksum=zlib.crc32(view, self.blob.checksum)
        )
        self._pending += view
        while len(self._pending) >= CHUNK_BYTES:
            self._put(CHUNK_BYTES)
        return view.nbytes

    def close(self) -> None:
        """Write the last chunk."""
        if self._pending:
            self._put(len(self._pending))
        super().close()

    def _put(self, size: int) -> None:
        self._values.put(f"{self.blob.name}/{self._chunks}", bytes(memoryview(self._pending)[:size]))
        del self._pending[:size]
        self._chunks += 1
