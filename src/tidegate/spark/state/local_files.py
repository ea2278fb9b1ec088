"""Copies of state on the disk of the machine that runs a task, so that it is not moved through Spark's socket again.

The state store is authoritative. A copy has the name of its original, is never changed, and may be missing at any
time: after a restart, on another machine, or because the disk is full. Then the state is read from the store.
A copy that is not what was written counts as missing. Each process checks a copy before it uses it, and again
whenever the file has changed since. Spark deletes its local folders when an executor ends, and the copies with them.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
import zlib
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

import pyarrow as pa

_LOCAL_FOLDERS: Final = "SPARK_LOCAL_DIRS"
"""The environment variable in which Spark passes the executor's local folders to its Python workers."""
_LONGEST_WRITE: Final = 600
"""Seconds after which a partial file is considered abandoned."""
_CHECKSUM_BYTES: Final = 8
"""Keeps the data behind it aligned for Arrow."""
_BLOCK_BYTES: Final = 1 << 20
_MAX_REMEMBERED: Final = 10_000
_checked: OrderedDict[Path, tuple[int, ...]] = OrderedDict()
"""The copies that this process has checked, and what identified their content."""


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

    def write(self, name: str, data: bytes | pa.Buffer) -> None:
        """Write a copy, whole or not at all."""
        partial = self.folder / f"{uuid4().hex}.partial"
        checksum = zlib.crc32(data).to_bytes(_CHECKSUM_BYTES, "little")
        # Without a copy, for example on a full disk, reading is slower but correct.
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                with partial.open("wb") as file:
                    file.write(checksum)
                    file.write(data)
                partial.rename(self.folder / name)
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


def _being_written(file: Path) -> bool:
    """Whether another process may be writing this file; an old one was left by a process that was killed."""
    return file.suffix == ".partial" and time.time() - file.stat().st_mtime < _LONGEST_WRITE


def _is_whole(path: Path, *, anew: bool) -> bool:
    """Whether a copy is what was written. It is read in blocks: a map would count as memory of the process."""
    with path.open("rb", buffering=0) as file:
        status = os.fstat(file.fileno())
        identity = status.st_ino, status.st_size, status.st_mtime_ns
        if not anew and _checked.get(path) == identity:
            return True
        written = file.read(_CHECKSUM_BYTES)
        checksum = 0
        while block := file.read(_BLOCK_BYTES):
            checksum = zlib.crc32(block, checksum)
    if written != checksum.to_bytes(_CHECKSUM_BYTES, "little"):
        return False
    _checked[path] = identity
    _checked.move_to_end(path)
    while len(_checked) > _MAX_REMEMBERED:
        _checked.popitem(last=False)
    return True
