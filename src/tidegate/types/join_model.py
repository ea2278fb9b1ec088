"""What is learned of the streams of a join, beside the operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, ParamSpec, Protocol, Self, TypeVar, cast

if TYPE_CHECKING:
    from tidegate.types.setting import Step
    from tidegate.types.window import Array


class ModelPart(Protocol):
    """One thing to learn, such as the rates of both sides.

    Attributes
    ----------
    part
        Its name in saved states.
    """

    part: ClassVar[str]

    def learn(self, step: Step) -> None:
        """Learn from the arrivals and matches of a step."""
        ...

    def snapshot(self) -> dict[str, Array]:
        """What was learned, as named arrays."""
        ...

    def restore(self, state: dict[str, Array]) -> Self:
        """Continue from what `snapshot` returned."""
        ...


Part = TypeVar("Part", bound=ModelPart)
Options = ParamSpec("Options")


class JoinModel:
    """What is learned of a join, each part once, for all that read it.

    A policy asks for the parts that it reads when it starts. Only these are learned, in the order in which they were
    first asked for, and before the policy observes the step. Asking again with the same options gives the same part.

    Examples
    --------
    >>> from tidegate.models import Rates
    >>> model = JoinModel()
    >>> model.part(Rates, 10.0) is model.part(Rates, 10.0)
    True
    """

    def __init__(self) -> None:
        self._parts: dict[object, ModelPart] = {}

    def part(self, kind: Callable[Options, Part], *options: Options.args, **named: Options.kwargs) -> Part:
        """A part of this class with these options; it is started if nothing has asked for it yet."""
        key = (kind, options, tuple(named.items()))
        if key not in self._parts:
            self._parts[key] = kind(*options, **named)
        return cast("Part", self._parts[key])

    def learn(self, step: Step) -> None:
        """Learn from the arrivals and matches of a step."""
        for part in self._parts.values():
            part.learn(step)

    def snapshot(self) -> dict[str, Array]:
        """What was learned, as named arrays."""
        return {
            f"{name}.{at}": array
            for name, part in self._named().items()
            for at, array in part.snapshot().items()
        }

    def restore(self, state: dict[str, Array]) -> dict[str, Array]:
        """Continue from what `snapshot` returned; returns the arrays that are not of the model.

        A part that is missing in the state starts to learn.
        """
        rest = dict(state)
        for name, part in self._named().items():
            prefix = f"{name}."
            saved = {at.removeprefix(prefix): rest.pop(at) for at in state if at.startswith(prefix)}
            if saved:
                part.restore(saved)
        return rest

    def _named(self) -> dict[str, ModelPart]:
        """The parts by name; parts of one name with other options have a number, too."""
        counted: Counter[str] = Counter()
        named: dict[str, ModelPart] = {}
        for part in self._parts.values():
            counted[part.part] += 1
            number = counted[part.part]
            named[part.part if number == 1 else f"{part.part}{number}"] = part
        return named
