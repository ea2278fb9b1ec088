"""Proofs hold for computed margins, too: nothing overflows within the limits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Context, Decimal

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tidegate.alerts import Condition, Topology, certify
from tidegate.alerts.certification.overflow import LARGEST, overflow_limits
from tidegate.alerts.expressions.nodes import Call, Name, Node, Number
from tidegate.alerts.search.keyed_finder import KeyedAlarmFinder, KeyedRows
from tidegate.types import InputError

INF = math.inf
EXACT = Context(prec=60, Emax=10**9, Emin=-(10**9))


@pytest.mark.parametrize(
    ("text", "domain", "message"),
    [
        (
            "exp(x) * y + 1 > 0",
            {"x": (0, 800), "y": (0, 1)},
            r"exp\(x\) can exceed .* with x in 0 \.\. 800",
        ),
        (
            "exp(x) - exp(y) > 0",
            {"x": (0, 800), "y": (0, 9)},
            r"exp\(x\) can exceed .* with x in 0 \.\. 800",
        ),
        ("x * x * x - x * x > 1", {"x": (1, 1e200)}, r"x \* x can exceed .* with x in 1 \.\. 1e\+200"),
        ("pow(x, 4) - y > 1", {"x": (0, 1e99), "y": (0, 1)}, r"pow\(x, 4\) can exceed"),
        (
            "pow(x, y) > 1",
            {"x": (1, 10), "y": (0, 400)},
            r"pow\(x, y\) can exceed .* x in 1 \.\. 10, y in 0",
        ),
        ("x * 1e300 * y > 1", {"x": (0, 1e9), "y": (0, 1)}, r"x \* 1e\+300 can exceed"),
        ("1 / x > 3", {"x": (1e-310, 1)}, "1 / x can exceed"),
        ("pow(x, -2) > 1", {"x": (1e-200, 1)}, r"pow\(x, -2\) can exceed"),
        ("x / y > 1", {"x": (0, 1e200), "y": (1e-200, 1)}, "x / y can exceed"),
        ("sqrt(x * x + 1) > 2", {"x": (-1e200, 1e200)}, r"x \* x can exceed"),
        ("x + 1 > 0", {"x": (-1e305, 1)}, r"x can exceed .* with x in -1e\+305 \.\. 1"),
        ("cos(exp(x)) + 2*exp(x) > 0", {"x": (0, 1e3)}, r"exp\(x\) can exceed"),
    ],
)
def test_overflow_is_refused_with_the_part_and_the_range(
    text: str, domain: Mapping[str, tuple[float, float]], message: str
) -> None:
    found = certify(text, domain).inputs["x"]
    assert found.evidence == "refused"
    assert found.shape is None
    assert "; narrow the domain" in found.reason
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(found.reason)


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        # Rounded to 0, a divisor or the argument of a logarithm is not defined.
        ("1 / exp(-x) > 1", {"x": (0, 800)}),
        ("ln(exp(-x)) > 1", {"x": (0, 800)}),
        ("ln(x * y) > 1", {"x": (1e-200, 1), "y": (1e-200, 1)}),
        ("x / (y * y) > 1", {"x": (0, 1), "y": (1e-200, 1)}),
        ("pow(x, 0.5) > 1", {"x": (-1, 1)}),
        ("pow(x, y) > 1", {"x": (-1, 1), "y": (0, 1)}),
    ],
)
def test_arguments_that_may_be_rounded_to_0_are_refused(
    text: str, domain: Mapping[str, tuple[float, float]]
) -> None:
    found = certify(text, domain).inputs["x"]
    assert found.evidence == "refused"
    assert "is not defined everywhere" in found.reason


def test_an_infinite_domain_is_limited_so_that_nothing_overflows() -> None:
    found = certify("exp(x) * y + 1 > 0", {"x": (0, INF), "y": (-1, 1)})
    assert found.domain["x"] == (0, INF)
    assert found.limits == {"x": (0, 512), "y": (-1, 1)}
    assert found.covers("x", np.array([512.0, 513.0, -1.0])).tolist() == [True, False, False]
    assert "; rows outside 0 .. 512 are kept, since it could overflow there" in found.inputs["x"].reason
    assert "beyond" not in found.inputs["y"].reason
    plain = certify("2 * a - 3 * b > 1")
    assert min(abs(end) for ends in plain.limits.values() for end in ends) > 1e290
    assert "beyond" not in str(plain)
    assert certify("x > 1e308").inputs["x"].shape == "increasing"
    with pytest.raises(InputError, match=r"the constants of .* overflow 64-bit floats; give smaller ones"):
        certify("x + 1.5e308 > -1.5e308")


@pytest.mark.parametrize(
    "domain",
    [{"x": (0, 800), "y": (0, 1)}, {"x": (0, INF), "y": (0, 1)}, {"x": (-INF, INF), "y": (-INF, INF)}],
)
def test_no_alarm_is_lost_for_a_row_whose_margin_overflows(domain: dict[str, tuple[float, float]]) -> None:
    """With x = 800 and y = 0 the margin is NaN in floats; x = 1 raises the alarm, so it must be kept."""
    finder = KeyedAlarmFinder(certify("exp(x) * y + 1 > 0", domain), Topology.clique(["x", "y"], within=5))
    time = np.arange(5)
    x = KeyedRows(np.zeros(5, np.int64), time, np.array([800.0, 1.0, 800.0, 1.0, 800.0]))
    y = KeyedRows(np.zeros(1, np.int64), np.array([4]), np.array([0.0]))
    none = KeyedRows(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    assert len(finder.step({"x": x, "y": none}).key) == 0
    assert finder.step({"x": none, "y": y}).level.tolist() == [1.0]


LEAVES = st.one_of(
    st.sampled_from("xy").map(Name), st.sampled_from([0.5, 1.0, 2.0, 1e-200, 1e150, 1e300]).map(Number)
)


def _calls(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    pair = st.tuples(inner, inner)
    powers = st.sampled_from([2.0, 3.0, 4.0]).map(Number)
    return st.one_of(
        st.builds(Call, st.sampled_from(["+", "-", "*", "greatest", "least"]), pair),
        st.builds(lambda name, u: Call(name, (u,)), st.sampled_from(["exp", "abs", "negate"]), inner),
        st.builds(lambda name, u: Call(name, (u,)), st.sampled_from(["ln", "sqrt"]), LEAVES),
        st.builds(lambda u, v: Call("/", (u, v)), inner, LEAVES),
        st.builds(lambda u, e: Call("pow", (u, e)), inner, powers),
    )


TREES = st.recursive(LEAVES, _calls, max_leaves=6)
PLACES = [
    -INF,
    -1e305,
    -1e200,
    -1e100,
    -800.0,
    -3.0,
    0.0,
    1e-320,
    1e-200,
    1.0,
    5.0,
    600.0,
    709.0,
    800.0,
    1e155,
    1e301,
    INF,
]
DOMAINS = st.tuples(st.sampled_from(PLACES[:-1]), st.sampled_from(PLACES[1:])).filter(
    lambda ends: ends[0] < ends[1]
)
SHARES = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))


def reference(tree: Node, at: Mapping[str, float]) -> tuple[Decimal, Decimal]:
    """The exact value to 60 digits, and the largest magnitude of any part."""
    if isinstance(tree, Number):
        return Decimal(tree.value), abs(Decimal(tree.value))
    if isinstance(tree, Name):
        return Decimal(at[tree.name]), abs(Decimal(at[tree.name]))
    found = [reference(part, at) for part in tree.arguments]
    u, *rest = (value for value, _ in found)
    value = {
        "+": lambda: EXACT.add(u, *rest),
        "-": lambda: EXACT.subtract(u, *rest),
        "*": lambda: EXACT.multiply(u, *rest),
        "/": lambda: EXACT.divide(u, *rest),
        "pow": lambda: EXACT.power(u, *rest),
        "greatest": lambda: max(u, *rest),
        "least": lambda: min(u, *rest),
        "negate": lambda: EXACT.minus(u),
        "abs": lambda: abs(u),
        "exp": lambda: EXACT.exp(u),
        "ln": lambda: EXACT.ln(u),
        "sqrt": lambda: EXACT.sqrt(u),
    }[tree.function]()
    return value, max(abs(value), *(size for _, size in found))


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)
@given(TREES, st.fixed_dictionaries({"x": DOMAINS, "y": DOMAINS}), st.lists(SHARES, min_size=4, max_size=4))
def test_proven_margins_are_finite_in_floats_and_close_to_the_exact_margin(
    tree: Node, domain: dict[str, tuple[float, float]], shares: list[float]
) -> None:
    condition = Condition(Call(">", (tree, Number(0.0))))
    assume(condition.inputs)
    try:
        found = certify(condition, {name: domain[name] for name in condition.inputs}, grid=5)
    except InputError:
        return
    if any(one.evidence != "proven" for one in found.inputs.values()):
        return
    (low, high), others = (
        found.limits[condition.inputs[0]],
        {name: between(*found.limits[name], shares[3]) for name in condition.inputs[1:]},
    )
    by = condition.inputs[0]
    line = sorted(between(low, high, share) for share in shares[:3])
    margins = condition.margin({by: np.array(line), **{name: np.full(3, v) for name, v in others.items()}})
    assert np.isfinite(margins).all(), (condition.sql, found.limits, line, others)
    tolerance = 0.0
    for place, margin in zip(line, margins.tolist(), strict=True):
        exact, size = reference(condition.expression, {by: place, **others})
        tolerance = max(tolerance, float(size) * 1e-9, 1e-290)
        assert abs(Decimal(margin) - exact) <= Decimal(tolerance), (condition.sql, place, others)
    first, second, third = margins
    shape = found.inputs[by].shape
    if shape == "increasing":
        assert first <= second + tolerance
        assert second <= third + tolerance
    elif shape == "decreasing":
        assert first >= second - tolerance
        assert second >= third - tolerance
    else:
        assert second <= max(first, third) + tolerance


def between(low: float, high: float, share: float) -> float:
    """A point between two ends; on a logarithmic scale if these are far apart."""
    if share in (0.0, 1.0) or high - low < 1e6:
        return low + (high - low) * share if share not in (0.0, 1.0) else (low, high)[int(share)]
    sizes = [math.copysign(math.log1p(abs(end)), end) for end in (low, high)]
    at = sizes[0] + (sizes[1] - sizes[0]) * share
    return min(max(math.copysign(math.expm1(abs(at)), at), low), high)


def test_limits_are_within_the_domain_and_the_largest_number() -> None:
    tree = Condition.parse("x * y - y > 0").expression
    for domain in ({"x": (-INF, 5.0), "y": (3.0, INF)}, {"x": (-7.0, INF), "y": (-INF, INF)}):
        found = overflow_limits(tree, domain)
        assert not found.problem
        for name, (low, high) in found.box.items():
            assert domain[name][0] <= low <= high <= domain[name][1]
            assert max(abs(low), abs(high)) <= LARGEST


def test_no_shape_can_be_assumed_if_a_part_overflows() -> None:
    domain = {"x": (0.0, 800.0), "y": (-1.0, 1.0)}
    refused = certify("exp(x)*y + 1 > 0", domain=domain)
    assert all("assume_shape" not in found.reason for found in refused.inputs.values())
    with pytest.raises(
        InputError, match=r"'y' is assumed to be increasing, but .* overflows.*; narrow the domain"
    ):
        certify("exp(x)*y + 1 > 0", domain=domain, assume_shape={"y": "increasing"})
