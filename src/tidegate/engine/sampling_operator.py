"""The sampled join: an operator that returns the results that a sampler draws.

Each result belongs to its owner, the older of its two rows. The matches of buffered rows are only counted. Pairs are
formed only for rows that have reached a match that is drawn, so a small sample costs little more than counting.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from tidegate.compiled import kernel
from tidegate.engine.ages import Ages, Origin, Watch, note_ages
from tidegate.engine.buffer import Buffer
from tidegate.engine.index import PAIRS_AT_A_TIME, Index
from tidegate.engine.join_state import JoinState, StepOutcome, excess
from tidegate.engine.matching import Matcher, Residual, axes_of, placed
from tidegate.engine.removals import Places, StepRemovals
from tidegate.engine.snapshot import pack, unpack
from tidegate.sampling import find
from tidegate.types import (
    FOREVER,
    POLICY_PREFIX,
    SIDES,
    Budget,
    InputError,
    Pairs,
    Rows,
    Sampled,
    Step,
    as_part,
    other_side,
    parts_of,
)

if TYPE_CHECKING:
    from tidegate.engine.arrivals import EarliestTimes, Moment
    from tidegate.engine.operator import Join
    from tidegate.engine.tally import Tally
    from tidegate.sampling import Owners, Sampler
    from tidegate.types import Array, Side, Time

_ROW_BYTES: Final = 32
"""The bytes of a row without a sampler's columns: key, time, number and matches."""


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


class SamplingOperator:
    """A running join that returns a sample of its results.

    It has no policy: memory is freed by lowering the probability with which rows are sampled.

    Parameters
    ----------
    join
        What is joined, within what budget. The sides share the budget, and arrivals are matched before rows are
        removed; the policy of the join is not used.
    sampler
        Which results are returned, as an object or by name.

    Examples
    --------
    >>> from tidegate.engine.arrivals import arrange
    >>> from tidegate.engine.operator import Join, collected
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
                f"a sampled join needs order='probe-first' and split='shared'; "
                f"got order={join.order!r} and split={join.split!r}"
            )
        if join.budget and join.budget.unit == "bytes" and join.budget.limit <= _ROW_BYTES:
            raise InputError(
                f"budget must be more than {_ROW_BYTES} bytes, the size of one row; got {join.budget.limit} bytes"
            )
        self.join = join
        self.sampling = find(sampler).start(join.setting())
        self.state = JoinState(join.window)
        self.matcher = Matcher(join.window, join.condition, join.combine)

    @property
    def buffers(self) -> dict[Side, Buffer]:
        """The buffered rows of each side."""
        return self.state.buffers

    @property
    def tally(self) -> Tally:
        """What was counted since the start."""
        return self.state.tally

    @property
    def now(self) -> Time:
        """The time at the end of the last step."""
        return self.state.clocks.now

    @property
    def rows(self) -> int:
        """The number of buffered rows."""
        return self.state.rows

    @property
    def nbytes(self) -> int:
        """The bytes of the buffered rows, payload included."""
        return self.state.nbytes

    def limit(self, budget: Budget) -> None:
        """Set another budget, from the next step on; a smaller one makes that step remove more rows."""
        self.join = replace(self.join, budget=budget)

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
    ) -> Generator[Sampled, None, StepOutcome]:
        """Sample the matches of arrivals with buffered rows and with each other, then remove rows.

        Yields the sample in bounded chunks, as positions among the candidates. It must be run to its end.

        Parameters
        ----------
        left, right
            The arrivals, each in order of time.
        moment
            The time, and what may still come.
        pairs
            Whether to yield the sample, or only to count it.
        residual
            A further condition: a mask of the pairs that are results.
        chunk
            The largest number of pairs that are formed at a time.
        """
        state = self.state
        fresh = {side: len(buffer) for side, buffer in state.buffers.items()}
        tracked = self.sampling.forecaster.track(state.candidates())
        self.sampling.observe({"left": left, "right": right}, moment.clocks)
        exhausted: dict[Side, list[Array]] = {side: [] for side in SIDES}
        arriving: dict[Side, Owners] = {}
        for rows in (left, right):
            admitted, arriving[rows.side] = self.sampling.admit(rows)
            state.append(admitted)
        before, ages = state.tally.results, Ages(self.sampling.forecaster.age_buckets(), state.clocks)
        for sampled in self._sampled(fresh, arriving, exhausted, ages, chunk, residual):
            if pairs:
                yield sampled
        for side, owners in arriving.items():
            owners.end_step()
            self._write(side, owners, slice(fresh[side], len(state.buffers[side])))
            exhausted[side].append(fresh[side] + np.flatnonzero(owners.exhausted()))
        candidates = state.candidates()
        self.sampling.forecaster.observe_tracked(tracked, candidates, state.clocks, moment.clocks)
        since = state.since(moment.clocks)
        observed = Step(state.number, since, moment.clocks, candidates, fresh, {}, ages.by_side())
        self.sampling.forecaster.observe_matches(observed)
        state.clocks = moment.clocks
        removals = StepRemovals({side: len(rows) for side, rows in candidates.items()})
        self._expire(removals, exhausted, moment.end)
        self._thin(removals)
        outcome = state.finish_step(state.candidates(), removals, moment.clocks, state.tally.results - before)
        self.sampling.update_probability(moment.now, self.rows, self._room())
        return outcome

    def _sampled(
        self,
        fresh: dict[Side, int],
        arriving: dict[Side, Owners],
        exhausted: dict[Side, list[Array]],
        ages: Ages,
        chunk: int,
        residual: Residual | None,
    ) -> Iterator[Sampled]:
        """The sample of one step: of matches that buffered rows own, then of those that arrivals own."""
        new = {side: slice(fresh[side], len(self.state.buffers[side])) for side in SIDES}
        indexes: dict[Side, Index] = {}
        for side in SIDES:
            arrivals = axes_of(self.state.buffers[side].rows, new[side])
            if len(arrivals.key):
                indexes[side] = self.matcher.index(side, arrivals)
        origins: tuple[tuple[Origin, Side], ...] = (("from_right", "right"), ("from_left", "left"))
        for origin, side in origins:
            other = other_side(side)
            if fresh[side] and other in indexes:
                watch = ages.watch(origin)
                matching = self._of_buffered(
                    side, indexes[other], fresh[side], new[other], watch, chunk, residual, exhausted[side]
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
            self.state.tally.add(origin, len(some.left))
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
        exhausted: list[Array],
    ) -> Iterator[Sampled]:
        """Sample matches that buffered rows of a side own."""
        rows, other = self.state.buffers[side].rows, other_side(side)
        places: Places = slice(0, count)
        axes = axes_of(rows, places)
        count_ages = len(watch.counts[0]) > 0
        wait = rows.policy_columns.get("wait")
        if wait is not None:
            hits = np.zeros(count, np.int32)
            index.count(axes, (np.zeros(arrivals.stop - arrivals.start, np.int32), hits), watch=watch)
            count_ages = False  # the index has counted them
            places = _count_until_drawn(rows.matches, wait, hits)
            if not len(places):
                return
            axes = axes_of(rows, places)
        owners = self.sampling.owners_of(rows.take(places))
        at: dict[Side, Places] = {side: places, other: arrivals}
        times = {which: self.state.buffers[which].rows.time for which in SIDES}
        for local in index.pairs(axes, chunk):
            if wait is None:
                _count(rows.matches, local.left if side == "left" else local.right)
            if count_ages:
                found = {"left": local.left, "right": local.right}
                at_owner, at_other = (placed(at[which], found[which]) for which in (side, other))
                note_ages(watch, times[side], times[other], at_owner, at_other)
            yield from self._drawn(owners, side, local, slice(None), at, residual)
        if not isinstance(places, slice):
            self._write(side, owners, places)
            exhausted.append(places[owners.exhausted()])

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
        rows = self.state.candidates()
        arrivals = {side: rows[side].take(new[side]) for side in SIDES}
        for local in index.pairs(axes_of(rows["right"], new["right"]), chunk):
            note_ages(watch, arrivals["right"].time, arrivals["left"].time, local.right, local.left)
            owned = _by_owner(arrivals["left"].id, arrivals["right"].id, local.left, local.right)
            for side, mine in zip(SIDES, owned, strict=True):
                yield from self._drawn(owners[side], side, local, mine, new, residual)

    def _drawn(
        self,
        owners: Owners,
        side: Side,
        local: Pairs,
        mine: Places,
        at: Mapping[Side, Places],
        residual: Residual | None,
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
        residual
            The further condition.
        """
        found, probability, shown = owners.draw((local.left if side == "left" else local.right)[mine])
        if not isinstance(mine, slice):
            found = mine[found]
        left, right = placed(at["left"], local.left[found]), placed(at["right"], local.right[found])
        ids = self.state.buffers[side].rows.id[left if side == "left" else right]
        sampled = Sampled(left, right, probability, ids, shown)
        if residual is not None and len(left):
            sampled = sampled.take(residual(Pairs(left, right)))
        if len(sampled.left):
            yield sampled

    def _write(self, side: Side, owners: Owners, places: Places) -> None:
        matches = owners.matches()
        if matches is not None:
            self.state.buffers[side].write("matches", places, matches)
        for name, column in owners.policy_columns().items():
            self.state.buffers[side].write(POLICY_PREFIX + name, places, column)

    def _expire(
        self, removals: StepRemovals, exhausted: dict[Side, list[Array]], floors: EarliestTimes
    ) -> None:
        """Remove rows that have expired, or that own no further match that could be drawn."""
        for side in SIDES:
            rows = self.state.buffers[side].rows
            removed = np.zeros(len(rows), bool)
            for places in exhausted[side]:
                removed[places] = True
            removed[self.state.expired(rows, floors)] = True
            removals.expire(side, np.flatnonzero(removed))

    def _thin(self, removals: StepRemovals) -> None:
        """Lower the probability, also for buffered rows, until they fit.

        Rows with a higher probability than new draws are thinned to that first: it may be enough.
        """
        budget, lowering = self._budget, False
        while True:
            rows = self.state.candidates()
            over = excess(rows, removals, SIDES, budget)
            if over <= 0:
                return
            places = {side: removals.staying(side) for side in SIDES}
            staying = {side: rows[side].take(places[side]) for side in SIDES}
            thinned = self.sampling.thin(staying, over + budget.limit, budget.limit, lower=lowering)
            lowering = True
            for side, owners in thinned.items():
                self._write(side, owners, places[side])
                removals.evict(side, places[side][owners.exhausted()])

    def thin(self) -> None:
        """Between steps, thin rows that were drawn with a higher probability to that of new draws."""
        rows = self.state.candidates()
        for side, owners in self.sampling.thin(rows, self.rows, self._room(), lower=False).items():
            self._write(side, owners, slice(0, len(rows[side])))
            self.state.buffers[side].drop(np.flatnonzero(owners.exhausted()))

    def _room(self) -> float:
        """How many rows the budget holds."""
        if self._budget.unit == "rows" or not self.rows:
            return self._budget.limit
        return self._budget.limit / (self.nbytes / self.rows)

    def snapshot(self) -> bytes:
        """The whole state, as versioned bytes."""
        return pack(self.arrays())

    def arrays(self) -> dict[str, Array]:
        """The whole state, as named arrays that are valid until the next step."""
        state = self.state.snapshot() | as_part("sampler", self.sampling.snapshot())
        state["kind"] = np.frombuffer(self.sampling.kind().encode(), np.uint8)
        return state

    def restore(self, data: bytes | Mapping[str, Array]) -> None:
        """Continue from a snapshot, or from its arrays; a smaller budget takes effect at the next step.

        Rows that another sampler chose are not a sample by this one, so they are dropped.
        """
        state = data if isinstance(data, Mapping) else unpack(data)
        self.state.restore(state)
        if state["kind"].tobytes().decode() == self.sampling.kind():
            self.sampling.restore(parts_of(state)["sampler"])
        else:
            self.state.buffers = {side: Buffer(side) for side in SIDES}
