"""The probabilities of the next values of a side, and of matches with the other side."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidegate.models.processes.process import History, Markov, Process
from tidegate.types import Array

if TYPE_CHECKING:
    from typing import Self


class ArrivalForecast(NamedTuple):
    """The rows that are still to arrive on one side, by the process that their values follow.

    Parameters
    ----------
    process, history
        The process of the values, and its observed history.
    times
        Arrival times, all after the history.

    Examples
    --------
    >>> from tidegate.models import LinearTrend, Noise, Oracle
    >>> trend = LinearTrend(speed=1, offset=0, noise=Noise(bound=2))
    >>> window = ArrivalForecast(trend, History(0), np.array([1, 2, 8]))
    >>> window.probabilities(np.array([2]))
    array([[0.2, 0.2, 0. ]])
    >>> window.match_probabilities(ArrivalForecast(Oracle([0, 2, 2, 7]), History(0), np.array([2, 3])))
    array([[0.2, 0. ],
           [0.2, 0. ],
           [0. , 0.2]])
    """

    process: Process
    history: History
    times: Array

    @classmethod
    def after(cls, process: Process, last: tuple[int, int] | None, times: Array) -> Self:
        """The forecast for these times, given the time and the value of the last row, if there was one."""
        return cls(process, History(*last) if last else History(int(times.min(initial=0)) - 1), times)

    @property
    def is_known(self) -> bool:
        """Whether values can be predicted: a Markov process needs a last value."""
        return self.history.last is not None or not isinstance(self.process, Markov)

    def probabilities(self, values: Array) -> Array:
        """The probability of each of these values (a row) at each of the times (a column)."""
        if not self.is_known:
            return np.zeros((len(values), len(self.times)))
        return self.process.probability(self.history, self.times - self.history.now, values)

    def match_probabilities(self, other: ArrivalForecast) -> Array:
        """The probability that each of these rows (a row) equals each of the other side's (a column).

        The two streams are assumed to be independent.
        """
        if not len(self.times) or not len(other.times) or not (self.is_known and other.is_known):
            return np.zeros((len(self.times), len(other.times)))
        values = self.process.likely(self.history, self.times - self.history.now)
        return self.probabilities(values).T @ other.probabilities(values)
