"""Certificates: proven shapes, counterexamples, refusals and messages."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings

from tests.alerts.random_expressions import BOXES, TREES
from tidegate.alerts import Certificate, certify
from tidegate.alerts.certification.certificate import _undefined
from tidegate.alerts.certification.grid import search_grid
from tidegate.alerts.certification.proof import ShapeProver
from tidegate.alerts.expressions.evaluation import evaluate
from tidegate.alerts.expressions.nodes import Node, input_names
from tidegate.types import InputError

INF = math.inf
Domain = dict[str, tuple[float, float]]

MAGNUS = "ln(h/100) + 18.678*a/(257.14+a) - s > 0"
GAMMA = "(ln(h/100) + 18.678*a/(257.14+a))"
DEW_POINT = f"257.14*{GAMMA} / (18.678 - {GAMMA}) - s > 0"
WEATHER: Domain = {"h": (1, 100), "a": (-40, 60), "s": (-40, 60)}


def shapes(certificate: Certificate) -> dict[str, str | None]:
    return {name: found.shape for name, found in certificate.inputs.items()}


def all_proven(certificate: Certificate) -> bool:
    return {found.evidence for found in certificate.inputs.values()} == {"proven"}


@pytest.mark.parametrize("text", [MAGNUS, DEW_POINT, MAGNUS.replace(" > 0", " >= 0"), "s < " + GAMMA])
def test_the_motivating_example(text: str) -> None:
    found = certify(text, WEATHER)
    assert shapes(found) == {"h": "increasing", "a": "increasing", "s": "decreasing"}
    assert all_proven(found)
    assert found.warnings == ()


def test_the_sub_functions_of_the_paper() -> None:
    assert [(term.sql, term.inputs) for term in certify(MAGNUS, WEATHER).terms] == [
        ("ln(h / 100)", ("h",)),
        ("18.678 * a / (257.14 + a)", ("a",)),
        ("-s", ("s",)),
    ]


def test_the_printed_domain_contains_a_pole_and_a_logarithm_of_0() -> None:
    found = certify(MAGNUS, {"h": (0, 1), "a": (-273.15, 100), "s": (-273.15, 100)})
    assert shapes(found) == {"h": None, "a": None, "s": "decreasing"}
    assert (
        "the divisor 257.14 + a must not be 0, which fails, or almost fails, at a = -257.14"
        in found.inputs["a"].reason
    )
    assert "needs h / 100 above 0, which fails, or almost fails, at h = 0;" in found.inputs["h"].reason
    assert found.shapes() == {"h": "any", "a": "any", "s": "decreasing"}
    assert [text.split(":")[0] for text in found.warnings] == [
        "every row of 'h' is kept",
        "every row of 'a' is kept",
    ]


def test_no_upper_bound_is_needed_above_the_pole() -> None:
    assert shapes(certify(MAGNUS, {"h": (1, INF), "a": (-257, INF), "s": (-INF, INF)})) == {
        "h": "increasing",
        "a": "increasing",
        "s": "decreasing",
    }


ANYTHING: list[tuple[str, Domain | None, dict[str, str | None]]] = [
    # the classes that section 2.2 names
    ("exp(x) > 3", None, {"x": "increasing"}),
    ("x * x - 4 * x > 3", None, {"x": "quasiconvex"}),
    ("3 * x - 2 * y > 1", None, {"x": "increasing", "y": "decreasing"}),
    ("floor(x) + ceil(-y) > 1", None, {"x": "increasing", "y": "decreasing"}),
    ("sign(x - 3) > y", None, {"x": "increasing", "y": "decreasing"}),
    ("1 / (1 + exp(-(0.3*x - 2*y + 1))) > 0.5", None, {"x": "increasing", "y": "decreasing"}),
    # signs of factors
    ("x * y > 1", {"x": (0, 2), "y": (1, 3)}, {"x": "increasing", "y": "increasing"}),
    ("x * y > 1", {"x": (-2, -1), "y": (1, 3)}, {"x": "increasing", "y": "decreasing"}),
    ("x * y > 1", {"x": (-2, 2), "y": (1, 3)}, {"x": "increasing", "y": "quasiconvex"}),
    ("x * y < 1", {"x": (-2, 2), "y": (1, 3)}, {"x": "decreasing", "y": "quasiconvex"}),
    ("x / y > 1", {"x": (0, 2), "y": (1, 3)}, {"x": "increasing", "y": "decreasing"}),
    ("x * x * y > 1", {"x": (-2, 2), "y": (1, 3)}, {"x": "quasiconvex", "y": "increasing"}),
    ("x * x * y > 1", {"x": (-2, 2), "y": (-3, 3)}, {"x": None, "y": "increasing"}),
    # distances
    ("abs(x - y) > 3", None, {"x": "quasiconvex", "y": "quasiconvex"}),
    ("abs(x - y) < 3", None, {"x": None, "y": None}),
    ("abs(x) > 3", {"x": (0, 9)}, {"x": "increasing"}),
    ("sqrt(pow(x-u, 2) + (y-v)*(y-v)) > 3", None, dict.fromkeys("xuyv", "quasiconvex")),
    ("ln(1 + pow(x - y, 2)) > 1", None, {"x": "quasiconvex", "y": "quasiconvex"}),
    # greatest, least, OR, AND
    ("greatest(x, y, 3) > 4", None, {"x": "increasing", "y": "increasing"}),
    ("greatest(abs(x), y * y) > 4", None, {"x": "quasiconvex", "y": "quasiconvex"}),
    ("least(abs(x), 3) > 2", None, {"x": "quasiconvex"}),
    ("least(abs(x), abs(x - 9)) > 2", {"x": (-9, 18)}, {"x": None}),
    ("x > 3 or y < 2", None, {"x": "increasing", "y": "decreasing"}),
    ("x > 3 and x + y > 4", None, {"x": "increasing", "y": "increasing"}),
    ("x < 3 or x > 5", None, {"x": "quasiconvex"}),
    ("x > 3 and x < 5", None, {"x": None}),
    # only by derivatives
    ("x * exp(-x) + x > 0", {"x": (0, 10)}, {"x": "increasing"}),
    ("pow(x, 4) - pow(x, 3) > 1", {"x": (0.1, 3)}, {"x": "quasiconvex"}),
    ("x + sin(x) / 2 > y", {"x": (-20, 20), "y": (0, 1)}, {"x": "increasing", "y": "decreasing"}),
    (
        "greatest(pow(x, 4) - x*x - 0.1, 0) > y",
        {"x": (-2, 2), "y": (0, 1)},
        {"x": "quasiconvex", "y": "decreasing"},
    ),
    # powers
    ("pow(x, 3) > 1", None, {"x": "increasing"}),
    ("pow(x, 0.5) > 1", {"x": (0, INF)}, {"x": "increasing"}),
    ("pow(x, -2) > 1", {"x": (-4, -1)}, {"x": "increasing"}),
    ("pow(2, x) > pow(3, y)", None, {"x": "increasing", "y": "decreasing"}),
    ("pow(x, y) > 2", {"x": (1, 4), "y": (0, 3)}, {"x": "increasing", "y": "increasing"}),
    ("pow(x, 1/2) > 1", {"x": (0, 4)}, {"x": "increasing"}),
    # half a circle
    ("sqrt(1 - x*x) < 0.5", {"x": (-1, 1)}, {"x": "quasiconvex"}),
    # what has no effect, and what stands still
    ("0 * x > y", None, {"x": "increasing", "y": "decreasing"}),
    ("x > 1", {"x": (2, 2)}, {"x": "increasing"}),
]


@pytest.mark.parametrize(("text", "domain", "expected"), ANYTHING, ids=[text for text, *_ in ANYTHING])
def test_shapes(text: str, domain: Domain | None, expected: dict[str, str | None]) -> None:
    found = certify(text, domain)
    assert shapes(found) == expected
    assert {name for name, one in found.inputs.items() if one.evidence == "proven"} == {
        name for name, shape in expected.items() if shape
    }
    refused = [one for one in found.inputs.values() if one.evidence != "proven"]
    assert all(one.evidence == "refused" and one.counterexample for one in refused)


@pytest.mark.parametrize("text", ["pow(x, 3) - x > 0", "x*x*x - x > y", "y > x - x*x*x"])
def test_a_counterexample_contradicts_the_shape(text: str) -> None:
    found = certify(text, dict.fromkeys(certify(text).inputs, (-2, 2)))
    example = found.inputs["x"].counterexample
    assert example is not None
    first, middle, last = example.points
    assert -2 <= first < middle < last <= 2
    values = [x**3 - x for x in example.points]
    assert values[1] > max(values[0], values[2])
    assert example.values == pytest.approx(values)
    if "y" in found.inputs:
        assert found.inputs["y"].evidence == "proven"


def test_a_sum_of_quasiconvex_terms_is_examined_as_a_whole() -> None:
    """Both x^3 and -x are quasiconvex; their sum is not."""
    box = {"x": (-2.0, 2.0)}
    assert certify("pow(x, 3) > 0", box).shapes() == {"x": "increasing"}
    assert certify("-x > 0", box).shapes() == {"x": "decreasing"}
    assert certify("pow(x, 3) - x > 0", box).shapes() == {"x": "any"}


def test_a_refused_term_affects_only_its_own_streams() -> None:
    found = certify(
        "sin(x*y) + ln(z) - 2*(w - sin(x)) > 0", {"x": (0, 9), "y": (1, 2), "z": (1, 9), "w": (0, 1)}
    )
    assert found.shapes() == {"x": "any", "y": "any", "z": "increasing", "w": "decreasing"}
    assert [term.sql for term in found.terms] == ["sin(x * y)", "ln(z)", "-(2 * w)", "-(2 * -sin(x))"]


def test_without_a_counterexample_and_a_proof_the_shape_may_be_assumed() -> None:
    """At the kink, the bounds of the second derivative include negative values."""
    kink, domain = "abs(x) + sin(x + y) / 2 > 1", {"x": (-1.0, 1.0), "y": (0.0, 0.5)}
    found = certify(kink, domain, grid=101)
    judged = found.inputs["x"]
    assert (judged.shape, judged.evidence) == (None, "refused")
    assert "not proven to be quasiconvex" in judged.reason
    assert "on a grid (x by 0.02, y by 0.015625)" in judged.reason
    assert found.shapes() == {"x": "any", "y": "increasing"}
    assert found.warnings[0].startswith("every row of 'x' is kept: abs(x) + sin(x + y) / 2 is not proven")
    assumed = certify(kink, domain, assume_shape={"x": "quasiconvex"})
    assert assumed.shapes() == {"x": "quasiconvex", "y": "increasing"}


def test_an_infinite_range_has_no_grid() -> None:
    found = certify("abs(x) + sin(x) / 2 > 1", {"x": (-INF, INF)}).inputs["x"]
    assert (found.shape, found.evidence) == (None, "refused")
    assert "give finite ranges" in found.reason


def test_a_peak_between_the_points_is_neither_found_nor_proven_absent() -> None:
    """The peak is narrower than the grid: there is no counterexample on the points, and no proof."""
    found = certify("x + 20 * exp(-pow((x - 0.50123) * 3000, 2)) > 0", {"x": (0, 1)}, grid=17).inputs["x"]
    assert (found.shape, found.evidence) == (None, "refused")
    assert "not proven to be increasing" in found.reason


def test_a_shape_may_be_assumed() -> None:
    kink = "abs(x) + sin(x) / 2 - y > 1"
    found = certify(kink, {"x": (-1, 1), "y": (0, 1)}, assume_shape={"x": "quasiconvex", "y": "quasiconvex"})
    assert found.shapes() == {"x": "quasiconvex", "y": "decreasing"}
    assert (found.inputs["x"].evidence, found.inputs["y"].evidence) == ("assumed", "proven")
    pole = certify("1 / x > y", {"x": (-1, 1), "y": (0, 1)}, assume_shape={"x": "decreasing"})
    assert pole.inputs["x"].evidence == "assumed"
    assert "must not be 0" in pole.inputs["x"].reason


@pytest.mark.parametrize(
    ("text", "assume_shape", "message"),
    [
        (
            "x - y > 0",
            {"x": "decreasing"},
            "'x' is assumed to be decreasing, but of x, in x it is -1 at -1, 1 at 1",
        ),
        ("pow(x, 3) - x/2 > y", {"x": "quasiconvex"}, "'x' is assumed to be quasiconvex, but of"),
        (
            "x > y",
            {"z": "increasing"},
            "assume_shape has 'z', which is not an input of 'x > y'; its inputs are: x, y",
        ),
        (
            "x > y",
            {"x": "rising"},
            "assume_shape of 'x': 'rising' is not known; use one of 'quasiconvex'",
        ),
    ],
)
def test_an_assumed_shape_that_is_refused(text: str, assume_shape: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        certify(text, {"x": (-1, 1), "y": (-1, 1)}, assume_shape=assume_shape)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "domain", "message"),
    [
        (
            "x > y",
            {"x": (0, 1)},
            r"domain has no entry for 'y'; give its least and greatest value, e.g. \(-inf, inf\)",
        ),
        (
            "x > 1",
            {"x": (0, 1), "y": (0, 1)},
            "domain has 'y', which is not an input of 'x > 1'; its inputs are: x",
        ),
        ("x > 1", {"x": (1, 0)}, r"the domain of 'x' is \(1, 0\); give \(least, greatest\), in this order"),
        ("x > 1", {"x": (math.nan, 0)}, "the domain of 'x' is"),
        ("x > 1", {"x": (INF, INF)}, "the domain of 'x' is"),
        ("x > 1", {"x": ("a", "b")}, "give two numbers"),
        ("x > 1", {"x": (1, 2, 3)}, "give two numbers"),
        ("x > 1", {"x": 5}, "give two numbers"),
        ("2 > 1", {}, "'2 > 1' uses no stream"),
        ("x > ln(0)", {"x": (0, 1)}, r"is not defined: ln\(0\) needs 0 above 0; correct the constant"),
        ("x + 1", {"x": (0, 1)}, "is a number, not a condition"),
    ],
)
def test_invalid_arguments(text: str, domain: Domain, message: str) -> None:
    with pytest.raises(InputError, match=message):
        certify(text, domain)


@pytest.mark.parametrize("grid", [2, True, 9.5])
def test_a_grid_needs_three_points(grid: int) -> None:
    with pytest.raises(InputError, match="give a whole number of points, at least 3"):
        certify("x > 1", grid=grid)


@pytest.mark.parametrize(
    ("text", "domain", "place"),
    [
        ("1 / x > 0", {"x": (-1, 2)}, "at x = "),
        ("1 / (x - y) > 0", {"x": (0, 1), "y": (0.5, 2)}, "at x = "),
        ("sqrt(x - 1) > 0", {"x": (0, 2)}, "needs x - 1 0 or more, which fails, or almost fails, at x = "),
        ("pow(x, -1) > 0", {"x": (-1, 1)}, "needs x other than 0"),
        ("pow(x, 0.5) > 0", {"x": (-1, 1)}, "needs x 0 or more"),
        ("pow(x, x) > 0", {"x": (-1, 1)}, "needs x above 0"),
        ("log10(x) > 0", {"x": (-INF, INF)}, "needs x above 0"),
        ("1 / (floor(x) + 0.5) > 0", {"x": (-3, 3)}, "the divisor floor(x) + 0.5 must not be 0"),
    ],
)
def test_undefined_points_are_reported(text: str, domain: Domain, place: str) -> None:
    found = certify(text, domain).inputs["x"]
    assert (found.shape, found.evidence) == (None, "refused")
    assert place in found.reason


def test_only_values_in_the_domain_are_covered() -> None:
    found = certify("x > 1", {"x": (0, INF)})
    assert found.covers("x", np.array([-1.0, 0.0, 5.0, np.inf, np.nan])).tolist() == [
        False,
        True,
        True,
        False,
        False,
    ]


def test_it_prints_as_a_table() -> None:
    lines = str(certify("x > y", {"x": (0, 1), "y": (-INF, 2)})).splitlines()
    assert lines[0] == "x > y"
    assert lines[1].split() == ["input", "domain", "shape", "evidence", "reason"]
    assert lines[3].split()[:5] == ["y", "-inf", "..", "2", "decreasing"]


def test_a_certificate_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        certify("x > 1").domain = {}  # type: ignore[misc]


RANDOM = np.random.default_rng(11).random((4, 400))


@settings(max_examples=30, deadline=None)
@given(TREES, BOXES)
def test_no_random_points_contradict_a_proof(tree: Node, box: Domain) -> None:
    """The prover is called directly, without the grid's counterexamples."""
    assume("x" in input_names(tree))
    own = {name: box[name] for name in input_names(tree)}
    assume(not _undefined(tree, own))
    prover = ShapeProver(tree, "x", own, max_pieces=100)
    proofs = [
        proof
        for proof in (prover.prove_increasing(), prover.prove_decreasing(), prover.prove_quasiconvex())
        if proof
    ]
    found = search_grid(tree, "x", own, 33)
    for proof in proofs:
        assert getattr(found, f"not_{proof.shape}") is None
        assert contradiction(tree, own, proof.shape) <= 0, proof


def contradiction(tree: Node, box: Domain, shape: str) -> float:
    """By how much random triples, evaluated in floating point, contradict a shape beyond rounding."""
    low, high = box["x"]
    places = np.sort(low + (high - low) * RANDOM[:3], axis=0)
    columns = {
        name: ends[0] + (ends[1] - ends[0]) * np.roll(RANDOM[3], 37 * k)
        for k, (name, ends) in enumerate(box.items())
    }
    with np.errstate(all="ignore"):
        values = np.stack([np.broadcast_to(evaluate(tree, columns | {"x": x}), 400) for x in places])
    values = values[:, np.isfinite(values).all(axis=0)]
    if not values.size:
        return 0.0
    first, middle, last = values
    excess = {
        "increasing": first - last,
        "decreasing": last - first,
        "quasiconvex": middle - np.maximum(first, last),
    }[shape]
    return float(np.max(excess - 1e-9 * (1 + abs(values).max(axis=0))))
