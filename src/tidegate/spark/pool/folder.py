"""The folder where the buckets of a pool exchange their status, as small JSON files.

| file | contents |
|---|---|
| `pool.json` | the budget and the members |
| `epoch-<name>.json` | a division of the budget |
| `bucket-<member>-<number>.json` | the last status of a bucket |

Files appear whole: they are written under another name and moved into place.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from pyarrow import fs

from tidegate.spark.pool.shares import (
    FIRST,
    BucketStatus,
    Epoch,
    Grant,
    WrittenPayoff,
    all_adopted,
    decide,
    next_epoch,
)
from tidegate.types import InputError

if TYPE_CHECKING:
    from tidegate.spark.pool.pool import PoolMember

_POOL: Final = "pool"
_EPOCH: Final = "epoch-"
_BUCKET: Final = "bucket-"
_KEPT_EPOCHS: Final = 8


class JsonFolder:
    """A folder of JSON files, on any file system that Arrow supports."""

    def __init__(self, path: str) -> None:
        self._fs, self._root = fs.FileSystem.from_uri(path)

    def names(self) -> list[str]:
        """The names of all complete files, sorted."""
        files = self._fs.get_file_info(fs.FileSelector(self._root, allow_not_found=True))
        return sorted(i.base_name.removesuffix(".json") for i in files if i.base_name.endswith(".json"))

    def read(self, name: str) -> dict[str, Any] | None:
        """The content of a file; None if it does not exist."""
        try:
            with self._fs.open_input_stream(f"{self._root}/{name}.json") as stream:
                content: dict[str, Any] = json.loads(stream.read())
                return content
        except FileNotFoundError:
            return None

    def write(self, name: str, content: dict[str, Any]) -> None:
        """Write a file; readers see it whole or not at all."""
        self._fs.create_dir(self._root, recursive=True)
        temporary = f"{self._root}/.{name}.{uuid.uuid4().hex}"
        with self._fs.open_output_stream(temporary) as stream:
            stream.write(json.dumps(content).encode())
        self._fs.move(temporary, f"{self._root}/{name}.json")

    def delete(self, name: str) -> None:
        """Delete a file."""
        self._fs.delete_file(f"{self._root}/{name}.json")


@dataclass(frozen=True)
class _FolderView:
    """The contents of the folder at one time."""

    pool: str
    in_force: str
    names: list[str]
    newest: Epoch | None

    @property
    def epoch(self) -> str:
        return self.newest.name if self.newest else FIRST


class PoolClient:
    """The access to a pool for one task of a member's query: it decides what each bucket of the task may hold.

    It reads the newest epoch and the one in force once, for all buckets of the task. A stale view is safe, since no
    bucket gets more before all others have adopted the epoch.
    """

    def __init__(self, member: PoolMember, buckets: int, query: str) -> None:
        self._member, self._buckets, self._query = member, buckets, query

    @cached_property
    def _folder(self) -> JsonFolder:
        return JsonFolder(str(self._member.pool.path))

    @cached_property
    def _view(self) -> _FolderView:
        pool = self._pool_id()
        # Read the leader first, so that its epoch in force is never newer than the newest epoch in the view.
        leader = self._status(next(iter(self._member.pool.weights)), 0)
        names = self._folder.names()
        newest = max((name for name in names if name.startswith(_EPOCH)), default=None)
        content = self._folder.read(newest) if newest else None
        epoch = Epoch(newest.removeprefix(_EPOCH), content["shares"]) if newest and content else None
        return _FolderView(pool, leader.in_force if leader else FIRST, names, epoch)

    def _pool_id(self) -> str:
        """Write the pool's settings, or check them if they are written; return the id of the pool."""
        expected = self._member.pool.plain()
        if self._folder.read(_POOL) is None:
            self._folder.write(_POOL, expected | {"id": uuid.uuid4().hex})
        # If two write at once, the later one counts, for both from their next micro-batch on.
        written = self._folder.read(_POOL) or {}
        differs = next((key for key in expected if written.get(key) != expected[key]), None)
        if differs is not None:
            raise InputError(
                f"the pool at {self._member.pool.path!r} was created with {differs}={written.get(differs)!r}, this "
                f"one has {expected[differs]!r}; change it back, or give another path"
            )
        return str(written["id"])

    def _status(self, member: str, bucket: int) -> BucketStatus | None:
        content = self._folder.read(_file(member, bucket))
        return BucketStatus(**content) if content else None

    def grant(
        self, bucket: int, batch: int, committed: Grant | None, first: int, payoff: WrittenPayoff | None
    ) -> Grant:
        """Decide what a bucket may hold after a micro-batch, and write it; the same if the micro-batch is run again.

        Parameters
        ----------
        bucket, batch
            The bucket, and the micro-batch that it begins.
        committed
            The grant in its state; None, or of another pool, for a state that was never in this one.
        first
            Its share in the first epoch.
        payoff
            Results by memory in this bucket.
        """
        view, name = self._view, self._member.name
        last = self._status(name, bucket)
        shares = view.newest.shares[name] if view.newest else None
        before = last.buckets if last else len(shares) if shares else self._buckets
        if before != self._buckets:
            raise InputError(
                f"{name!r} was in the pool at {self._member.pool.path!r} with {before} buckets, now it has "
                f"{self._buckets}; use {before} again, or give the pool another path"
            )
        same_pool = committed and committed.pool == view.pool
        now = committed if committed and same_pool else Grant(view.pool, FIRST, first)
        status = BucketStatus(
            self._query, batch, now.epoch, now.limit, now.epoch, self._buckets, payoff, view.in_force
        )
        if self._member.leads and bucket == 0:
            status = replace(status, in_force=self._lead(view, status))
        if last and (last.query, last.batch) == (self._query, batch):
            chosen = replace(now, epoch=last.epoch, limit=last.limit)
        else:
            chosen = decide(now, last, view.epoch, shares[bucket] if shares else first, status.in_force)
        status = replace(status, epoch=chosen.epoch, limit=chosen.limit)
        if status != last:
            self._folder.write(_file(name, bucket), status.plain())
        return chosen

    def _lead(self, view: _FolderView, mine: BucketStatus) -> str:
        """Put the newest epoch in force if all have adopted it, and then propose the next if shares change enough.

        Return the epoch in force.
        """
        pool, statuses = self._member.pool, {}
        for name in (name for name in view.names if name.startswith(_BUCKET)):
            member, _, bucket = name.removeprefix(_BUCKET).rpartition("-")
            content = self._folder.read(name)
            if content:
                statuses[member, int(bucket)] = BucketStatus(**content)
        statuses[self._member.name, 0] = mine
        if not all_adopted(list(pool.weights), statuses, view.epoch):
            return view.in_force
        after = next_epoch(pool.total.limit, pool.weights, statuses, view.newest)
        if after:
            self._folder.write(_EPOCH + after.name, {"shares": after.shares})
        for name in [name for name in view.names if name.startswith(_EPOCH)][:-_KEPT_EPOCHS]:
            self._folder.delete(name)
        return view.epoch


def _file(member: str, bucket: int) -> str:
    return f"{_BUCKET}{member}-{bucket}"
