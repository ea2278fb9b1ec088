"""The states of buckets for another number of buckets: each is divided by the keys of its rows, and parts are merged.

Rows keep their columns and get new ids, in the order in which they arrived; in that of time if they come from several
buckets. Counts are added up. What a policy has learned of a bucket's keys does not hold for the new ones, so policies
start without anything learned.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import gcd
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from tidegate.engine.snapshot import pack, unpack
from tidegate.spark.bucket.join.intake import ArrivalCounts
from tidegate.spark.bucket.join.plan import emits_unmatched
from tidegate.spark.bucket.join.saved import BucketProgress, SavedBucket
from tidegate.spark.packing.arrow_bytes import from_bytes, to_bytes
from tidegate.spark.packing.buckets import bucket_of
from tidegate.spark.state.payload import ID, PayloadStore
from tidegate.types import SIDES

if TYPE_CHECKING:
    from tidegate.types import Array, Side

ARRAYS: Final = "arrays"
_CHUNK_BYTES: Final = 32 << 20
_POLICY: Final = "operator.policy."
_EVICTED: Final = "evicted_until."


def divide(saved: SavedBucket, number: int, buckets: int) -> Iterator[tuple[int, str, bytes]]:
    """Divide the state of a bucket: yield the new bucket of each part, "arrays" or a side, and the part as bytes.

    Every new bucket that may have keys of this one gets its arrays, also if it gets none of its rows.
    """
    common = gcd(saved.layout["buckets"], buckets)
    targets = {
        side: bucket_of(saved.arrays[f"rows.{side}.key"], buckets)
        if f"rows.{side}.key" in saved.arrays
        else np.empty(0, np.uint16)
        for side in SIDES
    }
    for target in range(number % common, buckets, common):
        mine = {side: np.flatnonzero(of == target) for side, of in targets.items()}
        arrays = {
            name: values[mine["left" if name.startswith("rows.left.") else "right"]]
            if name.startswith("rows.")
            else values
            for name, values in saved.arrays.items()
            if not name.startswith(_POLICY)
        }
        yield target, ARRAYS, pack(arrays, compressed=True)
        for side in SIDES:
            ids = saved.arrays.get(f"rows.{side}.id", np.empty(0, np.int64))[mine[side]]
            for chunk in _chunks(np.sort(ids), saved.payload[side].row_bytes):
                table = saved.payload[side].take(chunk)
                yield target, side, to_bytes(table.add_column(0, ID, pa.array(chunk)))


def _chunks(ids: Array, row_bytes: int) -> Iterator[Array]:
    step = max(1, _CHUNK_BYTES // max(1, row_bytes))
    return (ids[begin : begin + step] for begin in range(0, len(ids), step))


@dataclass
class MergedBucket:
    """A new bucket, from its parts of the former buckets.

    Parameters
    ----------
    number, buckets
        Its number, and the number of new buckets.
    """

    number: int
    buckets: int
    _arrays: dict[int, dict[str, Array]] = field(default_factory=dict)
    _tables: dict[tuple[int, Side], list[pa.Table]] = field(default_factory=dict)

    def add(self, source: int, kind: str, data: bytes) -> None:
        """Add a part of a former bucket, by its number."""
        if kind == ARRAYS:
            self._arrays[source] = unpack(data)
        else:
            side: Side = "left" if kind == "left" else "right"
            self._tables.setdefault((source, side), []).append(from_bytes(data))

    @property
    def progress(self) -> BucketProgress:
        """Its counts and times; the counts of a former bucket go to the first of its new ones."""
        parts = {
            source: BucketProgress.from_json(a["progress"].tobytes()) for source, a in self._arrays.items()
        }
        latest = max(parts.values(), key=lambda progress: progress.clock.batch)
        counts = [vars(parts[source].counts) for source in self._counted()]
        total = ArrivalCounts(**{name: sum(of[name] for of in counts) for name in vars(latest.counts)})
        clocks = max((part.clocks for part in parts.values()), key=lambda clocks: clocks.now.now)
        return BucketProgress(total, latest.clock, clocks, self.next_timer() or 0)

    @property
    def layout(self) -> dict[str, Any]:
        """Its layout."""
        layout: dict[str, Any] = json.loads(next(iter(self._arrays.values()))["layout"].tobytes())
        return layout | {"buckets": self.buckets}

    def next_timer(self) -> int | None:
        """When the first row leaves without a match, in milliseconds; None if none does."""
        first = next(iter(self._arrays.values()))
        how, window = self.layout["how"], json.loads(first["settings"].tobytes())["window"]
        ends = [
            int(arrays[f"rows.{side}.time"].min()) + window[i]
            for i, side in enumerate(SIDES)
            for arrays in self._arrays.values()
            if emits_unmatched(how, side)
            and window[i] is not None
            and len(arrays.get(f"rows.{side}.time", ()))
        ]
        return min(ends) // 1000 + 1 if ends else None

    def arrays(self) -> dict[str, Array | bytes]:
        """Its state without payload."""
        first = next(iter(self._arrays.values()))
        state: dict[str, Array | bytes] = dict(first)
        state["layout"] = json.dumps(self.layout, sort_keys=True).encode()
        state["settings"] = json.dumps(
            json.loads(first["settings"].tobytes()) | {"partition": self.number}
        ).encode()
        state["progress"] = self.progress.to_json()
        state.pop("grant", None)
        ids = self._new_ids()
        for name in [name for name in state if name.startswith("rows.")]:
            side: Side = "left" if name.startswith("rows.left.") else "right"
            columns = [
                ids[source, side] if name.endswith(".id") else arrays[name]
                for source, arrays in self._arrays.items()
                if name in arrays
            ]
            state[name] = np.concatenate(columns)
        counted = [self._arrays[source]["operator.tally"] for source in self._counted()]
        state["operator.tally"] = np.sum([np.zeros_like(first["operator.tally"]), *counted], axis=0)
        rows = [sum(len(ids[source, side]) for source in self._arrays) for side in SIDES]
        state["operator.counts"] = np.array([int(first["operator.counts"][0]), *rows], np.int64)
        for name in {"operator.latest", "operator.clocks"} & state.keys():
            state[name] = np.max([arrays[name] for arrays in self._arrays.values()], axis=0)
        state["operator.observed"] = np.zeros_like(first["operator.observed"])
        state["operator.kind"] = b""  # of no policy: nothing learned is continued
        for name in [name for name in state if name.startswith(_EVICTED)]:
            state[name] = np.max([arrays[name] for arrays in self._arrays.values()], axis=0)
        return state

    def payload(self) -> dict[Side, PayloadStore]:
        """The payload of its rows, by their new ids."""
        new_ids = self._new_ids()
        stores: dict[Side, PayloadStore] = {side: PayloadStore() for side in SIDES}
        for side, store in stores.items():
            tables = []
            for source, arrays in self._arrays.items():
                old = arrays.get(f"rows.{side}.id", np.empty(0, np.int64))
                for table in self._tables.get((source, side), []):
                    places = np.searchsorted(old, table.column(ID).to_numpy())
                    ids = new_ids[source, side][places]
                    tables.append(table.set_column(0, ID, pa.array(ids)))
            if not tables:
                continue
            whole = pa.concat_tables(tables, promote_options="permissive")
            whole = whole.take(pa.array(np.argsort(whole.column(ID).to_numpy(), kind="stable")))
            for chunk in _chunks(np.arange(whole.num_rows), whole.nbytes // whole.num_rows):
                part = whole.slice(chunk[0], len(chunk))
                store.append(part.column(ID).to_numpy(), part.drop_columns([ID]))
        return stores

    def _counted(self) -> list[int]:
        """The former buckets of which this is the first new one."""
        common = gcd(
            json.loads(next(iter(self._arrays.values()))["layout"].tobytes())["buckets"], self.buckets
        )
        return [source for source in self._arrays if source % common == self.number]

    def _new_ids(self) -> Mapping[tuple[int, Side], Array]:
        """The new ids of the rows of each former bucket and side."""
        places = [(source, side) for source in self._arrays for side in SIDES]
        none = np.empty(0, np.int64)
        ids = [self._arrays[source].get(f"rows.{side}.id", none) for source, side in places]
        times = [self._arrays[source].get(f"rows.{side}.time", none) for source, side in places]
        order = np.concatenate(ids)
        if len(self._arrays) > 1:
            order = np.lexsort((order, np.concatenate(times)))
        else:
            order = np.argsort(order, kind="stable")
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order))
        ends = np.cumsum([len(of) for of in ids])
        return dict(zip(places, np.split(ranks, ends[:-1]), strict=True))


def rescaled(saved: Mapping[int, SavedBucket], buckets: int) -> dict[int, MergedBucket]:
    """The new buckets from the former ones, all in memory."""
    merged = {number: MergedBucket(number, buckets) for number in range(buckets)}
    for source, bucket in saved.items():
        for target, kind, data in divide(bucket, source, buckets):
            merged[target].add(source, kind, data)
    return merged
