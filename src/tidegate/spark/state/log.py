"""The state of a bucket as a log: a base, differences since then, and segments of payload.

| value in the state store | content |
|---|---|
| `manifest` | names, sizes and checksums of all that follows, and a token for this very state |
| `base-...` | all arrays, as of some micro-batch |
| `change-...` | what later micro-batches changed (`difference.py`) |
| `segment-...` | payload (`payload.py`) |

A micro-batch reads the manifest, and finds the arrays and segments that it needs in local files (`local_files.py`).
Their names contain a token, so a task that was moved, repeated or rolled back never sees the state of another
attempt. What has no local file is read from the state store, and checked. A micro-batch writes what it changed. Once
differences add up to the size of the base, a new base replaces them.

Spark commits or drops all values of a micro-batch together, so a manifest and what it names always belong together.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Self
from uuid import uuid4

import numpy as np
import pyarrow as pa

from tidegate.engine.snapshot import pack, unpack
from tidegate.spark.packing.packed_rows import from_bytes, to_buffer
from tidegate.spark.state.difference import applied, difference, sorted_by_id
from tidegate.spark.state.local_files import LocalFiles
from tidegate.spark.state.payload import PayloadStore, Segment
from tidegate.spark.state.values import Blob, DamagedStateError, DictValues, Values
from tidegate.types import InputError

if TYPE_CHECKING:
    from tidegate.types import Array

MANIFEST: Final = "manifest"
VERSION: Final = 1
_CHECKSUM_BYTES: Final = 4
_SMALLEST_BASE: Final = 1 << 16
"""Differences of fewer bytes than this are not worth a new base."""
_MOST_CHANGES: Final = 64
_BYTES: Final = "bytes"


@dataclass(frozen=True)
class Manifest:
    """What a saved state consists of.

    Parameters
    ----------
    token
        A name that no other state has: of another micro-batch, bucket, or attempt.
    store
        A name of the bucket's state, the same through its life.
    base
        All arrays as of some micro-batch.
    changes
        What has changed since, in order.
    segments
        By side, the described segments.
    """

    token: str
    store: str
    base: Blob
    changes: tuple[Blob, ...] = ()
    segments: Mapping[str, list[list[Any]]] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Write it, behind its checksum."""
        plain = {
            "version": VERSION,
            "token": self.token,
            "store": self.store,
            "base": self.base.described,
            "changes": [blob.described for blob in self.changes],
            "segments": self.segments,
        }
        data = json.dumps(plain).encode()
        return zlib.crc32(data).to_bytes(_CHECKSUM_BYTES, "little") + data

    @classmethod
    def of(cls, data: bytes) -> Self:
        """Read what `to_bytes` wrote."""
        content = data[_CHECKSUM_BYTES:]
        if int.from_bytes(data[:_CHECKSUM_BYTES], "little") != zlib.crc32(content):
            raise DamagedStateError("the manifest is damaged: its checksum is not the one that was written")
        plain = json.loads(content)
        if plain["version"] != VERSION:
            raise InputError(
                f"the state has version {plain['version']}, and this release reads version {VERSION}; continue with "
                "the release that wrote it, or start with a new checkpointLocation"
            )
        return cls(
            plain["token"],
            plain["store"],
            Blob.of(plain["base"]),
            tuple(map(Blob.of, plain["changes"])),
            plain["segments"],
        )

    def blobs(self) -> Iterable[Blob]:
        """All data that it names."""
        yield self.base
        yield from self.changes
        for segments in self.segments.values():
            yield from (Blob.of(described[-1]) for described in segments)

    def files(self) -> list[str]:
        """The names of local copies of this state."""
        names = [Blob.of(described[-1]).name for of_side in self.segments.values() for described in of_side]
        return [_arrays_file(self.token), *names]


class StateLog:
    """The state of one bucket.

    Parameters
    ----------
    values
        The bucket's values in the state store.
    local
        Whether copies are kept on the local disk.

    Examples
    --------
    >>> import numpy as np
    >>> from tidegate.spark.state.values import DictValues
    >>> values = DictValues()
    >>> StateLog(values, local=False).write({"count": np.array([3])})
    >>> StateLog(values, local=False).read()
    {'count': array([3])}
    """

    def __init__(self, values: Values, *, local: bool = True) -> None:
        self._values = values
        self._local = local
        self._manifest: Manifest | None = None
        self._arrays: dict[str, Array] = {}

    def read(self) -> dict[str, Array] | None:
        """The saved arrays, with the rows of each side in ascending order of id; None if nothing is saved."""
        data = self._values.get(MANIFEST)
        if data is None:
            return None
        self._manifest = manifest = Manifest.of(data)
        files = self._files(manifest)
        copy = files.read(_arrays_file(manifest.token)) if files else None
        self._arrays = unpack(copy) if copy is not None else self._replayed(manifest)
        return dict(self._arrays)

    def read_bytes(self) -> bytes | None:
        """What `write_bytes` saved; None if nothing is saved, or arrays are."""
        arrays = self.read()
        if arrays is None or _BYTES not in arrays:
            return None
        data: bytes = arrays[_BYTES].tobytes()
        return data

    def write_bytes(self, data: bytes, label: str = "") -> None:
        """Save a state that is small enough to be written whole."""
        self.write({_BYTES: data}, label=label)

    def payload(self, part: str) -> PayloadStore:
        """The saved segments of a side; they are loaded when they are needed."""
        if self._manifest is None:
            return PayloadStore()
        files = self._files(self._manifest)
        described = self._manifest.segments.get(part, [])
        return PayloadStore([Segment.saved(one, lambda blob: self._table(blob, files)) for one in described])

    def write(
        self,
        arrays: Mapping[str, Array | bytes],
        payload: Mapping[str, PayloadStore] | None = None,
        label: str = "",
    ) -> None:
        """Save a state in the place of the one that was read.

        Parameters
        ----------
        arrays
            All arrays; rows in any order.
        payload
            By side, the segments; those without live rows are removed.
        label
            Goes into the names of what is written, for people who read a checkpoint: the micro-batch.
        """
        old = self._manifest
        state = sorted_by_id(
            {name: np.frombuffer(a, np.uint8) if isinstance(a, bytes) else a for name, a in arrays.items()}
        )
        token = f"{label}-{uuid4().hex}"
        store = uuid4().hex if old is None else old.store
        new = self._with_arrays(old, state, token, store)
        files = self._files(new)
        new = replace(
            new, segments={part: self._saved(part, of, token, files) for part, of in (payload or {}).items()}
        )
        self._values.put(MANIFEST, new.to_bytes())
        if old is not None:
            kept = {blob.name for blob in new.blobs()}
            for blob in old.blobs():
                if blob.name not in kept:
                    blob.remove(self._values)
        if files:
            files.write(_arrays_file(token), pack(state))
            files.retain([*new.files(), *(old.files() if old else ())])
        self._manifest, self._arrays = new, state

    def _with_arrays(self, old: Manifest | None, state: dict[str, Array], token: str, store: str) -> Manifest:
        """A manifest of these arrays: a difference is added to the old one's, or a new base written."""
        if old is not None and len(old.changes) < _MOST_CHANGES:
            data = pack(difference(self._arrays, state), compressed=True)
            changed = len(data) + sum(blob.size for blob in old.changes)
            if changed < max(old.base.size, _SMALLEST_BASE):
                change = Blob.write(self._values, f"change-{token}", data)
                return Manifest(token, store, old.base, (*old.changes, change))
        return Manifest(token, store, Blob.write(self._values, f"base-{token}", pack(state, compressed=True)))

    def _saved(
        self, part: str, payload: PayloadStore, token: str, files: LocalFiles | None
    ) -> list[list[Any]]:
        """Save new segments; returns all of them as plain values."""
        described = []
        known = self._manifest.files() if self._manifest else []
        for number, segment in enumerate(payload.segments):
            if segment.blob is not None and segment.blob.name in known:
                described.append(segment.described)
                continue
            name = f"segment-{part}-{token}-{number}"
            table = segment.load()
            blob = Blob.write(self._values, name, to_buffer(table, "lz4"))
            if files:
                files.write(name, to_buffer(table))
            described.append(replace(segment, blob=blob).described)
        return described

    def _replayed(self, manifest: Manifest) -> dict[str, Array]:
        """The arrays from the state store: the base, and all changes since."""
        arrays = unpack(manifest.base.read(self._values))
        for blob in manifest.changes:
            arrays = applied(arrays, unpack(blob.read(self._values)))
        return arrays

    def _table(self, blob: Blob, files: LocalFiles | None) -> pa.Table:
        """A segment, from its local copy, which is made if there is none."""
        copy = files.read(blob.name, check=False) if files else None
        if copy is not None:
            return from_bytes(copy)
        table = from_bytes(blob.read(self._values))
        if files is None:
            return table
        files.write(blob.name, to_buffer(table))
        copy = files.read(blob.name, check=False)
        return table if copy is None else from_bytes(copy)

    def _files(self, manifest: Manifest) -> LocalFiles | None:
        return LocalFiles.of_bucket(manifest.store) if self._local else None


def _arrays_file(token: str) -> str:
    return f"arrays-{token}"


def saved_log(values: Iterable[Mapping[str, Any]]) -> StateLog:
    """The state of a bucket, from all of its values in a checkpoint."""
    return StateLog(DictValues({value["name"]: value["payload"] for value in values}), local=False)


def saved_logs(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, StateLog]]:
    """The states of buckets, by their labels, from rows of a checkpoint's state."""
    for batch in batches:
        for row in batch.to_pylist():
            yield row["bucket"], saved_log(row["values"])
