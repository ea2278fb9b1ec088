"""Where the buckets of a pool leave word for each other: small JSON files in a folder that all reach.

`pool.json` says what is divided, `epoch-<name>.json` how, `bucket-<member>-<number>.json` what that bucket told
last. Files appear whole: they are written under another name and moved into place.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from pyarrow import fs

from tidegate.spark.pool_shares import FIRST, Epoch, Standing, Told, Word, all_within, decide, proposed
from tidegate.types import InputError

if TYPE_CHECKING:
    from tidegate.spark.pool import Member

_POOL: Final = "pool"
_EPOCH: Final = "epoch-"
_BUCKET: Final = "bucket-"
_KEPT_EPOCHS: Final = 8


class Folder:
    """A folder of JSON files."""

    def __init__(self, path: str) -> None:
        self._fs, self._root = fs.FileSystem.from_uri(path)

    def names(self) -> list[str]:
        """All files that are in place, sorted."""
        found = self._fs.get_file_info(fs.FileSelector(self._root, allow_not_found=True))
        return sorted(i.base_name.removesuffix(".json") for i in found if i.base_name.endswith(".json"))

    def read(self, name: str) -> dict[str, Any] | None:
        """The content of a file, if it is there."""
        try:
            with self._fs.open_input_stream(f"{self._root}/{name}.json") as stream:
                content: dict[str, Any] = json.loads(stream.read())
                return content
        except FileNotFoundError:
            return None

    def write(self, name: str, content: dict[str, Any]) -> None:
        """Put a file in place, in one go."""
        self._fs.create_dir(self._root, recursive=True)
        aside = f"{self._root}/.{name}.{uuid.uuid4().hex}"
        with self._fs.open_output_stream(aside) as stream:
            stream.write(json.dumps(content).encode())
        self._fs.move(aside, f"{self._root}/{name}.json")

    def delete(self, name: str) -> None:
        """Take a file away."""
        self._fs.delete_file(f"{self._root}/{name}.json")


@dataclass(frozen=True)
class _View:
    """What the folder says at one time."""

    pool: str
    granted: str
    names: list[str]
    newest: Epoch | None

    @property
    def epoch(self) -> str:
        return self.newest.name if self.newest else FIRST


class Desk:
    """Where one task of one member's query looks up and writes down what its buckets may hold.

    It looks once at the newest epoch and at what is granted, for all buckets of the task: a view that grows old
    is safe, since no bucket gets more before all others are within the epoch.
    """

    def __init__(self, member: Member, buckets: int, query: str) -> None:
        self._member, self._buckets, self._query = member, buckets, query

    @cached_property
    def _folder(self) -> Folder:
        return Folder(str(self._member.pool.path))

    @cached_property
    def _view(self) -> _View:
        pool = self._agreed()
        # The grant first: so it is never of a later epoch than the newest that is seen.
        leader = self._word(next(iter(self._member.pool.weights)), 0)
        names = self._folder.names()
        newest = max((name for name in names if name.startswith(_EPOCH)), default=None)
        content = self._folder.read(newest) if newest else None
        epoch = Epoch(newest.removeprefix(_EPOCH), content["shares"]) if newest and content else None
        return _View(pool, leader.granted if leader else FIRST, names, epoch)

    def _agreed(self) -> str:
        """Write down what is divided, or refuse to divide anything else; returns which pool it is."""
        wanted = self._member.pool.plain()
        if self._folder.read(_POOL) is None:
            self._folder.write(_POOL, wanted | {"id": uuid.uuid4().hex})
        # Of two that wrote at once the later counts, for both by their next micro-batch.
        found = self._folder.read(_POOL) or {}
        differs = next((key for key in wanted if found.get(key) != wanted[key]), None)
        if differs is not None:
            raise InputError(
                f"the pool at {self._member.pool.path!r} was made with {differs}={found.get(differs)!r}, this one "
                f"has {wanted[differs]!r}; change it back, or give another path"
            )
        return str(found["id"])

    def _word(self, member: str, bucket: int) -> Word | None:
        content = self._folder.read(_file(member, bucket))
        return Word(**content) if content else None

    def standing(
        self, bucket: int, batch: int, committed: Standing | None, first: int, payoff: Told | None
    ) -> Standing:
        """Decide what a bucket may hold after a micro-batch, and tell the others; the same if that is run again.

        Parameters
        ----------
        bucket, batch
            Which bucket begins which micro-batch.
        committed
            What its state says; None, or of another pool, for a state that was never in this one.
        first
            Its share in the first epoch.
        payoff
            What memory yields in it.
        """
        view, name = self._view, self._member.name
        last = self._word(name, bucket)
        shares = view.newest.shares[name] if view.newest else None
        before = last.buckets if last else len(shares) if shares else self._buckets
        if before != self._buckets:
            raise InputError(
                f"{name!r} was in the pool at {self._member.pool.path!r} with {before} buckets, now it has "
                f"{self._buckets}; go on with as many, or give the pool another path"
            )
        ours = committed and committed.pool == view.pool
        now = committed if committed and ours else Standing(view.pool, FIRST, first)
        word = Word(self._query, batch, now.epoch, now.limit, now.epoch, self._buckets, payoff, view.granted)
        if self._member.leads and bucket == 0:
            word = replace(word, granted=self._lead(view, word))
        if last and (last.query, last.batch) == (self._query, batch):
            chosen = replace(now, epoch=last.epoch, limit=last.limit)
        else:
            chosen = decide(now, last, view.epoch, shares[bucket] if shares else first, word.granted)
        word = replace(word, epoch=chosen.epoch, limit=chosen.limit)
        if word != last:
            self._folder.write(_file(name, bucket), word.plain())
        return chosen

    def _lead(self, view: _View, mine: Word) -> str:
        """Grant the newest epoch if all are within it, and then propose the next if that is worth it.

        Returns what is granted.
        """
        pool, words = self._member.pool, {}
        for name in (name for name in view.names if name.startswith(_BUCKET)):
            member, _, bucket = name.removeprefix(_BUCKET).rpartition("-")
            content = self._folder.read(name)
            if content:
                words[member, int(bucket)] = Word(**content)
        words[self._member.name, 0] = mine
        if not all_within(list(pool.weights), words, view.epoch):
            return view.granted
        after = proposed(pool.total.limit, pool.weights, words, view.newest)
        if after:
            self._folder.write(_EPOCH + after.name, {"shares": after.shares})
        for name in [name for name in view.names if name.startswith(_EPOCH)][:-_KEPT_EPOCHS]:
            self._folder.delete(name)
        return view.epoch


def _file(member: str, bucket: int) -> str:
    return f"{_BUCKET}{member}-{bucket}"
