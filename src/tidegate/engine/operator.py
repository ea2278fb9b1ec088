"""The join: one operator for a step of one row and for a step of a hundred thousand.

A step takes the buffered rows and the arrivals together as candidates. Whoever holds more about the rows than
the operator does (their payload, say) keeps it in the same order, follows the positions that a step returns,
and so never needs to look inside.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from tidegate.compiled import kernel
from tidegate.engine import few
from tidegate.engine.ages import Ages, Origin, Watch, note_ages
from tidegate.engine.arrivals import Floors
from tidegate.engine.buffer import Buffer, kept
from tidegate.engine.combining import COMBINES, importances
from tidegate.engine.fates import Fates, Places
from tidegate.engine.index import NO_WORTH, PAIRS_AT_A_TIME, Axes, Index
from tidegate.engine.snapshot import pack, unpack
from tidegate.engine.tally import Tally
from tidegate.policies import find
from tidegate.policies.selection import best
from tidegate.types import (
    FAR,
    FOREVER,
    NOTES,
    SIDES,
    Band,
    Budget,
    Combine,
    Comparison,
    Future,
    InputError,
    Last,
    Order,
    Pairs,
    Rows,
    Setting,
    Split,
    Step,
    Window,
    as_part,
    check_choice,
    other_side,
    parts_of,
)

if TYPE_CHECKING:
    from tidegate.engine.arrivals import Moment
    from tidegate.policies import Policy
    from tidegate.types import Array, Condition, Side, Time

Found = TypeVar("Found", bound=Pairs)
Residual: TypeAlias = Callable[[Pairs], "Array"]


@dataclass(frozen=True)
class Departed:
    """Rows of one side that left in a step, and where they stood among its candidates."""

    rows: Rows
    places: Array


@dataclass(frozen=True)
class Outcome:
    """What a step did.

    A step's candidates are the buffered rows, then the arrivals. `kept` tells for each row that is buffered
    now where it stood among them, so that whoever holds more about the rows can follow. `firsts` are the left
    candidates that matched for the first time, where they were asked for.
    """

    results: int
    expired: dict[Side, Departed]
    evicted: dict[Side, Departed]
    candidates: dict[Side, int]
    firsts: Array

    def kept(self, side: Side) -> Array:
        """Where the rows that are buffered now stood among the candidates."""
        gone = np.zeros(self.candidates[side], bool)
        for departed in (self.expired[side], self.evicted[side]):
            gone[departed.places] = True
        return kept(len(gone), np.flatnonzero(gone))


@dataclass(frozen=True)
class Join:
    """What is joined and within what: the frozen configuration of an operator.

    Parameters
    ----------
    window
        How long rows of each side stay joinable.
    budget
        What may be buffered after a step; None for everything.
    policy
        Who stays, as an object or by name.
    split
        "shared" (one pool), "even", (left, right) in the budget's unit, or "optimal": as the policy's model
        divides it, which may change as it learns.
    order
        "probe-first": match, then make room. "shed-first": make room, then match what is in memory.
    condition
        How keys match: a comparison `l.key ? r.key`, or a `Band`.
    combine
        The importance of a result from its partners'.
    seed, partition
        All randomness derives from these and the step.
    numeric
        Whether keys are numbers as they are, and not codes or hashes.
    """

    window: Window
    budget: Budget | None = None
    policy: Policy | str = "fifo"
    split: Split = "shared"
    order: Order = "probe-first"
    condition: Condition = "="
    combine: Combine = "min"
    seed: int = 0
    partition: int = 0
    numeric: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "window", Window.of(self.window))
        object.__setattr__(self, "budget", Budget.of(self.budget))
        object.__setattr__(self, "policy", find(self.policy))
        check_choice(self.order, Order, "order")
        check_choice(self.combine, Combine, "combine")
        if not isinstance(self.condition, Band):
            check_choice(self.condition, Comparison, "condition")
        if self.condition != "=" and find(self.policy).by_key:
            raise InputError(
                f"{self.policy!r} ranks by how often a key comes, which tells nothing where keys match by "
                f"{self.condition!r}; use age, fifo, until_expiry, random, importance, ijoin "
                "or Size(counts='matches')"
            )
        self.shares()

    def shares(self) -> tuple[Budget | None, ...]:
        """The budget of the shared pool, or of each side's own; None for a side that may hold nothing."""
        budget = self.budget or Budget(rows=FOREVER)
        if self.split == "shared":
            return (budget,)
        if self.split == "even":
            return tuple(budget.divided(2))
        if self.split == "optimal":
            policy = find(self.policy)
            if not policy.predicts:
                raise InputError(
                    f"split 'optimal' needs a model, and {policy!r} has none; use 'shared' or 'even'"
                )
            return tuple(budget.divided(2))
        parts = self.split
        if (
            not isinstance(parts, tuple)
            or len(parts) != len(SIDES)
            or not all(isinstance(part, int) and part >= 0 for part in parts)
        ):
            raise InputError(
                f"split {parts!r} is not known; use 'shared', 'even', 'optimal' or two whole numbers (left, right)"
            )
        if sum(parts) > budget.limit:
            raise InputError(
                f"split {parts} adds up to {sum(parts)}, more than the budget of {budget.limit} {budget.unit}"
            )
        return tuple(replace(budget, **{budget.unit: part}) if part else None for part in parts)

    def setting(self, future: Future | None = None) -> Setting:
        """What whoever decides may know of this join; `future` is what will arrive, where that is recorded."""
        return Setting(
            self.window,
            self.seed,
            self.partition,
            self.budget,
            self.shares(),
            self.order,
            self.condition,
            future,
            self.numeric,
        )

    def start(self, future: Future | None = None) -> Policy:
        """The policy, bound to this join."""
        return find(self.policy).start(self.setting(future))


@kernel
def _add_hits(left: Array, right: Array, hits_left: Array, hits_right: Array) -> None:
    for i in range(len(left)):
        hits_left[left[i]] += 1
        hits_right[right[i]] += 1


class Operator:
    """A running join.

    Examples
    --------
    >>> from tidegate.engine.arrivals import arrange
    >>> stream = {"key": np.array([1, 2, 1]), "time": np.array([0, 1, 2])}
    >>> operator = Operator(Join(Window(5, 5), budget=Budget(rows=4)))
    >>> arrivals = arrange(stream, stream, Window(5, 5), None)
    >>> steps = arrivals.steps(arrivals.cuts(2), whole_instants=False)
    >>> sum(collected(operator.step(*step))[1].results for step in steps)
    5
    """

    def __init__(self, join: Join, future: Future | None = None) -> None:
        self.join = join
        self.policy = join.start(future)
        self.tally = Tally()
        self.number = 0
        self.shown = 0
        self.shed = 0
        self.arrived: dict[Side, int] = dict.fromkeys(SIDES, 0)
        self.latest: dict[Side, Time] = dict.fromkeys(SIDES, -FAR)
        self.now: Time = -FAR
        self.buffers = {side: Buffer(side) for side in SIDES}

    @property
    def rows(self) -> int:
        """How many rows are buffered."""
        return sum(map(len, self.buffers.values()))

    @property
    def nbytes(self) -> int:
        """How many bytes they take, payload included."""
        return sum(buffer.nbytes for buffer in self.buffers.values())

    def limit(self, budget: Budget) -> None:
        """Hold to another budget from the next step on; a smaller one makes that step evict more."""
        self.join = replace(self.join, budget=budget)

    def revalue(self, side: Side, importance: Array | None) -> None:
        """Give buffered rows another importance, from the next step on."""
        rows = replace(self.buffers[side].rows, importance=importance)
        self.buffers[side] = Buffer.of(self.policy.revalued(rows))

    def step(
        self,
        left: Rows,
        right: Rows,
        moment: Moment,
        *,
        pairs: bool = False,
        residual: Residual | None = None,
        chunk: int = PAIRS_AT_A_TIME,
        firsts: bool = False,
    ) -> Generator[Pairs, None, Outcome]:
        """Join arrivals with what is buffered and with each other, then make room (or the other way round).

        Yields results in bounded chunks, as positions among the candidates, if `pairs`. It must be run to its
        end: an operator whose step was abandoned is of no further use.

        Parameters
        ----------
        left, right
            The arrivals, each in order of time.
        moment
            The time, and what may still come.
        pairs
            Whether to form the results or only to count them.
        residual
            A further condition: a mask of the pairs that are results indeed.
        chunk
            How many pairs leave at a time, at most.
        firsts
            Whether to tell which left rows matched for the first time; they are of no further use, and leave.
        """
        fresh = {side: len(self.buffers[side]) for side in SIDES}
        for rows in (left, right):
            self.policy.require(rows)
            self._take_up(self.policy.noted(rows))
        candidates = {side: self.buffers[side].rows for side in SIDES}
        fates = Fates({side: len(rows) for side, rows in candidates.items()})
        if self.join.order == "shed-first":
            self._make_room(candidates, fates, moment.begin, moment.now, fresh)
        hits = {side: np.zeros(len(rows), np.int64) for side, rows in candidates.items()}
        ages = Ages(self.policy.watches(), self.now)
        before, gained = self.tally.results, self.tally.importance
        yield from self._match(
            candidates, fates, fresh, hits, ages, chunk if pairs or residual else 0, residual
        )
        if self.tally.results > before:
            for side, rows in candidates.items():
                np.add(rows.matches, hits[side], out=rows.matches)
        told = fates.shed()
        gain, shed = self.tally.importance - gained, self.shed + told
        self.policy.observe(
            Step(self.number, moment.now, candidates, fresh, hits, ages.by_side(), gain, shed)
        )
        self.now = moment.now
        self.shown += 1
        if firsts:
            fates.expire("left", np.flatnonzero(candidates["left"].matches))
        self._make_room(candidates, fates, moment.end, moment.now)
        self.shed = fates.shed() - told
        first = _first_matches(candidates["left"], hits["left"]) if firsts else _NONE
        return self._ended(candidates, fates, moment.now, self.tally.results - before, first)

    def _ended(
        self, candidates: dict[Side, Rows], fates: Fates, now: Time, results: int, firsts: Array
    ) -> Outcome:
        """Let go of who leaves, and tell what the step did."""
        outcome = Outcome(
            results=results,
            expired={s: self._bury(r, fates.expired[s], now, expired=True) for s, r in candidates.items()},
            evicted={s: self._bury(r, fates.evicted[s], now, expired=False) for s, r in candidates.items()},
            candidates={side: len(rows) for side, rows in candidates.items()},
            firsts=firsts,
        )
        for side in SIDES:
            self.buffers[side].drop(fates.gone(side))
        self.tally.held(self.rows, self.nbytes)
        self.number += 1
        return outcome

    def _take_up(self, rows: Rows) -> None:
        """Put arrivals behind what is buffered."""
        side = rows.side
        self.buffers[side].append(rows)
        self.arrived[side] += len(rows)
        if len(rows):
            self.latest[side] = max(self.latest[side], rows.time[-1].item())

    def _match(
        self,
        rows: dict[Side, Rows],
        fates: Fates,
        fresh: dict[Side, int],
        hits: dict[Side, Array],
        ages: Ages,
        chunk: int,
        residual: Residual | None,
    ) -> Generator[Pairs, None, None]:
        if not chunk and self.join.condition == "=" and fates.whole("left") and fates.whole("right"):
            sizes, olds = [len(some) for some in rows.values()], list(fresh.values())
            if sizes[0] * sizes[1] - olds[0] * olds[1] <= few.LOOKS:
                self._count_few(rows, fresh, hits, ages)
                return
        places = {side: fates.parted(side, fresh[side]) for side in SIDES}
        (old_left, new_left), (old_right, new_right) = places.values()
        encounters: tuple[tuple[Origin, Side, Places, Places], ...] = (
            ("from_right", "left", new_left, old_right),
            ("from_step", "left", new_left, new_right),
            ("from_left", "right", new_right, old_left),
        )
        spans = (self.join.window.length("left"), self.join.window.length("right"))
        indexes: dict[Side, Index] = {}
        for origin, side, indexed, probing in encounters:
            other = other_side(side)
            axes, arrivals = axes_of(rows[other], probing), axes_of(rows[side], indexed)
            if not len(axes.key) or not len(arrivals.key):
                continue
            if side not in indexes:
                indexes[side] = Index(side, arrivals, self.join.condition, *spans)
            at, watch = {side: indexed, other: probing}, ages.watch(origin)
            if chunk:
                formed = indexes[side].pairs(axes, chunk)
                found, worth = yield from self._form(formed, rows, at, hits, watch, residual)
            else:
                found, worth = self._count(indexes[side], axes, rows, at, hits, watch)
            ages.add(origin, watch)
            setattr(self.tally, origin, getattr(self.tally, origin) + found)
            self.tally.importance += worth

    def _count(
        self,
        index: Index,
        axes: Axes,
        rows: dict[Side, Rows],
        places: dict[Side, Places],
        hits: dict[Side, Array],
        watch: Watch,
    ) -> tuple[int, float]:
        (indexed, at_indexed), (probing, at_probing) = places.items()
        counts = hits[indexed][at_indexed], hits[probing][at_probing]
        worths = rows[indexed].importance, rows[probing].importance
        weighed = None
        if worths[0] is not None and worths[1] is not None:
            weighed = worths[0][at_indexed], worths[1][at_probing]
        total, worth = index.count(axes, counts, weighed, self.join.combine, watch)
        for side, count in zip(places, counts, strict=True):
            # A slice was counted in place; other places were copied out and go back.
            if not isinstance(places[side], slice):
                hits[side][places[side]] = count
        return total, worth

    def _count_few(
        self, rows: dict[Side, Rows], fresh: dict[Side, int], hits: dict[Side, Array], ages: Ages
    ) -> None:
        """Count the results of a step of few rows, all at once."""
        left, right = rows.values()
        worths = NO_WORTH, NO_WORTH
        if left.importance is not None and right.importance is not None:
            worths = left.importance, right.importance
        number = left.time.dtype.type
        watches = ages.watch("from_right"), ages.watch("from_step"), ages.watch("from_left")
        counts, sums = few.meet(
            axes_of(left, _ALL),
            axes_of(right, _ALL),
            (fresh["left"], fresh["right"]),
            (number(self.join.window.length("left")), number(self.join.window.length("right"))),
            (hits["left"], hits["right"]),
            worths,
            COMBINES[self.join.combine],
            watches,
        )
        for origin, found, worth, watch in zip(_ORIGINS, counts, sums, watches, strict=True):
            ages.add(origin, watch)
            setattr(self.tally, origin, getattr(self.tally, origin) + found)
            self.tally.importance += worth

    def _form(
        self,
        formed: Iterator[Pairs],
        rows: dict[Side, Rows],
        places: dict[Side, Places],
        hits: dict[Side, Array],
        watch: Watch,
        residual: Residual | None,
    ) -> Generator[Pairs, None, tuple[int, float]]:
        total, worth = 0, 0.0
        indexed, probing = places
        left, right = rows["left"].importance, rows["right"].importance
        for local in formed:
            chunk = Pairs(placed(places["left"], local.left), placed(places["right"], local.right))
            if residual is not None:
                holds = residual(chunk)
                chunk = Pairs(chunk.left[holds], chunk.right[holds])
            if not len(chunk.left):
                continue
            _add_hits(chunk.left, chunk.right, hits["left"], hits["right"])
            at = {"left": chunk.left, "right": chunk.right}
            note_ages(watch, rows[probing].time, rows[indexed].time, at[probing], at[indexed])
            total += len(chunk.left)
            if left is not None and right is not None:
                gains = importances(COMBINES[self.join.combine], left, right, chunk.left, chunk.right)
                worth += float(gains.sum())
            yield chunk
        return total, worth

    def _make_room(
        self,
        rows: dict[Side, Rows],
        fates: Fates,
        floors: Floors,
        now: Time,
        fresh: dict[Side, int] | None = None,
    ) -> None:
        """Mark what can no longer match, then the worst of what does not fit.

        Before the arrivals have been matched, which begin at `fresh`, none of them has expired.
        """
        for side in SIDES:
            old = rows[side] if fresh is None else rows[side].take(slice(fresh[side]))
            fates.expire(side, self._expired(old, floors, len(rows[side]) - len(old)))
        shares = self._best_shares(rows, fates) if self.join.split == "optimal" else self.join.shares()
        for sides, budget in (
            [(SIDES, shares[0])] if len(shares) == 1 else zip(((s,) for s in SIDES), shares, strict=True)
        ):
            self._evict(rows, fates, sides, budget, floors, now)

    def _best_shares(self, rows: dict[Side, Rows], fates: Fates) -> tuple[Budget | None, ...]:
        """The budget as the policy's model divides it; what one side cannot fill is the other's."""
        budget = self.join.budget
        if budget is None:
            return self.join.shares()
        wants = [budget.limit + self._excess(rows, fates, (side,), budget) for side in SIDES]
        held = sum(fates.size(side) for side in SIDES)
        left, payoffs = budget.limit // 2, self.policy.payoffs()
        if payoffs and held:
            memory = budget.limit * held / sum(wants)
            left = round(budget.limit * payoffs[0].split(memory, payoffs[1])[0] / memory)
        left = min(max(left, budget.limit - wants[1]), wants[0])
        parts = left, budget.limit - left
        return tuple(replace(budget, **{budget.unit: part}) if part else None for part in parts)

    def _expired(self, rows: Rows, floors: Floors, arriving: int) -> Array:
        span = self.join.window.left if rows.side == "left" else self.join.window.right
        if span is None:
            return _NONE
        floor = floors.right if rows.side == "left" else floors.left
        if isinstance(span, Last):
            floor = self.arrived[rows.side] - arriving
        axis, length = _axis(rows, rows.side), self.join.window.length(rows.side)
        if not len(axis) or floor - axis.min() <= length:
            return _NONE
        return np.flatnonzero(floor - axis > length)

    def _evict(
        self,
        rows: dict[Side, Rows],
        fates: Fates,
        sides: Sequence[Side],
        budget: Budget | None,
        floors: Floors,
        now: Time,
    ) -> None:
        """Mark the worst rows of some sides that do not fit a budget; None holds nothing."""
        if budget is None:
            for side in sides:
                fates.evict(side, fates.staying(side))
            return
        excess = self._excess(rows, fates, sides, budget)
        waiting = self.latest["left"] > floors.left or self.latest["right"] > floors.right
        if excess > 0 and waiting and self.join.order == "probe-first":
            excess -= self._evict_overdue(rows, fates, sides, budget, excess)
        if excess <= 0:
            return
        places: dict[Side, Places] = {
            side: slice(None) if fates.whole(side) else fates.staying(side) for side in sides
        }
        stays = self._chosen(rows, places, budget, now)
        for side, at in places.items():
            worst = np.flatnonzero(~stays[side])
            fates.evict(side, worst if isinstance(at, slice) else at[worst])
        if self._excess(rows, fates, sides, budget) > 0:
            raise InputError(f"{self.policy!r} keeps more than the budget of {budget.limit} {budget.unit}")

    def _chosen(
        self, rows: dict[Side, Rows], places: dict[Side, Places], budget: Budget, now: Time
    ) -> dict[Side, Array]:
        """Mark who stays of the rows at these places: as the policy says, or the best by its scores."""
        if self.policy.decides_on_sets:
            said = self.policy.keep({s: rows[s].take(at) for s, at in places.items()}, budget, now)
            if said is not None:
                return said
        # Scoring also those that leave anyway costs less than copying the columns of all that stay.
        scores = [self.policy.scores(rows[side], now)[at] for side, at in places.items()]
        sizes = [rows[side].sizes()[at] for side, at in places.items()] if budget.unit == "bytes" else None
        ids = [rows[side].id[at] for side, at in places.items()]
        stays = best(np.concatenate(scores), ids, None if sizes is None else np.concatenate(sizes), budget)
        first = len(ids[0])
        return dict(zip(places, (stays[:first], stays[first:]), strict=False))

    def _excess(self, rows: dict[Side, Rows], fates: Fates, sides: Sequence[Side], budget: Budget) -> int:
        """By how much the staying rows of some sides exceed a budget."""
        if budget.unit == "rows":
            return sum(fates.size(side) for side in sides) - budget.limit
        staying = (
            rows[side] if fates.whole(side) else rows[side].take(fates.staying(side)) for side in sides
        )
        return sum(some.nbytes for some in staying) - budget.limit

    def _evict_overdue(
        self, rows: dict[Side, Rows], fates: Fates, sides: Sequence[Side], budget: Budget, excess: int
    ) -> int:
        """Make room with rows that only wait for others out of order: they go before any other, oldest first.

        Returns how much room that made. Before the arrivals have been matched it cannot be said who they are:
        what is over now may match the first of them.
        """
        over = [
            np.setdiff1d(self._expired(rows[s], Floors(**self.latest), 0), fates.gone(s), assume_unique=True)
            for s in sides
        ]
        if not any(map(len, over)):
            return 0
        sides_of = np.repeat(np.arange(len(over)), [len(places) for places in over])
        places = np.concatenate(over)
        some = [rows[side].take(at) for side, at in zip(sides, over, strict=True)]
        sizes = np.concatenate([r.sizes() if budget.unit == "bytes" else np.ones(len(r), int) for r in some])
        order = np.argsort(np.concatenate([r.id for r in some]), kind="stable")
        room = np.cumsum(sizes[order])
        count = min(int(np.searchsorted(room, excess)) + 1, len(order))
        leaving = order[:count]
        for i, side in enumerate(sides):
            fates.evict(side, np.sort(places[leaving[sides_of[leaving] == i]]))
        return int(room[count - 1])

    def scores(self, rows: Rows, now: Time) -> Array:
        """What rows are kept by: the policy's scores, but least for those that only wait for rows out of order."""
        scores = self.policy.scores(rows, now).astype(np.float64)
        scores[self._expired(rows, Floors(**self.latest), 0)] = -np.inf
        return scores

    def _bury(self, rows: Rows, places: Array, now: Time, *, expired: bool) -> Departed:
        if not len(places):
            return Departed(rows.take(slice(0)), places)
        gone = rows.take(places)
        lifetimes = now - gone.time
        span = self.join.window.left if rows.side == "left" else self.join.window.right
        if expired and span is not None and not isinstance(span, Last):
            # It left when its window ended, however late the step that noticed.
            lifetimes = np.minimum(lifetimes, span)
        self.tally.buried(np.maximum(lifetimes, 0))
        if expired:
            self.tally.expired += len(gone)
        else:
            self.tally.evicted += len(gone)
        return Departed(gone, places)

    def snapshot(self) -> bytes:
        """The whole state, as versioned bytes."""
        return pack(self._state())

    def _state(self) -> dict[str, Array]:
        state = {
            f"{s}.{name}": column
            for s, b in self.buffers.items()
            for name, column in b.rows.columns().items()
        }
        state |= as_part("policy", self.policy.snapshot())
        state["kind"] = np.frombuffer(self.policy.kind().encode(), np.uint8)
        state["tally"] = self.tally.as_array()
        state["counts"] = np.array([self.number, self.shown, self.shed, *self.arrived.values()], np.int64)
        state["latest"] = np.array([*self.latest.values(), self.now])
        return state

    def restore(self, data: bytes, *, policy: bool = True) -> None:
        """Go on from a snapshot; a smaller budget takes effect at the next step.

        With `policy=False` what the policy had learned is left behind, as another policy must; so it is where the
        policy has other parameters by which it learns otherwise.
        """
        self._resume(unpack(data), policy=policy)

    def _resume(self, state: dict[str, Array], *, policy: bool) -> None:
        kind = state.pop("kind").tobytes().decode()
        policy = policy and kind == self.policy.kind()
        self.tally = Tally.from_array(state.pop("tally"))
        self.number, shown, self.shed, *arrived = state.pop("counts").tolist()
        self.shown = shown if policy else 0
        self.arrived = dict(zip(SIDES, arrived, strict=True))
        *latest, self.now = state.pop("latest").tolist()
        self.latest = dict(zip(SIDES, latest, strict=True))
        parts = parts_of(state)  # a sampler's is of no concern to who only looks at the rows
        for side in SIDES:
            self.buffers[side] = Buffer(side)
            notes: dict[str, Any] = {name: parts[side].pop(name) for name in NOTES if name in parts[side]}
            rows = self.policy.noted(Rows(side, **parts[side]))
            if policy:
                rows = replace(rows, **{name: notes[name] for name in rows.columns() if name in notes})
            self.buffers[side].append(rows)
        if policy:
            self.policy = self.policy.restore(parts.get("policy", {}))


_NONE = np.empty(0, np.int64)
_ALL = slice(None)
_ORIGINS: tuple[Origin, ...] = ("from_right", "from_step", "from_left")


def _axis(rows: Rows, side: Side) -> Array:
    """The axis on which the window of `side` is measured: time, or rows of that side."""
    counts = rows.lefts if side == "left" else rows.rights
    return rows.time if counts is None else counts


def _first_matches(rows: Rows, hits: Array) -> Array:
    return np.flatnonzero((hits > 0) & (rows.matches == hits))


def axes_of(rows: Rows, places: Places) -> Axes:
    """What a condition and a window look at, of the rows at these places."""
    left, right = _axis(rows, "left"), _axis(rows, "right")
    on_left = left[places]
    return Axes(rows.key[places], on_left, on_left if right is left else right[places])


def placed(places: Places, local: Array) -> Array:
    """Where rows stand, of which it is known where they stand among those at some places."""
    return local.astype(np.int64) + places.start if isinstance(places, slice) else places[local]


def collected(step: Generator[Found, None, Outcome]) -> tuple[list[Found], Outcome]:
    """Run a step to its end; return the results that it yielded and what it did."""
    chunks = []
    while True:
        try:
            chunks.append(next(step))
        except StopIteration as stop:
            return chunks, stop.value
