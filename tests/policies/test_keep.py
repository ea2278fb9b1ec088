"""Policies that decide on sets of rows, and what the operator makes of bad decisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pytest

from tidegate import Budget, InputError, simulate
from tidegate.policies import Fifo, Policy
from tidegate.policies.selection import best

if TYPE_CHECKING:
    from tidegate.policies import Need
    from tidegate.types import Array, Clocks, Rows, Side

STREAM = {"key": np.arange(200) % 7, "time": np.arange(200)}


def run(policy: Policy, **more: object) -> object:
    """The results under a policy, which is not registered: it has no name."""
    return simulate(STREAM, STREAM, window=(20, 20), budget=10, policy=policy, **more).results  # type: ignore[arg-type]


@dataclass(frozen=True)
class Balanced(Policy):
    """Keeps as many of either side as of the other: a decision that no score of single rows expresses."""

    def scores(self, rows: Rows, clocks: Clocks) -> Array:
        raise AssertionError("a policy that decides on sets is not asked for scores")

    def keep(self, rows: dict[Side, Rows], budget: Budget, clocks: Clocks) -> dict[Side, Array]:
        """Keep the newest half of the budget on each side."""
        half = budget.limit // 2
        return {side: some.id >= np.sort(some.id)[-min(half, len(some))] for side, some in rows.items()}


@dataclass(frozen=True)
class Greedy(Balanced):
    """Keeps everything."""

    def keep(self, rows: dict[Side, Rows], budget: Budget, clocks: Clocks) -> dict[Side, Array]:
        """Keep all."""
        return {side: np.ones(len(some), bool) for side, some in rows.items()}


@dataclass(frozen=True)
class Undefined(Policy):
    """Cannot say what a row is worth."""

    def scores(self, rows: Rows, clocks: Clocks) -> Array:
        """Nothing but NaN."""
        return np.full(len(rows), np.nan)


@dataclass(frozen=True)
class Valuing(Fifo):
    """Needs what the user says a row is worth."""

    needs: ClassVar[frozenset[Need]] = frozenset({"importance"})


@pytest.mark.parametrize("step", [1, 10, "instant"])
def test_a_policy_may_decide_on_sets(step: object) -> None:
    """Keeping halves is what fifo does with two pools."""
    assert run(Balanced(), step=step) == run(Fifo(), step=step, split="even")


def test_the_budget_holds_whatever_a_policy_says() -> None:
    """The operator refuses rather than hold more."""
    with pytest.raises(InputError, match="keeps more than the budget of 10 rows"):
        run(Greedy())


def test_scores_that_are_not_numbers() -> None:
    """NaN cannot be ranked."""
    with pytest.raises(InputError, match="scores contain NaN"):
        run(Undefined())


def test_what_a_policy_needs_must_be_there() -> None:
    """Here, an importance."""
    with pytest.raises(InputError, match="needs the importance of each row"):
        run(Valuing())


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
@pytest.mark.parametrize("room", [1, 50, 4_800, 5_200, 9_000, 9_999])
@pytest.mark.parametrize("different", [1, 2, 20, 3_000])
def test_the_best_stay(dtype: type, room: int, different: int) -> None:
    """By score, then by number; as a full sort says."""
    rng = np.random.default_rng(room)
    scores: Array = rng.integers(0, different, 10_000).astype(dtype)
    ids = rng.permutation(10_000)
    stays = best(scores, [ids[:4_000], ids[4_000:]], None, Budget(rows=room))
    expected = np.zeros(10_000, bool)
    expected[np.lexsort((ids, scores))[-room:]] = True
    assert (stays == expected).all()
