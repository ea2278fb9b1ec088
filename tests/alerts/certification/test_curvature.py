"""Shapes by composition: known cases, and random expressions against points."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.alerts.random_expressions import BOXES, TREES
from tidegate.alerts.certification.curvature import curve_shape
from tidegate.alerts.certification.enclosure import Enclosure
from tidegate.alerts.certification.intervals import Interval
from tidegate.alerts.expressions.evaluation import evaluate
from tidegate.alerts.expressions.nodes import Call, Node, input_names
from tidegate.alerts.expressions.parsing import parse
from tidegate.types import Array

RANDOM = np.random.default_rng(3).random((5, 200))

KNOWN = [
    ("x + 1", {"increasing", "convex", "concave"}),
    ("3 - x", {"decreasing", "convex", "concave"}),
    ("x * y", {"convex", "concave"}),
    ("x * p", {"increasing", "convex", "concave"}),
    ("x * -p", {"decreasing", "convex", "concave"}),
    ("x / p", {"increasing", "convex", "concave"}),
    ("p / (x + 4)", {"decreasing", "convex"}),
    ("x * x", {"convex"}),
    ("x * x * x", set()),
    ("pow(x, 3)", {"increasing"}),
    ("pow(x + 3, 3)", {"increasing", "convex"}),
    ("(x + 3) * (x + 4)", {"increasing", "convex"}),
    ("(x - 3) * (x - 4)", {"decreasing", "convex"}),
    ("(x + 3) * (3 - x)", set()),
    ("x * (x + 3)", set()),
    ("(x + 3) * floor(x + 4)", {"increasing"}),
    ("exp(x)", {"increasing", "convex"}),
    ("exp(x * x)", {"convex"}),
    ("exp(-x)", {"decreasing", "convex"}),
    ("ln(x + 3)", {"increasing", "concave"}),
    ("sqrt(x * x + 1)", {"quasiconvex"}),
    ("-sqrt(4 - x * x)", {"convex"}),
    ("sqrt(abs(x)) + sqrt(abs(x - 1))", set()),
    ("sqrt(abs(x)) + p", {"quasiconvex"}),
    ("pow(x, 3) - x", set()),
    ("tanh(x) * tanh(x)", {"quasiconvex"}),
    ("greatest(x, 1 - x)", {"convex"}),
    ("least(x, 1 - x)", {"concave"}),
    ("greatest(-(x * x), 2 * x)", set()),
    ("greatest(-(x * x), p)", {"quasiconcave"}),
    ("greatest(-(x * x), -pow(x - 1, 2))", set()),
    ("least(x * x, pow(x - 1, 2))", set()),
    ("least(x, pow(x, 3))", {"increasing"}),
    ("x / (x + 4)", {"quasiconvex", "quasiconcave"}),
    ("x / (x - 4)", {"quasiconvex", "quasiconcave"}),
    ("x * x / (x + 4)", {"quasiconvex"}),
    ("x * x / sqrt(x + 4)", {"quasiconvex"}),
    ("x * x / exp(x)", set()),
    ("(x * x - 9) / exp(x)", {"quasiconvex"}),
    ("(x * x - 9) / sqrt(x + 4)", set()),
    ("(x + 3) / exp(x)", {"quasiconcave"}),
    ("abs(x - y)", {"convex"}),
    ("abs(pow(x, 3))", {"quasiconvex"}),
    ("1 / (x * x + 1)", {"quasiconcave"}),
    ("abs(x * x - 1)", set()),
    ("floor(x)", {"increasing"}),
    ("pow(2, x)", {"increasing", "convex"}),
    ("pow(x + 4, x + 4)", {"increasing"}),
    ("y + p", {"increasing", "decreasing", "convex", "concave"}),
]


@pytest.mark.parametrize(("text", "properties"), KNOWN, ids=[text for text, _ in KNOWN])
def test_known_properties(text: str, properties: set[str]) -> None:
    """In x from -2 to 2, with y from -1 to 1 and p from 1 to 2."""
    box = {"x": Interval.of(-2, 2), "y": Interval.of(-1, 1), "p": Interval.of(1, 2)}
    found = {name for name, holds in vars(curve_shape(parse(text), "x", box)).items() if holds}
    if {"increasing", "decreasing"} & properties:
        properties = properties | {"quasiconvex", "quasiconcave"}
    properties = properties | {f"quasi{kind}" for kind in ("convex", "concave") if kind in properties}
    assert found == properties
    assert not contradicted(parse(text), box, found)


# Of few operations and mostly x: there the rules have much to say.
LEAVES = [
    parse(text) for text in ("x", "x", "x + 2", "3 - x", "x * x", "exp(x)", "abs(x)", "y", "x - y", "0.5")
]
ONE = ("negate", "sqrt", "ln", "floor", "tanh")
TWO = ("+", "-", "*", "/", "greatest", "least")
SMALL = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        st.builds(Call, st.sampled_from(TWO), st.tuples(inner, inner)),
        st.builds(lambda name, u: Call(name, (u,)), st.sampled_from(ONE), inner),
    ),
    max_leaves=4,
)


@settings(max_examples=120)
@given(st.one_of(SMALL, TREES), BOXES)
def test_no_points_contradict_a_known_property(tree: Node, ends: dict[str, tuple[float, float]]) -> None:
    assume("x" in input_names(tree))
    box = {name: Interval.of(*pair) for name, pair in ends.items()}
    bounds = Enclosure(box)
    bounds.jet(tree)
    assume(not bounds.unmet)
    properties = {name for name, holds in vars(curve_shape(tree, "x", box)).items() if holds}
    assert not contradicted(tree, box, properties)


def contradicted(tree: Node, box: dict[str, Interval], properties: set[str]) -> set[str]:
    """The properties that random triples of points contradict, beyond rounding."""
    low, high = box["x"].low, box["x"].high
    first, last = np.sort(low + (high - low) * RANDOM[:2], axis=0)
    share = RANDOM[2]
    others = {
        name: ends.low + (ends.high - ends.low) * np.roll(RANDOM[3], 31 * k)
        for k, (name, ends) in enumerate(box.items())
    }

    def values(x: Array) -> Array:
        return np.broadcast_to(evaluate(tree, others | {"x": x}), x.shape)

    with np.errstate(all="ignore"):
        a, b, c = values(first), values(first * (1 - share) + last * share), values(last)
        chord = a * (1 - share) + c * share
    slack = 1e-9 * (1 + np.max(abs(np.stack([a, b, c])), axis=0))
    above = {
        "increasing": a - c,
        "decreasing": c - a,
        "convex": b - chord,
        "concave": chord - b,
        "quasiconvex": b - np.maximum(a, c),
        "quasiconcave": np.minimum(a, c) - b,
    }
    return {name for name in properties if bool(np.any((above[name] > slack) & np.isfinite(above[name])))}
