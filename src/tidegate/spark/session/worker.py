"""What a Python worker of Spark does before it runs code of Tidegate."""

from __future__ import annotations

import gc
import sys
from functools import cache

import pyarrow as pa

from tidegate._version import __version__
from tidegate.types import InputError


def check_release(release: str) -> None:
    """Refuse to run what another release of Tidegate on the driver has sent."""
    if release != __version__:
        raise InputError(
            f"Spark's workers run {sys.executable}, which has tidegate {__version__}, and the driver has {release}; "
            f"install tidegate {release} for that Python"
        )


@cache
def freeze_imports() -> None:
    """Exclude everything that is loaded by now from garbage collection.

    Spark's workers collect garbage after every task. In a process that has imported the join this takes 80 ms of a
    core, in each worker and micro-batch. The objects of imported modules live as long as the process, so searching
    them finds nothing.
    """
    gc.collect()
    gc.freeze()


def release_memory() -> None:
    """Return the memory of Arrow tables that are gone to the system: Arrow's allocator would keep some of it."""
    pa.default_memory_pool().release_unused()
