"""Results as a function of memory, for a join whose sides share it."""

from __future__ import annotations

from typing import Protocol, TypeAlias

from tidegate.models.age_curve import AgeCurve
from tidegate.models.payoff import Payoff
from tidegate.models.validation import positive
from tidegate.types import SIDES, InputError, Window, WindowSpan


class TwoSidedModel(Protocol):
    """A model with the results by memory of each side, such as a frequency model."""

    def payoff(self, *, rates: tuple[float, float], window: tuple[float, float]) -> tuple[Payoff, Payoff]:
        """The results by memory on the left and on the right."""


Curves: TypeAlias = AgeCurve | tuple[AgeCurve | None, AgeCurve | None]
JoinModel: TypeAlias = Payoff | Curves | TwoSidedModel


def joint_payoff(
    model: JoinModel, *, rates: tuple[float, float], window: Window | tuple[WindowSpan, WindowSpan]
) -> Payoff:
    """Results by memory in a join whose sides share it in the best way.

    Parameters
    ----------
    model
        An age curve of the left side, a pair of them (None for a side whose rows match no later
        rows), a frequency model, or a payoff, which is returned unchanged.
    rates
        Rows per unit of time, left and right.
    window
        How long a row of each side stays joinable, in the same unit of time; age curves are cut at it.

    Examples
    --------
    >>> joint_payoff(AgeCurve([0, 1, 2, 3], [3, 0, 2]), rates=(10, 1), window=(3, 0)).at(20)
    40.0
    """
    if isinstance(model, Payoff):
        return model
    rows_per_time, lengths = rates_of(rates), lengths_of(window)
    if isinstance(model, AgeCurve | tuple | list):
        left, right = (
            Payoff([0], [0]) if curve is None else curve.payoff(rate)
            for curve, rate in zip(curves_of(model, lengths), rows_per_time, strict=True)
        )
    elif hasattr(model, "payoff"):
        left, right = model.payoff(rates=rows_per_time, window=lengths)
    else:
        raise InputError(
            f"{model!r} is not a model of a join; give an AgeCurve, a pair of them or a Frequency"
        )
    return left.shared(right)


def rates_of(rates: tuple[float, float]) -> tuple[float, float]:
    """Rows per unit of time of each side, checked."""
    if not isinstance(rates, tuple | list) or len(rates) != len(SIDES):
        raise InputError(f"rates {rates!r} are not a pair; give rows per unit of time as (left, right)")
    return positive(rates[0], "rate on the left"), positive(rates[1], "rate on the right")


def lengths_of(window: Window | tuple[WindowSpan, WindowSpan]) -> tuple[float, float]:
    """How long a row of each side stays joinable, as numbers."""
    span = Window.of(window)
    if span.counted:
        raise InputError(
            f"{span} counts rows, but models need durations; divide each side's rows by its rate"
        )
    left, right = (span.reach(side) for side in SIDES)
    return left, right


def curves_of(model: AgeCurve | tuple[object, object], lengths: tuple[float, float]) -> list[AgeCurve | None]:
    """The curves of both sides, cut at their windows."""
    pair = (model, None) if isinstance(model, AgeCurve) else model
    curves = [curve for curve in pair if curve is None or isinstance(curve, AgeCurve)]
    if len(pair) != len(SIDES) or len(curves) != len(pair):
        raise InputError(
            f"{model!r} is not a pair of age curves; give (left, right), None for a side without"
        )
    return [
        curve.within(length) if curve is not None and length > 0 else None
        for curve, length in zip(curves, lengths, strict=True)
    ]
