"""Readings of a sensor: a value at each time, in order of arrival."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from tidegate.streams.stream import Stream
from tidegate.streams.trace import Trace
from tidegate.types import InputError, check_choice

if TYPE_CHECKING:
    from tidegate.types import Array

Values = Literal["uniform", "wiener"]
Instants = Literal["uniform", "gamma"]


@dataclass(frozen=True)
class Readings(Stream):
    """One stream (key 0) of values at random times, which may arrive out of order.

    Parameters
    ----------
    values
        "uniform": independent, from 0 to 1; "wiener": a Wiener process, read at the times of the rows.
    instants
        "uniform": distinct random whole times below `spacing * rows`; "gamma": gaps drawn from a gamma distribution.
    spacing
        The mean gap; a whole number for "uniform".
    form
        The shape parameter of the gamma distribution: 1 for a Poisson process, more for more even gaps.
    disorder
        Rows arrive in order of time plus normal noise of this standard deviation.

    Examples
    --------
    >>> Readings("wiener", "gamma", spacing=2.0).trace(4).time.round(1)
    array([0. , 2. , 2.1, 2.1])

    References
    ----------
    Optimization of Threshold Functions over Streams, sections 6.2 (s-unif, s-wiener) and 6.4 (Gamma-Wiener).

    Deviations
    ----------
    The paper does not give the parameters of the gamma distribution.
    """

    values: Values = "uniform"
    instants: Instants = "uniform"
    spacing: float = 10
    form: float = 1.0
    disorder: float = 0.0

    def __post_init__(self) -> None:
        check_choice(self.values, Values, "values")
        check_choice(self.instants, Instants, "instants")
        if not (self.spacing > 0 and self.form > 0 and self.disorder >= 0):
            raise InputError(f"{self} is not a stream; give spacing > 0, form > 0 and disorder >= 0")
        if self.instants == "uniform" and int(self.spacing) != self.spacing:
            raise InputError(
                f"spacing {self.spacing!r} is not whole; give a whole number for uniform instants"
            )

    def trace(self, rows: int, seed: int = 0) -> Trace:
        """Generate `rows` rows."""
        rng = np.random.default_rng(seed)
        time = self._times(rows, rng)
        if self.values == "uniform":
            value = rng.random(rows)
        else:
            value = np.cumsum(rng.normal(size=rows) * np.sqrt(np.diff(time, prepend=time[:1])))
        if self.disorder:
            arrival = np.argsort(time + rng.normal(0.0, self.disorder, rows), kind="stable")
            time, value = time[arrival], value[arrival]
        return Trace.of({"key": np.zeros(rows, np.int64), "time": time, "value": value})

    def _times(self, rows: int, rng: np.random.Generator) -> Array:
        if self.instants == "uniform":
            return np.sort(rng.choice(int(self.spacing) * rows, rows, replace=False, shuffle=False))
        gaps = rng.gamma(self.form, self.spacing / self.form, rows)
        gaps[:1] = 0.0
        return np.cumsum(gaps)
