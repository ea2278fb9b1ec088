"""The draws of one step of a sampled join.

Each result belongs to its owner, the older of its two rows. The matches of buffered rows are only counted. Pairs are
formed only for rows that have reached a match that is drawn, so a small sample costs little more than counting.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from tidegate.compiled import kernel
from tidegate.engine.ages import Ages, Origin, note_ages
from tidegate.engine.matching import axes_of, placed
from tidegate.types import POLICY_PREFIX, SIDES, Pairs, Sampled, other_side

if TYPE_CHECKING:
    from tidegate.engine.buffer import Buffer
    from tidegate.engine.index import Index
    from tidegate.engine.removals import Places
    from tidegate.engine.retention import JoinStep
    from tidegate.sampling import Owners, RunningSampler
    from tidegate.types import Array, Side


@kernel
def _count_until_drawn(matches: Array, wait: Array, hits: Array) -> Array:
    """Count matches of rows; returns the rows that reach a drawn match, whose matches are not counted here."""
    due = np.empty(len(hits), np.int32)
    n = 0
    for i in range(len(hits)):
        if hits[i] > 0:
            if hits[i] >= wait[i]:
                due[n] = i
                n += 1
            else:
                matches[i] += hits[i]
                wait[i] -= wait.dtype.type(hits[i])
    return due[:n]


@kernel
def _count(matches: Array, owner: Array) -> None:
    """Count matches by owner."""
    for i in range(len(owner)):
        matches[owner[i]] += 1


@kernel
def _by_owner(left: Array, right: Array, at_left: Array, at_right: Array) -> tuple[Array, Array]:
    """Split these pairs into those that the left row owns, by the numbers of the rows, and those of the right one."""
    mine, others = np.empty(len(at_left), np.int32), np.empty(len(at_left), np.int32)
    n = 0
    for i in range(len(at_left)):
        mine[n] = others[i - n] = i
        n += left[at_left[i]] < right[at_right[i]]
    return mine[:n], others[: len(at_left) - n]


class SampledStep:
    """Draws from the results of one step.

    Parameters
    ----------
    step
        The step, with its arrivals among the candidates.
    sampling
        Draws the sample.
    arriving
        The owners among the arrivals, by side.

    Attributes
    ----------
    ages
        The results by age of the older row.
    exhausted
        By side, the positions of rows that own no further match that could be drawn.
    """

    def __init__(self, step: JoinStep, sampling: RunningSampler, arriving: Mapping[Side, Owners]) -> None:
        self._step = step
        self._sampling = sampling
        self._arriving = arriving
        self._new = {side: slice(step.fresh[side], len(step.state.buffers[side])) for side in SIDES}
        self.ages = Ages(sampling.forecaster.age_buckets(), step.state.clocks)
        self.exhausted: dict[Side, list[Array]] = {side: [] for side in SIDES}

    def draw(self) -> Iterator[Sampled]:
        """Draw from matches that buffered rows own, then from those that arrivals own; positions among candidates."""
        indexes: dict[Side, Index] = {}
        for side in SIDES:
            arrivals = axes_of(self._step.candidates[side], self._new[side])
            if len(arrivals.key):
                indexes[side] = self._step.matcher.index(side, arrivals)
        origins: tuple[tuple[Origin, Side], ...] = (("from_right", "right"), ("from_left", "left"))
        for origin, side in origins:
            other = other_side(side)
            if self._step.fresh[side] and other in indexes:
                yield from self._tallied(origin, self._of_buffered(origin, side, indexes[other]))
        if len(indexes) == len(SIDES):
            yield from self._tallied("from_step", self._of_arrivals(indexes["left"]))
        for side, owners in self._arriving.items():
            owners.end_step()
            write_owners(self._step.state.buffers[side], owners, self._new[side])
            self.exhausted[side].append(self._step.fresh[side] + np.flatnonzero(owners.exhausted()))

    def _tallied(self, origin: Origin, sampled: Iterator[Sampled]) -> Iterator[Sampled]:
        for some in sampled:
            self._step.state.tally.add(origin, len(some.left))
            yield some

    def _of_buffered(self, origin: Origin, side: Side, index: Index) -> Iterator[Sampled]:
        """Sample matches that buffered rows of a side own."""
        watch, other = self.ages.watch(origin), other_side(side)
        count, arrivals = self._step.fresh[side], self._new[other]
        rows = self._step.candidates[side]
        places: Places = slice(0, count)
        axes = axes_of(rows, places)
        count_ages = len(watch.counts[0]) > 0
        wait = rows.policy_columns.get("wait")
        if wait is not None:
            hits = np.zeros(count, np.int32)
            index.count(axes, (np.zeros(arrivals.stop - arrivals.start, np.int32), hits), watch=watch)
            count_ages = False  # the index has counted them
            places = _count_until_drawn(rows.matches, wait, hits)
        if isinstance(places, slice) or len(places):
            axes = axes_of(rows, places)
            owners = self._sampling.owners_of(rows.take(places))
            at: dict[Side, Places] = {side: places, other: arrivals}
            times = {which: some.time for which, some in self._step.candidates.items()}
            for local in index.pairs(axes, self._step.chunk):
                if wait is None:
                    _count(rows.matches, local.left if side == "left" else local.right)
                if count_ages:
                    found = {"left": local.left, "right": local.right}
                    at_owner, at_other = (placed(at[which], found[which]) for which in (side, other))
                    note_ages(watch, times[side], times[other], at_owner, at_other)
                yield from self._drawn(owners, side, local, slice(None), at)
            if not isinstance(places, slice):
                write_owners(self._step.state.buffers[side], owners, places)
                self.exhausted[side].append(places[owners.exhausted()])
        self.ages.add(origin, watch)

    def _of_arrivals(self, index: Index) -> Iterator[Sampled]:
        """Sample matches of arrivals with each other: the one that came first owns them."""
        rows, watch = self._step.candidates, self.ages.watch("from_step")
        arrivals = {side: rows[side].take(self._new[side]) for side in SIDES}
        for local in index.pairs(axes_of(rows["right"], self._new["right"]), self._step.chunk):
            note_ages(watch, arrivals["right"].time, arrivals["left"].time, local.right, local.left)
            owned = _by_owner(arrivals["left"].id, arrivals["right"].id, local.left, local.right)
            for side, mine in zip(SIDES, owned, strict=True):
                yield from self._drawn(self._arriving[side], side, local, mine, self._new)
        self.ages.add("from_step", watch)

    def _drawn(
        self,
        owners: Owners,
        side: Side,
        local: Pairs,
        mine: Places,
        at: Mapping[Side, Places],
    ) -> Iterator[Sampled]:
        """Draw from the matches that rows of this side own.

        A residual condition is evaluated for drawn matches only. It does not affect the draws of other matches.

        Parameters
        ----------
        owners
            The owners of the matches.
        side
            Their side.
        local
            Matches, as positions among the rows at `at`.
        mine
            Which of these matches the owners own.
        at
            The positions of the rows in the buffers.
        """
        found, probability, shown = owners.draw((local.left if side == "left" else local.right)[mine])
        if not isinstance(mine, slice):
            found = mine[found]
        left, right = placed(at["left"], local.left[found]), placed(at["right"], local.right[found])
        ids = self._step.state.buffers[side].rows.id[left if side == "left" else right]
        sampled = Sampled(left, right, probability, ids, shown)
        if self._step.residual is not None and len(left):
            sampled = sampled.take(self._step.residual(Pairs(left, right)))
        if len(sampled.left):
            yield sampled


def write_owners(buffer: Buffer, owners: Owners, places: Places) -> None:
    """Write what owners know of their rows into a buffer."""
    matches = owners.matches()
    if matches is not None:
        buffer.write("matches", places, matches)
    for name, column in owners.policy_columns().items():
        buffer.write(POLICY_PREFIX + name, places, column)
