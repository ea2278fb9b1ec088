"""The contract of every sampler: which rows are buffered, which matches are drawn, and with what probability.

Every result has an owner, the older of its two rows (the one with the lower number). The owner waits in the buffer;
the other row arrives and matches it. A sampler decides by draws that are made for the owner: whether it is buffered,
and which of its matches are drawn. It never touches a buffer; the operator enacts what it decides.

The probability of a draw is fixed before the draw is made. When memory overflows, the probability of new draws is
lowered, and earlier draws that have produced nothing yet are thinned: a draw with p is kept with probability p'/p,
and then counts as drawn with p'. Each result carries the probability that was in force when it was drawn. Given
everything before its last draw, the mean of its weight, one over the probability, is 1 for every result of the exact
join. By induction over the steps that holds without the condition too: estimates by weights are unbiased, however p
was chosen.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

import numpy as np

from tidegate.draws import salt
from tidegate.models.validation import is_number
from tidegate.registry import classes_by_name, find_class
from tidegate.sampling.samplers.match_forecaster import MatchForecaster, Model, check_model, default_model
from tidegate.sampling.samplers.memory_model import MemoryModel, check_overflow
from tidegate.sampling.samplers.probability_control import ProbabilityControl
from tidegate.sampling.samplers.probability_levels import STEPS, probability_at, uniform_draws
from tidegate.types import SIDES, InputError, Nested, Sampled, Setting, Stateful

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.types import Array, Clocks, Rows, Side, State, Time


@dataclass(frozen=True)
class Sampler(ABC):
    """The configuration of a sampler; `start` makes a running one of it.

    Attributes
    ----------
    name
        Its name for users and on the command line; a class without one is not listed.
    highest
        The highest `p` that may be given.
    """

    name: ClassVar[str]
    highest: ClassVar[float] = 1.0

    p: float | None = None
    model: Model | None = None
    rates: tuple[float, float] | None = None
    overflow: float = 0.01

    def __post_init__(self) -> None:
        if self.p is not None and not (is_number(self.p) and 0 < self.p <= self.highest):
            wanted = "above 0" if self.highest > 1 else "above 0 and at most 1"
            raise InputError(f"p must be a number {wanted}, or None to follow the budget; got {self.p!r}")
        check_overflow(self.overflow)
        check_model(self.model, self.rates)

    @abstractmethod
    def start(self, setting: Setting) -> RunningSampler:
        """Bind to a join and return a running sampler."""


class RunningSampler(Stateful, ABC):
    """A running sampler.

    Attributes
    ----------
    needs_forecast
        Whether it needs the expected number of matches of a row; without a given model it learns one.
    """

    needs_forecast: ClassVar[bool] = True

    state: ClassVar[State] = {"forecaster.": Nested("forecaster"), "control.": Nested("control")}

    def __init__(self, config: Sampler, setting: Setting, *, base: float, highest: int = 0) -> None:
        self.config = config
        self.salt = salt(setting.seed, setting.partition)
        self.base = base
        model = config.model or (default_model(setting.condition) if self.needs_forecast else None)
        self.forecaster = MatchForecaster(model, config.rates, setting, self.salt)
        self.control = ProbabilityControl(highest, config.overflow)

    def __repr__(self) -> str:
        return repr(self.config)

    @property
    def fraction(self) -> float:
        """The probability of new draws; of a row with one expected match, if it depends on that number."""
        return min(1.0, probability_at(self.base, self.control.level))

    def limit_probability(self, fraction: float) -> None:
        """Limit the probability of new draws to just above this fraction: more results are not needed."""
        if 0 < fraction < self.base:
            self.control.limit(self._level(fraction))

    def _level(self, fraction: float) -> int:
        return math.floor(STEPS * math.log2(self.base / fraction))

    def required_budget(self) -> Callable[[float], float] | None:
        """The budget in rows that a probability just above a fraction needs, as a function; None while unknown."""
        model = self.memory_model()
        if model is None:
            return None
        return lambda fraction: self.control.required_budget(model.rows(self._level(fraction)))

    def observe(self, arrivals: dict[Side, Rows], clocks: Clocks) -> None:
        """Learn from the arrivals of a step that ends at these clocks, before they are buffered."""
        self.forecaster.observe(arrivals, clocks)

    @abstractmethod
    def admit(self, rows: Rows) -> tuple[Rows, Owners]:
        """Return arrivals with the columns of this sampler, and `Owners` that draw from their matches."""

    @abstractmethod
    def owners_of(self, rows: Rows) -> Owners:
        """Return `Owners` that draw from the matches of these buffered rows."""

    @abstractmethod
    def thin(self, rows: dict[Side, Rows], held: float, room: float, *, lower: bool) -> dict[Side, Owners]:
        """Thin rows to the probability of new draws, which is lowered first if `lower`.

        `held` is the memory that the rows take, `room` the memory that they may take.
        """

    @abstractmethod
    def memory_model(self) -> MemoryModel | None:
        """The number of rows that each level of probability needs; None while unknown."""

    def update_probability(self, now: Time, held: float, room: float) -> None:
        """At the end of a step, compute the probability of further draws; `held` rows use memory for `room` rows."""
        span = max(self.forecaster.time_in_memory(side) for side in SIDES)
        model = self.memory_model if self.config.p is None else _no_memory_model
        self.control.update(now, held, room, span, model)

    def kind(self) -> str:
        """What identifies its state: only a sampler of the same kind can restore it."""
        return f"{type(self).__name__} {self.base!r} {self.forecaster.learns}"


class DrawnMatches(NamedTuple):
    """The drawn matches: their positions, and `probability` and `shown` of each, as in `Sampled`."""

    matches: Array
    probability: Array
    shown: Array


class Owners(ABC):
    """Rows whose matches arrive one after the other, given as positions among these rows."""

    @abstractmethod
    def draw(self, owner: Array) -> DrawnMatches:
        """Draw from these matches, given by their owners."""

    def end_step(self) -> None:  # noqa: B027 - most samplers decide nothing here
        """Called once arrivals have had all matches of their own step."""

    @abstractmethod
    def exhausted(self) -> Array:
        """A mask of rows that own no further match that could be drawn."""

    def matches(self) -> Array | None:
        """The number of matches of each row, if `draw` counts them; None if the operator does."""
        return None

    @abstractmethod
    def policy_columns(self) -> dict[str, Array]:
        """The sampler's own columns of the rows, as they are now."""


def _no_memory_model() -> None:
    """The memory model for a given probability, which does not follow from memory."""


SPREAD: Final = 64
"""A reservoir is offered up to this multiple of its size, so that its results come from many rows."""

_THINNING_SALT: Final = 0x5DEECE66D
"""Separates these draws from those of a sampler with the same seed."""


def thin(sample: Sampled, p: float | None = None, seed: int = 0) -> Sampled:
    """Thin a sample so that every result has the same probability.

    A result of probability P is kept with probability p / P. The draw is a hash of the seed and of both row numbers.

    Parameters
    ----------
    sample
        The pairs of a `SampleReport`.
    p
        The probability of every result afterwards; by default the lowest of the sample.
    seed
        Fixes the draws.

    Examples
    --------
    >>> half, all_of_them = np.full(1000, 0.5), np.ones(1000)
    >>> numbers = np.arange(2000)
    >>> mixed = Sampled(numbers, numbers, np.append(half, all_of_them), numbers, np.ones(2000))
    >>> even = thin(mixed)
    >>> len(even.left), set(even.probability.tolist())
    (1514, {0.5})
    """
    least = float(sample.probability.min(initial=1.0))
    if p is None:
        p = least
    if not 0 < p <= least:
        raise InputError(
            f"p must be above 0 and at most {least:g}, the lowest probability of the sample; got {p!r}"
        )
    drawn = uniform_draws(salt(seed) ^ _THINNING_SALT, sample.left, sample.right)
    stays = np.flatnonzero(drawn * sample.probability < p)
    even = sample.take(stays)
    even.probability = np.full(len(stays), p)
    return even


def names() -> list[str]:
    """Return the names of all samplers, including user-defined classes."""
    return sorted(classes_by_name(Sampler.__subclasses__()))


def find(sampler: str | Sampler) -> Sampler:
    """Return a sampler: itself, or by name with its defaults.

    Examples
    --------
    >>> find("eq_cluster")
    EqCluster(p=None, model=None, rates=None, overflow=0.01)
    >>> find("eq")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tidegate.InputError: sampler 'eq' is not known; use one of ...
    """
    if isinstance(sampler, Sampler):
        return sampler
    return find_class(sampler, classes_by_name(Sampler.__subclasses__()), "sampler")()
