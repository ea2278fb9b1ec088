"""A sample of all arrivals, and the matches that each would have had, whether or not it was kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

import numpy as np

from tidegate.draws import draws
from tidegate.types import ArrayField, Numbers, Stateful

if TYPE_CHECKING:
    from tidegate.types import Array, Rows, State

_TERMS: Final = 6
"""The number of terms for which a row is tracked."""
_NUMBER, _KEY, _BEGUN, _ARRIVED = range(4)
"""The whole numbers of a tracked row: its number, its key, and the steps when its term began and when it arrived."""
_OFFSET, _MATCHES, _TIME = range(3)
"""The floats of a tracked row: its offset when its term began, its weighted matches since then, and its time."""


class TrackedMatches(NamedTuple):
    """The matches of tracked rows in a term.

    Parameters
    ----------
    offset
        The offset of each row at the beginning.
    matches
        Its matches, each weighted by the probability that the row would still be in memory.
    later
        Its offset at the end.
    survival
        The probability that it would be in memory at the end; 0 for a row whose window has ended.
    """

    offset: Array
    matches: Array
    later: Array
    survival: Array


class TrackedArrivals(Stateful):
    """A sample of one side's arrivals, drawn by their numbers, in a bounded amount of memory.

    Parameters
    ----------
    limit
        The maximum number of tracked rows.
    salt
        Fixes the draws.
    term
        The number of steps of a term.
    span
        How long a row stays joinable after its time.
    """

    state: ClassVar[State] = {
        "rows": ArrayField("_rows", (4, -1)),
        "seen": ArrayField("_seen", (3, -1)),
        "share": Numbers(_share=float),
    }

    def __init__(self, limit: int, salt: int, term: float, span: float) -> None:
        self._limit, self._salt, self._term, self._span = limit, salt, term, span
        self._share = 1.0
        self._rows = np.empty((4, 0), np.int64)
        self._seen = np.empty((3, 0))

    def observe(
        self, arrivals: Rows, other_keys: Array, origin: float, *, step: int, now: float, kept: float
    ) -> TrackedMatches:
        """Match the tracked rows with a step's arrivals, and add a sample of their own side's arrivals.

        Parameters
        ----------
        arrivals
            The arrivals of this side.
        other_keys
            The keys of the other side's arrivals.
        origin
            The position of the other stream, from which offsets are measured.
        step, now
            The number of the step, and the other side's clock.
        kept
            The probability of staying in memory for one more step.

        Returns
        -------
        TrackedMatches
            Of the rows whose term or window has ended.
        """
        ages = step - self._rows[_BEGUN]
        ended = now - self._seen[_TIME] > self._span
        self._seen[_MATCHES] += np.where(ended, 0.0, _count(self._rows[_KEY], other_keys) * kept**ages)
        done = ended | (ages >= self._term)
        offsets = self._rows[_KEY] - origin
        survival = np.where(ended, 0.0, kept**ages)
        observed = TrackedMatches(
            self._seen[_OFFSET][done], self._seen[_MATCHES][done], offsets[done], survival[done]
        )
        self._seen[_OFFSET, done], self._seen[_MATCHES, done] = offsets[done], 0.0
        self._rows[_BEGUN, done] = step
        continues = ~ended & (step - self._rows[_ARRIVED] < _TERMS * self._term)
        drawn = self._sampled(arrivals.id)
        number, key = arrivals.id[drawn], arrivals.key[drawn]
        none = np.zeros(len(drawn))
        come = np.stack((number, key, *np.full((2, len(drawn)), step)))
        self._rows = np.concatenate((self._rows[:, continues], come), axis=1)
        seen = np.stack((key - origin, none, arrivals.time[drawn].astype(np.float64)))
        self._seen = np.concatenate((self._seen[:, continues], seen), axis=1)
        self._thin()
        return observed

    def _sampled(self, ids: Array) -> Array:
        """The positions of the rows in the sample."""
        if self._share >= 1:
            return np.arange(len(ids))
        return np.flatnonzero(draws(ids, self._salt) < self._share)

    def _thin(self) -> None:
        """Halve the sampling rate while the sample is too large; double it when the sample is small."""
        count = self._rows.shape[1]
        while count > self._limit:
            self._share /= 2
            some = self._sampled(self._rows[_NUMBER])
            self._rows, self._seen, count = self._rows[:, some], self._seen[:, some], len(some)
        if self._share < 1 and count < self._limit // 4:
            self._share *= 2


def _count(keys: Array, others: Array) -> Array:
    """How often each key is among the others."""
    if not len(keys) or not len(others):
        return np.zeros(len(keys), np.int64)
    values, times = np.unique(others, return_counts=True)
    at = np.minimum(np.searchsorted(values, keys), len(values) - 1)
    return np.where(values[at] == keys, times[at], 0)
