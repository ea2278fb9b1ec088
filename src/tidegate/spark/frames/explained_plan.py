"""The plan of a DataFrame as `explain` prints it, in classic sessions and through Connect."""

from __future__ import annotations

import contextlib
import io
import re
from typing import TYPE_CHECKING, Final

from pyspark.errors import PySparkException

from tidegate.types import InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TIDEGATE_OPERATOR: Final = re.compile(
    r"TransformWithState\w* \w+\(bucket#\d+L?, side#\d+L?, payload#\d+L?\)"
)


def analyzed_plan(frame: DataFrame) -> str:
    """The analyzed logical plan of a DataFrame."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        frame.explain(extended=True)
    return output.getvalue().partition("== Analyzed Logical Plan ==")[2].partition("== Optimized")[0]


def check_not_chained(what: str, frame: DataFrame, *, carries_time: bool = False) -> None:
    """Refuse the result of a join, sample or alarm of Tidegate in the same query, unless it carries its event time.

    If a watermark is set on such results, Spark stops the query at the first row that is older.
    """
    try:
        plan = analyzed_plan(frame)
    except PySparkException:
        return  # Spark reports what is wrong with it when it is used
    found = _TIDEGATE_OPERATOR.search(plan)
    if found and (not carries_time or "EventTimeWatermark" in plan[: found.start()]):
        raise InputError(
            f"{what} is the result of a tidegate join, sample or alarm in the same query, and its time carries no "
            "watermark, not even if withWatermark is added; behind a join, give that join event_time='at' and use "
            "the column 'at' as the time; or write the result to a table or topic and read that back with "
            "spark.readStream, or use foreachBatch, where each micro-batch is a batch DataFrame"
        )
