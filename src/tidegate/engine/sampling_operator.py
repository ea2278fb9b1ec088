"""The join of which a sample leaves: an operator that asks a sampler instead of a policy.

Each result belongs to the older of its rows. Of the buffered rows only the number of their matches is counted, and
pairs are formed for those alone that have come to one that leaves; so a small sample costs little more than counting.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from tidegate.compiled import kernel
from tidegate.engine.ages import Ages, Origin, Watch, note_ages
from tidegate.engine.fates import Fates, Places
from tidegate.engine.index import PAIRS_AT_A_TIME, Index
from tidegate.engine.operator import Join, Operator, Outcome, Residual, axes_of, placed
from tidegate.sampling import find
from tidegate.types import (
    FOREVER,
    SIDES,
    Budget,
    InputError,
    Pairs,
    Rows,
    Sampled,
    as_part,
    other_side,
    parts_of,
)

if TYPE_CHECKING:
    from tidegate.engine.arrivals import Floors, Moment
    from tidegate.sampling import Owners, Sampler
    from tidegate.types import Array, Side

_NOBODY: Final = np.empty(0, np.int64)
_ROW_BYTES: Final = 32
"""What a row takes before anything is noted of it: key, time, number and matches."""


@kernel
def _due(matches: Array, wait: Array, hits: Array) -> Array:
    """Count matches of rows; returns those that have come to one that leaves, of which none is counted yet."""
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
    """Count matches by whose they are."""
    for i in range(len(owner)):
        matches[owner[i]] += 1


@kernel
def _by_owner(left: Array, right: Array, at_left: Array, at_right: Array) -> tuple[Array, Array]:
    """Which of these pairs the left row owns, by the numbers of the rows, and which the right one."""
    mine, others = np.empty(len(at_left), np.int32), np.empty(len(at_left), np.int32)
    n = 0
    for i in range(len(at_left)):
        mine[n] = others[i - n] = i
        n += left[at_left[i]] < right[at_right[i]]
    return mine[:n], others[: len(at_left) - n]


class SamplingOperator(Operator):
    """A running join of which a sample leaves.

    Parameters
    ----------
    join
        What is joined, within what budget; its policy has no say. The sides share the budget, and arrivals are
        matched before room is made.
    sampler
        Which results leave, as an object or by name.

    Examples
    --------
    >>> from tidegate.engine.arrivals import arrange
    >>> from tidegate.engine.operator import collected
    >>> from tidegate.sampling import EqCluster
    >>> from tidegate.types import Window
    >>> stream = {"key": np.array([1, 2, 1]), "time": np.array([0, 1, 2])}
    >>> operator = SamplingOperator(Join(Window(5, 5)), EqCluster(p=1.0))
    >>> arrivals = arrange(stream, stream, Window(5, 5), None)
    >>> steps = arrivals.steps(arrivals.cuts(2), whole_instants=False)
    >>> chunks = [chunk for step in steps for chunk in collected(operator.step(*step))[0]]
    >>> sorted(np.concatenate([chunk.owner for chunk in chunks]).tolist())
    [0, 0, 1, 2, 4]
    """

    def __init__(self, join: Join, sampler: Sampler | str) -> None:
        if join.order != "probe-first" or join.split != "shared":
            raise InputError(
                f"a sampler cannot work with order={join.order!r} and split={join.split!r}; use 'probe-first' and "
                "'shared'"
            )
        if join.budget and join.budget.unit == "bytes" and join.budget.limit <= _ROW_BYTES:
            raise InputError(
                f"a budget of {join.budget.limit} bytes holds no row; a row takes more than {_ROW_BYTES}"
            )
        super().__init__(join)
        self.sampling = find(sampler).start(join.setting())

    @property
    def _budget(self) -> Budget:
        return self.join.budget or Budget(rows=FOREVER)

    def step(
        self,
        left: Rows,
        right: Rows,
        moment: Moment,
        *,
        pairs: bool = True,
        residual: Residual | None = None,
        chunk: int = PAIRS_AT_A_TIME,
        firsts: bool = False,
    ) -> Generator[Sampled, None, Outcome]:
        """Sample the matches of arrivals with what is buffered and with each other, then make room.

        Yields what leaves in bounded chunks, as positions among the candidates, and must be run to its end.

        Parameters
        ----------
        left, right
            The arrivals, each in order of time.
        moment
            The time, and what may still come.
        pairs
            Whether to yield what leaves, or only to count it.
        residual
            A further condition: a mask of the pairs that are results indeed.
        chunk
            How many pairs are formed at a time, at most.
        firsts
            Not for samples.
        """
        if firsts:
            raise InputError("a sample does not tell who matched for the first time; leave out firsts")
        fresh = {side: len(self.buffers[side]) for side in SIDES}
        watched = self.sampling.expecting.watched({side: self.buffers[side].rows for side in SIDES})
        self.sampling.observe({"left": left, "right": right}, moment.now)
        spent: dict[Side, list[Array]] = {side: [] for side in SIDES}
        arriving: dict[Side, Owners] = {}
        for rows in (left, right):
            noted, arriving[rows.side] = self.sampling.admitted(rows)
            self._take_up(noted)
        before, ages = self.tally.results, Ages(self.sampling.expecting.watches(), self.now)
        for sampled in self._sampled(fresh, arriving, spent, ages, chunk, residual):
            if pairs:
                yield sampled
        for side, owners in arriving.items():
            owners.end_step()
            self._write(side, owners, slice(fresh[side], len(self.buffers[side])))
            spent[side].append(fresh[side] + np.flatnonzero(owners.useless()))
        candidates = {side: self.buffers[side].rows for side in SIDES}
        self.sampling.expecting.observe_met(watched, candidates, moment.now)
        self.sampling.expecting.observe_matches(candidates, fresh, ages.by_side(), moment.now)
        self.now = moment.now
        self.shown += 1
        fates = Fates({side: len(rows) for side, rows in candidates.items()})
        self._let_go(fates, spent, moment.end)
        self._thin(fates)
        candidates = {side: self.buffers[side].rows for side in SIDES}
        outcome = self._ended(candidates, fates, moment.now, self.tally.results - before, _NOBODY)
        self.sampling.settle(moment.now, self.rows, self._room())
        return outcome

    def _sampled(
        self,
        fresh: dict[Side, int],
        arriving: dict[Side, Owners],
        spent: dict[Side, list[Array]],
        ages: Ages,
        chunk: int,
        residual: Residual | None,
    ) -> Iterator[Sampled]:
        """The sample of one step: of matches that buffered rows own, then of those of the arrivals."""
        spans = (self.join.window.length("left"), self.join.window.length("right"))
        new = {side: slice(fresh[side], len(self.buffers[side])) for side in SIDES}
        indexes: dict[Side, Index] = {}
        for side in SIDES:
            arrivals = axes_of(self.buffers[side].rows, new[side])
            if len(arrivals.key):
                indexes[side] = Index(side, arrivals, self.join.condition, *spans)
        origins: tuple[tuple[Origin, Side], ...] = (("from_right", "right"), ("from_left", "left"))
        for origin, side in origins:
            other = other_side(side)
            if fresh[side] and other in indexes:
                watch = ages.watch(origin)
                matching = self._of_buffered(
                    side, indexes[other], fresh[side], new[other], watch, chunk, residual, spent[side]
                )
                yield from self._tallied(origin, matching)
                ages.add(origin, watch)
        if len(indexes) == len(SIDES):
            watch = ages.watch("from_step")
            yield from self._tallied(
                "from_step", self._of_arrivals(indexes["left"], arriving, new, watch, chunk, residual)
            )
            ages.add("from_step", watch)

    def _tallied(self, origin: Origin, sampled: Iterator[Sampled]) -> Iterator[Sampled]:
        for some in sampled:
            setattr(self.tally, origin, getattr(self.tally, origin) + len(some.left))
            yield some

    def _of_buffered(
        self,
        side: Side,
        index: Index,
        count: int,
        arrivals: slice,
        watch: Watch,
        chunk: int,
        residual: Residual | None,
        spent: list[Array],
    ) -> Iterator[Sampled]:
        """Sample matches that buffered rows of a side own."""
        rows, other = self.buffers[side].rows, other_side(side)
        places: Places = slice(0, count)
        axes = axes_of(rows, places)
        watched = len(watch.counts[0]) > 0
        if rows.wait is not None:
            hits = np.zeros(count, np.int32)
            index.count(axes, (np.zeros(arrivals.stop - arrivals.start, np.int32), hits), watch=watch)
            watched = False
            places = _due(rows.matches, rows.wait, hits)
            if not len(places):
                return
            axes = axes_of(rows, places)
        owners = self.sampling.begin(rows.take(places))
        at: dict[Side, Places] = {side: places, other: arrivals}
        times = {which: self.buffers[which].rows.time for which in SIDES}
        for local in index.pairs(axes, chunk):
            if rows.wait is None:
                _count(rows.matches, local.left if side == "left" else local.right)
            if watched:
                found = {"left": local.left, "right": local.right}
                at_owner, at_other = (placed(at[which], found[which]) for which in (side, other))
                note_ages(watch, times[side], times[other], at_owner, at_other)
            yield from self._leaving(owners, side, local, slice(None), at, residual)
        if not isinstance(places, slice):
            self._write(side, owners, places)
            spent.append(places[owners.useless()])

    def _of_arrivals(
        self,
        index: Index,
        owners: dict[Side, Owners],
        new: dict[Side, slice],
        watch: Watch,
        chunk: int,
        residual: Residual | None,
    ) -> Iterator[Sampled]:
        """Sample matches of arrivals with each other: the one that came first owns them."""
        rows = {side: self.buffers[side].rows for side in SIDES}
        arrivals = {side: rows[side].take(new[side]) for side in SIDES}
        for local in index.pairs(axes_of(rows["right"], new["right"]), chunk):
            note_ages(watch, arrivals["right"].time, arrivals["left"].time, local.right, local.left)
            owned = _by_owner(arrivals["left"].id, arrivals["right"].id, local.left, local.right)
            for side, mine in zip(SIDES, owned, strict=True):
                yield from self._leaving(owners[side], side, local, mine, new, residual)

    def _leaving(
        self,
        owners: Owners,
        side: Side,
        local: Pairs,
        mine: Places,
        at: Mapping[Side, Places],
        residual: Residual | None,
    ) -> Iterator[Sampled]:
        """What leaves of those matches, found among the rows at some places, that are owned by this side.

        A residual condition is asked of what was drawn alone: each draw is by itself, so what it rejects takes
        nothing from the rest.
        """
        found, probability, shown = owners.picked((local.left if side == "left" else local.right)[mine])
        if not isinstance(mine, slice):
            found = mine[found]
        left, right = placed(at["left"], local.left[found]), placed(at["right"], local.right[found])
        ids = self.buffers[side].rows.id[left if side == "left" else right]
        sampled = Sampled(left, right, probability, ids, shown)
        if residual is not None and len(left):
            sampled = sampled.take(residual(Pairs(left, right)))
        if len(sampled.left):
            yield sampled

    def _write(self, side: Side, owners: Owners, places: Places) -> None:
        for name, column in owners.noted().items():
            self.buffers[side].write(name, places, column)

    def _let_go(self, fates: Fates, spent: dict[Side, list[Array]], floors: Floors) -> None:
        """Mark who has expired, or has no match left that could leave."""
        for side in SIDES:
            rows = self.buffers[side].rows
            gone = np.zeros(len(rows), bool)
            for places in spent[side]:
                gone[places] = True
            gone[self._expired(rows, floors, 0)] = True
            fates.expire(side, np.flatnonzero(gone))

    def _thin(self, fates: Fates) -> None:
        """Lower the probability, for rows that are held, too, until they fit.

        Rows of a higher probability than new draws have are thinned to that first: it may be enough.
        """
        budget, lowering = self._budget, False
        while True:
            rows = {side: self.buffers[side].rows for side in SIDES}
            excess = self._excess(rows, fates, SIDES, budget)
            if excess <= 0:
                return
            places = {side: fates.staying(side) for side in SIDES}
            staying = {side: rows[side].take(places[side]) for side in SIDES}
            thinned = self.sampling.thinned(staying, excess + budget.limit, budget.limit, lower=lowering)
            lowering = True
            for side, owners in thinned.items():
                self._write(side, owners, places[side])
                fates.evict(side, places[side][owners.useless()])

    def thin(self) -> None:
        """Thin rows that were drawn with a higher probability than new draws have to that one, between steps."""
        rows = {side: self.buffers[side].rows for side in SIDES}
        for side, owners in self.sampling.thinned(rows, self.rows, self._room(), lower=False).items():
            self._write(side, owners, slice(0, len(rows[side])))
            self.buffers[side].drop(np.flatnonzero(owners.useless()))

    def _room(self) -> float:
        """How many rows the budget holds."""
        if self._budget.unit == "rows" or not self.rows:
            return self._budget.limit
        return self._budget.limit / (self.nbytes / self.rows)

    def _state(self) -> dict[str, Array]:
        state = super()._state()
        state |= as_part("sampler", self.sampling.snapshot())
        state["sampler"] = np.frombuffer(self.sampling.kind().encode(), np.uint8)
        return state

    def _resume(self, state: dict[str, Array], *, policy: bool) -> None:
        """Go on from a snapshot; rows that another sampler chose are no sample of this one's, and are dropped."""
        said = state.pop("sampler", _NOBODY).tobytes().decode()
        super()._resume(state, policy=policy)
        if policy and said == self.sampling.kind():
            self.sampling.restore(parts_of(state)["sampler"])
        else:
            for buffer in self.buffers.values():
                buffer.drop(np.arange(len(buffer)))
