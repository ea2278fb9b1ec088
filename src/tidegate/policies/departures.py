"""Which rows have left memory, what they brought and how long they stayed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from tidegate.draws import draws

if TYPE_CHECKING:
    from tidegate.types import Array, Rows

_NUMBER, _FIRST, _LAST, _SINCE, _UNTIL = range(5)
"""What is known of a row that is followed: its number, its results at first and last sight, the steps of both."""


class Departed(NamedTuple):
    """Rows that have left: where each was when it came, its results since then, and the steps that it stayed."""

    place: Array
    results: Array
    steps: Array


class Departures:
    """Follows rows of one side from when they are let into memory until they leave it.

    Of many rows in memory it follows a sample, drawn by their numbers, so that what it needs is bounded.

    Parameters
    ----------
    limit
        How many rows it follows at most.
    salt
        Fixes the draws.
    """

    def __init__(self, limit: int, salt: int) -> None:
        self._limit, self._salt = limit, salt
        self._share = 1.0
        self._rows = np.empty((5, 0), np.int64)
        self._place = np.empty(0)

    def observe(self, rows: Rows, fresh: int, places: Array, step: int, term: float) -> Departed:
        """Tell of those that have left since the last step, and follow on.

        Parameters
        ----------
        rows, fresh, places
            The candidates of this step; where the arrivals begin; and where each candidate is.
        step
            Its number.
        term
            After how many steps one that is still there is told of as if it had left, and followed anew.
        """
        ids = rows.id[:fresh]
        held = self._drawn(ids)
        held = held[np.argsort(ids[held])]
        at = np.searchsorted(ids[held], self._rows[_NUMBER])
        here = np.append(ids[held], -1)[at] == self._rows[_NUMBER]
        found = held[at[here]]
        self._rows[_LAST, here], self._rows[_UNTIL, here] = rows.matches[found], step
        steps = self._rows[_UNTIL] - self._rows[_SINCE]
        # Those that were dropped in the step in which they came were never in memory.
        told = np.where(here, steps >= term, steps > 0)
        departed = Departed(self._place[told], (self._rows[_LAST] - self._rows[_FIRST])[told], steps[told])
        stay, renewed = self._rows[:, here], told[here]
        stay[_FIRST, renewed], stay[_SINCE, renewed] = stay[_LAST, renewed], step
        place = np.where(renewed, places[found], self._place[here])
        new = fresh + self._drawn(rows.id[fresh:])
        matches, now = rows.matches[new], np.full(len(new), step)
        come = np.stack((rows.id[new], matches, matches, now, now))
        self._rows = np.concatenate((stay, come), axis=1)
        self._place = np.concatenate((place, places[new]))
        self._thin()
        return departed

    def _drawn(self, ids: Array) -> Array:
        """Where those are that belong to the sample."""
        if self._share >= 1:
            return np.arange(len(ids))
        return np.flatnonzero(draws(ids, self._salt) < self._share)

    def _thin(self) -> None:
        """Halve the sample while it is too large; let it grow when it has become small."""
        count = len(self._place)
        while count > self._limit:
            self._share /= 2
            some = self._drawn(self._rows[_NUMBER])
            self._rows, self._place, count = self._rows[:, some], self._place[some], len(some)
        if self._share < 1 and count < self._limit // 4:
            self._share *= 2

    def snapshot(self) -> dict[str, Array]:
        """Whom it follows, as plain arrays."""
        return {"rows": self._rows.ravel(), "place": self._place, "share": np.array([self._share])}

    def restore(self, state: dict[str, Array]) -> Self:
        """Take up what `snapshot` gave."""
        self._rows, self._place = state["rows"].reshape(5, -1).copy(), state["place"]
        self._share = float(state["share"][0])
        return self
