"""The state of a bucket of an alarm between micro-batches, as it is saved.

A state is named arrays, and segments of payload (`tidegate.spark.state.log`):

| name | content |
|---|---|
| `layout` | what a query must agree on to continue from the state |
| `progress` | its version, counts and times |
| `rows.keys.<column>` | the keys that are in use: `id`, and two hashes, `key` and `check` |
| `rows.<stream>.<column>` | the kept rows of a stream: `id`, `key` (the id of its key), `time` and `value` |
| `lost.<stream>` | for how long the extremes of a stream were lost |

Its payload is the user's columns of the keys, and the carried columns of each stream, found by id. So a micro-batch
writes what has changed, not all kept rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import pyarrow as pa

from tidegate.alerts import KeyedRows
from tidegate.alerts.search.keyed_finder import STREAM_COUNTS
from tidegate.engine.snapshot import unpack
from tidegate.spark.bucket.alert.plan import ARRIVAL_COUNTS
from tidegate.spark.packing.arrow_bytes import from_bytes
from tidegate.spark.packing.columns import CHECK, KEY
from tidegate.spark.state.clock import Clock
from tidegate.spark.state.log import StateLog
from tidegate.spark.state.numbered_rows import NumberedRows
from tidegate.types import InputError

if TYPE_CHECKING:
    from tidegate.types import Array

VERSION: Final = 2
"""The first version was one array of bytes, whose counts had no names."""
KEYS: Final = "keys"
"""The name of the table of keys."""
_FIRST_LAYOUT: Final = "bytes"
_RENAMED: Final = {"shed": "evicted"}
"""Counts that had another name in earlier states."""


@dataclass(frozen=True)
class SavedAlert:
    """A saved state, read without the query that wrote it.

    Parameters
    ----------
    layout
        The saved layout.
    clock
        Its micro-batch and watermarks.
    keys
        Two hashes and the user's columns of each key.
    rows, carried
        By stream: the kept rows, whose keys are positions among the keys, and their carried columns, if any.
    arrivals, counts, lost
        By stream: the counts of arrivals, those of the finder, and for how long extremes were lost.
    undefined
        The number of combinations for which the condition has no value.
    stored
        By table: the ids of its rows, and their payload as it is stored.
    """

    layout: dict[str, Any]
    clock: Clock
    keys: pa.Table
    rows: dict[str, KeyedRows]
    carried: dict[str, pa.Table]
    arrivals: dict[str, dict[str, int]]
    counts: dict[str, dict[str, int]]
    lost: dict[str, Array]
    undefined: int
    stored: dict[str, NumberedRows]

    @staticmethod
    def wrote(arrays: Mapping[str, Array]) -> bool:
        """Whether these arrays are the state of an alarm, not of a join."""
        return _FIRST_LAYOUT in arrays or f"rows.{KEYS}.id" in arrays

    @classmethod
    def read(cls, log: StateLog) -> Self | None:
        """Read what `AlertBucket.save` wrote; None if nothing is saved."""
        arrays = log.read()
        if arrays is None:
            return None
        if _FIRST_LAYOUT in arrays:
            return cls._of_first_layout(unpack(arrays[_FIRST_LAYOUT].tobytes()))
        progress = json.loads(arrays["progress"].tobytes())
        if progress["version"] != VERSION:
            raise InputError(
                f"the checkpoint has an alarm's state of version {progress['version']}, and this release reads "
                f"versions 1 to {VERSION}; continue with the release that wrote it, or start with a new "
                "checkpointLocation"
            )
        streams = list(progress["arrivals"])
        stored = {
            table: NumberedRows.saved(arrays[f"rows.{table}.id"], progress["next"][table], log.payload(table))
            for table in (KEYS, *map(table_name, streams))
        }
        key_ids = stored[KEYS].ids
        hashes = pa.table({KEY: arrays[f"rows.{KEYS}.key"], CHECK: arrays[f"rows.{KEYS}.check"]})
        rows, carried = {}, {}
        for name in streams:
            table = table_name(name)
            key, time, value = (arrays[f"rows.{table}.{part}"] for part in KeyedRows._fields)
            places = np.searchsorted(key_ids, key)
            # As the finder keeps them: by key, then by time.
            order = np.lexsort((stored[table].ids, time, places))
            stored[table].ids = stored[table].ids[order]
            rows[name] = KeyedRows(places[order], time[order], value[order])
            columns = stored[table].columns()
            if columns is not None:
                carried[name] = columns
        return cls(
            json.loads(arrays["layout"].tobytes()),
            Clock.from_dict(progress["clock"]),
            _with_columns(hashes, stored[KEYS].columns()),
            rows,
            carried,
            progress["arrivals"],
            {
                name: {_RENAMED.get(count, count): number for count, number in counts.items()}
                for name, counts in progress["counts"].items()
            },
            {name: arrays[f"lost.{name}"].copy() for name in streams},
            progress["undefined"],
            stored,
        )

    @classmethod
    def _of_first_layout(cls, state: Mapping[str, Array]) -> Self:
        """A state in which counts have no names, and ids do not exist."""
        layout = json.loads(state["layout"].tobytes())
        # The finder orders the streams as the edges of the topology first name them; rows are named in this order.
        order = [name.removesuffix(".time") for name in state if name.endswith(".time")]
        # Its arrivals were counted in the order of the query.
        streams = layout.get("streams", order)
        arrived = state["arrivals"].reshape(len(streams), len(ARRIVAL_COUNTS)).tolist()
        counted = state["counted"].reshape(len(order), len(STREAM_COUNTS)).tolist()
        lost = np.array(state.get("moved", np.zeros(3 * len(order)))).reshape(-1, 3)
        rows = {name: KeyedRows(*(state[f"{name}.{part}"] for part in KeyedRows._fields)) for name in order}
        keys = from_bytes(state["keys"].tobytes())
        counts = {KEYS: keys.num_rows} | {table_name(name): len(of.key) for name, of in rows.items()}
        return cls(
            layout,
            Clock(*state["clock"].tolist()),
            keys,
            rows,
            {
                name: from_bytes(state[f"{name}.carried"].tobytes())
                for name in order
                if f"{name}.carried" in state
            },
            {
                name: dict(zip(ARRIVAL_COUNTS, of, strict=True))
                for name, of in zip(streams, arrived, strict=True)
            },
            {
                name: dict(zip(STREAM_COUNTS, of, strict=True))
                for name, of in zip(order, counted, strict=True)
            },
            dict(zip(order, lost, strict=True)),
            int(state["undefined"][0]),
            {table: NumberedRows.new(count) for table, count in counts.items()},
        )


def table_name(stream: str) -> str:
    """The name of a stream's table of rows, which has no dot, and is not that of the keys."""
    return "stream " + stream.replace("%", "%25").replace(".", "%2E")


def _with_columns(table: pa.Table, columns: pa.Table | None) -> pa.Table:
    for name in columns.column_names if columns is not None else ():
        table = table.append_column(name, columns.column(name))  # type: ignore[union-attr]
    return table
