"""Which streams of an alarm may omit rows, and how that is known.

Rows may be omitted if the margin of the alarm is quasiconvex in the stream's value: between two values never higher
than at one of them, wherever the other streams stand. `certify` says so only with evidence:

- the margin is a sum, and each stream is judged on those terms alone in which it occurs: the others do not change as
  it does. So a term that fails only costs the streams that occur in it;
- a term that is not defined somewhere in the domain (a pole, a logarithm of 0) is refused, and the place named;
- so is one that overflows there in 64-bit floats (`overflow`); where the domain has no end, rows are only omitted as
  far out as nothing overflows;
- a contradiction found on a grid is a proof that a shape does not hold; it is given as a counterexample;
- else the shape is proven: by rules of composition (`curvature`), or by bounds of derivatives on ever smaller boxes:
  a first derivative that is nowhere below 0, or a second that is not, wherever the first may be 0;
- what can be neither proven nor contradicted is said to hold on the grid, with its steps.

All of it is about the exact margin; what is computed in floating point may be off by its rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final, Literal, NamedTuple

import numpy as np

from tidegate.alerts.certification.enclosure import Enclosure
from tidegate.alerts.certification.grid import Contradictions, Counterexample, contradictions
from tidegate.alerts.certification.intervals import Interval
from tidegate.alerts.certification.overflow import LARGEST, Limits, limits
from tidegate.alerts.certification.proof import KnownShape, Proof, Prover
from tidegate.alerts.certification.subdivision import Box, settle, spread
from tidegate.alerts.expressions.condition import Condition
from tidegate.alerts.expressions.evaluation import evaluate
from tidegate.alerts.expressions.nodes import Call, Node, names, sql
from tidegate.alerts.stores.bracket_store import Shape
from tidegate.types import Array, InputError, check_choice

Evidence = Literal["proven", "grid", "vouched", "refused"]

_GRID: Final = 129
_FEWEST: Final = 3
_MOST: Final = 20_000
_NEAR: Final = 1e30
"""A limit closer than this is worth a word."""


@dataclass(frozen=True)
class Judgement:
    """What is known of one input.

    Parameters
    ----------
    shape
        What the margin is in this input; None if all its rows must be kept. Increasing and decreasing are not
        strict: what does not change is both.
    evidence
        How that is known.
    why
        The same in a sentence.
    counterexample
        Three places (or two, for a direction) that show that it cannot be.
    """

    shape: KnownShape | None
    evidence: Evidence
    why: str
    counterexample: Counterexample | None = None


class Part(NamedTuple):
    """A term of the margin, and the inputs that occur in it."""

    sql: str
    inputs: tuple[str, ...]


@dataclass(frozen=True)
class Certificate:
    """What `certify` found; printed, it is a table.

    Parameters
    ----------
    condition
        The alarm.
    domain
        Where its inputs lie. Beyond it nothing is certified: see `covers`.
    inputs
        The judgement of each input.
    parts
        The terms that the margin is the sum of.
    limits
        The domain, with ends in place of infinite ones, so far out that no part of the margin overflows in between.
    """

    condition: Condition
    domain: Mapping[str, tuple[float, float]]
    inputs: Mapping[str, Judgement]
    parts: tuple[Part, ...]
    limits: Mapping[str, tuple[float, float]]

    def shapes(self, *, grid: bool = False) -> dict[str, Shape]:
        """The shape to omit rows of each input by, "any" where all are kept; `grid` trusts that as evidence, too."""
        trusted = {"proven", "vouched", "grid"} if grid else {"proven", "vouched"}
        return {
            name: found.shape if found.shape is not None and found.evidence in trusted else "any"
            for name, found in self.inputs.items()
        }

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence for each input of which every row is kept."""
        kept = [name for name, shape in self.shapes().items() if shape == "any"]
        return tuple(f"every row of {name!r} is kept: {self.inputs[name].why}" for name in kept)

    def covers(self, name: str, values: Array) -> Array:
        """Mark the values of an input that lie in the limits; only rows with these may be omitted, or stand in."""
        low, high = self.limits[name]
        return (values >= low) & (values <= high) & np.isfinite(values)

    def __str__(self) -> str:
        head = ("input", "domain", "shape", "evidence", "why")
        lines = [head] + [
            (name, f"{low:g} .. {high:g}", found.shape or "-", found.evidence, found.why)
            for (name, found), (low, high) in zip(self.inputs.items(), self.domain.values(), strict=True)
        ]
        widths = [max(len(line[k]) for line in lines) for k in range(len(head) - 1)]
        table = ["  ".join([*map(str.ljust, line, widths), line[-1]]) for line in lines]
        return "\n".join([self.condition.sql, *table])


def certify(
    expression: str | Condition,
    domain: Mapping[str, tuple[float, float]] | None = None,
    *,
    vouch: Mapping[str, KnownShape] | None = None,
    grid: int = _GRID,
) -> Certificate:
    """Find out for each input of an alarm whether, and by which shape, its rows may be omitted.

    Parameters
    ----------
    expression
        The alarm, such as `"a - b > 2"`.
    domain
        The least and the greatest value of each input, both included; infinite ends are fine. Without it, any number.
    vouch
        Shapes that the user answers for where they cannot be proven. One that a counterexample contradicts is an
        error.
    grid
        Points along the input that is judged, where a grid is tried.

    Examples
    --------
    >>> dew = "ln(h/100) + 18.678*a/(257.14+a) - s > 0"
    >>> print(certify(dew, {"h": (1, 100), "a": (-40, 60), "s": (-40, 60)}))
    ln(h / 100) + 18.678 * a / (257.14 + a) - s > 0
    input  domain     shape       evidence  why
    h      1 .. 100   increasing  proven    ln(h / 100) rises with it, by composition
    a      -40 .. 60  increasing  proven    18.678 * a / (257.14 + a) rises with it, by composition...
    s      -40 .. 60  decreasing  proven    -s falls with it, by composition
    >>> print(*certify("pow(a, 3) - a > b", {"a": (-2, 2), "b": (0, 1)}).warnings)
    every row of 'a' is kept: pow(a, 3) - a is not quasiconvex:
    in a it is -6 at -2, 0.384521 at -0.5625, -0.384521 at 0.5625

    References
    ----------
    Optimization of Threshold Functions over Streams, section 5.

    Deviations
    ----------
    The paper checks a discretisation and calls that certified. Here that is the last resort, and is not trusted
    unless asked for (`Certificate.shapes`).

    The paper certifies each sub-function of a sum by itself. That is only sound if each stream occurs in one of them
    (x^3 and -x are each quasiconvex, their sum is not), so a stream is judged on the sum of all terms that it
    occurs in.
    """
    condition = expression if isinstance(expression, Condition) else Condition.parse(expression)
    box = _checked(condition, domain)
    if isinstance(grid, bool) or not isinstance(grid, int) or grid < _FEWEST:
        raise InputError(f"grid is {grid!r}; give a whole number of points, at least {_FEWEST}")
    answered = dict(vouch or {})
    for name, shape in answered.items():
        if name not in box:
            raise InputError(
                f"vouch names {name!r}, which is no input of {condition.sql!r}; it has {', '.join(box)}"
            )
        check_choice(shape, KnownShape, f"the shape vouched for {name!r},")
    terms = _terms(condition.expression)
    for term in terms:
        if not names(term) and (gap := _gap(term, {})):
            raise InputError(f"{condition.sql!r} is not defined: {gap}; correct the constant")
    with np.errstate(over="ignore"):
        fixed = sum(abs(float(evaluate(term, {}))) for term in terms if not names(term))
    if not fixed < np.finfo(float).max - LARGEST * 2**10:
        raise InputError(f"the constants of {condition.sql!r} overflow 64-bit floats; give smaller ones")
    judged, limited = {}, dict(box)
    for name in box:
        part = reduce(_plus, [term for term in terms if name in names(term)])
        own = {other: box[other] for other in names(part)}
        gap = _gap(part, own)
        within = Limits(own) if gap else limits(part, own)
        for other, ends in within.box.items():
            limited[other] = (max(limited[other][0], ends[0]), min(limited[other][1], ends[1]))
        unsound = f"is not defined everywhere: {gap}; narrow the domain, or vouch for it" if gap else ""
        judged[name] = (
            _overflowing(part, name, answered.get(name), within.problem)
            if within.problem
            else _judgement(part, name, own, grid, answered.get(name), unsound)
        )
    judged = {name: _with_limits(found, box[name], limited[name]) for name, found in judged.items()}
    parts = tuple(Part(sql(term), names(term)) for term in terms if names(term))
    return Certificate(condition, box, judged, parts, limited)


def _checked(
    condition: Condition, domain: Mapping[str, tuple[float, float]] | None
) -> dict[str, tuple[float, float]]:
    if not condition.inputs:
        raise InputError(f"{condition.sql!r} looks at no stream; name at least one value")
    if domain is None:
        return dict.fromkeys(condition.inputs, (-np.inf, np.inf))
    for name in domain:
        if name not in condition.inputs:
            raise InputError(
                f"the domain has {name!r}, no input of {condition.sql!r}; it has {', '.join(condition.inputs)}"
            )
    box = {}
    for name in condition.inputs:
        if name not in domain:
            raise InputError(
                f"the domain lacks {name!r}; give its least and greatest value, e.g. (-inf, inf)"
            )
        box[name] = _ends(name, domain[name])
    return box


def _ends(name: str, ends: object) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in ends)  # type: ignore[attr-defined]  # what is no pair is refused below
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
    """The terms that an expression is the sum of; a constant factor goes to each."""
    if not isinstance(tree, Call):
        return [tree]
    if tree.function in {"+", "-", "negate"}:
        *first, last = map(_terms, tree.arguments)
        own = [_negative(term) for term in last] if tree.function != "+" else last
        return [*(term for terms in first for term in terms), *own]
    if tree.function in {"*", "/"}:
        left, right = tree.arguments
        if not names(right):
            return [Call(tree.function, (term, right)) for term in _terms(left)]
        if tree.function == "*" and not names(left):
            return [Call("*", (left, term)) for term in _terms(right)]
    return [tree]


def _negative(tree: Node) -> Node:
    return (
        tree.arguments[0] if isinstance(tree, Call) and tree.function == "negate" else Call("negate", (tree,))
    )


def _plus(u: Node, v: Node) -> Node:
    negated = isinstance(v, Call) and v.function == "negate"
    return Call("-", (u, _negative(v))) if negated else Call("+", (u, v))


def _gap(tree: Node, box: Box) -> str:
    """Where an expression is not defined, or may not be; nothing if it is defined on the whole box."""

    def defined(piece: dict[str, Interval]) -> Array:
        bounds = Enclosure(piece)
        bounds.jet(tree)
        return ~reduce(np.logical_or, (gap.boxes for gap in bounds.gaps), np.array(False))  # noqa: FBT003 - a value

    found = settle(box, defined, _MOST)
    if found.holds:
        return ""
    bounds = Enclosure({name: Interval.of(*ends) for name, ends in found.stuck.items()})
    bounds.jet(tree)
    place = ", ".join(f"{name} = {value:.6g}" for name, value in _place(tree, found.stuck).items())
    return bounds.gaps[0].what + (f", but it fails or nearly does at {place}" if place else "")


def _place(tree: Node, stuck: Box) -> dict[str, float]:
    """A point of a box at which the expression has no value, or else one of those inside."""
    corners = [{name: ends[k] for name, ends in stuck.items()} for k in (0, 1)]
    inside = {name: float(spread(*ends, np.array(0.5))) for name, ends in stuck.items()}
    with np.errstate(all="ignore"):
        without = [
            at for at in corners if np.isnan(evaluate(tree, {n: np.asarray(v) for n, v in at.items()}))
        ]
    return next(iter(without), inside)


def _with_limits(found: Judgement, ends: tuple[float, float], limited: tuple[float, float]) -> Judgement:
    """Tell of limits that rows may well reach."""
    if found.shape is None or limited == ends or max(map(abs, limited)) > _NEAR:
        return found
    low, high = limited
    return replace(
        found, why=f"{found.why}; rows beyond {low:g} .. {high:g} are kept, where it could overflow"
    )


def _overflowing(tree: Node, by: str, vouched: KnownShape | None, problem: str) -> Judgement:
    """Nobody can vouch for terms that overflow: the user knows the function, not what 64-bit floats make of it."""
    if vouched is not None:
        raise InputError(f"{by!r} is vouched to be {vouched}, but {sql(tree)} {problem}; narrow the domain")
    return Judgement(None, "refused", f"{sql(tree)} {problem}; narrow the domain")


def _judgement(
    tree: Node, by: str, box: Box, grid: int, vouched: KnownShape | None, unsound: str
) -> Judgement:
    """One input of the terms that it occurs in; `unsound` says why they have no value somewhere, if so."""
    text = sql(tree)
    if unsound:
        own = Judgement(None, "refused", f"{text} {unsound}")
        return own if vouched is None else _vouched(vouched, own)
    found = contradictions(tree, by, box, grid)
    against = {"increasing": found.drop, "decreasing": found.rise, "quasiconvex": found.peak, None: None}[
        vouched
    ]
    if against is not None:
        raise InputError(
            f"{by!r} is vouched to be {vouched}, but of {text}, {against}; narrow the domain, or take the vouch back"
        )
    if found.peak is not None:
        return Judgement(None, "refused", f"{text} is not quasiconvex: {found.peak}", found.peak)
    proof = _proof(Prover(tree, by, box), found)
    if proof is not None and vouched in {None, "quasiconvex", proof.shape}:
        return Judgement(proof.shape, "proven", proof.why)
    own = _on_grid(text, found) if proof is None else Judgement(proof.shape, "proven", proof.why)
    return own if vouched is None else _vouched(vouched, own)


def _vouched(shape: KnownShape, own: Judgement) -> Judgement:
    return Judgement(shape, "vouched", f"the user answers for it; of itself, {own.why}")


def _proof(prover: Prover, found: Contradictions) -> Proof | None:
    """The most useful shape that can be proven; what the grid contradicts is not tried."""
    return (
        (None if found.drop else prover.increasing())
        or (None if found.rise else prover.decreasing())
        or prover.valley()
    )


def _on_grid(text: str, found: Contradictions) -> Judgement:
    if not found.steps:
        why = (
            f"nothing could be proven of {text}, and a grid needs finite bounds and about ten inputs at most; "
            "give finite bounds, or vouch for it"
        )
        return Judgement(None, "refused", why)
    shape: KnownShape = "increasing" if not found.drop else "decreasing" if not found.rise else "quasiconvex"
    steps = ", ".join(f"{name} by {step:.6g}" for name, step in found.steps.items())
    return Judgement(
        shape, "grid", f"nothing contradicts it on a grid ({steps}), but nothing proves it of {text}"
    )
