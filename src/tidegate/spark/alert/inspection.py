"""The contents of an alarm's checkpoint: the kept rows and the counts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StructField, StructType, _parse_datatype_json_string

from tidegate.alerts.search.keyed_finder import STREAM_COUNTS, stream_miss_probability
from tidegate.engine.snapshot import unpack
from tidegate.spark.alert.bucket import ALERT, ARRIVAL_COUNTS, arrival_counts, carried_column
from tidegate.spark.packing.buckets import labels
from tidegate.spark.packing.columns import transport_type
from tidegate.spark.packing.packed_rows import from_bytes
from tidegate.spark.state.log import saved_logs
from tidegate.streams.trace import one_chunk
from tidegate.types import InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidegate.types import Array

__all__ = ["ALERT", "inspect_alert"]

_COUNT_COLUMNS: Final = (*ARRIVAL_COUNTS, *STREAM_COUNTS[:-1], "kept", STREAM_COUNTS[-1], "undefined")
_COUNTS_SCHEMA: Final = (
    "bucket int, stream string, "
    + ", ".join(f"{name} bigint" for name in _COUNT_COLUMNS)
    + ", miss_probability double"
)
_ROWS_SCHEMA: Final = "bucket int, stream string, time timestamp, value double"


def inspect_alert(states: DataFrame, what: str, layout: dict[str, Any]) -> DataFrame:
    """The result of `tidegate.inspect` for an alarm."""
    if what == "model":
        raise InputError('an alarm has no model; use "rows" or "counts"')
    if what == "counts":
        return states.mapInArrow(_read_counts, _COUNTS_SCHEMA)
    schema = cast("StructType", StructType.fromDDL(_ROWS_SCHEMA))
    if layout["on"]:
        fields = [StructField(name, _parse_datatype_json_string(kind)) for name, kind in layout["on"]]
        schema = schema.add("key", StructType(fields))
    carried = {
        name: {column: _parse_datatype_json_string(kind) for column, kind in columns}
        for name, columns in layout.get("carry", {}).items()
    }
    if carried:
        fields = [
            StructField(f"{name}_{column}", kind)
            for name, columns in carried.items()
            for column, kind in columns.items()
        ]
        schema = schema.add("carried", StructType(fields))
    types = {
        name: [transport_type(to_arrow_type(kind, timezone="UTC")) for kind in columns.values()]
        for name, columns in carried.items()
    }
    return states.mapInArrow(_KeptRowsReader(types), schema)


def _read_states(
    batches: Iterator[pa.RecordBatch],
) -> Iterator[tuple[int, dict[str, Any], dict[str, Array]]]:
    """The number, the layout and the state of each bucket."""
    for label, log in saved_logs(batches):
        state = unpack(log.read_bytes() or b"")
        layout = json.loads(state["layout"].tobytes())
        yield labels(layout["buckets"]).index(label), layout, state


def _read_counts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for bucket, layout, state in _read_states(batches):
        streams = layout["streams"]
        # The finder orders the streams as the edges of the topology first name them.
        order = list(dict.fromkeys(name for edge in layout["topology"] for name in edge))
        counted = state["counted"].reshape(len(order), len(STREAM_COUNTS)).tolist()
        lost = dict(zip(order, state["moved"].reshape(-1, 3), strict=True)) if "moved" in state else {}
        arrivals = arrival_counts(state, tuple(streams))
        rows = []
        for name in streams:
            *counts, alarms = counted[order.index(name)]
            kept, undefined = len(state[f"{name}.time"]), int(state["undefined"][0])
            rows.append([*arrivals[name].values(), *counts, kept, alarms, undefined])
        columns = [
            pa.array([bucket] * len(rows), pa.int32()),
            pa.array(streams, pa.string()),
            *(pa.array(list(numbers), pa.int64()) for numbers in zip(*rows, strict=True)),
            pa.array(
                [stream_miss_probability(lost[name]) if lost else None for name in streams], pa.float64()
            ),
        ]
        yield pa.record_batch(columns, [f"n{i}" for i in range(len(columns))])


@dataclass(frozen=True)
class _KeptRowsReader:
    """Reads the kept rows, with the carried columns of each stream."""

    carried: dict[str, list[pa.DataType]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for bucket, layout, state in _read_states(batches):
            keys = from_bytes(state["keys"].tobytes())
            for name in layout["streams"]:
                count = len(state[f"{name}.time"])
                columns = [
                    pa.array(np.full(count, bucket), pa.int32()),
                    pa.array([name] * count, pa.string()),
                    pa.array(state[f"{name}.time"], pa.timestamp("us", "UTC")),
                    pa.array(state[f"{name}.value"]),
                ]
                if layout["on"]:
                    own = keys.take(pa.array(state[f"{name}.key"]))
                    parts = [one_chunk(own.column(f"c{i}")) for i in range(len(layout["on"]))]
                    columns.append(pa.StructArray.from_arrays(parts, [name for name, _ in layout["on"]]))
                if self.carried:
                    columns.append(self._read_carried(name, count, state))
                yield pa.record_batch(columns, [f"n{i}" for i in range(len(columns))])

    def _read_carried(self, name: str, count: int, state: dict[str, Array]) -> pa.StructArray:
        """The carried columns of one stream's rows, with nulls for the columns of the other streams."""
        columns: list[pa.Array] = []
        for stream, types in self.carried.items():
            if stream == name and f"{stream}.carried" in state:
                columns += map(one_chunk, from_bytes(state[f"{stream}.carried"].tobytes()).columns)
            else:
                columns += [pa.nulls(count, kind) for kind in types]
        return pa.StructArray.from_arrays(columns, [carried_column(i) for i in range(len(columns))])
