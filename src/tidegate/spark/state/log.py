"""The state of a bucket as a log: a base, differences since then, and segments of payload.

| value in the state store | content |
|---|---|
| `manifest` | names, sizes and checksums of the other values, and a token that identifies this state |
| `base-...` | all arrays, as of some micro-batch |
| `change-...` | what later micro-batches changed (`difference.py`) |
| `segment-...` | payload (`payload.py`) |

A micro-batch reads the manifest, and finds the arrays and segments that it needs in local files (`local_files.py`).
Their names contain a token, so a task that was moved, repeated or rolled back never sees the state of another
attempt. Data without a local file is read from the state store, and checked. A micro-batch writes what it changed.
When the differences are as large as the base, a new base replaces them.

Spark commits or drops all values of a micro-batch together, so a manifest always fits the data that it names.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self
from uuid import uuid4

import numpy as np
import pyarrow as pa

from tidegate.engine.snapshot import pack, unpack
from tidegate.spark.packing.arrow_bytes import from_bytes, write_stream
from tidegate.spark.state.difference import apply_difference, difference, sorted_by_id
from tidegate.spark.state.local_files import LocalFiles
from tidegate.spark.state.payload import PayloadStore, Segment
from tidegate.spark.state.values import (
    CHUNK_BYTES,
    Blob,
    BlobWriter,
    DamagedStateError,
    DictValueStore,
    ValueStore,
)
from tidegate.types import InputError

if TYPE_CHECKING:
    from tidegate.types import Array

MANIFEST: Final = "manifest"
VERSION: Final = 1
_CHECKSUM_BYTES: Final = 4
_MIN_BASE_BYTES: Final = 1 << 16
"""A new base is written only if the differences have at least this many bytes."""
_MAX_CHANGES: Final = 64


@dataclass(frozen=True)
class Manifest:
    """What a saved state consists of.

    Parameters
    ----------
    token
        A unique name: no state of another micro-batch, bucket or attempt has it.
    store
        The name of the bucket's state, which never changes.
    base
        All arrays as of some micro-batch.
    changes
        The differences since then, in order.
    segments
        By side, the segments as plain values.
    """

    token: str
    store: str
    base: Blob
    changes: tuple[Blob, ...] = ()
    segments: Mapping[str, list[list[Any]]] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """The checksum, then the manifest as JSON."""
        fields = {
            "version": VERSION,
            "token": self.token,
            "store": self.store,
            "base": self.base.described,
            "changes": [blob.described for blob in self.changes],
            "segments": self.segments,
        }
        data = json.dumps(fields).encode()
        return zlib.crc32(data).to_bytes(_CHECKSUM_BYTES, "little") + data

    @classmethod
    def of(cls, data: bytes) -> Self:
        """Read what `to_bytes` wrote."""
        content = data[_CHECKSUM_BYTES:]
        if int.from_bytes(data[:_CHECKSUM_BYTES], "little") != zlib.crc32(content):
            raise DamagedStateError("the manifest is damaged: its checksum is not the one that was written")
        fields = json.loads(content)
        if fields["version"] != VERSION:
            raise InputError(
                f"the state has version {fields['version']}, and this release reads version {VERSION}; continue with "
                "the release that wrote it, or start with a new checkpointLocation"
            )
        return cls(
            fields["token"],
            fields["store"],
            Blob.of(fields["base"]),
            tuple(map(Blob.of, fields["changes"])),
            fields["segments"],
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
    >>> from tidegate.spark.state.values import DictValueStore
    >>> values = DictValueStore()
    >>> StateLog(values, local=False).write({"count": np.array([3])})
    >>> StateLog(values, local=False).read()
    {'count': array([3])}
    """

    def __init__(self, values: ValueStore, *, local: bool = True) -> None:
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
        self._arrays = unpack(copy) if copy is not None else self._replay(manifest)
        return dict(self._arrays)

    def payload(self, part: str) -> PayloadStore:
        """The saved segments of a side; they are loaded when they are needed."""
        if self._manifest is None:
            return PayloadStore()
        files = self._files(self._manifest)
        described = self._manifest.segments.get(part, [])
        return PayloadStore(
            [Segment.saved(one, lambda blob, anew: self._table(blob, files, anew=anew)) for one in described]
        )

    def write(
        self,
        arrays: Mapping[str, Array | bytes],
        payload: Mapping[str, PayloadStore] | None = None,
        label: str = "",
    ) -> None:
        """Save a state. It replaces the one that was read.

        Parameters
        ----------
        arrays
            All arrays; rows in any order.
        payload
            By side, the segments; those without live rows are removed.
        label
            The micro-batch. It is part of the names of values, which makes a checkpoint easier to read.
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
            new,
            segments={
                part: self._save_segments(part, of, token, files) for part, of in (payload or {}).items()
            },
        )
        self._values.put(MANIFEST, new.to_bytes())
        if old is not None:
            kept = {blob.name for blob in new.blobs()}
            for blob in old.blobs():
                if blob.name not in kept:
                    blob.remove(self._values)
        # The arrays may be views of what the next step changes, so a later write compares with a copy.
        data = pack(state)
        if files:
            files.write(_arrays_file(token), lambda file: file.write(data))
            files.retain([*new.files(), *(old.files() if old else ())])
        self._manifest, self._arrays = new, unpack(data)

    def _with_arrays(self, old: Manifest | None, state: dict[str, Array], token: str, store: str) -> Manifest:
        """Write the arrays, as a difference or as a new base, and return a manifest of them."""
        if old is not None and len(old.changes) < _MAX_CHANGES:
            data = pack(difference(self._arrays, state), compressed=True)
            changed = len(data) + sum(blob.size for blob in old.changes)
            if changed < max(old.base.size, _MIN_BASE_BYTES):
                change = Blob.write(self._values, f"change-{token}", data)
                return Manifest(token, store, old.base, (*old.changes, change))
        return Manifest(token, store, Blob.write(self._values, f"base-{token}", pack(state, compressed=True)))

    def _save_segments(
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
            # Rows that are converted after a restart come from an older segment.
            table = segment.load(anew=True)
            with BlobWriter(self._values, name) as writer:
                rows = max(1, CHUNK_BYTES * segment.rows // max(1, segment.nbytes))
                # By small batches, because a batch is compressed as a whole before it is written.
                write_stream(writer, table, compression="lz4", rows=rows)
            if files:
                files.write(name, partial(write_stream, table=table))
            described.append(replace(segment, blob=writer.blob).described)
        return described

    def _replay(self, manifest: Manifest) -> dict[str, Array]:
        """The arrays from the state store: the base, and all changes since."""
        arrays = unpack(manifest.base.read(self._values))
        for blob in manifest.changes:
            arrays = apply_difference(arrays, unpack(blob.read(self._values)))
        return arrays

    def _table(self, blob: Blob, files: LocalFiles | None, *, anew: bool) -> pa.Table:
        """Read a segment from its local copy, which is created if there is none, or if it is damaged."""
        copy = files.read(blob.name, anew=anew) if files else None
        if copy is not None:
            return from_bytes(copy)
        table = from_bytes(blob.read(self._values)).combine_chunks()
        if files is None:
            return table
        files.write(blob.name, partial(write_stream, table=table))
        copy = files.read(blob.name, anew=False)
        return table if copy is None else from_bytes(copy)

    def _files(self, manifest: Manifest) -> LocalFiles | None:
        return LocalFiles.of_bucket(manifest.store) if self._local else None


def _arrays_file(token: str) -> str:
    return f"arrays-{token}"


def saved_log(values: Iterable[Mapping[str, Any]]) -> StateLog:
    """The state of a bucket, from all of its values in a checkpoint."""
    return StateLog(DictValueStore({value["name"]: value["payload"] for value in values}), local=False)


def saved_logs(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, StateLog]]:
    """The states of buckets, by their labels, from rows of a checkpoint's state."""
    for batch in batches:
        for row in batch.to_pylist():
            yield row["bucket"], saved_log(row["values"])
