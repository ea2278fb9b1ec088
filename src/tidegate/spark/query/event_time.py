"""The event time of results, with a watermark: so that other stateful operators can run behind a join in one query.

Spark drops a row that is not later than the watermark of the micro-batch before. A result is formed when the later
one of its rows arrives, which was not late itself. So the greater of both times never is. A row without a match
leaves when the watermark has passed its window, so its time is the end of that. A semi join has only the time of the
left row; its partner is not later than the end of its window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from tidegate.spark.bucket.join.plan import LEFT_ONLY, How, emits_unmatched
from tidegate.spark.frames.side import WATERMARK, quoted
from tidegate.types import SIDES, InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidegate.types import Side, Window

_END: Final = "the end of its window"


def check_event_time(event_time: object, how: How, window: Window) -> None:
    """Refuse what is not a name, and rows whose windows have no end."""
    if event_time is None:
        return
    if not isinstance(event_time, str) or not event_time:
        raise InputError(
            f"event_time={event_time!r} is not a name; give the name of the column to add, such as 'at'"
        )
    for side in _needing_ends(how):
        if not isinstance(window.left if side == "left" else window.right, int):
            raise InputError(
                f"event_time={event_time!r} needs {_END} for each {side} row of a {how!r} join, and the window "
                f"{window} has none; give the {side} rows a limit in window=, or leave out event_time"
            )


def with_event_time(
    results: DataFrame, name: str, how: How, window: Window, times: dict[Side, str | None]
) -> DataFrame:
    """Add the event time of results, under this name; `times` are the result's columns of the two sides' times."""
    if name.casefold() in [column.casefold() for column in results.columns]:
        raise InputError(
            f"event_time={name!r} is a column of the result already; choose another name for the time of results"
        )
    left, right = (quoted(column) if column else None for column in times.values())
    if how in LEFT_ONLY:
        sql = _end(f"{left}", window.left)
    else:
        sql = f"greatest({left}, {right})"
        rows: list[tuple[Side, str | None, str | None, object]] = [
            ("left", left, right, window.left),
            ("right", right, left, window.right),
        ]
        ends = [
            f"when {other} is null then {_end(f'{own}', span)}"
            for side, own, other, span in rows
            if emits_unmatched(how, side)
        ]
        sql = f"case {' '.join(ends)} else {sql} end" if ends else sql
    return results.select("*", F.expr(sql).alias(name, metadata={WATERMARK: 0}))


def _needing_ends(how: How) -> list[Side]:
    return [side for side in SIDES if emits_unmatched(how, side) or (how in LEFT_ONLY and side == "left")]


def _end(time: str, span: object) -> str:
    """The SQL of the time just after the window of a row; a row may arrive after its window."""
    return f"greatest({time}, timestampadd(microsecond, {int(span) + 1}, {time}))"  # type: ignore[call-overload]  # checked before
