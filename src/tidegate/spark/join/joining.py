"""`tidegate.joining`: a join as a function of its left side, for `DataFrame.transform`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tidegate.spark.join.join import join

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def joining(right: DataFrame, **settings: Any) -> Callable[[DataFrame], DataFrame]:  # noqa: ANN401 - those of `join`
    """Return a function that joins its argument, as the left side, with `right`: for `left.transform(...)`.

    Parameters
    ----------
    right
        The right side.
    **settings
        All other arguments of `tidegate.join`. Unknown or missing ones are refused at once.
    """
    inspect.signature(join).bind(None, right, **settings)

    def joined(left: DataFrame) -> DataFrame:
        return join(left, right, **settings)

    return joined
