"""The contract of every policy: learn from what is shown, and rank.

A policy never sees the buffer's internals and never evicts. The operator shows it each step, asks it to
score the rows that want to stay, and keeps the best that fit; among equals the newest stays. A policy that
decides on sets of rows rather than on each by itself says which stay (`keep`); the operator enacts that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

from tidegate.models.processes.process import Process
from tidegate.models.value_object import ValueObject
from tidegate.policies.ranking import Ranking, says_anew
from tidegate.registry import classes_by_name, find_class
from tidegate.types import SIDES, InputError, Learned, Order

if TYPE_CHECKING:
    from tidegate.models import Payoff
    from tidegate.policies.ranking import Course
    from tidegate.types import Array, Buckets, Budget, Rows, Setting, Side, Step, Time

Need = Literal["importance", "future"]


class Policy(ABC):
    """Who stays.

    What the user writes is a frozen dataclass; `start` turns it into what runs. A policy with neither
    parameters to bind nor anything to learn is both.

    Attributes
    ----------
    name
        What users and the command line call it; a class without one is not listed.
    use_when
        One line for lists of policies: in which case to choose it.
    by_key
        Whether it ranks by how often keys come, so that it makes sense for equal keys only.
    predicts
        Whether it has a model that tells, sooner or later, what memory yields (`payoffs`).
    needs
        What must be given beside keys and times: an importance (rows without it are refused), or the future, which
        only a simulation of recorded streams can hand over, in `Setting.future`.
    orders
        The orders of a step that it can work with; it refuses others when it starts.
    """

    name: ClassVar[str]
    use_when: ClassVar[str] = ""
    by_key: ClassVar[bool] = False
    predicts: ClassVar[bool] = False
    needs: ClassVar[frozenset[Need]] = frozenset()
    orders: ClassVar[tuple[Order, ...]] = get_args(Order)

    def is_fixed(self) -> bool:
        """Whether a row's score never changes after it arrived, and nothing is learned."""
        return False

    def ranking(self, course: Course) -> Ranking | None:
        """How rows rank throughout a run, once it has started; None unless that depends on the arrivals alone.

        Whoever learns has then learned from all of them.
        """
        # Who inherits that scores are fixed, and scores otherwise or says who stays, did not say it of itself.
        own = all(says_anew(self, "is_fixed", of=name) for name in ("scores", "observe", "keep"))
        if not own or not self.is_fixed():
            return None
        return Ranking(course.merged(self.scores(course.left, 0), self.scores(course.right, 0)))

    def counts_steps(self) -> bool:
        """Whether it was given processes, which bring a row a side at each whole time from 0 on."""
        return any(isinstance(getattr(self, side, None), Process) for side in SIDES)

    def start(self, setting: Setting) -> Policy:  # noqa: ARG002 - most policies need nothing from it
        """Bind to a join and return what runs."""
        return self

    def watches(self) -> dict[Side, Buckets]:
        """The ages at which matches are to be counted for `observe`, for each side that has any."""
        return {}

    def payoffs(self) -> tuple[Payoff, Payoff] | None:
        """What memory yields on the left and on the right, by its model; None while that is not known."""
        return None

    def learned(self) -> list[Learned]:
        """What it believes by now, for people to look at."""
        return []

    def require(self, rows: Rows) -> None:
        """Refuse rows that lack what this policy needs."""
        if len(rows) and rows.importance is None and "importance" in self.needs:
            raise InputError(
                f"{self!r} needs the importance of each row; add an importance column on the {rows.side}"
            )

    def noted(self, rows: Rows) -> Rows:
        """Arrivals with what this policy notes of each row, in columns that `observe` may write to."""
        return rows

    def observe(self, step: Step) -> None:  # noqa: B027 - a policy that learns nothing keeps this
        """Learn from the arrivals and matches of a step, before its rows are ranked."""

    @abstractmethod
    def scores(self, rows: Rows, now: Time) -> Array:
        """Score rows of one side; the higher stays. Asking changes nothing."""

    def keep(self, rows: dict[Side, Rows], budget: Budget, now: Time) -> dict[Side, Array] | None:  # noqa: ARG002 - for those that decide on sets
        """Mark the rows that stay within a budget which these sides share; None: the best by score."""
        return None

    @property
    def decides_on_sets(self) -> bool:
        """Whether it says who stays instead of scoring."""
        return type(self).keep is not Policy.keep

    def revalued(self, rows: Rows) -> Rows:
        """Buffered rows whose importance was redefined, with what this policy notes of them corrected."""
        return rows

    def kind(self) -> str:
        """What its state is of: only a policy that says the same can take it up."""
        return type(self).__name__

    def snapshot(self) -> dict[str, Array]:
        """What was learned, as plain arrays."""
        return {}

    def restore(self, state: dict[str, Array]) -> Self:
        """Take up what `snapshot` gave."""
        if state:
            raise InputError(
                f"{type(self).__name__} keeps no state but was given {sorted(state)}; restore with its own"
            )
        return self

    @classmethod
    def label(cls) -> str:
        """Its name; for a class that has none of its own, what the class is called."""
        return cls.name if "name" in vars(cls) else cls.__name__

    def parameters(self) -> dict[str, Any] | None:
        """What it was made with, as values that JSON can hold; None if it cannot tell.

        A dataclass tells its fields, and models theirs. A policy with a model, or with fields that are not
        plain, makes itself again in `made_of`.
        """
        if not is_dataclass(self):
            return None
        told = {f.name: getattr(self, f.name) for f in fields(self) if f.init}
        return {
            name: value.to_parameters() if isinstance(value, ValueObject) else value
            for name, value in told.items()
        }

    @classmethod
    def made_of(cls, parameters: dict[str, Any]) -> Self:
        """Make it again from what `parameters` told."""
        return cls(**parameters)


def need_numbers(setting: Setting, what: str) -> None:
    """Refuse keys that are not the user's own whole numbers, where a policy reckons with them."""
    if not setting.numeric:
        raise InputError(
            f"{what}, but keys are not whole numbers; leave it out, or join on a column of whole numbers"
        )


def names() -> list[str]:
    """Return the names of all policies, one's own included once their class is defined."""
    return sorted(classes_by_name(Policy.__subclasses__()))


def describe() -> dict[str, str]:
    """Return, for the name of each policy, in which case to choose it.

    Examples
    --------
    >>> describe()["random"]
    'A baseline that every other policy should beat.'
    """
    found = classes_by_name(Policy.__subclasses__())
    return {name: found[name].use_when for name in sorted(found)}


def registered(name: str) -> type[Policy] | None:
    """Return the class of that name, if there is one."""
    return classes_by_name(Policy.__subclasses__()).get(name)


def find(policy: str | Policy) -> Policy:
    """Return the policy that is meant: itself, or by name with its defaults.

    Examples
    --------
    >>> find("fifo")
    Fifo()
    >>> find("fifi")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tidegate.types.InputError: policy 'fifi' is not known; use one of age, fifo, ...; did you mean 'fifo'?
    """
    if isinstance(policy, Policy):
        return policy
    return find_class(policy, classes_by_name(Policy.__subclasses__()), "policy")()
