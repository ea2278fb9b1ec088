"""Copies of state on the disk of the machine that runs a task, so that it is not moved through Spark's socket again.

The state store alone is the truth. A copy is named by what it is a copy of, is never changed, and may be missing at
any time: after a restart, on another machine, or because the disk is full. Then the state is read from the store.
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
"""Where Spark names the executor's local folders to its Python workers."""
_LONGEST_WRITE: Final = 600
"""Seconds."""
_CHECKSUM_BYTES: Final = 8
"""Keeps the data behind it aligned for Arrow."""


@dataclass(frozen=True)
class LocalFiles:
    """The copies of one bucket's state.

    Parameters
    ----------
    folder
        Where they are; made when the first is written.
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
        # A disk that is full or not writable costs speed only.
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
    """Whether another process may be writing this file; one that was killed left it behind long ago."""
    return file.suffix == ".partial" and time.time() - file.stat().st_mtime < _LONGEST_WRITE
