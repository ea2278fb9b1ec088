"""The contents of an alarm's checkpoint: the kept rows and the counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructField, StructType, _parse_datatype_json_string

from tidegate.alerts.search.keyed_finder import STREAM_COUNTS, stream_miss_probability
from tidegate.arrow_columns import one_chunk
from tidegate.spark.bucket.alert.plan import ALERT, ARRIVAL_COUNTS, carried_column
from tidegate.spark.bucket.alert.saved import SavedAlert
from tidegate.spark.packing.arrow_types import arrow_type
from tidegate.spark.packing.buckets import labels
from tidegate.spark.state.log import saved_logs
from tidegate.types import InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
    types = {name: [arrow_type(kind) for kind in columns.values()] for name, columns in carried.items()}
    return states.mapInArrow(_KeptRowsReader(types), schema)


def _read_states(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, SavedAlert]]:
    """The number and the state of each bucket."""
    for label, log in saved_logs(batches):
        saved = SavedAlert.read(log)
        if saved is not None:
            yield labels(saved.layout["buckets"]).index(label), saved


def _read_counts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for bucket, saved in _read_states(batches):
        streams = saved.layout["streams"]
        rows = []
        for name in streams:
            *counts, alarms = (saved.counts[name][count] for count in STREAM_COUNTS)
            arrived = (saved.arrivals[name][count] for count in ARRIVAL_COUNTS)
            rows.append([*arrived, *counts, len(saved.rows[name].key), alarms, saved.undefined])
        columns = [
            pa.array([bucket] * len(rows), pa.int32()),
            pa.array(streams, pa.string()),
            *(pa.array(list(numbers), pa.int64()) for numbers in zip(*rows, strict=True)),
            pa.array([stream_miss_probability(saved.lost[name]) for name in streams], pa.float64()),
        ]
        yield pa.record_batch(columns, [f"n{i}" for i in range(len(columns))])


@dataclass(frozen=True)
class _KeptRowsReader:
    """Reads the kept rows, with the carried columns of each stream."""

    carried: dict[str, list[pa.DataType]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for bucket, saved in _read_states(batches):
            for name in saved.layout["streams"]:
                kept = saved.rows[name]
                count = len(kept.key)
                if not count:
                    continue
                columns = [
                    pa.array(np.full(count, bucket), pa.int32()),
                    pa.array([name] * count, pa.string()),
                    pa.array(kept.time, pa.timestamp("us", "UTC")),
                    pa.array(kept.value),
                ]
                on = saved.layout["on"]
                if on:
                    own = saved.keys.take(pa.array(kept.key))
                    parts = [one_chunk(own.column(f"c{i}")) for i in range(len(on))]
                    columns.append(pa.StructArray.from_arrays(parts, [name for name, _ in on]))
                if self.carried:
                    columns.append(self._read_carried(name, count, saved))
                yield pa.record_batch(columns, [f"n{i}" for i in range(len(columns))])

    def _read_carried(self, name: str, count: int, saved: SavedAlert) -> pa.StructArray:
        """The carried columns of one stream's rows, with nulls for the columns of the other streams."""
        columns: list[pa.Array] = []
        for stream, types in self.carried.items():
            if stream == name and stream in saved.carried:
                columns += map(one_chunk, saved.carried[stream].columns)
            else:
                columns += [pa.nulls(count, kind) for kind in types]
        return pa.StructArray.from_arrays(columns, [carried_column(i) for i in range(len(columns))])
