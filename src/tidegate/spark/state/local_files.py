"""Copies of state on the disk of the machine that runs a task, so that it is not moved through Spark's socket again.

The state store is authoritative. A copy has the name of its original, is never changed, and may be missing at any
time: after a restart, on another machine, or because the disk is full. Then the state is read from the store.
Spark deletes its local folders when an executor ends, and the copies with them.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
import zlib
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

    def read(self, name: str, *, check: bool = True) -> pa.Buffer | None:
        """The content of a copy, mapped into memory; None if it is missing or, if `check`, damaged."""
        try:
            with pa.memory_map(str(self.folder / name)) as file:
                content = file.read_buffer()
        except (OSError, pa.ArrowInvalid):
            return None
        if content.size < _CHECKSUM_BYTES:
            return None
        data = content.slice(_CHECKSUM_BYTES)
        written = int.from_bytes(content.slice(0, _CHECKSUM_BYTES).to_pybytes(), "little")
        return data if not check or zlib.crc32(data) == written else None

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
