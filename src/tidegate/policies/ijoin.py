"""Keep the rows that recently produced the most importance per unit of time in memory."""

from __future__ import annotations

import math
import sys
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self

import numpy as np

from tidegate.compiled import kernel
from tidegate.models import Rates
from tidegate.models.decay import half_life, horizon_for
from tidegate.models.validation import positive
from tidegate.policies.abilities import DecidesOnSets, WatchesAges, learned_by
from tidegate.policies.importance import importance_of
from tidegate.policies.policy import Policy, RunningPolicy, find
from tidegate.types import FAR, SIDES, InputError, Learned, Nested, Numbers, Opposites, check_choice

if TYPE_CHECKING:
    from tidegate.types import Array, Buckets, Rows, Setting, Side, State, Step, Time

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
    ("decay", 0.0, math.inf),
)
_OPTIONAL: Final = ("maturity", "decay", "penalty_rate")
_IMMATURE: Final = 2.0**996
"""Above every priority; a power of 2, so that scores above it are as finely spaced as numbers from 1 to 2."""
_FINEST: Final = 2.0**-52
"""The distance between those numbers, for the number of a row."""


@dataclass(frozen=True)
class IJoin(Policy):
    """Score a row by its importance times its recent matches, per unit of time that it has been in memory.

    A young row has had no time to match, so it is kept until it is mature. A row without a match for a long time gets
    a penalty. For joins in which importance and matches both count, and in which every row should get its chance:
    the later rows mature, the fairer and the less important the result, down to `fifo`.

    Immature rows are evicted only if no mature row is left; then `immature` decides which. Without importances every
    row has 1.

    Parameters
    ----------
    fairness
        From 0 to 1: rows are mature after this fraction of the observed time for which memory could keep all rows.
        0 protects only the newest rows, 1 is nearly `fifo`.
    maturity
        The age at which rows are mature, instead of `fairness`. Times are in the unit of the data; on Spark that is a
        microsecond.
    unproductive
        The time without a match after which a row gets a penalty; by default 12 % of the window.
    penalty
        The penalty in matches: a row without a match for `unproductive` loses the priority of this number of matches
        of mean importance in this time; for twice the time, twice as much.
    penalty_rate
        The penalty as an absolute number, instead of `penalty`: the priority lost per unit of time since the last
        match. Times are in the unit of the data.
    decay
        The time in which the weight of a match falls to 1/e; by default `unproductive`. With infinity all matches
        count equally.
    immature
        Which row is evicted when no row is mature: the "oldest", the one with the lowest "priority" or "importance",
        or the "arrival", so that buffered rows stay.
    expects
        A policy that scores by expected results (`prob`, `life`, `age`, `heeb`), or its name. The score is then the
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
    - The constant c of the penalty in equation 8 is not given, and depends on the units of time and importance. By
      default the penalty is in matches of mean importance, so that one value suits all units; `penalty_rate` is c.
      The decay and the initial priority are not given either; here that is the importance.
    - Algorithm 2 evicts no row while none is mature, and does not define what happens to the arrival. By default
      the oldest row is evicted; `immature="arrival"` evicts the arrival, which section 3.4 calls unfair.
    - The paper's maturity of two seconds is longer than its memory of ten rows lasts, so that no row is ever mature;
      therefore the default is a fraction of that time.
    - A row that never matched counts as if it had matched at its arrival; the paper does not define this case. A row
      of age 0 has its initial priority.
    - Priorities are computed at each eviction. `tidegate.experiments.ijoin.lazy_ijoin` has the other schemes of
      section 3.5, which compute them less often.
    - Matches count from the end of the step in which they are produced.
    """

    name: ClassVar[str] = "ijoin"
    use_when: ClassVar[str] = "Importance and matches both count, and every row should get its chance."

    fairness: float = _FAIRNESS
    maturity: float | None = None
    unproductive: float | None = None
    penalty: float = _PENALTY
    decay: float | None = None
    immature: Immature = "oldest"
    penalty_rate: float | None = field(default=None, kw_only=True)
    expects: Policy | str | None = None

    def __post_init__(self) -> None:
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
        if self.expects is not None:
            expected = find(self.expects)
            if not (expected.by_key or expected.predicts):
                raise _no_expected_results(self.expects)
            object.__setattr__(self, "expects", expected)
            object.__setattr__(self, "by_key", expected.by_key)
        self._warn_of_unused()

    def _warn_of_unused(self) -> None:
        """Warn about parameters that have no effect because of others."""
        if self.expects is not None:
            optional = ("maturity", "unproductive", "decay", "penalty_rate")
            unused = [what for what in optional if getattr(self, what) is not None]
            if unused:
                warnings.warn(
                    f"ijoin: {', '.join(unused)} is not used with expects=; leave it out", stacklevel=4
                )
            return
        if self.maturity is not None and self.fairness != _FAIRNESS:
            warnings.warn("ijoin: fairness is not used where maturity is given; leave one out", stacklevel=4)
        if self.penalty_rate is not None and self.penalty != _PENALTY:
            warnings.warn(
                "ijoin: penalty is not used where penalty_rate is given; leave one out", stacklevel=4
            )

    def start(self, setting: Setting) -> RunningPolicy:
        """Start to record the matches of rows, or start the policy of `expects`."""
        if self.expects is not None:
            expects = find(self.expects).start(setting)
            if isinstance(expects, DecidesOnSets):
                raise _no_expected_results(self.expects)
            return ExpectedImportance(self, expects)
        return RunningIJoin(self, setting)

    def parameters(self) -> dict[str, Any] | None:
        """Its fields, with the parameters of the policy of `expects`."""
        parameters = super().parameters()
        if parameters is None or self.expects is None:
            return parameters
        expected = find(self.expects)
        inner = expected.parameters()
        return None if inner is None else parameters | {"expects": {"policy": expected.label(), **inner}}

    @classmethod
    def from_parameters(cls, parameters: dict[str, Any]) -> Self:
        """Make a policy from what `parameters` returned."""
        expects = parameters.get("expects")
        if expects is not None:
            inner = {"policy": expects} if isinstance(expects, str) else dict(expects)
            kind = type(find(inner.pop("policy", None)))
            expects = kind.from_parameters((kind().parameters() or {}) | inner)
        return cls(**parameters | {"expects": expects})


class RunningIJoin(RunningPolicy):
    """A running `IJoin`: the recent matches of each row, and the time of its last one, are columns of the rows."""

    state: ClassVar[State] = {
        "numbers": Numbers(_rows=float, _importance=float, _now=float).or_longer(),
        "counts": Numbers(_held=dict).or_longer(),
        "lead": Opposites("_lead").optional(),
    }

    def __init__(self, config: IJoin, setting: Setting) -> None:
        self.config = config
        span = max(setting.window.reach(side) for side in SIDES)
        ends = not setting.window.counted and span < FAR
        if config.unproductive is None and not ends:
            raise InputError(
                f"ijoin needs unproductive= with the window {setting.window}, which has no end in time; give a time"
            )
        # In a window of one instant no row can be unproductive.
        self._unproductive = float(config.unproductive or _FRACTION * span or math.inf)
        self._decay = 1 / (config.decay or self._unproductive)
        if ends and span > 0:
            _check_together(config.maturity, self._unproductive, span)
        horizon = horizon_for(None, span)
        self._rates, self._half_life = setting.model.part(Rates, horizon), half_life(horizon)
        self._held: dict[Side, int] = dict.fromkeys(SIDES, 0)
        self._rows, self._importance = 0.0, 0.0  # decayed, with the same half-life
        self._now = math.nan
        self._lead: dict[Side, Time] = dict.fromkeys(SIDES, 0)

    def __repr__(self) -> str:
        return repr(self.config)

    def policy_columns(self, rows: Rows) -> dict[str, Array]:
        """No match yet."""
        return {"recent": np.zeros(len(rows)), "matched": rows.time.copy()}

    def observe(self, step: Step) -> None:
        """Record matches, and learn the mean importance."""
        passed = 0.0 if math.isnan(self._now) else max(0.0, step.now - self._now)
        kept = 2.0 ** (-passed / self._half_life)
        self._now = float(step.now)
        self._lead = {side: step.clocks.lead(side) for side in SIDES}
        self._rows, self._importance = self._rows * kept, self._importance * kept
        for side in SIDES:
            rows, fresh = step.rows[side], step.fresh[side]
            _record_matches(*_match_columns(rows), step.hits[side], step.clocks.of(side), self._decay)
            self._held[side] = fresh
            self._rows += len(rows) - fresh
            self._importance += float(importance_of(rows)[fresh:].sum())

    def _mature_after(self, side: Side) -> float:
        """The age of maturity: by Little's law, a fraction of the time for which memory could keep all rows."""
        if self.config.maturity is not None:
            return self.config.maturity
        rate = self._rates.rate(side)
        return self.config.fairness * self._held[side] / rate if rate else 0.0

    def priority(self, rows: Rows, now: Time) -> Array:
        """Equations 5 to 8: importance times recent matches per unit of time, less the penalty."""
        mean = self._importance / self._rows if self._rows else 0.0
        fine = self.config.penalty_rate
        if fine is None:
            fine = self.config.penalty * mean / self._unproductive**2
        return _priorities(
            importance_of(rows), *_match_columns(rows), rows.time, now, self._decay, self._unproductive, fine
        )

    def scores(self, rows: Rows, clock: Time) -> Array:
        """Score by priority; immature rows rank above all others."""
        # A row is in memory since its own side's clock had its time.
        now = clock + self._lead[rows.side]
        priority = self.priority(rows, now)
        maturity, age = self._mature_after(rows.side), now - rows.time
        if self.config.immature == "oldest":
            rank = 1 - age / maturity if maturity else np.zeros(len(rows))
        elif self.config.immature == "arrival":
            rank = 1 - rows.id * _FINEST
        else:
            by = priority if self.config.immature == "priority" else importance_of(rows)
            rank = (1 + by / (1 + np.abs(by))) / 2
        return np.where(age > maturity, priority, _IMMATURE * (1 + rank))

    def learned(self) -> list[Learned]:
        """Rates, and the age of maturity."""
        learned = [Learned("rate", side, self._rates.rate(side)) for side in SIDES]
        return learned + [Learned("maturity", side, self._mature_after(side)) for side in SIDES]


class ExpectedImportance(RunningPolicy):
    """A running `IJoin` with `expects`: importance times expected results."""

    state: ClassVar[State] = {"": Nested("_expects")}

    def __init__(self, config: IJoin, expects: RunningPolicy) -> None:
        self.config = config
        self._expects = expects

    def __repr__(self) -> str:
        return repr(self.config)

    def kind(self) -> str:
        """Its state is that of the policy of `expects`."""
        return f"{super().kind()} of {self._expects.kind()}"

    def watches(self) -> dict[Side, Buckets]:
        """The ages that the policy of `expects` watches."""
        return self._expects.watches() if isinstance(self._expects, WatchesAges) else {}

    def observe(self, step: Step) -> None:
        """Let the policy of `expects` learn."""
        self._expects.observe(step)

    def scores(self, rows: Rows, clock: Time) -> Array:
        """Score by expected importance."""
        expected, importance = self._expects.scores(rows, clock), importance_of(rows)
        # Importance 0 times infinitely many expected results is 0.
        return np.multiply(expected, importance, out=np.minimum(expected, 0.0), where=importance > 0)

    def learned(self) -> list[Learned]:
        """What the policy of `expects` learned."""
        return learned_by(self._expects)


def _no_expected_results(expects: Policy | str) -> InputError:
    return InputError(f"expects={expects!r} does not score by expected results; use prob, life, age or heeb")


def _match_columns(rows: Rows) -> tuple[Array, Array]:
    return rows.policy_columns["recent"], rows.policy_columns["matched"]


def _check_together(maturity: float | None, unproductive: float, span: Time) -> None:
    """Warn about times that make others ineffective."""
    warned = []
    if maturity is not None and maturity > span:
        warned.append(f"maturity {maturity:g} is beyond the window {span:g}: no row is ever mature")
    elif maturity is not None and maturity > unproductive:
        warned.append(
            f"maturity {maturity:g} exceeds unproductive {unproductive:g}: rows get a penalty before they are mature"
        )
    if unproductive > span:
        warned.append(
            f"unproductive {unproductive:g} is beyond the window {span:g}: no row ever gets a penalty"
        )
    for what in warned:
        warnings.warn(f"ijoin: {what}; use maturity <= unproductive <= window", stacklevel=2)


@kernel
def _record_matches(recent: Array, matched: Array, hits: Array, now: float, decay: float) -> None:
    """Add this step's matches of each row to its earlier ones, which decay since the last match."""
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
