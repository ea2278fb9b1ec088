"""The contract of every policy: a configuration that starts, and a running policy that scores rows.

A policy never sees the buffer's internals and never evicts. The operator shows it each step, asks it to score
the rows, and keeps the rows with the highest scores that fit; among equal scores the newest rows stay.

What only some policies can do, such as deciding on sets of rows, is in `abilities`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self, get_args, runtime_checkable

from tidegate import policies
from tidegate.registry import classes_by_name, find_class, from_parameters, to_parameters
from tidegate.types import InputError, Order, Stateful

if TYPE_CHECKING:
    from tidegate.types import Array, Rows, Setting, Step, Time

Need = Literal["importance", "future"]


class LearningHooks(Stateful, Protocol):
    """What a running policy learns, and saves by its declared `state`; by default nothing."""

    def observe(self, step: Step) -> None:  # noqa: ARG002 - for subclasses
        """Learn from the arrivals and matches of a step, before its rows are scored."""
        return

    def kind(self) -> str:
        """What identifies its state: only a policy of the same kind can restore it."""
        return type(self).__name__


@runtime_checkable
class RunningPolicy(LearningHooks, Protocol):
    """A policy that is bound to a join."""

    @abstractmethod
    def scores(self, rows: Rows, clock: Time) -> Array:
        """Score rows of one side at this time of the other side; rows with higher scores stay.

        This changes no state.
        """


class Policy(LearningHooks, ABC):
    """The configuration of a policy, usually a frozen dataclass; `start` returns what runs.

    A policy with nothing to bind and nothing to learn is one class with one method: it defines `scores`, and `start`
    returns it as it is.

    Attributes
    ----------
    name
        Its name for users and on the command line; a class without one is not listed.
    use_when
        One line for lists of policies: in which case to choose it.
    by_key
        Whether it scores by how often keys arrive, so that it works for equal keys only.
    predicts
        Whether it has a model of the results by memory (`abilities.PredictsPayoff`).
    needs
        What must be given in addition to keys and times: an importance (rows without it are refused), or the future,
        which only a simulation of recorded streams has, in `Setting.future`.
    orders
        The orders of a step that it supports; `start` refuses others.
    """

    name: ClassVar[str]
    use_when: ClassVar[str] = ""
    by_key: ClassVar[bool] = False
    predicts: ClassVar[bool] = False
    needs: ClassVar[frozenset[Need]] = frozenset()
    orders: ClassVar[tuple[Order, ...]] = get_args(Order)

    def start(self, setting: Setting) -> RunningPolicy:  # noqa: ARG002 - most policies of one class need nothing
        """Bind to a join and return what runs."""
        if not isinstance(self, RunningPolicy):
            raise InputError(f"{type(self).__name__} defines neither scores nor start; define one of them")
        return self

    @classmethod
    def label(cls) -> str:
        """Its name; for a class without a name of its own, the name of the class."""
        return cls.name if "name" in vars(cls) else cls.__name__

    def parameters(self) -> dict[str, Any] | None:
        """Its parameters, as values that JSON can hold; None if they cannot be described.

        A dataclass returns its fields, with the parameters of models among them. A policy with other fields that are
        not plain overrides `from_parameters` too.
        """
        return to_parameters(self) if is_dataclass(self) else None

    @classmethod
    def from_parameters(cls, parameters: dict[str, Any]) -> Self:
        """Make a policy from what `parameters` returned."""
        return from_parameters(cls, parameters)


def check_rows(policy: Policy, rows: Rows) -> None:
    """Refuse rows that lack what a policy needs."""
    if len(rows) and rows.importance is None and "importance" in policy.needs:
        raise InputError(
            f"{policy!r} needs the importance of each row; add an importance column on the {rows.side}"
        )


def check_integer_keys(setting: Setting, what: str) -> None:
    """Refuse keys that are not whole numbers of the user, where a policy computes with them."""
    if not setting.integer_keys:
        raise InputError(
            f"{what}, but keys are not whole numbers; leave it out, or join on a column of whole numbers"
        )


def names() -> list[str]:
    """Return the names of all policies, including user-defined classes."""
    return sorted(_by_name())


def describe() -> dict[str, str]:
    """Return, for the name of each policy, in which case to choose it.

    Examples
    --------
    >>> describe()["random"]
    'A baseline that every other policy should beat.'
    """
    found = _by_name()
    return {name: found[name].use_when for name in sorted(found)}


def registered(name: str) -> type[Policy] | None:
    """Return the class of that name, if there is one."""
    return _named(name) or _by_name().get(name)


def find(policy: str | Policy) -> Policy:
    """Return a policy: itself, or by name with its defaults.

    Examples
    --------
    >>> find("fifo")
    Fifo()
    >>> find("fifi")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tidegate.InputError: policy 'fifi' is not known; use one of age, fifo, ...; did you mean 'fifo'?
    """
    if isinstance(policy, Policy):
        return policy
    kind = _named(policy) or find_class(policy, _by_name(), "policy")
    return kind()


def _named(name: object) -> type[Policy] | None:
    """The class of Tidegate with that name, if there is one; no other policy is loaded."""
    spelling = name.replace("_", "") if isinstance(name, str) else ""
    classes = [getattr(policies, public) for public in policies.__all__ if public.lower() == spelling]
    return next((kind for kind in classes if vars(kind).get("name") == name), None)


def _by_name() -> dict[str, type[Policy]]:
    """All policies by name, including user-defined classes."""
    for public in policies.__all__:
        getattr(policies, public)  # loads it
    return classes_by_name(Policy.__subclasses__())
