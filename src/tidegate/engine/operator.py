"""The join: one operator for a step of one row and for a step of a hundred thousand.

A step takes the buffered rows and the arrivals together as candidates. Whoever holds more about the rows than
the operator does (their payload, say) keeps it in the same order, follows the positions that a step returns,
and so never needs to look inside.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from tidegate.engine.ages import Ages
from tidegate.engine.arrivals import Floors
from tidegate.engine.buffer import Buffer
from tidegate.engine.index import PAIRS_AT_A_TIME
from tidegate.engine.join_state import NO_ROWS, JoinState, StepOutcome, excess
from tidegate.engine.matching import Matcher, Residual
from tidegate.engine.removals import Places, StepRemovals
from tidegate.engine.snapshot import pack, unpack
from tidegate.policies import find
from tidegate.policies.selection import best
from tidegate.types import (
    FOREVER,
    SIDES,
    Band,
    Budget,
    Combine,
    Comparison,
    Future,
    InputError,
    Order,
    Pairs,
    Rows,
    Setting,
    Split,
    Step,
    Window,
    as_part,
    check_choice,
    parts_of,
)

if TYPE_CHECKING:
    from tidegate.engine.arrivals import Moment
    from tidegate.engine.tally import Tally
    from tidegate.policies import Policy
    from tidegate.types import Array, Condition, Side, Time

Found = TypeVar("Found", bound=Pairs)


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
            self.combine,
        )

    def start(self, future: Future | None = None) -> Policy:
        """The policy, bound to this join."""
        return find(self.policy).start(self.setting(future))


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
        self.state = JoinState(join.window)
        self.matcher = Matcher(join.window, join.condition, join.combine)
        self.observed = 0
        self.shed = 0

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
        return self.state.now

    @property
    def rows(self) -> int:
        """The number of buffered rows."""
        return self.state.rows

    @property
    def nbytes(self) -> int:
        """The bytes of the buffered rows, payload included."""
        return self.state.nbytes

    def limit(self, budget: Budget) -> None:
        """Hold to another budget from the next step on; a smaller one makes that step evict more."""
        self.join = replace(self.join, budget=budget)

    def revalue(self, side: Side, importance: Array | None) -> None:
        """Give buffered rows another importance, from the next step on."""
        rows = replace(self.state.buffers[side].rows, importance=importance)
        self.state.buffers[side] = Buffer.of(self.policy.revalued(rows))

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
    ) -> Generator[Pairs, None, StepOutcome]:
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
        state = self.state
        fresh = {side: len(buffer) for side, buffer in state.buffers.items()}
        for rows in (left, right):
            self.policy.require(rows)
            state.append(self.policy.noted(rows))
        candidates = state.candidates()
        removals = StepRemovals({side: len(rows) for side, rows in candidates.items()})
        if self.join.order == "shed-first":
            self._make_room(candidates, removals, moment.begin, moment.now, fresh)
        hits = {side: np.zeros(len(rows), np.int64) for side, rows in candidates.items()}
        ages = Ages(self.policy.watches(), state.now)
        before, gained = state.tally.results, state.tally.importance
        yield from self.matcher.match(
            candidates,
            removals,
            fresh,
            hits,
            ages,
            state.tally,
            chunk=chunk if pairs or residual else 0,
            residual=residual,
        )
        if state.tally.results > before:
            for side, rows in candidates.items():
                np.add(rows.matches, hits[side], out=rows.matches)
        shed_before = removals.evicted_rows()
        gain, shed = state.tally.importance - gained, self.shed + shed_before
        self.policy.observe(
            Step(state.number, moment.now, candidates, fresh, hits, ages.by_side(), gain, shed)
        )
        state.now = moment.now
        self.observed += 1
        if firsts:
            removals.expire("left", np.flatnonzero(candidates["left"].matches))
        self._make_room(candidates, removals, moment.end, moment.now)
        self.shed = removals.evicted_rows() - shed_before
        first = _first_matches(candidates["left"], hits["left"]) if firsts else NO_ROWS
        return state.finish_step(candidates, removals, moment.now, state.tally.results - before, first)

    def _make_room(
        self,
        rows: dict[Side, Rows],
        removals: StepRemovals,
        floors: Floors,
        now: Time,
        fresh: dict[Side, int] | None = None,
    ) -> None:
        """Mark what can no longer match, then the worst of what does not fit.

        Before the arrivals have been matched, which begin at `fresh`, none of them has expired.
        """
        for side in SIDES:
            old = rows[side] if fresh is None else rows[side].take(slice(fresh[side]))
            removals.expire(side, self.state.expired(old, floors, len(rows[side]) - len(old)))
        shares = self._best_shares(rows, removals) if self.join.split == "optimal" else self.join.shares()
        for sides, budget in (
            [(SIDES, shares[0])] if len(shares) == 1 else zip(((s,) for s in SIDES), shares, strict=True)
        ):
            self._evict(rows, removals, sides, budget, floors, now)

    def _best_shares(self, rows: dict[Side, Rows], removals: StepRemovals) -> tuple[Budget | None, ...]:
        """The budget as the policy's model divides it; what one side cannot fill is the other's."""
        budget = self.join.budget
        if budget is None:
            return self.join.shares()
        wants = [budget.limit + excess(rows, removals, (side,), budget) for side in SIDES]
        held = sum(removals.size(side) for side in SIDES)
        left, payoffs = budget.limit // 2, self.policy.payoffs()
        if payoffs and held:
            memory = budget.limit * held / sum(wants)
            left = round(budget.limit * payoffs[0].split(memory, payoffs[1])[0] / memory)
        left = min(max(left, budget.limit - wants[1]), wants[0])
        parts = left, budget.limit - left
        return tuple(replace(budget, **{budget.unit: part}) if part else None for part in parts)

    def _evict(
        self,
        rows: dict[Side, Rows],
        removals: StepRemovals,
        sides: Sequence[Side],
        budget: Budget | None,
        floors: Floors,
        now: Time,
    ) -> None:
        """Mark the worst rows of some sides that do not fit a budget; None holds nothing."""
        if budget is None:
            for side in sides:
                removals.evict(side, removals.staying(side))
            return
        over = excess(rows, removals, sides, budget)
        latest = self.state.latest
        waiting = latest["left"] > floors.left or latest["right"] > floors.right
        if over > 0 and waiting and self.join.order == "probe-first":
            over -= self._evict_overdue(rows, removals, sides, budget, over)
        if over <= 0:
            return
        places: dict[Side, Places] = {
            side: slice(None) if removals.keeps_all(side) else removals.staying(side) for side in sides
        }
        stays = self._chosen(rows, places, budget, now)
        for side, at in places.items():
            worst = np.flatnonzero(~stays[side])
            removals.evict(side, worst if isinstance(at, slice) else at[worst])
        if excess(rows, removals, sides, budget) > 0:
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

    def _evict_overdue(
        self,
        rows: dict[Side, Rows],
        removals: StepRemovals,
        sides: Sequence[Side],
        budget: Budget,
        needed: int,
    ) -> int:
        """Make room with rows that only wait for others out of order: they go before any other, oldest first.

        Returns how much room that made. Before the arrivals have been matched it cannot be said who they are:
        what is over now may match the first of them.
        """
        over = [
            np.setdiff1d(
                self.state.expired(rows[s], Floors(**self.state.latest)),
                removals.leaving(s),
                assume_unique=True,
            )
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
        count = min(int(np.searchsorted(room, needed)) + 1, len(order))
        leaving = order[:count]
        for i, side in enumerate(sides):
            removals.evict(side, np.sort(places[leaving[sides_of[leaving] == i]]))
        return int(room[count - 1])

    def scores(self, rows: Rows, now: Time) -> Array:
        """What rows are kept by: the policy's scores, but least for those that only wait for rows out of order."""
        scores = self.policy.scores(rows, now).astype(np.float64)
        scores[self.state.expired(rows, Floors(**self.state.latest))] = -np.inf
        return scores

    def snapshot(self) -> bytes:
        """The whole state, as versioned bytes."""
        state = self.state.snapshot() | as_part("policy", self.policy.snapshot())
        state["kind"] = np.frombuffer(self.policy.kind().encode(), np.uint8)
        state["observed"] = np.array([self.observed, self.shed], np.int64)
        return pack(state)

    def restore(self, data: bytes, *, policy: bool = True) -> None:
        """Continue from a snapshot; a smaller budget takes effect at the next step.

        With `policy=False` what the policy had learned is left out, as for another policy. The same holds if the
        policy has other parameters that change what it learns.
        """
        state = unpack(data)
        self.state.restore(state)
        observed, self.shed = state["observed"].tolist()
        same = policy and state["kind"].tobytes().decode() == self.policy.kind()
        self.observed = observed if same else 0
        for side, buffer in self.state.buffers.items():
            self.state.buffers[side] = Buffer.of(self._with_notes(buffer.rows, same_policy=same))
        if same:
            self.policy = self.policy.restore(parts_of(state).get("policy", {}))

    def _with_notes(self, saved: Rows, *, same_policy: bool) -> Rows:
        """Saved rows with the notes that this policy keeps: the saved ones, if the same policy saved them."""
        rows = self.policy.noted(replace(saved, notes={}))
        if not same_policy:
            return rows
        kept = {name: column for name, column in saved.notes.items() if name in rows.notes}
        return replace(rows, notes=rows.notes | kept)


def _first_matches(rows: Rows, hits: Array) -> Array:
    return np.flatnonzero((hits > 0) & (rows.matches == hits))


def collected(step: Generator[Found, None, StepOutcome]) -> tuple[list[Found], StepOutcome]:
    """Run a step to its end; return the results that it yielded and what it did."""
    chunks = []
    while True:
        try:
            chunks.append(next(step))
        except StopIteration as stop:
            return chunks, stop.value
