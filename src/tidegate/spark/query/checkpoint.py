"""Finds and checks the state of a join, a sample or an alarm in a checkpoint.

Spark numbers the stateful operators of a query from its end. Our operators are recognized by the state variables in
Spark's metadata, and distinguished by the names that their buckets saved.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from tidegate.spark.bucket.alert.saved import SavedAlert
from tidegate.spark.bucket.join.saved import SavedBucket
from tidegate.spark.packing.buckets import labels
from tidegate.spark.session.spark_errors import STATE_UNREADABLE, error_log_muted, root_cause
from tidegate.spark.state.deferred_processor import CHUNKS
from tidegate.spark.state.history import QueryHistory, read_history
from tidegate.spark.state.layout import NAME, name_of
from tidegate.spark.state.log import StateLog, saved_log
from tidegate.spark.state.values import DamagedStateError
from tidegate.types import InputError

if TYPE_CHECKING:
    from pathlib import Path

_MAX_CAUSE_LENGTH: Final = 300
_REMEDY: Final = "restore the checkpoint from a copy, or start the query with a new checkpointLocation"
_DESCRIPTION_SCHEMA: Final = (
    "bucket int, name string, layout string, policy string, arrivals bigint, problem string"
)


@dataclass(frozen=True)
class FoundState:
    """The state of one operator.

    Parameters
    ----------
    number
        The number that Spark gives to the operator.
    states
        The states of its buckets, in chunks.
    name
        The `name=` of the join.
    layout
        The saved layout; None if nothing is saved yet.
    policy
        The label of its policy, if it has one.
    arrivals
        The last micro-batch in which rows arrived, as its buckets saved it; -1 if they do not know it.
    """

    number: int
    states: DataFrame
    name: str = NAME
    layout: dict[str, Any] | None = None
    policy: str = ""
    arrivals: int = -1

    def __str__(self) -> str:
        return f"{self.name!r} (operator {self.number})"


def find_state(
    checkpoint: str | Path, session: SparkSession, name: str | int | None, caller: str
) -> FoundState:
    """Find a state by its name or by the operator's number; None finds the only one that there is."""
    states = _find_all(checkpoint, session)
    listed = ", ".join(map(str, states))
    chosen = [state for state in states if name is None or name in (state.name, state.number)]
    if not chosen:
        raise InputError(f"the query at {str(checkpoint)!r} has no {name!r}; it has {listed}")
    if len(chosen) > 1:
        wanted = (
            f"name=, as in {caller}(..., name=...)"
            if name is None
            else "name=, after giving each a unique name"
        )
        raise InputError(
            f"the query at {str(checkpoint)!r} has several joins: {listed}; give {wanted}, or the operator's number"
        )
    return chosen[0]


def saved_layout(
    checkpoint: str | Path, session: SparkSession, name: str, sources: int
) -> dict[str, Any] | None:
    """The layout of the join of this name, or of the only one without a name; None if there is none yet.

    Parameters
    ----------
    checkpoint
        The query's `checkpointLocation`, which may not exist.
    session
        The session.
    name
        The `name=` of the join.
    sources
        The number of sources of the join's sides. If the query has no others, its logs are compared with the state.
    """
    history = read_history(checkpoint, session)
    try:
        states = _find_all(checkpoint, session)
    except InputError:
        # Through Spark Connect it is not known whether there should be a state: the query itself reports a damage.
        if history is None:
            return None
        raise
    for state in states if history and history.sources == sources else ():
        _check_history(checkpoint, state, history)  # type: ignore[arg-type]
    for wanted in dict.fromkeys((name, NAME)):
        chosen = [state for state in states if state.name == wanted]
        if chosen:
            return chosen[0].layout if len(chosen) == 1 else None
    raise InputError(
        f"the checkpoint {str(checkpoint)!r} has no state of {name!r}; it has {', '.join(map(str, states))}; restore "
        "the names of the query's joins, or start with a new checkpointLocation"
    )


def _find_all(checkpoint: str | Path, session: SparkSession) -> list[FoundState]:
    with error_log_muted():
        states = [
            _describe(checkpoint, number, _states(checkpoint, session, number))
            for number in _numbers(checkpoint, session)
        ]
    return sorted(states, key=lambda state: (state.name, state.number))


def operator_names(checkpoint: str | Path, session: SparkSession) -> list[str]:
    """The names of a query's stateful operators, as Spark calls them."""
    return [
        name
        for _, name in sorted({(row.operatorId, row.operatorName) for row in _operators(checkpoint, session)})
    ]


def _operators(checkpoint: str | Path, session: SparkSession) -> list[Row]:
    with _explain_read_errors(checkpoint, located=False):
        return session.read.format("state-metadata").load(str(checkpoint)).collect()


def _numbers(checkpoint: str | Path, session: SparkSession) -> list[int]:
    """The numbers of our operators, by the state variable that only they have."""
    operators = _operators(checkpoint, session)
    ours = [row.operatorId for row in operators if _is_ours(row.operatorProperties)]
    if not operators:
        raise InputError(
            f"there is no state at {str(checkpoint)!r}; give the checkpointLocation of a query that has run at least "
            "one micro-batch"
        )
    if not ours:
        others = ", ".join(dict.fromkeys(row.operatorName for row in operators))
        raise InputError(
            f"the query at {str(checkpoint)!r} has no tidegate operator (it has {others}); give the "
            "checkpointLocation of a query with tidegate.join, sample or alert"
        )
    return sorted(set(ours))


def _is_ours(properties: str | None) -> bool:
    variables = json.loads(properties or "{}").get("stateVariables", [])
    return any((of["stateName"], of["stateVariableType"]) == (CHUNKS, "MapState") for of in variables)


def _states(checkpoint: str | Path, session: SparkSession, number: int) -> DataFrame:
    chunks = session.read.format("statestore").option("stateVarName", CHUNKS).option("operatorId", number)
    with _explain_read_errors(checkpoint, located=False):
        return (
            chunks.load(str(checkpoint))
            .groupBy("key.bucket")
            .agg(F.collect_list(F.struct("user_map_key.name", "user_map_value.payload")).alias("values"))
        )


def _describe(checkpoint: str | Path, number: int, states: DataFrame) -> FoundState:
    """Read the descriptions of all saved buckets, and refuse a damaged one."""
    with _explain_read_errors(checkpoint, located=True):
        buckets = states.mapInArrow(_descriptions, _DESCRIPTION_SCHEMA).collect()
    damaged = next((row for row in buckets if row.problem is not None), None)
    if damaged is not None:
        raise InputError(
            f"the state at {str(checkpoint)!r} cannot be read: bucket {damaged.bucket} of operator {number} has "
            f"{damaged.problem[:_MAX_CAUSE_LENGTH]}; {_REMEDY}"
        )
    if not buckets:
        return FoundState(number, states)
    _check_equal_age(checkpoint, number, buckets)
    # Buckets without arrivals since the join was given a name still have none.
    names = sorted({row.name for row in buckets} - {NAME})
    first = buckets[0]
    return FoundState(
        number, states, (names or [NAME])[0], json.loads(first.layout), first.policy, first.arrivals
    )


def _check_equal_age(checkpoint: str | Path, number: int, buckets: list[Row]) -> None:
    """Refuse states of different micro-batches: all buckets take part in each one in which rows arrive."""
    newest = max(buckets, key=lambda row: row.arrivals)
    older = next((row for row in buckets if row.arrivals < newest.arrivals), None)
    if older is not None:
        raise InputError(
            f"the state at {str(checkpoint)!r} is not of one micro-batch: bucket {older.bucket} of operator {number} "
            f"has that of {older.arrivals}, bucket {newest.bucket} that of {newest.arrivals}; {_REMEDY}"
        )
    expected = set(labels(json.loads(newest.layout)["buckets"]))
    missing = sorted(expected - {row.bucket for row in buckets})
    if missing:
        raise InputError(
            f"the state at {str(checkpoint)!r} is not complete: bucket {missing[0]} of operator {number} has none; "
            f"{_REMEDY}"
        )


def _check_history(checkpoint: str | Path, state: FoundState, history: QueryHistory) -> None:
    """Refuse a state that is older than the micro-batches that are complete, as far as that can be known."""
    if 0 <= state.arrivals < history.last_arrivals or (state.layout is None and history.last_arrivals >= 0):
        raise InputError(
            f"the state of {state} at {str(checkpoint)!r} is of micro-batch {state.arrivals}, and rows arrived until "
            f"micro-batch {history.last_arrivals}, which is complete: an older state replaced it; {_REMEDY} (to "
            "return to an earlier micro-batch, delete later offsets and commits as well)"
        )


def _descriptions(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = [_description(row["bucket"], row["values"]) for row in batch.to_pylist()]
        kinds = (pa.int32(), *[pa.string()] * 3, pa.int64(), pa.string())
        columns = zip(*rows, strict=True) if rows else [()] * len(kinds)
        yield pa.record_batch(
            [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)],
            [f"n{i}" for i in range(len(kinds))],
        )


def _description(
    bucket: int, values: list[dict[str, Any]]
) -> tuple[int, str | None, str | None, str | None, int | None, str | None]:
    try:
        layout, policy, arrivals = _read_whole(saved_log(values))
    except Exception as error:  # noqa: BLE001 - reported on the driver, whatever damage caused it
        return bucket, None, None, None, None, f"{type(error).__name__}: {error}".replace("\n", " ")
    return bucket, name_of(layout), json.dumps(layout), policy, arrivals, None


def _read_whole(log: StateLog) -> tuple[dict[str, Any], str, int]:
    """The layout of a saved bucket, the label of its policy, and its last arrivals, once all of it has been read."""
    arrays = log.read()
    if arrays is None:
        raise DamagedStateError("no manifest")
    if SavedAlert.wrote(arrays):
        alert = SavedAlert.read(log)
        return (alert.layout, "", alert.clock.arrivals) if alert else ({}, "", -1)
    saved = SavedBucket.read(log)
    if saved is None:
        raise DamagedStateError("no manifest")
    saved.operator  # noqa: B018 - for the errors that it raises
    saved.sample  # noqa: B018 - as above
    for payload in saved.payload.values():
        for segment in payload.segments:
            segment.table  # noqa: B018 - as above
    return saved.layout, saved.settings.policy, saved.progress.clock.arrivals


@contextlib.contextmanager
def _explain_read_errors(checkpoint: str | Path, *, located: bool) -> Iterator[None]:
    """Explain briefly why a checkpoint cannot be read; Spark's error is in the `__context__` of ours."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        cause = " ".join(root_cause(error).split()).removeprefix(f"{STATE_UNREADABLE}: ")[:_MAX_CAUSE_LENGTH]
        if located:
            raise InputError(f"the state at {str(checkpoint)!r} cannot be read: {cause}; {_REMEDY}") from None
        raise InputError(
            f"no state can be read at {str(checkpoint)!r} ({cause}); give the checkpointLocation of a query that has "
            f"run at least one micro-batch; if it is this one, {_REMEDY}"
        ) from None
