"""Process slots: limit how many processes of one machine hold a part of a budget at once.

Spark starts a Python process for each task that runs at once, and more where one task has several Python steps. It
gives a task to any idle process. A process acquires a slot before it keeps anything, and holds it until it ends. If
no slot is free, the process keeps nothing. A slot is a lock on one byte of a file of the user. The system releases it
when the process ends, for any reason.

Windows has no such locks. There every process gets a slot: each still holds at most one part, but the number of
processes is up to Spark and not limited here.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import warnings
import zlib
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Final

_MAX_SLOTS: Final = 1 << 12
"""The largest number of slots of one query."""


@cache
def _locks() -> ModuleType | None:
    try:
        import fcntl  # noqa: PLC0415 - not on Windows
    except ModuleNotFoundError:
        warnings.warn(
            "this system cannot lock a part of a file, so the number of Python processes that hold a part of the "
            "cache is not limited; each holds at most one part",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    return fcntl


@cache
def _file() -> int | None:
    """The file, which stays open: closing it would release every lock on it."""
    path = Path(tempfile.gettempdir()) / f"tidegate-slots-{os.getuid()}"
    with contextlib.suppress(OSError):
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    return None


def acquire_slot(name: str, slots: int) -> int | None:
    """Acquire one of the slots of this name until it is released; None if other processes hold all of them."""
    fcntl = _locks()
    if fcntl is None:
        return 0
    file = _file()
    if file is None:
        return None
    for slot in range(min(slots, _MAX_SLOTS)):
        with contextlib.suppress(OSError):
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _byte(name, slot))
            return slot
    return None


def release_slot(name: str, slot: int) -> None:
    """Release a slot."""
    fcntl = _locks()
    file = None if fcntl is None else _file()
    if fcntl is not None and file is not None:
        fcntl.lockf(file, fcntl.LOCK_UN, 1, _byte(name, slot))


def _byte(name: str, slot: int) -> int:
    return zlib.crc32(name.encode()) * _MAX_SLOTS + slot
