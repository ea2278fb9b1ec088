"""How likely two streams are to bring the same value."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import numpy as np

from tidegate.models.process import History, Markov, Process
from tidegate.types import Array, InputError

if TYPE_CHECKING:
    from typing import Self


@runtime_checkable
class Enumerable(Protocol):
    """A process that can say which values may come; all that are here can."""

    def likely(self, history: History, ahead: Array) -> Array:
        """The values, each once, that come at these steps ahead with a probability that matters."""


class Coming(NamedTuple):
    """Rows that are still to come on one side, as far as a process tells of them.

    Parameters
    ----------
    process, history
        What their values follow, and what was observed of it.
    times
        When they come, all later than what was observed.

    Examples
    --------
    >>> from tidegate.models import LinearTrend, Noise, Oracle
    >>> window = Coming(LinearTrend(speed=1, offset=0, noise=Noise(bound=2)), History(0), np.array([1, 2, 8]))
    >>> window.chances(np.array([2]))
    array([[0.2, 0.2, 0. ]])
    >>> window.meeting(Coming(Oracle([0, 2, 2, 7]), History(0), np.array([2, 3])))
    array([[0.2, 0. ],
           [0.2, 0. ],
           [0. , 0.2]])
    """

    process: Process
    history: History
    times: Array

    @classmethod
    def after(cls, process: Process, last: tuple[int, int] | None, times: Array) -> Self:
        """What is to come at these times, given the time and the value of the last row, if there was one."""
        return cls(process, History(*last) if last else History(int(times.min(initial=0)) - 1), times)

    @property
    def told(self) -> bool:
        """Whether anything can be told: not of a process that starts from a value while none was seen."""
        return self.history.last is not None or not isinstance(self.process, Markov)

    def chances(self, values: Array) -> Array:
        """How likely each of these values is (a row) at each of the times (a column)."""
        if not self.told:
            return np.zeros((len(values), len(self.times)))
        return self.process.probability(self.history, self.times - self.history.now, values)

    def meeting(self, other: Coming) -> Array:
        """How likely each of these rows has the value of each of the others, in streams independent of each other."""
        if not len(self.times) or not len(other.times) or not (self.told and other.told):
            return np.zeros((len(self.times), len(other.times)))
        if not isinstance(self.process, Enumerable):
            raise InputError(
                f"{self.process!r} does not say which values may come; give it a method likely(history, ahead)"
            )
        values = self.process.likely(self.history, self.times - self.history.now)
        return self.chances(values).T @ other.chances(values)
