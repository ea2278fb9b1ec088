"""Which rows have left memory, what they brought and how long they stayed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from tidegate.policies.random import draws

if TYPE_CHECKING:
    from tidegate.types import Array, Rows


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
        self._rows = np.empty((5, 0), np.int64)  # number, results at first and last sight, steps of both
        self._place = np.empty(0)

    def observe(self, rows: Rows, fresh: int, places: Array, step: int, term: float) -> Departed:
        """Tell of those that have left since the last step, and begin to follow the arrivals, which are at `places`."""
        ids = rows.id[:fresh]
        held = self._drawn(ids)
        held = held[np.argsort(ids[held])]
        at = np.searchsorted(ids[held], self._rows[0])
        here = np.append(ids[held], -1)[at] == self._rows[0]
        number, first, last, since, until = self._rows
        # Those that were dropped in the step in which they came were never in memory.
        left = ~here & (until > since)
        stays_on = here & (step - since >= term)
        now_matches = last.copy()
        now_matches[here] = rows.matches[held[at[here]]]
        done = left | stays_on
        gone = Departed(self._place[done], (np.where(here, now_matches, last) - first)[done], np.where(here, step, until)[done] - since[done])
        self._place = self._place.copy()
        self._place[stays_on] = places[held[at[stays_on]]]
        first, since = first.copy(), since.copy()
        first[stays_on] = now_matches[stays_on]
        since[stays_on] = step
        new = self._drawn(rows.id[fresh:])
        matches, now = rows.matches[fresh:][new], np.full(len(new), step)
        stays = [number, first, rows.matches[held[at[here]]], since, np.full(np.count_nonzero(here), step)]
        for which in (0, 1, 3):
            stays[which] = stays[which][here]
        comes = [rows.id[fresh:][new], matches, matches, now, now]
        self._rows = np.concatenate((np.array(stays), np.array(comes)), axis=1).astype(np.int64)
        self._place = np.concatenate((self._place[here], places[fresh:][new]))
        self._thin()
        return gone

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
            some = self._drawn(self._rows[0])
            self._rows, self._place, count = self._rows[:, some], self._place[some], len(some)
        if self._share < 1 and count < self._limit // 4:
            self._share *= 2

    def snapshot(self) -> dict[str, Array]:
        """Whom it follows, as plain arrays."""
        return {"rows": self._rows.ravel(), "place": self._place, "share": np.array([self._share])}

    def restore(self, state: dict[str, Array]) -> Self:
        """Take up what `snapshot` gave."""
        self._rows, self._place = state["rows"].reshape(5, -1), state["place"]
        self._share = float(state["share"][0])
        return self
