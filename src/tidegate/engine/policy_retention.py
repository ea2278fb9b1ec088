"""Policies choose what stays: every result is returned, and the rows with the lowest scores are evicted."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tidegate.engine.ages import Ages
from tidegate.engine.arrivals import EarliestTimes
from tidegate.engine.buffer import Buffer
from tidegate.policies import find
from tidegate.policies.abilities import Abilities, learned_by
from tidegate.policies.policy import check_rows
from tidegate.policies.selection import best
from tidegate.types import SIDES, Budget, InputError, Pairs, Rows, Step, as_part, other_side, parts_of

if TYPE_CHECKING:
    from tidegate.engine.join import Join
    from tidegate.engine.join_state import JoinState
    from tidegate.engine.removals import Places
    from tidegate.engine.retention import JoinStep
    from tidegate.models import Payoff
    from tidegate.types import Array, Future, Learned, Side


class PolicyRetention:
    """What stays is chosen by the policy of a join.

    Parameters
    ----------
    join
        What is joined, within what budget, by which policy.
    future
        What will arrive, in a simulation, for a policy that needs it.
    """

    def __init__(self, join: Join, future: Future | None = None) -> None:
        self.config = find(join.policy)
        setting = join.setting(future)
        self.policy, self._model = self.config.start(setting), setting.model
        self.observed = 0
        self._abilities = Abilities.of(self.policy)
        self._evicted_since = 0

    def admit(self, step: JoinStep, left: Rows, right: Rows) -> None:
        """Append the arrivals, with the columns that the policy keeps of them."""
        for rows in (left, right):
            check_rows(self.config, rows)
            step.state.append(self._with_policy_columns(rows))

    def match(self, step: JoinStep) -> Generator[Pairs, None, None]:
        """Find all results, and let the policy learn from them; yields positions among the candidates."""
        rows, state, fresh = step.candidates, step.state, step.fresh
        step.hits, step_hits = (
            {side: np.zeros(len(some), np.int64) for side, some in rows.items()} for _ in range(2)
        )
        since = state.since(step.clocks)
        ages = Ages(self._abilities.ages.watches() if self._abilities.ages else {}, state.clocks)
        results, importance = state.tally.results, state.tally.importance
        yield from step.matcher.match(
            rows,
            step.removals,
            fresh,
            step.hits,
            step_hits,
            ages,
            state.tally,
            chunk=step.chunk if step.pairs or step.residual else 0,
            residual=step.residual,
        )
        if state.tally.results > results:
            for side, some in rows.items():
                np.add(some.matches, step.hits[side], out=some.matches)
        ended = Step(
            state.number,
            since,
            step.clocks,
            rows,
            fresh,
            step.hits,
            ages.by_side(),
            state.tally.importance - importance,
            self._evicted_since + step.removals.evicted_rows(),
            {side: counts[fresh[side] :] for side, counts in step_hits.items()},
        )
        self._model.learn(ended)
        self.policy.observe(ended)
        self.observed += 1
        self._evicted_since = 0

    def make_room(self, step: JoinStep, floors: EarliestTimes, *, matched: bool = True) -> None:
        """Mark expired rows, then the rows with the lowest scores that do not fit."""
        rows, before = step.candidates, step.removals.evicted_rows()
        for side in SIDES:
            old = rows[side] if matched else rows[side].take(slice(step.fresh[side]))
            step.removals.expire(side, step.state.expired(old, floors, len(rows[side]) - len(old)))
        shares = self._best_shares(step) if step.join.split == "optimal" else step.join.shares()
        pools = [(SIDES, shares[0])] if len(shares) == 1 else zip(((s,) for s in SIDES), shares, strict=True)
        for sides, budget in pools:
            self._evict(step, sides, budget, floors)
        if matched:
            self._evicted_since = step.removals.evicted_rows() - before

    def finish(self, step: JoinStep) -> None:
        """Nothing is left to do."""

    def _best_shares(self, step: JoinStep) -> tuple[Budget | None, ...]:
        """The budget as the policy's model divides it; memory that one side cannot fill goes to the other."""
        budget = step.join.budget
        if budget is None:
            return step.join.shares()
        needed = [budget.limit + step.excess((side,), budget) for side in SIDES]
        held = sum(step.removals.size(side) for side in SIDES)
        left, payoffs = budget.limit // 2, self.payoffs()
        if payoffs and held:
            memory = budget.limit * held / sum(needed)
            left = round(budget.limit * payoffs[0].split(memory, payoffs[1])[0] / memory)
        left = min(max(left, budget.limit - needed[1]), needed[0])
        parts = left, budget.limit - left
        return tuple(replace(budget, **{budget.unit: part}) if part else None for part in parts)

    def _evict(
        self, step: JoinStep, sides: Sequence[Side], budget: Budget | None, floors: EarliestTimes
    ) -> None:
        """Mark the rows with the lowest scores of some sides that do not fit a budget; None evicts all."""
        removals = step.removals
        if budget is None:
            for side in sides:
                removals.evict(side, removals.staying(side))
            return
        over = step.excess(sides, budget)
        latest = step.state.latest
        waiting = latest["left"] > floors.left or latest["right"] > floors.right
        if over > 0 and waiting and step.join.order == "probe-first":
            over -= self._evict_overdue(step, sides, budget, over)
        if over <= 0:
            return
        places: dict[Side, Places] = {
            side: slice(None) if removals.keeps_all(side) else removals.staying(side) for side in sides
        }
        stays = self._choose(step, places, budget)
        for side, at in places.items():
            worst = np.flatnonzero(~stays[side])
            removals.evict(side, worst if isinstance(at, slice) else at[worst])
        if step.excess(sides, budget) > 0:
            raise InputError(f"{self.policy!r} keeps more than the budget of {budget.limit} {budget.unit}")

    def _choose(self, step: JoinStep, places: dict[Side, Places], budget: Budget) -> dict[Side, Array]:
        """Mark the rows at these places that stay: as the policy decides, or those with the highest scores."""
        rows, clocks = step.candidates, step.moment.clocks
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

    @staticmethod
    def _evict_overdue(step: JoinStep, sides: Sequence[Side], budget: Budget, needed: int) -> int:
        """Evict rows that can match only rows out of order: before any others, oldest first.

        Returns the amount of memory that they had. This is not done before the arrivals have been matched: a row
        that is overdue now may match the first of them.
        """
        rows, removals, state = step.candidates, step.removals, step.state
        over = [
            np.setdiff1d(
                state.expired(rows[s], EarliestTimes(**state.latest)),
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

    def scores(self, rows: Rows, state: JoinState) -> Array:
        """The policy's scores of buffered rows, and the lowest for those that can match only rows out of order."""
        scores = self.policy.scores(rows, state.clocks.of(other_side(rows.side))).astype(np.float64)
        scores[state.expired(rows, EarliestTimes(**state.latest))] = -np.inf
        return scores

    def revalued(self, rows: Rows) -> Rows:
        """Buffered rows whose importance was redefined, with the columns that the policy keeps of them."""
        if not self._abilities.revaluation:
            return rows
        return replace(rows, policy_columns=self._abilities.revaluation.revalued_columns(rows))

    def payoffs(self) -> tuple[Payoff, Payoff] | None:
        """The policy's expected results by memory on each side; None while unknown."""
        return self._abilities.payoff.payoffs() if self._abilities.payoff else None

    def learned(self) -> list[Learned]:
        """What the policy learned."""
        return learned_by(self.policy)

    def describe(self) -> dict[str, object]:
        """Nothing in addition to what the policy learned."""
        return {}

    def arrays(self) -> dict[str, Array]:
        """What was learned, and the state of the policy, as named arrays that are valid until the next step."""
        state = as_part("policy", self._model.snapshot() | self.policy.snapshot())
        state["kind"] = np.frombuffer(self.policy.kind().encode(), np.uint8)
        state["observed"] = np.array([self.observed, self._evicted_since], np.int64)
        return state

    def restore(self, arrays: Mapping[str, Array], state: JoinState, *, learned: bool = True) -> None:
        """Continue with the state of the policy, unless it learned something else: then it learns anew."""
        observed, self._evicted_since = arrays["observed"].tolist()
        same = learned and arrays["kind"].tobytes().decode() == self.policy.kind()
        self.observed = observed if same else 0
        for side, buffer in state.buffers.items():
            state.buffers[side] = Buffer.of(self._with_saved_columns(buffer.rows, same_policy=same))
        if same:
            self.policy = self.policy.restore(self._model.restore(parts_of(arrays).get("policy", {})))
            self._abilities = Abilities.of(self.policy)

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
