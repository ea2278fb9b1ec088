"""What Spark's own explanation of a DataFrame tells; the same in classic sessions and through Connect."""

from __future__ import annotations

import contextlib
import io
import re
from typing import TYPE_CHECKING, Final

from pyspark.errors import PySparkException

from tidegate.types import InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OURS: Final = re.compile(r"TransformWithState\w* \w+\(bucket#\d+L?, side#\d+L?, payload#\d+L?\)")


def analysed(frame: DataFrame) -> str:
    """The analysed plan of a DataFrame."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        frame.explain(extended=True)
    return shown.getvalue().partition("== Analyzed Logical Plan ==")[2].partition("== Optimized")[0]


def check_unchained(what: str, frame: DataFrame) -> None:
    """Refuse a stream that comes from a join, a sample or an alarm of ours in the same query.

    Their results carry no watermark, and one that is set behind them makes Spark stop the query at the first row that
    is older than it.
    """
    try:
        plan = analysed(frame)
    except PySparkException:
        return  # what is wrong with it, Spark says better when it is used
    if _OURS.search(plan):
        raise InputError(
            f"{what} is the result of a tidegate join, sample or alarm in the same query, and such a stream carries "
            "no watermark, not even if withWatermark is added; write it to a table or topic and read that back with "
            "spark.readStream, or use foreachBatch, where each micro-batch is a batch DataFrame"
        )
