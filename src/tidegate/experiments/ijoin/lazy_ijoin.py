"""iJoin that computes priorities at some evictions only, as in section 3.5 and Table 6."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from tidegate.policies import IJoin, RunningPolicy
from tidegate.policies.ijoin import RunningIJoin
from tidegate.policies.importance import importance_of
from tidegate.types import SIDES, InputError, Learned, Numbers, check_choice

if TYPE_CHECKING:
    from tidegate.types import Array, Rows, Setting, State, Step, Time

Recompute = Literal["successive", "k-successive", "adaptive"]


@dataclass(frozen=True)
class LazyIJoin(IJoin):
    """`IJoin` that keeps the priorities of rows, and recomputes all of them at some evictions.

    Parameters
    ----------
    recompute
        When priorities are recomputed: "successive" at each eviction, as `IJoin` does, "k-successive" at every
        `every`-th eviction, "adaptive" when the importance of the results, averaged over about `every` steps, has
        changed by more than the fraction `epsilon` since.
    every, epsilon
        As above.

    References
    ----------
    iJoin, sections 3.5 and 5.5.

    Deviations
    ----------
    As printed, the adaptive scheme recomputes when quality changes little, and yet more often for a smaller epsilon.
    Here it recomputes when quality changes much.
    """

    recompute: Recompute = "successive"
    every: int = 10
    epsilon: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.recompute, Recompute, "recompute")
        if isinstance(self.every, bool) or not isinstance(self.every, int) or self.every < 1:
            raise InputError(f"every is {self.every!r}; give a whole number, at least 1")
        if not (isinstance(self.epsilon, int | float) and 0 <= self.epsilon < math.inf):
            raise InputError(f"epsilon is {self.epsilon!r}; give a finite number, at least 0")

    def start(self, setting: Setting) -> RunningPolicy:
        """Start to record the matches of rows."""
        return RunningLazyIJoin(self, setting)


class RunningLazyIJoin(RunningIJoin):
    """A running `LazyIJoin`: the priority of each row is a column of the rows, too."""

    config: LazyIJoin

    state: ClassVar[State] = {
        **RunningIJoin.state,
        "recomputed": Numbers(_quality=float, _known_quality=float, _decisions=int, _recomputed=int),
    }

    def __init__(self, config: LazyIJoin, setting: Setting) -> None:
        super().__init__(config, setting)
        self._decisions, self._recomputed = 0, 0
        self._quality, self._known_quality = 0.0, math.nan

    @property
    def _stores(self) -> bool:
        return self.config.recompute != "successive"

    def policy_columns(self, rows: Rows) -> dict[str, Array]:
        """No match yet; the initial priority is the importance."""
        own = {"priority": importance_of(rows).astype(np.float64)} if self._stores else {}
        return super().policy_columns(rows) | own

    def revalued_columns(self, rows: Rows) -> dict[str, Array]:
        """Priorities by the new importance."""
        if not self._stores:
            return rows.policy_columns
        started = math.isfinite(self._now)
        now = self._now + min(self._lead[rows.side], 0.0)
        priority = super().priority(rows, now) if started else importance_of(rows) * 1.0
        return rows.policy_columns | {"priority": priority}

    def observe(self, step: Step) -> None:
        """Record matches, and recompute priorities if they are due."""
        super().observe(step)
        has_importance = all(rows.importance is not None for rows in step.rows.values())
        gained = step.importance if has_importance else float(step.hits["left"].sum())
        self._quality += (gained - self._quality) / self.config.every
        if step.evicted:
            self._decisions += 1
            if self._due():
                self._recomputed += 1
                self._known_quality = self._quality
                for side, rows in step.rows.items():
                    if self._stores:
                        rows.policy_columns["priority"][:] = super().priority(rows, step.clocks.of(side))

    def _due(self) -> bool:
        """Whether priorities are recomputed after this eviction."""
        if self.config.recompute == "k-successive":
            return self._decisions % self.config.every == 0
        if self.config.recompute == "adaptive" and not math.isnan(self._known_quality):
            return abs(self._quality - self._known_quality) > self.config.epsilon * self._known_quality
        return True

    def priority(self, rows: Rows, now: Time) -> Array:
        """The priorities of rows when they were last computed."""
        return rows.policy_columns["priority"] if self._stores else super().priority(rows, now)

    def learned(self) -> list[Learned]:
        """What `IJoin` learns, and how often priorities were recomputed: the sample is the number of evictions."""
        counted = self._recomputed if self._decisions else 0
        own = [Learned("recomputations", side, counted, self._decisions) for side in SIDES]
        return [*super().learned(), *own]
