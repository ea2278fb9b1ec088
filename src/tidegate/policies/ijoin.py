"""Keep the rows that have lately brought most importance for the time they took."""

from __future__ import annotations

import math
import sys
import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self

import numpy as np

from tidegate.compiled import kernel
from tidegate.models import Rates
from tidegate.models.decay import half_life, horizon_for
from tidegate.models.validation import positive
from tidegate.policies.importance import importance_of
from tidegate.policies.policy import Policy, find
from tidegate.types import FAR, SIDES, InputError, Learned, as_part, check_choice, parts_of

if TYPE_CHECKING:
    from tidegate.types import Array, Buckets, Rows, Setting, Side, Step, Time

Recompute = Literal["successive", "k-successive", "adaptive"]
Immature = Literal["oldest", "priority", "importance", "arrival"]

_FRACTION: Final = 0.12
"""The paper's 3 of 25 seconds: how much of the window without a match makes a row unproductive."""
_FAIRNESS: Final = 0.25
_PENALTY: Final = 1.0
_RANGES: Final = (
    ("fairness", 0.0, 1.0),
    ("maturity", 0.0, sys.float_info.max),
    ("penalty", 0.0, sys.float_info.max),
    ("penalty_rate", 0.0, sys.float_info.max),
    ("epsilon", 0.0, sys.float_info.max),
    ("decay", 0.0, math.inf),
)
_OPTIONAL: Final = ("maturity", "decay", "penalty_rate")
_SPARED: Final = 2.0**996
"""Above every priority; a power of 2, so that what is spared is told apart in steps as fine as those from 1 to 2."""
_NUMBERED: Final = 2.0**-52
"""The finest of those steps, for the number of a row."""


@dataclass(frozen=True)
class IJoin(Policy):
    """A row is worth its importance times its recent matches, for each unit of time that it has been in memory.

    A young row has had no time to match, so it is spared until it is mature; one that has not matched for long pays
    a penalty for the room it takes. For joins in which importance and matches both count, and where it matters that
    every row gets its chance: the later rows mature, the fairer and the less important the result, down to `fifo`.

    Rows that are not mature leave only if none is left that is; then `immature` says who goes. Without importances
    every row has 1.

    Parameters
    ----------
    fairness
        From 0 to 1: rows are mature after this fraction of the time for which memory could hold every row alike, as
        observed. 0 spares only the newest rows, 1 is nearly `fifo`.
    maturity
        A time instead, after which rows are mature. Times are in the data's unit; on Spark that is a microsecond.
    unproductive
        The time without a match after which a row pays; by default 12 % of the window.
    penalty
        What it pays, in matches: a row that has not matched for `unproductive` loses as much priority as so many
        matches of mean importance in this time would give; for twice the time, twice as much.
    penalty_rate
        What it pays instead, as an absolute number: the priority that it loses for each unit of time since its last
        match. Times are in the data's unit.
    decay
        The time in which a match loses all but 1/e of what it counts for; by default `unproductive`; infinity lets
        all matches count alike.
    recompute
        When priorities are computed anew: "successive" whenever room is made, "k-successive" every `every`-th time,
        "adaptive" when the importance that results bring, averaged over some `every` times, has changed by more than
        `epsilon` of itself since.
    every, epsilon
        As above.
    immature
        Who goes when no row is mature: the "oldest", the least by "priority" or by "importance", or the "arrival",
        so that the rows in memory stay.
    expects
        A policy that scores by expected results (`prob`, `life`, `age`, `heeb`), or its name. A row is then worth its
        importance times these, instead of past matches, maturity and penalty.

    Examples
    --------
    >>> import numpy as np
    >>> import tidegate as tg
    >>> rng = np.random.default_rng(1)
    >>> def stream():
    ...     key, time = np.minimum(rng.zipf(1.5, 4000), 200), np.arange(4000)
    ...     return {"key": key, "time": time, "importance": rng.integers(1, 101, 4000)}
    >>> left, right = stream(), stream()
    >>> settings = dict(window=(100, 100), budget=20, split="even", order="shed-first", step="instant")
    >>> for policy in (tg.policies.IJoin(), tg.policies.IJoin(fairness=0.75), "importance", "fifo"):
    ...     report = tg.simulate(left, right, policy=policy, **settings)
    ...     print(f"{report.importance / report.exact_importance:.2f} of all importance, {report.fairness:.2f} fair")
    0.20 of all importance, 0.48 fair
    0.13 of all importance, 0.85 fair
    0.06 of all importance, 0.11 fair
    0.10 of all importance, 1.00 fair

    References
    ----------
    iJoin, sections 3.5 and 4: equations 5 to 8, Algorithm 2.

    Deviations
    ----------
    - The penalty's constant c in equation 8 is not given, and depends on the units of time and importance. By
      default it is stated in matches of mean importance, so that one value suits all units; `penalty_rate` is c.
      Nor are the decay and the initial priority given: that is the importance.
    - Algorithm 2 drops no row while none is mature, and does not say what becomes of the arrival then. By default
      the oldest row goes; `immature="arrival"` drops the arrival, which section 3.4 calls unfair.
    - The maturity of two seconds that the paper prints is more time than its ten rows of memory last, so that no row
      is ever mature; hence a fraction of that time.
    - A row that never matched counts as if it had at its arrival; nothing is said of it. A row of age 0 has its
      initial priority.
    - The adaptive scheme is printed to act when quality changes little, and yet to act more often the smaller
      epsilon is. Here it acts when quality changes much.
    - Matches count from the end of the step in which they are found.
    """

    name: ClassVar[str] = "ijoin"
    use_when: ClassVar[str] = "Importance and matches both count, and every row should get its chance."

    fairness: float = _FAIRNESS
    maturity: float | None = None
    unproductive: float | None = None
    penalty: float = _PENALTY
    decay: float | None = None
    recompute: Recompute = "successive"
    every: int = 10
    epsilon: float = 0.1
    immature: Immature = "oldest"
    penalty_rate: float | None = field(default=None, kw_only=True)
    expects: Policy | str | None = None

    def __post_init__(self) -> None:
        check_choice(self.recompute, Recompute, "recompute")
        check_choice(self.immature, Immature, "immature")
        for what, least, most in _RANGES:
            given = getattr(self, what)
            number = isinstance(given, int | float | np.number) and not isinstance(given, bool)
            if not (number and least <= given <= most) and not (given is None and what in _OPTIONAL):
                ends = (
                    "a finite number, at least 0"
                    if most == sys.float_info.max
                    else f"a number from 0 to {most:g}"
                )
                raise InputError(f"{what} is {given!r}; give {ends}")
        if self.unproductive is not None:
            positive(self.unproductive, "unproductive")
        if self.decay == 0:
            raise InputError("decay is 0; give a time above 0, or infinity")
        if isinstance(self.every, bool) or not isinstance(self.every, int) or self.every < 1:
            raise InputError(f"every is {self.every!r}; give a whole number, at least 1")
        if self.expects is not None:
            expected = find(self.expects)
            if not (expected.by_key or expected.predicts):
                raise _nothing_expected(self.expects)
            object.__setattr__(self, "expects", expected)
            object.__setattr__(self, "by_key", expected.by_key)
        self._warn_of_idle()

    def _warn_of_idle(self) -> None:
        """Warn of what is given and has no effect beside something else that is."""
        if self.expects is not None:
            optional = ("maturity", "unproductive", "decay", "penalty_rate")
            idle = [what for what in optional if getattr(self, what) is not None]
            if idle:
                warnings.warn(
                    f"ijoin: {', '.join(idle)} is not used with expects=; leave it out", stacklevel=4
                )
            return
        if self.maturity is not None and self.fairness != _FAIRNESS:
            warnings.warn("ijoin: fairness is not used where maturity is given; leave one out", stacklevel=4)
        if self.penalty_rate is not None and self.penalty != _PENALTY:
            warnings.warn(
                "ijoin: penalty is not used where penalty_rate is given; leave one out", stacklevel=4
            )

    def start(self, setting: Setting) -> Policy:
        """Begin to take notes of rows, or to expect what another policy does."""
        if self.expects is not None:
            expects = find(self.expects).start(setting)
            if expects.decides_on_sets:
                raise _nothing_expected(self.expects)
            return _Expecting(self, expects)
        return _Noting(self, setting)

    def scores(self, rows: Rows, now: Time) -> Array:
        """Refuse: there are no notes before the start."""
        raise InputError(
            f"ijoin has noted nothing to score {len(rows)} rows by at {now}; let a join start it"
        )

    def parameters(self) -> dict[str, Any] | None:
        """Its fields; the policy that it expects by, with its own."""
        told = super().parameters()
        if told is None or self.expects is None:
            return told
        expected = find(self.expects)
        inner = expected.parameters()
        return None if inner is None else told | {"expects": {"policy": expected.label(), **inner}}

    @classmethod
    def made_of(cls, parameters: dict[str, Any]) -> Self:
        """Make it again from what `parameters` told."""
        expects = parameters.get("expects")
        if expects is not None:
            inner = {"policy": expects} if isinstance(expects, str) else dict(expects)
            kind = type(find(inner.pop("policy", None)))
            expects = kind.made_of((kind().parameters() or {}) | inner)
        return cls(**parameters | {"expects": expects})


class _Noting(Policy):
    """`IJoin` at work: what each row has matched lately, and when it last did, is noted beside it."""

    def __init__(self, config: IJoin, setting: Setting) -> None:
        self.config = config
        span = max(setting.window.length(side) for side in SIDES)
        ends = not setting.window.counted and span < FAR
        if config.unproductive is None and not ends:
            raise InputError(
                f"ijoin cannot tell when a row is unproductive from the window {setting.window}; give unproductive="
            )
        # In a window of one instant nobody has the time to be unproductive.
        self._unproductive = float(config.unproductive or _FRACTION * span or math.inf)
        self._decay = 1 / (config.decay or self._unproductive)
        if ends and span > 0:
            _check_together(config.maturity, self._unproductive, span)
        horizon = horizon_for(None, span)
        self._rates, self._half_life = Rates(horizon), half_life(horizon)
        self._held: dict[Side, int] = dict.fromkeys(SIDES, 0)
        self._seen, self._worth = 0.0, 0.0  # rows and their importance, by the same horizon
        self._now = math.nan
        self._decisions, self._recomputed = 0, 0
        self._quality, self._known_quality = 0.0, math.nan

    def __repr__(self) -> str:
        return repr(self.config)

    @property
    def _stores(self) -> bool:
        return self.config.recompute != "successive"

    def noted(self, rows: Rows) -> Rows:
        """No match yet; the initial priority is the importance."""
        notes = {"recent": np.zeros(len(rows)), "matched": rows.time.copy()}
        if self._stores:
            notes["priority"] = importance_of(rows).astype(np.float64)
        return replace(rows, notes=notes)

    def revalued(self, rows: Rows) -> Rows:
        """Priorities by what rows are worth now."""
        if not self._stores:
            return rows
        valued = math.isfinite(self._now)
        priority = self._priority(rows, self._now) if valued else importance_of(rows) * 1.0
        return replace(rows, notes=rows.notes | {"priority": priority})

    def observe(self, step: Step) -> None:
        """Note who matched; learn rates and mean importance; compute priorities anew if that is due."""
        passed = 0.0 if math.isnan(self._now) else max(0.0, step.now - self._now)
        kept = 2.0 ** (-passed / self._half_life)
        self._now = float(step.now)
        self._seen, self._worth = self._seen * kept, self._worth * kept
        for side in SIDES:
            rows, fresh = step.rows[side], step.fresh[side]
            _note(*_notes(rows), step.hits[side], step.now, self._decay)
            self._rates.observe(side, len(rows) - fresh, step.now)
            self._held[side] = fresh
            self._seen += len(rows) - fresh
            self._worth += float(importance_of(rows)[fresh:].sum())
        weighed = all(rows.importance is not None for rows in step.rows.values())
        gained = step.importance if weighed else float(step.hits["left"].sum())
        self._quality += (gained - self._quality) / self.config.every
        if step.shed:
            self._decisions += 1
            if self._due():
                self._recomputed += 1
                self._known_quality = self._quality
                for rows in step.rows.values():
                    if self._stores:
                        rows.notes["priority"][:] = self._priority(rows, step.now)

    def _due(self) -> bool:
        """Whether priorities are computed anew after this making of room."""
        if self.config.recompute == "k-successive":
            return self._decisions % self.config.every == 0
        if self.config.recompute == "adaptive" and not math.isnan(self._known_quality):
            return abs(self._quality - self._known_quality) > self.config.epsilon * self._known_quality
        return True

    def _mature_after(self, side: Side) -> float:
        """The age from which rows may go: by Little's law, a fraction of the time for which all could stay."""
        if self.config.maturity is not None:
            return self.config.maturity
        rate = self._rates.rate(side)
        return self.config.fairness * self._held[side] / rate if rate else 0.0

    def _priority(self, rows: Rows, now: Time) -> Array:
        mean = self._worth / self._seen if self._seen else 0.0
        fine = self.config.penalty_rate
        if fine is None:
            fine = self.config.penalty * mean / self._unproductive**2
        return _priorities(
            importance_of(rows), *_notes(rows), rows.time, now, self._decay, self._unproductive, fine
        )

    def scores(self, rows: Rows, now: Time) -> Array:
        """Score by priority; rows that are not mature come above all others."""
        priority = rows.notes["priority"] if self._stores else self._priority(rows, now)
        ripe, age = self._mature_after(rows.side), now - rows.time
        if self.config.immature == "oldest":
            spared = 1 - age / ripe if ripe else np.zeros(len(rows))
        elif self.config.immature == "arrival":
            spared = 1 - rows.id * _NUMBERED
        else:
            by = priority if self.config.immature == "priority" else importance_of(rows)
            spared = (1 + by / (1 + np.abs(by))) / 2
        return np.where(age > ripe, priority, _SPARED * (1 + spared))

    def learned(self) -> list[Learned]:
        """Rates, when rows are mature, and how often priorities were computed."""
        told = [Learned("rate", side, self._rates.rate(side)) for side in SIDES]
        told += [Learned("maturity", side, self._mature_after(side)) for side in SIDES]
        counted = self._recomputed if self._decisions else 0
        return [*told, *(Learned("recomputations", side, counted, self._decisions) for side in SIDES)]

    def snapshot(self) -> dict[str, Array]:
        """What was learned."""
        numbers = [self._seen, self._worth, self._now, self._quality, self._known_quality]
        counts = [*self._held.values(), self._decisions, self._recomputed]
        state = {"numbers": np.array(numbers), "counts": np.array(counts, np.int64)}
        return state | as_part("rate", self._rates.snapshot())

    def restore(self, state: dict[str, Array]) -> Self:
        """Take up what `snapshot` gave."""
        self._seen, self._worth, self._now, self._quality, self._known_quality = state["numbers"].tolist()
        *held, self._decisions, self._recomputed = state["counts"].tolist()
        self._held = dict(zip(SIDES, held, strict=True))
        self._rates.restore(parts_of(state)["rate"])
        return self


class _Expecting(Policy):
    """`IJoin` at work with a model: importance times expected results."""

    def __init__(self, config: IJoin, expects: Policy) -> None:
        self.config = config
        self._expects = expects

    def __repr__(self) -> str:
        return repr(self.config)

    def kind(self) -> str:
        """Also what the model is of."""
        return f"{super().kind()} of {self._expects.kind()}"

    def watches(self) -> dict[Side, Buckets]:
        """What the model watches."""
        return self._expects.watches()

    def observe(self, step: Step) -> None:
        """Let the model learn."""
        self._expects.observe(step)

    def scores(self, rows: Rows, now: Time) -> Array:
        """Score by expected importance."""
        expected, worth = self._expects.scores(rows, now), importance_of(rows)
        # Where nothing is at stake, and infinitely much expected, nothing is.
        return np.multiply(expected, worth, out=np.minimum(expected, 0.0), where=worth > 0)

    def learned(self) -> list[Learned]:
        """What the model believes."""
        return self._expects.learned()

    def snapshot(self) -> dict[str, Array]:
        """What the model learned."""
        return self._expects.snapshot()

    def restore(self, state: dict[str, Array]) -> Self:
        """Take up what `snapshot` gave."""
        self._expects = self._expects.restore(state)
        return self


def _nothing_expected(expects: Policy | str) -> InputError:
    return InputError(f"expects={expects!r} tells no expected results; use prob, life, age or heeb")


def _notes(rows: Rows) -> tuple[Array, Array]:
    return rows.notes["recent"], rows.notes["matched"]


def _check_together(maturity: float | None, unproductive: float, span: Time) -> None:
    """Warn of times of which one makes another idle."""
    told = []
    if maturity is not None and maturity > span:
        told.append(f"maturity {maturity:g} is beyond the window {span:g}: no row is ever mature")
    elif maturity is not None and maturity > unproductive:
        told.append(
            f"maturity {maturity:g} exceeds unproductive {unproductive:g}: rows pay before they may go"
        )
    if unproductive > span:
        told.append(
            f"unproductive {unproductive:g} is beyond the window {span:g}: no row ever pays a penalty"
        )
    for what in told:
        warnings.warn(f"ijoin: {what}; use maturity <= unproductive <= window", stacklevel=2)


@kernel
def _note(recent: Array, matched: Array, hits: Array, now: float, decay: float) -> None:
    """Count this step's matches of each row beside its earlier ones, which have faded since the last."""
    for i in range(len(hits)):
        if hits[i]:
            recent[i] = recent[i] * np.exp(-decay * (now - matched[i])) + hits[i]
            matched[i] = now


@kernel
def _priorities(
    importance: Array, recent: Array, matched: Array, time: Array,
    now: float, decay: float, unproductive: float, fine: float,
) -> Array:  # fmt: skip
    """Equations 5 to 8."""
    found = np.empty(len(time))
    for i in range(len(time)):
        age, idle = now - time[i], now - matched[i]
        found[i] = importance[i]
        if age > 0:
            found[i] *= recent[i] * np.exp(-decay * idle) / age if recent[i] else 0.0
        if idle >= unproductive:
            found[i] -= fine * idle
    return found
