"""A look inside the checkpoint of an alarm: which rows are kept, and what was counted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StructField, StructType, _parse_datatype_json_string

from tidegate.alerts.search.keyed_finder import COUNTS as FOUND
from tidegate.alerts.search.keyed_finder import chance
from tidegate.engine.snapshot import unpack
from tidegate.spark.alert.bucket import ALERT, COUNTS, arrivals
from tidegate.spark.packing.buckets import labels
from tidegate.spark.packing.columns import travelled
from tidegate.spark.packing.packed_rows import from_bytes
from tidegate.spark.state.log import saved_logs
from tidegate.streams.trace import one_chunk
from tidegate.types import InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidegate.types import Array

__all__ = ["ALERT", "of_alert"]

_COUNTED: Final = (*COUNTS, *FOUND[:-1], "kept", FOUND[-1], "undefined")
_ROWS: Final = "bucket int, stream string, time timestamp, value double"


def of_alert(states: DataFrame, what: str, layout: dict[str, Any]) -> DataFrame:
    """What `tidegate.inspect` tells of an alarm."""
    if what == "model":
        raise InputError('an alarm learns no model; ask for "rows" or "counts"')
    if what == "counts":
        return states.mapInArrow(
            _counts,
            "bucket int, stream string, " + ", ".join(f"{n} bigint" for n in _COUNTED) + ", chance double",
        )
    schema = cast("StructType", StructType.fromDDL(_ROWS))
    if layout["on"]:
        fields = [StructField(name, _parse_datatype_json_string(kind)) for name, kind in layout["on"]]
        schema = schema.add("key", StructType(fields))
    along = {
        name: {column: _parse_datatype_json_string(kind) for column, kind in columns}
        for name, columns in layout.get("carry", {}).items()
    }
    if along:
        fields = [
            StructField(f"{name}_{column}", kind)
            for name, columns in along.items()
            for column, kind in columns.items()
        ]
        schema = schema.add("carried", StructType(fields))
    kinds = {
        name: [travelled(to_arrow_type(kind, timezone="UTC")) for kind in columns.values()]
        for name, columns in along.items()
    }
    return states.mapInArrow(_Rows(kinds), schema)


def _saved(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, dict[str, Any], dict[str, Array]]]:
    """Number, layout and state of each bucket."""
    for label, log in saved_logs(batches):
        state = unpack(log.read_bytes() or b"")
        layout = json.loads(state["layout"].tobytes())
        yield labels(layout["buckets"]).index(label), layout, state


def _counts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for bucket, layout, state in _saved(batches):
        streams = layout["streams"]
        # The finder has the streams in the order of their joins.
        order = list(dict.fromkeys(name for edge in layout["topology"] for name in edge))
        counted = state["counted"].reshape(len(order), len(FOUND)).tolist()
        moved = dict(zip(order, state["moved"].reshape(-1, 3), strict=True)) if "moved" in state else {}
        came = arrivals(state, tuple(streams))
        rows = []
        for name in streams:
            *found, alarms = counted[order.index(name)]
            kept, undefined = len(state[f"{name}.time"]), int(state["undefined"][0])
            rows.append([*came[name].values(), *found, kept, alarms, undefined])
        columns = [
            pa.array([bucket] * len(rows), pa.int32()),
            pa.array(streams, pa.string()),
            *(pa.array(list(numbers), pa.int64()) for numbers in zip(*rows, strict=True)),
            pa.array([chance(moved[name]) if moved else None for name in streams], pa.float64()),
        ]
        yield pa.record_batch(columns, [f"n{i}" for i in range(len(columns))])


@dataclass(frozen=True)
class _Rows:
    """Lays out the rows that are kept, with the columns that those of each stream carry."""

    carried: dict[str, list[pa.DataType]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for bucket, layout, state in _saved(batches):
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
                    named = [one_chunk(own.column(f"c{i}")) for i in range(len(layout["on"]))]
                    columns.append(pa.StructArray.from_arrays(named, [of[0] for of in layout["on"]]))
                if self.carried:
                    columns.append(self._carried(name, count, state))
                yield pa.record_batch(columns, [f"n{i}" for i in range(len(columns))])

    def _carried(self, name: str, count: int, state: dict[str, Array]) -> pa.StructArray:
        """What one stream's rows carry, beside nulls for the other streams' columns."""
        cells: list[pa.Array] = []
        for of, kinds in self.carried.items():
            if of == name and f"{of}.carried" in state:
                cells += map(one_chunk, from_bytes(state[f"{of}.carried"].tobytes()).columns)
            else:
                cells += [pa.nulls(count, kind) for kind in kinds]
        return pa.StructArray.from_arrays(cells, [f"p{i}" for i in range(len(cells))])
