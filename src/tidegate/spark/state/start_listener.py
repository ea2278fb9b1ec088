"""At the start of a query: give its tasks what the checkpoint's logs say, to compare with their states.

A task does not know the checkpoint, and the driver knows it only when the query starts. So a listener reads the logs
then, which Spark waits for, and puts the number of the last micro-batch with arrivals into the query's settings.
Without it, for example through Spark Connect, tasks compare less.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from tidegate.spark.session.task import LAST_ARRIVALS
from tidegate.spark.state.checkpoint_files import is_classic
from tidegate.spark.state.history import read_history

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LISTENING: Final = "spark.tidegate.listening"
_STATEFUL_OPERATOR: Final = "TransformWithStateInPySpark"
_LOG: Final = logging.getLogger("tidegate")


def watch_starts(session: SparkSession) -> None:
    """From now on, tell the tasks of every query of this session what its checkpoint's logs say."""
    if not is_classic(session) or session.conf.get(_LISTENING, None) is not None:
        return
    from pyspark.java_gateway import ensure_callback_server_started  # noqa: PLC0415 - classic sessions only

    context = session.sparkContext
    ensure_callback_server_started(context._gateway)  # type: ignore[no-untyped-call]  # noqa: SLF001 - as PySpark's own
    streaming = context._jvm.org.apache.spark.sql.streaming  # type: ignore[union-attr]  # noqa: SLF001 - as above
    listener = streaming.PythonStreamingQueryListenerWrapper(_StartListener(session))
    session._jsparkSession.streams().addListener(listener)  # noqa: SLF001 - as above
    session.conf.set(_LISTENING, "true")


def count_sources(frame: DataFrame) -> int:
    """The number of streams that a DataFrame reads; 0 if it is not known, through Spark Connect."""
    return _count_sources(frame._jdf.queryExecution().analyzed()) if is_classic(frame.sparkSession) else 0  # noqa: SLF001


class _StartListener:
    """Spark's listener of queries. PySpark's own would convert every progress report, which nothing here needs."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def onQueryStarted(self, event: Any) -> None:  # noqa: ANN401, N802 - Java's
        """Called before the query runs its first micro-batch."""
        # Whatever fails here, the query itself reports a checkpoint that cannot be read.
        try:
            query = self._session._jsparkSession.streams().get(event.id()).streamingQuery()  # noqa: SLF001
            if not _has_only_sources_of_operator(query.analyzedPlan()):
                return
            history = read_history(query.resolvedCheckpointRoot(), self._session)
            known = -1 if history is None else history.last_arrivals
            query.sparkSessionForStream().conf().set(LAST_ARRIVALS, str(known))
        except Exception:  # noqa: BLE001 - as above
            _LOG.debug("the logs of a checkpoint could not be read", exc_info=True)

    def onQueryProgress(self, event: Any) -> None:  # noqa: ANN401, N802 - Java's
        """Nothing to do."""

    def onQueryIdle(self, event: Any) -> None:  # noqa: ANN401, N802 - Java's
        """Nothing to do."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: ANN401, N802 - Java's
        """Nothing to do."""

    class Java:
        """The interface, for Py4J."""

        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


def _has_only_sources_of_operator(plan: Any) -> bool:  # noqa: ANN401 - Java's
    """Whether rows of every source of a query reach every operator like ours."""
    operators = [node for node in _nodes(plan) if node.nodeName() == _STATEFUL_OPERATOR]
    count = _count_sources(plan)
    return bool(operators) and all(_count_sources(operator) == count for operator in operators)


def _count_sources(plan: Any) -> int:  # noqa: ANN401 - Java's
    return sum(node.children().isEmpty() and node.isStreaming() for node in _nodes(plan))


def _nodes(plan: Any) -> Iterator[Any]:  # noqa: ANN401 - Java's
    yield plan
    children = plan.children()
    for i in range(children.size()):
        yield from _nodes(children.apply(i))
