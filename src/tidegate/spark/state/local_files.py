"""Copies of state on the disk of the machine that runs a task, so that it is not moved through Spark's socket again.

The state store is authoritative. A copy has the name of its original, is never changed, and may be missing at any
time: after a restart, on another machine, or because the disk is full. Then the state is read from the store.
A copy that is not what was written counts as missing. A process checks each copy that it did not write before it
uses it, and again whenever the file has changed since. Spark deletes its local folders, and the copies with them,
when an executor ends.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from io import FileIO, RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import pyarrow as pa

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_LOCAL_FOLDERS: Final = "SPARK_LOCAL_DIRS"
"""The environment variable in which Spark passes the executor's local folders to its Python workers."""
_LONGEST_WRITE: Final = 600
"""Seconds after which a partial file is considered abandoned."""
_CHECKSUM_BYTES: Final = 8
"""Keeps the data behind it aligned for Arrow."""
_BLOCK_BYTES: Final = 1 << 20
_MAX_REMEMBERED: Final = 10_000
_checked: OrderedDict[Path, tuple[int, ...]] = OrderedDict()
"""The copies that this process has written or checked, and what identified their content."""


@dataclass(frozen=True)
class LocalFiles:
    """The copies of one bucket's state.

    Parameters
    ----------
    folder
        The folder of the copies; created with the first copy.
    """

    folder: Path

    @classmethod
    def of_bucket(cls, store: str) -> LocalFiles:
        """The copies of the bucket whose state has this name, in the executor's local folder."""
        base = os.environ.get(_LOCAL_FOLDERS, "").split(",")[0] or tempfile.gettempdir()
        return cls(Path(base) / "tidegate" / store)

    def write(self, name: str, write: Callable[[CopyWriter], object]) -> None:
        """Write a copy, whole or not at all, by a function that writes its content."""
        partial, path = self.folder / f"{uuid4().hex}.partial", self.folder / name
        # Without a copy, for example on a full disk, reading is slower but correct.
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                with partial.open("wb", buffering=0) as file:
                    with CopyWriter(file) as writer:
                        write(writer)
                    identity = _identity(os.fstat(file.fileno()))
                partial.rename(path)
                _remember(path, identity)
            except OSError:
                partial.unlink(missing_ok=True)

    def read(self, name: str, *, anew: bool = True) -> pa.Buffer | None:
        """The content of a copy, mapped into memory; None if it is missing or damaged.

        Parameters
        ----------
        name
            The name of the copy.
        anew
            Whether it is checked although this process has checked it before.
        """
        path = self.folder / name
        try:
            if not _is_whole(path, anew=anew):
                return None
            with pa.memory_map(str(path)) as file:
                content = file.read_buffer()
        except (OSError, pa.ArrowInvalid):
            return None
        return content.slice(_CHECKSUM_BYTES)

    def retain(self, names: Iterable[str]) -> None:
        """Delete all copies but these."""
        wanted = set(names)
        with contextlib.suppress(OSError):
            for file in self.folder.iterdir():
                if file.name not in wanted and not _being_written(file):
                    file.unlink(missing_ok=True)


class CopyWriter(RawIOBase):
    """The content of a copy while it is written: a checksum, then the data."""

    def __init__(self, file: FileIO) -> None:
        self._file = file
        self._checksum = 0
        file.seek(_CHECKSUM_BYTES)

    def writable(self) -> bool:
        """Whether it can be written."""
        return True

    def write(self, data: ReadableBuffer) -> int:
        """Write the next bytes, all of them."""
        view = memoryview(data).cast("B")
        self._checksum = zlib.crc32(view, self._checksum)
        written = 0
        while written < len(view):
            written += self._file.write(view[written:])
        return written

    def close(self) -> None:
        """Write the checksum."""
        if not self.closed:
            self._file.seek(0)
            self._file.write(self._checksum.to_bytes(_CHECKSUM_BYTES, "little"))
        super().close()


def _being_written(file: Path) -> bool:
    """Whether another process may be writing this file; an old one was left by a process that was killed."""
    return file.suffix == ".partial" and time.time() - file.stat().st_mtime < _LONGEST_WRITE


def _is_whole(path: Path, *, anew: bool) -> bool:
    """Whether a copy is what was written. It is read in blocks: a map would count as memory of the process."""
    with path.open("rb", buffering=0) as file:
        identity = _identity(os.fstat(file.fileno()))
        if not anew and _checked.get(path) == identity:
            return True
        written = file.read(_CHECKSUM_BYTES)
        checksum = 0
        while block := file.read(_BLOCK_BYTES):
            checksum = zlib.crc32(block, checksum)
    if written != checksum.to_bytes(_CHECKSUM_BYTES, "little"):
        return False
    _remember(path, identity)
    return True


def _identity(status: os.stat_result) -> tuple[int, ...]:
    """What changes when a file is changed."""
    return status.st_ino, status.st_size, status.st_mtime_ns


def _remember(path: Path, identity: tuple[int, ...]) -> None:
    """Remember that a copy is what was written."""
    _checked[path] = identity
    _checked.move_to_end(path)
    while len(_checked) > _MAX_REMEMBERED:
        _checked.popitem(last=False)
