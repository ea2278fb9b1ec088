"""What a Python worker of Spark does once, when it first runs code of Tidegate."""

from __future__ import annotations

import gc
from functools import cache


@cache
def freeze_imports() -> None:
    """Exclude everything that is loaded by now from garbage collection.

    Spark's workers collect garbage after every task. In a process that has imported the join this takes 80 ms of a
    core, in each worker and micro-batch. The objects of imported modules live as long as the process, so searching
    them finds nothing.
    """
    gc.collect()
    gc.freeze()
