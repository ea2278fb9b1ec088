"""Spark's Python daemon, with the join already imported: the workers that it forks start at once.

Each of Spark's Python workers imports what its first task needs, which takes about a second of a core. This daemon
imports it once, before it forks workers. Sessions use it with this setting, which must be set before they start:

    spark.python.daemon.module=tidegate.spark.session.daemon

Tidegate must be installed wherever workers run. Without the setting everything works, but the first micro-batch of a
session takes longer.
"""

from __future__ import annotations

import importlib
import os
from typing import Final

MODULE: Final = "tidegate.spark.session.daemon"
SETTING: Final = "spark.python.daemon.module"
PRELOADED: Final = (
    "pyspark.worker",
    "pandas",
    "tidegate.spark.packing.row_packer",
    "tidegate.spark.state.deferred_processor",
    "tidegate.spark.query.processor",
)
"""What the workers of a streaming join import."""


def main() -> None:
    """Import the modules, then run Spark's daemon."""
    # A fork has none of its parent's threads, and NumPy would start some when it is imported.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for module in PRELOADED:
        importlib.import_module(module)
    importlib.import_module("tidegate.spark.session.task").freeze_imports()
    importlib.import_module("pyspark.daemon").manager()


if __name__ == "__main__":
    main()
