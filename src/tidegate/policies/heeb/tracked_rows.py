"""A sample of all rows that arrive, and what each would have matched, whether or not it was kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Self

import numpy as np

from tidegate.draws import draws

if TYPE_CHECKING:
    from tidegate.types import Array, Rows

_LESSONS: Final = 6
"""How often a row teaches before it is no longer followed."""
_NUMBER, _KEY, _BEGUN, _ARRIVED = range(4)
"""What is known of a followed row: its number and key, and the steps of its lesson's beginning and of its arrival."""
_PLACE, _GAINED, _TIME = range(3)
"""The same in floats: where it was when its lesson began, its discounted matches since then, and its time."""


class Lessons(NamedTuple):
    """What rows at some places would have matched since; and of those that go on, where they are now.

    Parameters
    ----------
    place
        Where each row was.
    gained
        Its matches, each counted by how likely the row would still have been in memory.
    later
        Where it is now.
    left
        How likely it would still be in memory; 0 for a row whose window has passed.
    """

    place: Array
    gained: Array
    later: Array
    left: Array


class FollowedRows:
    """Follows a sample of one side's arrivals, drawn by their numbers, in a bounded amount of memory.

    Parameters
    ----------
    limit
        How many rows it follows at most.
    salt
        Fixes the draws.
    term
        How many steps a lesson takes.
    span
        How long a row may be matched after its time.
    """

    def __init__(self, limit: int, salt: int, term: float, span: float) -> None:
        self._limit, self._salt, self._term, self._span = limit, salt, term, span
        self._share = 1.0
        self._rows = np.empty((4, 0), np.int64)
        self._seen = np.empty((3, 0))

    def observe(
        self, arrivals: Rows, met: Array, origin: float, *, step: int, now: float, kept: float
    ) -> Lessons:
        """Match the rows that are followed with a step's arrivals, and begin to follow some of their own side's.

        Parameters
        ----------
        arrivals
            The rows of this side that are new.
        met
            The keys of the other side's new rows.
        origin
            Where the other stream is; places are measured from there.
        step, now
            The number of the step, and its time.
        kept
            The probability to stay in memory for one more step.

        Returns
        -------
        Lessons
            Of the rows that have been followed for a term, or whose window has passed.
        """
        ages = step - self._rows[_BEGUN]
        ended = now - self._seen[_TIME] > self._span
        self._seen[_GAINED] += np.where(ended, 0.0, _count(self._rows[_KEY], met) * kept**ages)
        done = ended | (ages >= self._term)
        places = self._rows[_KEY] - origin
        left = np.where(ended, 0.0, kept**ages)
        lessons = Lessons(self._seen[_PLACE][done], self._seen[_GAINED][done], places[done], left[done])
        self._seen[_PLACE, done], self._seen[_GAINED, done] = places[done], 0.0
        self._rows[_BEGUN, done] = step
        goes_on = ~ended & (step - self._rows[_ARRIVED] < _LESSONS * self._term)
        drawn = self._drawn(arrivals.id)
        number, key = arrivals.id[drawn], arrivals.key[drawn]
        none = np.zeros(len(drawn))
        come = np.stack((number, key, *np.full((2, len(drawn)), step)))
        self._rows = np.concatenate((self._rows[:, goes_on], come), axis=1)
        seen = np.stack((key - origin, none, arrivals.time[drawn].astype(np.float64)))
        self._seen = np.concatenate((self._seen[:, goes_on], seen), axis=1)
        self._thin()
        return lessons

    def _drawn(self, ids: Array) -> Array:
        """Where those are that belong to the sample."""
        if self._share >= 1:
            return np.arange(len(ids))
        return np.flatnonzero(draws(ids, self._salt) < self._share)

    def _thin(self) -> None:
        """Halve the sample while it is too large; let it grow when it has become small."""
        count = self._rows.shape[1]
        while count > self._limit:
            self._share /= 2
            some = self._drawn(self._rows[_NUMBER])
            self._rows, self._seen, count = self._rows[:, some], self._seen[:, some], len(some)
        if self._share < 1 and count < self._limit // 4:
            self._share *= 2

    def snapshot(self) -> dict[str, Array]:
        """Which rows are followed, as plain arrays."""
        return {"rows": self._rows.ravel(), "seen": self._seen.ravel(), "share": np.array([self._share])}

    def restore(self, state: dict[str, Array]) -> Self:
        """Take up what `snapshot` gave."""
        self._rows, self._seen = state["rows"].reshape(4, -1).copy(), state["seen"].reshape(3, -1).copy()
        self._share = float(state["share"][0])
        return self


def _count(keys: Array, met: Array) -> Array:
    """How often each key is among those that were met."""
    if not len(keys) or not len(met):
        return np.zeros(len(keys), np.int64)
    values, times = np.unique(met, return_counts=True)
    at = np.minimum(np.searchsorted(values, keys), len(values) - 1)
    return np.where(values[at] == keys, times[at], 0)
