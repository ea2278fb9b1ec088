"""Seats: how many processes of one machine may hold a part of a budget at once.

Spark starts a Python process for each task that runs at once, and more where one task has several Python steps; it
hands tasks to whichever is idle. A process that wants to keep something takes a seat first, and keeps it until it
ends. Where all seats are taken, it must do without. A seat is the lock on one byte of a file of the user's, which
the system gives back when the process ends, however it ends.

Windows has no such locks. There every process has a seat: each still holds no more than one part, but how many of
them there are is Spark's to say, and not bounded here.
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

_MOST: Final = 1 << 12
"""How many seats one query may have: 4096."""


@cache
def _locks() -> ModuleType | None:
    try:
        import fcntl  # noqa: PLC0415 - only where there is one
    except ModuleNotFoundError:
        warnings.warn(
            "this system cannot lock a part of a file, so how many Python processes hold a part of the cache is not "
            "bounded: each holds at most one part",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    return fcntl


@cache
def _file() -> int | None:
    """The file, which stays open: closing it would give up every lock on it."""
    path = Path(tempfile.gettempdir()) / f"tidegate-seats-{os.getuid()}"
    with contextlib.suppress(OSError):
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    return None


def take_seat(name: str, seats: int) -> int | None:
    """Take one of the seats under this name, for good; None if all are taken by other processes."""
    fcntl = _locks()
    if fcntl is None:
        return 0
    file = _file()
    if file is None:
        return None
    for seat in range(min(seats, _MOST)):
        with contextlib.suppress(OSError):
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _byte(name, seat))
            return seat
    return None


def leave_seat(name: str, seat: int) -> None:
    """Give a seat back."""
    fcntl = _locks()
    file = None if fcntl is None else _file()
    if fcntl is not None and file is not None:
        fcntl.lockf(file, fcntl.LOCK_UN, 1, _byte(name, seat))


def _byte(name: str, seat: int) -> int:
    return zlib.crc32(name.encode()) * _MOST + seat
