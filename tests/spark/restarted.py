"""A query with a small budget into an idempotent sink, run here or in a process that may be killed.

Run as a program: python -m tests.spark.restarted FOLDER POLICY
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

import tidegate as tg
from tests.spark import streams
from tidegate.types import SIDES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BUDGET = 40


def sources(folder: Path, first: int, last: int) -> None:
    """Files of both sides: a few hot keys, out of order, more rows than the budget holds."""
    for shift, side in enumerate(SIDES):
        tables = [
            pa.table(
                {
                    "k": pa.array([(7 * j + shift) % 11 for j in range(60)], pa.int64()),
                    "t": pa.array(
                        [streams.at(10_000 * i + 160 * ((13 * j) % 60)) for j in range(60)],
                        pa.timestamp("us", "UTC"),
                    ),
                    f"{side}_text": [f"{side}{i}-{j}" for j in range(60)],
                }
            )
            for i in range(first, last)
        ]
        streams.write(folder / side, tables)


def query(spark: SparkSession, folder: Path, policy: str, **settings: object) -> DataFrame:
    sides = [streams.read(spark, folder / side, "t", "3 seconds") for side in SIDES]
    chosen = {
        "window": ("15 seconds", "15 seconds"),
        "budget": BUDGET,
        "how": "full",
        "buckets": 2,
    } | settings
    return tg.join(*sides, on="k", time="t", policy=policy, **chosen)  # type: ignore[arg-type]


def main() -> None:
    from tidegate.spark.session.local import local_session  # noqa: PLC0415 - only where it is a program

    folder, policy = Path(sys.argv[1]), sys.argv[2]
    spark = local_session("restarted", cores=2, memory="512m")
    streams.run_to_files(query(spark, folder, policy), folder / "checkpoint", folder / "out")


if __name__ == "__main__":
    main()
