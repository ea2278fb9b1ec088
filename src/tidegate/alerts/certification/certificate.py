"""`certify`: which streams of an alarm may omit rows, and the evidence for it.

Rows may be omitted if the margin of the alarm is quasiconvex in the stream's value: between two values it is never
higher than at both of them, for all values of the other streams. `certify` requires evidence:

- The margin is a sum. Each stream is examined on the terms in which it occurs, since the others do not change with
  it. So a term that fails affects only the streams that occur in it.
- A term that is not defined somewhere in the domain (a pole, a logarithm of 0) is refused, with the point.
- A term that overflows 64-bit floats (`overflow`) is refused, too. In an infinite domain, rows are omitted only
  within limits in which nothing overflows.
- A counterexample on a grid (`grid`) proves that a shape does not hold.
- Otherwise a proof of the shape is tried: by rules of composition (`curvature`), or by bounds of derivatives on small
  boxes (`proof`).
- If there is neither a proof nor a counterexample, the evidence is the grid, and its steps are reported.

All of this is about the exact margin. A margin that is computed in floating point has rounding errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final, Literal, NamedTuple

import numpy as np

from tidegate.alerts.certification.enclosure import Enclosure
from tidegate.alerts.certification.grid import Counterexample, GridResult, search_grid
from tidegate.alerts.certification.intervals import Interval
from tidegate.alerts.certification.overflow import LARGEST, OverflowLimits, overflow_limits
from tidegate.alerts.certification.proof import KnownShape, ShapeProof, ShapeProver
from tidegate.alerts.certification.subdivision import Box, points_between, prove_on_box
from tidegate.alerts.expressions.condition import Condition
from tidegate.alerts.expressions.evaluation import evaluate
from tidegate.alerts.expressions.nodes import Call, Node, input_names, to_sql
from tidegate.alerts.stores.bracket_store import Shape
from tidegate.types import Array, InputError, check_choice

Evidence = Literal["proven", "assumed", "refused"]

_GRID_POINTS: Final = 129
_MIN_GRID_POINTS: Final = 3
_MAX_PIECES: Final = 20_000
_REPORTED_LIMIT: Final = 1e30
"""Limits up to this size are reported, since rows may well exceed them."""


@dataclass(frozen=True)
class InputCertificate:
    """The result of `certify` for one input.

    Parameters
    ----------
    shape
        The shape of the margin in this input; None if all its rows must be kept. A margin that does not change
        counts as increasing and decreasing.
    evidence
        How the shape is known.
    reason
        The evidence in words.
    counterexample
        Points that contradict the shape, if `evidence` is "refused" because of these.
    """

    shape: KnownShape | None
    evidence: Evidence
    reason: str
    counterexample: Counterexample | None = None


class MarginTerm(NamedTuple):
    """A term of the margin, and the inputs that occur in it."""

    sql: str
    inputs: tuple[str, ...]


@dataclass(frozen=True)
class Certificate:
    """The result of `certify`; printed, it is a table.

    Parameters
    ----------
    condition
        The condition.
    domain
        The range of each input. Values outside are not certified: see `covers`.
    inputs
        The result for each input.
    terms
        The terms whose sum is the margin.
    limits
        The domain, with finite ends in place of infinite ones. Within these no part of the margin overflows.
    """

    condition: Condition
    domain: Mapping[str, tuple[float, float]]
    inputs: Mapping[str, InputCertificate]
    terms: tuple[MarginTerm, ...]
    limits: Mapping[str, tuple[float, float]]

    def shapes(self) -> dict[str, Shape]:
        """The shape by which rows of each input are omitted; "any" if all are kept."""
        return {name: found.shape or "any" for name, found in self.inputs.items()}

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence for each input whose rows are all kept."""
        kept = [name for name, shape in self.shapes().items() if shape == "any"]
        return tuple(f"every row of {name!r} is kept: {self.inputs[name].reason}" for name in kept)

    def covers(self, name: str, values: Array) -> Array:
        """Whether values of an input are within the limits; only rows with such values omit others or are omitted."""
        low, high = self.limits[name]
        return (values >= low) & (values <= high) & np.isfinite(values)

    def __str__(self) -> str:
        header = ("input", "domain", "shape", "evidence", "reason")
        lines = [header] + [
            (name, f"{low:g} .. {high:g}", found.shape or "-", found.evidence, found.reason)
            for (name, found), (low, high) in zip(self.inputs.items(), self.domain.values(), strict=True)
        ]
        widths = [max(len(line[k]) for line in lines) for k in range(len(header) - 1)]
        table = ["  ".join([*map(str.ljust, line, widths), line[-1]]) for line in lines]
        return "\n".join([self.condition.sql, *table])


def certify(
    expression: str | Condition,
    domain: Mapping[str, tuple[float, float]] | None = None,
    *,
    assume_shape: Mapping[str, KnownShape] | None = None,
    grid: int = _GRID_POINTS,
) -> Certificate:
    """Find out for each input of a condition whether, and by which shape, its rows may be omitted.

    Parameters
    ----------
    expression
        The condition, such as `"a - b > 2"`.
    domain
        The least and the greatest value of each input, inclusive; both may be infinite. By default all numbers.
    assume_shape
        The shapes of inputs for which they cannot be proven. It is an error if a counterexample is found.
    grid
        The number of points along the examined input, on which counterexamples are searched.

    Examples
    --------
    >>> dew = "ln(h/100) + 18.678*a/(257.14+a) - s > 0"
    >>> print(certify(dew, {"h": (1, 100), "a": (-40, 60), "s": (-40, 60)}))
    ln(h / 100) + 18.678 * a / (257.14 + a) - s > 0
    input  domain     shape       evidence  reason
    h      1 .. 100   increasing  proven    ln(h / 100) increases with it, by composition
    a      -40 .. 60  increasing  proven    18.678 * a / (257.14 + a) increases with it, by composition...
    s      -40 .. 60  decreasing  proven    -s decreases with it, by composition
    >>> print(*certify("pow(a, 3) - a > b", {"a": (-2, 2), "b": (0, 1)}).warnings)
    every row of 'a' is kept: pow(a, 3) - a is not quasiconvex:
    in a it is -6 at -2, 0.384521 at -0.5625, -0.384521 at 0.5625

    References
    ----------
    Optimization of Threshold Functions over Streams, section 5.

    Deviations
    ----------
    The paper checks a grid of points and calls that certified. Here a grid only finds counterexamples. To rely on
    one without a counterexample, as the paper does, give the shape as `assume_shape`.

    The paper certifies each term of a sum separately. That is sound only if each stream occurs in one term: x^3 and
    -x are quasiconvex, but their sum is not. So a stream is examined on the sum of all terms in which it occurs.
    """
    condition = expression if isinstance(expression, Condition) else Condition.parse(expression)
    box = _check_domain(condition, domain)
    if isinstance(grid, bool) or not isinstance(grid, int) or grid < _MIN_GRID_POINTS:
        raise InputError(f"grid is {grid!r}; give a whole number of points, at least {_MIN_GRID_POINTS}")
    assumed = _check_assumed(condition, assume_shape)
    terms = _terms(condition.expression)
    _check_constants(condition, [term for term in terms if not input_names(term)])
    inputs, limits = {}, dict(box)
    for name in box:
        part = reduce(_plus, [term for term in terms if name in input_names(term)])
        own = {other: box[other] for other in input_names(part)}
        problem = _undefined(part, own)
        allowed = OverflowLimits(own) if problem else overflow_limits(part, own)
        for other, ends in allowed.box.items():
            limits[other] = (max(limits[other][0], ends[0]), min(limits[other][1], ends[1]))
        if allowed.problem:
            inputs[name] = _refuse_overflow(part, name, assumed.get(name), allowed.problem)
        elif problem:
            inputs[name] = _refuse_undefined(part, assumed.get(name), problem)
        else:
            inputs[name] = _examine(part, name, own, grid, assumed.get(name))
    inputs = {name: _mention_limits(found, box[name], limits[name]) for name, found in inputs.items()}
    varying = tuple(MarginTerm(to_sql(term), input_names(term)) for term in terms if input_names(term))
    return Certificate(condition, box, inputs, varying, limits)


def _check_domain(
    condition: Condition, domain: Mapping[str, tuple[float, float]] | None
) -> dict[str, tuple[float, float]]:
    if not condition.inputs:
        raise InputError(f"{condition.sql!r} uses no stream; use the value of at least one")
    if domain is None:
        return dict.fromkeys(condition.inputs, (-np.inf, np.inf))
    for name in domain:
        if name not in condition.inputs:
            raise InputError(
                f"domain has {name!r}, which is not an input of {condition.sql!r}; its inputs are: "
                f"{', '.join(condition.inputs)}"
            )
    box = {}
    for name in condition.inputs:
        if name not in domain:
            raise InputError(
                f"domain has no entry for {name!r}; give its least and greatest value, e.g. (-inf, inf)"
            )
        box[name] = _check_range(name, domain[name])
    return box


def _check_assumed(
    condition: Condition, assumed: Mapping[str, KnownShape] | None
) -> Mapping[str, KnownShape]:
    for name, shape in (assumed or {}).items():
        if name not in condition.inputs:
            raise InputError(
                f"assume_shape has {name!r}, which is not an input of {condition.sql!r}; its inputs are: "
                f"{', '.join(condition.inputs)}"
            )
        check_choice(shape, KnownShape, f"assume_shape of {name!r}:")
    return assumed or {}


def _check_constants(condition: Condition, constants: list[Node]) -> None:
    for constant in constants:
        if problem := _undefined(constant, {}):
            raise InputError(f"{condition.sql!r} is not defined: {problem}; correct the constant")
    with np.errstate(over="ignore"):
        total = sum(abs(float(evaluate(constant, {}))) for constant in constants)
    if not total < np.finfo(float).max - LARGEST * 2**10:
        raise InputError(f"the constants of {condition.sql!r} overflow 64-bit floats; give smaller ones")


def _check_range(name: str, ends: object) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in ends)  # type: ignore[attr-defined]  # anything but a pair is refused below
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the domain of {name!r} is {ends!r}; give two numbers, (least, greatest)"
        ) from error
    if not low <= high or low == np.inf or high == -np.inf:
        raise InputError(
            f"the domain of {name!r} is ({low:g}, {high:g}); give (least, greatest), in this order"
        )
    return low, high


def _terms(tree: Node) -> list[Node]:
    """The terms whose sum is the expression; a constant factor is distributed over them."""
    if not isinstance(tree, Call):
        return [tree]
    if tree.function in {"+", "-", "negate"}:
        *first, last = map(_terms, tree.arguments)
        own = [_negative(term) for term in last] if tree.function != "+" else last
        return [*(term for terms in first for term in terms), *own]
    if tree.function in {"*", "/"}:
        left, right = tree.arguments
        if not input_names(right):
            return [Call(tree.function, (term, right)) for term in _terms(left)]
        if tree.function == "*" and not input_names(left):
            return [Call("*", (left, term)) for term in _terms(right)]
    return [tree]


def _negative(tree: Node) -> Node:
    return (
        tree.arguments[0] if isinstance(tree, Call) and tree.function == "negate" else Call("negate", (tree,))
    )


def _plus(u: Node, v: Node) -> Node:
    negated = isinstance(v, Call) and v.function == "negate"
    return Call("-", (u, _negative(v))) if negated else Call("+", (u, v))


def _undefined(tree: Node, box: Box) -> str:
    """A sentence: where an expression is not defined, or may not be; empty if it is defined on the whole box."""

    def is_defined(piece: dict[str, Interval]) -> Array:
        bounds = Enclosure(piece)
        bounds.jet(tree)
        return ~reduce(np.logical_or, (unmet.boxes for unmet in bounds.unmet), np.array(False))  # noqa: FBT003 - a value

    proof = prove_on_box(box, is_defined, _MAX_PIECES)
    if proof.holds:
        return ""
    bounds = Enclosure({name: Interval.of(*ends) for name, ends in proof.unproven.items()})
    bounds.jet(tree)
    point = ", ".join(
        f"{name} = {value:.6g}" for name, value in _undefined_point(tree, proof.unproven).items()
    )
    return bounds.unmet[0].text + (f", which fails, or almost fails, at {point}" if point else "")


def _undefined_point(tree: Node, box: Box) -> dict[str, float]:
    """A corner of a box at which the expression is not defined; if there is none, a point inside."""
    corners = [{name: ends[k] for name, ends in box.items()} for k in (0, 1)]
    inside = {name: float(points_between(*ends, np.array(0.5))) for name, ends in box.items()}
    with np.errstate(all="ignore"):
        undefined = [
            at for at in corners if np.isnan(evaluate(tree, {n: np.asarray(v) for n, v in at.items()}))
        ]
    return next(iter(undefined), inside)


def _mention_limits(
    found: InputCertificate, ends: tuple[float, float], limits: tuple[float, float]
) -> InputCertificate:
    """Add the limits to the reason, if rows may well exceed them."""
    if found.shape is None or limits == ends or max(map(abs, limits)) > _REPORTED_LIMIT:
        return found
    low, high = limits
    return replace(
        found,
        reason=f"{found.reason}; rows outside {low:g} .. {high:g} are kept, since it could overflow there",
    )


def _refuse_overflow(tree: Node, by: str, assumed: KnownShape | None, problem: str) -> InputCertificate:
    """Refuse terms that overflow. A shape cannot be assumed: the function may have it, but floats do not."""
    if assumed is not None:
        raise InputError(
            f"{by!r} is assumed to be {assumed}, but {to_sql(tree)} {problem}; narrow the domain"
        )
    return InputCertificate(None, "refused", f"{to_sql(tree)} {problem}; narrow the domain")


def _refuse_undefined(tree: Node, assumed: KnownShape | None, problem: str) -> InputCertificate:
    """Refuse terms that are not defined everywhere, unless a shape is assumed."""
    refused = InputCertificate(
        None,
        "refused",
        f"{to_sql(tree)} is not defined everywhere: {problem}; narrow the domain, or use assume_shape",
    )
    return refused if assumed is None else _assume(assumed, refused)


def _examine(tree: Node, by: str, box: Box, grid: int, assumed: KnownShape | None) -> InputCertificate:
    """Examine one input on the terms in which it occurs."""
    text = to_sql(tree)
    result = search_grid(tree, by, box, grid)
    if assumed is not None and (example := getattr(result, f"not_{assumed}")) is not None:
        raise InputError(
            f"{by!r} is assumed to be {assumed}, but of {text}, {example}; narrow the domain, or remove it from "
            "assume_shape"
        )
    if result.not_quasiconvex is not None:
        example = result.not_quasiconvex
        return InputCertificate(None, "refused", f"{text} is not quasiconvex: {example}", example)
    proof = _prove(ShapeProver(tree, by, box), result)
    own = (
        _refuse_unproven(text, result)
        if proof is None
        else InputCertificate(proof.shape, "proven", proof.reason)
    )
    if assumed is None or (proof is not None and assumed in {"quasiconvex", proof.shape}):
        return own
    return _assume(assumed, own)


def _assume(shape: KnownShape, own: InputCertificate) -> InputCertificate:
    return InputCertificate(shape, "assumed", f"by assume_shape; without it, {own.reason}")


def _prove(prover: ShapeProver, result: GridResult) -> ShapeProof | None:
    """Prove the most useful shape; shapes that the grid contradicts are not tried."""
    return (
        (None if result.not_increasing else prover.prove_increasing())
        or (None if result.not_decreasing else prover.prove_decreasing())
        or prover.prove_quasiconvex()
    )


def _refuse_unproven(text: str, result: GridResult) -> InputCertificate:
    if not result.steps:
        reason = (
            f"no shape of {text} could be proven, and a grid needs finite ranges and about ten inputs at most; "
            "give finite ranges, or use assume_shape"
        )
        return InputCertificate(None, "refused", reason)
    possible = (
        "increasing"
        if not result.not_increasing
        else "decreasing"
        if not result.not_decreasing
        else "quasiconvex"
    )
    steps = ", ".join(f"{name} by {step:.6g}" for name, step in result.steps.items())
    return InputCertificate(
        None,
        "refused",
        f"{text} is not proven to be {possible}, although there is no counterexample on a grid ({steps}); "
        "if you know that it is, use assume_shape",
    )
