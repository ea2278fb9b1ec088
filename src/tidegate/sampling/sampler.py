"""The contract of every sampler: who is taken up, which matches leave, and with what probability.

Every result has an owner, the older of its two rows (the one with the lower number). The owner waits in memory, the
other arrives and finds it there. A sampler decides by draws that are made for the owner: whether it is taken up, and
which of its matches leave. It never touches a buffer; the operator asks and enacts.

A draw's probability is fixed before it is made. When memory overflows it is lowered for the draws to come, and draws
already made of which nothing has come yet are thinned: what was drawn with p is kept with the chance p'/p, and stands
as drawn with p'. Each result tells the probability that held when it left. The mean of its weight, one over the
probability, is exactly 1 for every result of the exact join, given all that happened before its last draw and so,
step by step backwards, at all: estimates by weights are unbiased, however p was chosen.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, Self

import numpy as np

from tidegate.draws import salt
from tidegate.models.numbers import is_number
from tidegate.registry import called, named
from tidegate.sampling.control import Control
from tidegate.sampling.expecting import Expecting, Model, check_model, suited
from tidegate.sampling.fraction import Taking, check_overflow
from tidegate.sampling.ladder import STEPS, chance, coins
from tidegate.types import SIDES, InputError, Sampled, Setting, Window, as_part, parts_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.types import Array, Rows, Side, Time


@dataclass(frozen=True)
class Sampler(ABC):
    """What the user writes; `start` turns it into what runs.

    Attributes
    ----------
    name
        What users and the command line call it; a class without one is not listed.
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
            wanted = "a number above 0" if self.highest > 1 else "one above 0 and at most 1"
            raise InputError(
                f"p={self.p!r} is not a sampling fraction; give {wanted}, or None for what the budget allows"
            )
        check_overflow(self.overflow)
        check_model(self.model, self.rates)

    @abstractmethod
    def start(self, setting: Setting) -> Sampling:
        """Bind to a join and return what runs."""


class Sampling(ABC):
    """A sampler at work.

    Attributes
    ----------
    expects
        Whether it must know how many matches a row has, and learns that where no model is given.
    """

    expects: ClassVar[bool] = True

    def __init__(self, config: Sampler, setting: Setting, *, base: float, highest: int = 0) -> None:
        self.config = config
        self.salt = salt(setting)
        self.base = base
        model = config.model or (suited(setting.condition) if self.expects else None)
        self.expecting = Expecting(model, config.rates, setting, self.salt)
        self.control = Control(highest, config.overflow)

    def __repr__(self) -> str:
        return repr(self.config)

    @property
    def fraction(self) -> float:
        """The probability of new draws; of one match, where that depends on the matches that a row expects."""
        return min(1.0, chance(self.base, self.control.level))

    def cap(self, fraction: float) -> None:
        """Let new draws have no higher probability than one just above this fraction: more would be of no use."""
        if 0 < fraction < self.base:
            self.control.cap(self._level(fraction))

    def _level(self, fraction: float) -> int:
        return math.floor(STEPS * math.log2(self.base / fraction))

    def needs(self) -> Callable[[float], float] | None:
        """What budget, in rows, new draws need to have a probability just above a fraction; None while unknown."""
        taking = self.theory()
        if taking is None:
            return None
        return lambda fraction: self.control.needs(taking.rows(self._level(fraction)))

    def observe(self, arrivals: dict[Side, Rows], now: Time) -> None:
        """Learn from the arrivals of a step, before they are taken up."""
        self.expecting.observe(arrivals, now)

    @abstractmethod
    def admitted(self, rows: Rows) -> tuple[Rows, Owners]:
        """Arrivals with what is noted of each, ready to pick from the matches that they own."""

    @abstractmethod
    def begin(self, rows: Rows) -> Owners:
        """Make ready to pick from the matches of these buffered rows."""

    @abstractmethod
    def thinned(self, rows: dict[Side, Rows], held: float, room: float, *, lower: bool) -> dict[Side, Owners]:
        """Thin these rows, which hold so much and have not the room, to the probability of new draws.

        That is lowered first, if `lower`.
        """

    @abstractmethod
    def theory(self) -> Taking | None:
        """What each level takes in rows; None while that is not known."""

    def settle(self, now: Time, held: float, room: float) -> None:
        """At the end of a step, reckon the probability of draws to come."""
        span = max(self.expecting.span(side) for side in SIDES)
        self.control.settle(now, held, room, span, self.theory if self.config.p is None else _unasked)

    def kind(self) -> str:
        """What its state is of: only a sampler that says the same can take it up."""
        return f"{type(self).__name__} {self.base!r} {self.expecting.learns}"

    def snapshot(self) -> dict[str, Array]:
        """What was learned and decided, as plain arrays."""
        state = as_part("expecting", self.expecting.snapshot())
        return state | as_part("control", self.control.snapshot())

    def restore(self, state: dict[str, Array]) -> Self:
        """Take up what `snapshot` gave."""
        parts = parts_of(state)
        self.expecting.restore(parts["expecting"])
        self.control.restore(parts["control"])
        return self


class Picked(NamedTuple):
    """Matches that leave: which they are, and of each `probability` and `shown` as in `Sampled`."""

    matches: Array
    probability: Array
    shown: Array


class Owners(ABC):
    """Rows whose matches come one after the other, as positions among these rows."""

    @abstractmethod
    def picked(self, owner: Array) -> Picked:
        """Which of these matches leave."""

    def end_step(self) -> None:  # noqa: B027 - most decide nothing then
        """Decide what there is to decide once arrivals have had all matches of their own step."""

    @abstractmethod
    def useless(self) -> Array:
        """Which rows are of no further use, but to match older ones in the step in which they arrive."""

    @abstractmethod
    def noted(self) -> dict[str, Array]:
        """The rows' columns that may have changed."""


def _unasked() -> None:
    """A probability that was given stands, whatever it takes."""


SPREAD: Final = 64
"""How many times as many results as a reservoir takes its sampler may have: so that they come from many rows."""

_THINNING: Final = 0x5DEECE66D
"""Sets these draws apart from those of a sampler with the same seed."""


def thinned(sample: Sampled, p: float | None = None, seed: int = 0) -> Sampled:
    """A sample in which every result has the same probability, out of one with various.

    A result of probability P is kept with the chance p / P. The draw is a hash of the seed and of both rows' numbers.

    Parameters
    ----------
    sample
        What `simulate_sample` found.
    p
        The probability that all shall have; by default the least of the sample's.
    seed
        Fixes the draws.

    Examples
    --------
    >>> half, all_of_them = np.full(1000, 0.5), np.ones(1000)
    >>> numbers = np.arange(2000)
    >>> mixed = Sampled(numbers, numbers, np.append(half, all_of_them), numbers, np.ones(2000))
    >>> even = thinned(mixed)
    >>> len(even.left), set(even.probability.tolist())
    (1514, {0.5})
    """
    least = float(sample.probability.min(initial=1.0))
    if p is None:
        p = least
    if not 0 < p <= least:
        raise InputError(
            f"p={p!r} is not above 0 and at most {least:g}, the sample's least probability; give one that is"
        )
    drawn = coins(salt(Setting(Window(0, 0), seed)) ^ _THINNING, sample.left, sample.right)
    stays = np.flatnonzero(drawn * sample.probability < p)
    even = sample.take(stays)
    even.probability = np.full(len(stays), p)
    return even


def names() -> list[str]:
    """Return the names of all samplers, one's own included once their class is defined."""
    return sorted(named(Sampler.__subclasses__()))


def find(sampler: str | Sampler) -> Sampler:
    """Return the sampler that is meant: itself, or by name with its defaults.

    Examples
    --------
    >>> find("eq_cluster")
    EqCluster(p=None, model=None, rates=None, overflow=0.01)
    >>> find("eq")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tidegate.types.InputError: sampler 'eq' is not known; use one of ...
    """
    if isinstance(sampler, Sampler):
        return sampler
    return called(sampler, named(Sampler.__subclasses__()), "sampler")()
