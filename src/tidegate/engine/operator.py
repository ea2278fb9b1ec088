"""The join: one operator for a step of one row and for a step of a hundred thousand.

The candidates of a step are the buffered rows and the arrivals. Code that keeps further columns of the rows, such as
their payload, keeps them in the same order and follows the positions that a step returns.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from tidegate.engine.ages import Ages
from tidegate.engine.arrivals import EarliestTimes
from tidegate.engine.buffer import Buffer
from tidegate.engine.index import PAIRS_AT_A_TIME
from tidegate.engine.join_state import NO_ROWS, JoinState, StepOutcome, excess
from tidegate.engine.matching import Matcher, Residual
from tidegate.engine.removals import Places, StepRemovals
from tidegate.engine.snapshot import pack, unpack
from tidegate.policies import find
from tidegate.policies.abilities import Abilities, learned_by
from tidegate.policies.policy import check_rows
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
    other_side,
    parts_of,
)

if TYPE_CHECKING:
    from tidegate.engine.arrivals import Moment
    from tidegate.engine.tally import Tally
    from tidegate.models import Payoff
    from tidegate.policies import Policy, RunningPolicy
    from tidegate.types import Array, Buckets, Clocks, Condition, Learned, Side, Time

Found = TypeVar("Found", bound=Pairs)


@dataclass(frozen=True)
class Join:
    """The configuration of an operator.

    Parameters
    ----------
    window
        How long rows of each side stay joinable.
    budget
        What may be buffered after a step; None for no limit.
    policy
        Which rows stay, as an object or by name.
    split
        "shared" (one pool), "even", (left, right) in the budget's unit, or "optimal": by the policy's model, which
        may change as it learns.
    order
        "probe-first": match, then evict. "shed-first": evict, then match. Then a policy that scores by expected
        results needs a split that gives each side its own memory.
    condition
        How keys match: a comparison `l.key ? r.key`, or a `Band`.
    combine
        The importance of a result from its partners'.
    seed, partition
        All randomness derives from these and the step.
    integer_keys
        Whether keys are the user's own whole numbers, not codes or hashes.
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
    integer_keys: bool = True

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
                f"{self.policy!r} scores by how often keys arrive, which does not work if keys match by "
                f"{self.condition!r}; use age, fifo, until_expiry, random, importance, ijoin "
                "or Size(counts='matches')"
            )
        self.shares()
        self._check_order()

    def shares(self) -> tuple[Budget | None, ...]:
        """The budget of the shared pool, or of each side; None for a side without memory."""
        budget = self.budget or Budget(rows=FOREVER)
        if self.split == "shared":
            return (budget,)
        if self.split == "even":
            return tuple(budget.divided(2))
        if self.split == "optimal":
            policy = find(self.policy)
            if not policy.predicts:
                raise InputError(
                    f"split 'optimal' needs a model, and policy {policy.label()!r} has none; use 'shared' or 'even'"
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

    def _check_order(self) -> None:
        """Refuse to divide memory by expected results if a row must stay in order to probe.

        Such a division values a row by the later rows that find it, as if those probed in any case. With shed-first
        the rows of one side may fill the memory, and then no row of the other stays to probe them.
        """
        if self.order != "shed-first" or self.budget is None:
            return
        policy = find(self.policy)
        compares = policy.by_key or policy.predicts
        if self.split == "optimal" or (self.split == "shared" and compares):
            raise InputError(
                f"with order='shed-first' a row finds partners only if it stays, but split={self.split!r} lets "
                f"policy {policy.label()!r} fill the memory with the rows of one side; use split='even', two numbers "
                "(left, right), or order='probe-first'"
            )

    def setting(self, future: Future | None = None) -> Setting:
        """What a policy or sampler may know of this join; `future` is what will arrive, in a recorded run."""
        return Setting(
            self.window,
            self.seed,
            self.partition,
            self.budget,
            self.shares(),
            self.order,
            self.condition,
            future,
            self.integer_keys,
            self.combine,
        )

    def start(self, future: Future | None = None) -> RunningPolicy:
        """Start the policy for this join."""
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
        self.config = find(join.policy)
        self.policy = join.start(future)
        self._abilities = Abilities.of(self.policy)
        self.state = JoinState(join.window)
        self.matcher = Matcher(join.window, join.condition, join.combine)
        self.observed = 0
        self.evicted_since = 0

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
        """Change the budget from the next step on; with a smaller one that step evicts more rows."""
        self.join = replace(self.join, budget=budget)

    def revalue(self, side: Side, importance: Array | None) -> None:
        """Change the importance of buffered rows, from the next step on."""
        rows = replace(self.state.buffers[side].rows, importance=importance)
        if self._abilities.revaluation:
            rows = replace(rows, policy_columns=self._abilities.revaluation.revalued_columns(rows))
        self.state.buffers[side] = Buffer.of(rows)

    def payoffs(self) -> tuple[Payoff, Payoff] | None:
        """The policy's expected results by memory on each side; None while unknown."""
        return self._abilities.payoff.payoffs() if self._abilities.payoff else None

    def learned(self) -> list[Learned]:
        """What the policy learned."""
        return learned_by(self.policy)

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
        """Join arrivals with buffered rows and with each other, then evict (or the other way round).

        Yields results in bounded chunks, as positions among the candidates, if `pairs`. A step must be run to its
        end: the state of an operator whose step was abandoned is undefined.

        Parameters
        ----------
        left, right
            The arrivals, each in order of time.
        moment
            The time, and the smallest times of later rows.
        pairs
            Whether to yield the results or only to count them.
        residual
            A further condition: a mask of the pairs that are results.
        chunk
            The maximum number of pairs of a chunk.
        firsts
            Whether to report left rows that matched for the first time; they are removed.
        """
        state = self.state
        fresh = {side: len(buffer) for side, buffer in state.buffers.items()}
        for rows in (left, right):
            check_rows(self.config, rows)
            state.append(self._with_policy_columns(rows))
        candidates = state.candidates()
        removals = StepRemovals({side: len(rows) for side, rows in candidates.items()})
        if self.join.order == "shed-first":
            self._make_room(candidates, removals, moment.begin, moment.clocks, fresh)
        hits, step_hits = (
            {side: np.zeros(len(rows), np.int64) for side, rows in candidates.items()} for _ in range(2)
        )
        since = state.since(moment.clocks)
        ages = Ages(self._watches(), state.clocks)
        before, gained = state.tally.results, state.tally.importance
        yield from self.matcher.match(
            candidates,
            removals,
            fresh,
            hits,
            step_hits,
            ages,
            state.tally,
            chunk=chunk if pairs or residual else 0,
            residual=residual,
        )
        if state.tally.results > before:
            for side, rows in candidates.items():
                np.add(rows.matches, hits[side], out=rows.matches)
        evicted_before = removals.evicted_rows()
        gain, evicted = state.tally.importance - gained, self.evicted_since + evicted_before
        in_step = {side: counts[fresh[side] :] for side, counts in step_hits.items()}
        self.policy.observe(
            Step(
                state.number,
                since,
                moment.clocks,
                candidates,
                fresh,
                hits,
                ages.by_side(),
                gain,
                evicted,
                in_step,
            )
        )
        state.clocks = moment.clocks
        self.observed += 1
        if firsts:
            removals.expire("left", np.flatnonzero(candidates["left"].matches))
        self._make_room(candidates, removals, moment.end, moment.clocks)
        self.evicted_since = removals.evicted_rows() - evicted_before
        first = _first_matches(candidates["left"], hits["left"]) if firsts else NO_ROWS
        return state.finish_step(candidates, removals, moment.clocks, state.tally.results - before, first)

    def _make_room(
        self,
        rows: dict[Side, Rows],
        removals: StepRemovals,
        floors: EarliestTimes,
        clocks: Clocks,
        fresh: dict[Side, int] | None = None,
    ) -> None:
        """Mark expired rows, then the rows with the lowest scores that do not fit.

        `fresh` is the position of the first arrivals if they have not been matched yet; then none of them is expired.
        """
        for side in SIDES:
            old = rows[side] if fresh is None else rows[side].take(slice(fresh[side]))
            removals.expire(side, self.state.expired(old, floors, len(rows[side]) - len(old)))
        shares = self._best_shares(rows, removals) if self.join.split == "optimal" else self.join.shares()
        for sides, budget in (
            [(SIDES, shares[0])] if len(shares) == 1 else zip(((s,) for s in SIDES), shares, strict=True)
        ):
            self._evict(rows, removals, sides, budget, floors, clocks)

    def _best_shares(self, rows: dict[Side, Rows], removals: StepRemovals) -> tuple[Budget | None, ...]:
        """The budget as the policy's model divides it; memory that one side cannot fill goes to the other."""
        budget = self.join.budget
        if budget is None:
            return self.join.shares()
        needed = [budget.limit + excess(rows, removals, (side,), budget) for side in SIDES]
        held = sum(removals.size(side) for side in SIDES)
        left, payoffs = budget.limit // 2, self.payoffs()
        if payoffs and held:
            memory = budget.limit * held / sum(needed)
            left = round(budget.limit * payoffs[0].split(memory, payoffs[1])[0] / memory)
        left = min(max(left, budget.limit - needed[1]), needed[0])
        parts = left, budget.limit - left
        return tuple(replace(budget, **{budget.unit: part}) if part else None for part in parts)

    def _evict(
        self,
        rows: dict[Side, Rows],
        removals: StepRemovals,
        sides: Sequence[Side],
        budget: Budget | None,
        floors: EarliestTimes,
        clocks: Clocks,
    ) -> None:
        """Mark the rows with the lowest scores of some sides that do not fit a budget; None evicts all."""
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
        stays = self._choose(rows, places, budget, clocks)
        for side, at in places.items():
            worst = np.flatnonzero(~stays[side])
            removals.evict(side, worst if isinstance(at, slice) else at[worst])
        if excess(rows, removals, sides, budget) > 0:
            raise InputError(f"{self.policy!r} keeps more than the budget of {budget.limit} {budget.unit}")

    def _choose(
        self, rows: dict[Side, Rows], places: dict[Side, Places], budget: Budget, clocks: Clocks
    ) -> dict[Side, Array]:
        """Mark the rows at these places that stay: as the policy decides, or those with the highest scores."""
        if self._abilities.sets:
            return self._abilities.sets.keep(
                {s: rows[s].take(at) for s, at in places.items()}, budget, clocks
            )
        # Scoring also the rows that leave anyway costs less than copying the columns of all that stay.
        scores = [
            self.policy.scores(rows[side], clocks.of(other_side(side)))[at] for side, at in places.items()
        ]
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
        """Evict rows that can match only rows out of order: before any others, oldest first.

        Returns the amount of memory that they had. This is not done before the arrivals have been matched: a row
        that is overdue now may match the first of them.
        """
        over = [
            np.setdiff1d(
                self.state.expired(rows[s], EarliestTimes(**self.state.latest)),
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

    def scores(self, rows: Rows) -> Array:
        """The policy's scores now, and the lowest for rows that can match only rows out of order."""
        scores = self.policy.scores(rows, self.state.clocks.of(other_side(rows.side))).astype(np.float64)
        scores[self.state.expired(rows, EarliestTimes(**self.state.latest))] = -np.inf
        return scores

    def snapshot(self) -> bytes:
        """The whole state, as versioned bytes."""
        return pack(self.arrays())

    def arrays(self) -> dict[str, Array]:
        """The whole state, as named arrays that are valid until the next step."""
        state = self.state.snapshot() | as_part("policy", self.policy.snapshot())
        state["kind"] = np.frombuffer(self.policy.kind().encode(), np.uint8)
        state["observed"] = np.array([self.observed, self.evicted_since], np.int64)
        return state

    def restore(self, data: bytes | Mapping[str, Array], *, policy: bool = True) -> None:
        """Continue from a snapshot, or from its arrays; a smaller budget takes effect at the next step.

        With `policy=False` the state of the policy is not restored, as for another policy. The same holds if the
        policy has other parameters that change what it learns.
        """
        state = data if isinstance(data, Mapping) else unpack(data)
        self.state.restore(state)
        observed, self.evicted_since = state["observed"].tolist()
        same = policy and state["kind"].tobytes().decode() == self.policy.kind()
        self.observed = observed if same else 0
        for side, buffer in self.state.buffers.items():
            self.state.buffers[side] = Buffer.of(self._with_saved_columns(buffer.rows, same_policy=same))
        if same:
            self.policy = self.policy.restore(parts_of(state).get("policy", {}))
            self._abilities = Abilities.of(self.policy)

    def _watches(self) -> dict[Side, Buckets]:
        return self._abilities.ages.watches() if self._abilities.ages else {}

    def _with_policy_columns(self, rows: Rows) -> Rows:
        """Arrivals with the columns that the policy keeps."""
        keeps = self._abilities.columns
        return replace(rows, policy_columns=keeps.policy_columns(rows)) if keeps else rows

    def _with_saved_columns(self, saved: Rows, *, same_policy: bool) -> Rows:
        """Saved rows with the columns that the policy keeps: the saved ones, if the same policy saved them."""
        rows = self._with_policy_columns(replace(saved, policy_columns={}))
        if not same_policy:
            return rows
        kept = {name: column for name, column in saved.policy_columns.items() if name in rows.policy_columns}
        return replace(rows, policy_columns=rows.policy_columns | kept)


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
