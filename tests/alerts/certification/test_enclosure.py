"""Bounds over boxes hold for all points in the boxes."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.alerts.random_expressions import BOXES, TREES
from tidegate.alerts.certification.enclosure import Enclosure
from tidegate.alerts.certification.intervals import ZERO, Interval
from tidegate.alerts.certification.subdivision import points_between, prove_on_box
from tidegate.alerts.expressions.evaluation import evaluate
from tidegate.alerts.expressions.nodes import Node
from tidegate.alerts.expressions.parsing import parse
from tidegate.types import Array

FRACTIONS = np.random.default_rng(7).random((3, 64))


def points(box: dict[str, tuple[float, float]]) -> dict[str, Array]:
    """Points of a box, its corners among them."""
    inside = {name: points_between(*ends, FRACTIONS[k]) for k, (name, ends) in enumerate(box.items())}
    for corner in range(8):
        for k, (name, ends) in enumerate(box.items()):
            inside[name][corner] = ends[corner >> k & 1]
    return inside


def defined(tree: Node, box: dict[str, Interval]) -> bool:
    bounds = Enclosure(box)
    bounds.jet(tree)
    return not bounds.unmet


def at(place: dict[str, Array]) -> dict[str, Interval]:
    return {name: Interval.of(column) for name, column in place.items()}


def overlap(u: Interval, v: Interval) -> bool:
    return bool(np.all((u.low <= v.high) & (v.low <= u.high)))


@settings(max_examples=80)
@given(TREES, BOXES)
def test_values_lie_within_their_bounds(tree: Node, box: dict[str, tuple[float, float]]) -> None:
    ranges = {name: Interval.of(*ends) for name, ends in box.items()}
    assume(defined(tree, ranges))
    place = points(box)
    with np.errstate(all="ignore"):
        values = np.broadcast_to(evaluate(tree, place), 64)
    whole, alone = Enclosure(ranges).jet(tree).value, Enclosure(at(place)).jet(tree).value
    # What is evaluated is rounded, by no more than the bounds of a single point allow, times the few operations.
    slack = 8 * (alone.high - alone.low) + 1e-300
    assert not np.isnan(values).any()
    close = np.isinf(values) | ((values >= whole.low - slack) & (values <= whole.high + slack))
    assert close.all()
    assert overlap(whole, alone)


@settings(max_examples=80)
@given(TREES, BOXES)
def test_differences_lie_within_the_bounds_of_the_slope(
    tree: Node, box: dict[str, tuple[float, float]]
) -> None:
    """By the mean value theorem, on bounds of exact values: no tolerance is needed."""
    ranges = {name: Interval.of(*ends) for name, ends in box.items()}
    assume(defined(tree, ranges))
    slope = Enclosure(ranges, "x").jet(tree).slope or ZERO
    place = points(box)
    earlier, later = place | {"x": np.full(64, box["x"][0])}, place
    change = Enclosure(at(later)).jet(tree).value - Enclosure(at(earlier)).jet(tree).value
    run = Interval.of(later["x"]) - Interval.of(earlier["x"])
    assert overlap(change, slope * run)


@settings(max_examples=80)
@given(TREES, BOXES)
def test_second_differences_lie_within_the_bounds_of_the_bend(
    tree: Node, box: dict[str, tuple[float, float]]
) -> None:
    ranges = {name: Interval.of(*ends) for name, ends in box.items()}
    assume(defined(tree, ranges))
    bend = Enclosure(ranges, "x").jet(tree).bend or ZERO
    place, (low, high) = points(box), box["x"]
    step = Interval.of((high - low) / 2)
    three = [
        Enclosure(at(place | {"x": np.full(64, low + k * (high - low) / 2)})).jet(tree).value
        for k in range(3)
    ]
    assert overlap(three[0] - three[1] - three[1] + three[2], bend * step * step + Interval.of(-1e-12, 1e-12))


@pytest.mark.parametrize(
    ("text", "low", "high", "slope", "bend"),
    [
        ("abs(x)", -1, 2, (-1, 1), (0, math.inf)),
        ("abs(x)", 0, 2, (1, 1), (0, 0)),
        ("greatest(x, 0)", -1, 2, (0, 1), (0, math.inf)),
        ("least(x, 0)", -1, 2, (0, 1), (-math.inf, 0)),
        ("floor(x)", 0.2, 0.8, (0, 0), (0, 0)),
        ("floor(x)", 0.2, 1.2, (0, math.inf), (-math.inf, math.inf)),
        ("pow(x, 3)", -1, 2, (0, 12), (-6, 12)),
        ("x * x", -1, 2, (-2, 4), (2, 2)),
        ("x * exp(x)", 0, 0, (1, 1), (2, 2)),
        ("exp(x) * sin(x)", 0, 0, (1, 1), (2, 2)),
        ("exp(2 * x) / (1 + x)", 0, 0, (1, 1), (2, 2)),
        ("ln(1 + x * x)", 0, 0, (0, 0), (2, 2)),
        ("tanh(x) * atan(x)", 0, 0, (0, 0), (2, 2)),
        ("pow(1 + x, 1 + x)", 0, 0, (1, 1), (2, 2)),
        ("1 / x", 1, 2, (-1, -0.25), (0.25, 2)),
        ("sqrt(x)", 1, 4, (0.25, 0.5), (-0.25, -0.03125)),
    ],
)
def test_known_derivatives(
    text: str, low: float, high: float, slope: tuple[float, float], bend: tuple[float, float]
) -> None:
    jet = Enclosure({"x": Interval.of(low, high)}, "x").jet(parse(text))
    for found, expected in ((jet.slope, slope), (jet.bend, bend)):
        assert found is not None
        assert (float(found.low), float(found.high)) == pytest.approx(expected)


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
def test_sums_and_products_contain_the_exact_result(a: float, b: float) -> None:
    from fractions import Fraction  # noqa: PLC0415 - the reference of this test alone

    for found, exact in (
        (Interval.of(a) + Interval.of(b), Fraction(a) + Fraction(b)),
        (Interval.of(a) * Interval.of(b), Fraction(a) * Fraction(b)),
    ):
        assert found.low == -np.inf or Fraction(float(found.low)) <= exact
        assert found.high == np.inf or exact <= Fraction(float(found.high))
        assert not (exact >= 0 and found.low < 0)
        assert not (exact <= 0 and found.high > 0)


@given(st.floats(-50, 50), st.floats(0, 8))
def test_sine_over_ranges(low: float, width: float) -> None:
    bounds = Enclosure({"x": Interval.of(low, low + width)}).jet(parse("sin(x)")).value
    values = np.sin(np.linspace(low, low + width, 999))
    assert values.min() >= bounds.low - 1e-15
    assert values.max() <= bounds.high + 1e-15
    assert values.min() - bounds.low < 1e-3
    assert bounds.high - values.max() < 1e-3


def test_a_box_is_divided_until_the_statement_is_proven() -> None:
    square = parse("x * x - 2 * x * y + y * y + 0.1")

    def positive(piece: dict[str, Interval]) -> Array:
        return Enclosure(piece).jet(square).value.low > 0

    found = prove_on_box({"x": (-1.0, 1.0), "y": (-1.0, 1.0)}, positive, 20_000)
    assert found.holds
    assert found.pieces > 100
    assert not prove_on_box({"x": (-1.0, 1.0), "y": (-1.0, 1.0)}, positive, 100).holds


def test_a_point_where_a_statement_fails_is_found() -> None:
    found = prove_on_box(
        {"x": (-np.inf, np.inf)}, lambda piece: (piece["x"].low > 3) | (piece["x"].high < 3), 20_000
    )
    assert not found.holds
    assert found.unproven["x"] == pytest.approx((3, 3))
