"""What every class that declares its state keeps: a round trip changes nothing, and other arrays are refused."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages
from typing import TypeGuard

import numpy as np
import pytest

import tidegate
from tidegate import Budget, InputError, Window
from tidegate.engine.encode import encode
from tidegate.engine.join import Join
from tidegate.engine.operator import Operator, collected
from tidegate.engine.policy_retention import PolicyRetention
from tidegate.models import AgeCurve, LinearTrend
from tidegate.models.processes.noise import Noise
from tidegate.policies import Age, FlowExpect, Heeb, HeebHistogram, IJoin, Life, Policy, Prob, Random
from tidegate.policies.policy import RunningPolicy
from tidegate.streams import Trace
from tidegate.types import Array, Stateful

WINDOW = Window(40, 40)
TREND = LinearTrend(2.0, 0.0, Noise(bound=6.0))
POLICIES: list[Policy] = [
    Age(),
    Age(AgeCurve([0, 10, 30], [3, 1])),
    FlowExpect(),
    FlowExpect(left=TREND, right=TREND),
    Heeb(),
    Heeb(left=TREND, right=TREND),
    HeebHistogram(),
    IJoin(),
    IJoin(expects=Age()),
    Life(),
    Prob(),
    Prob(left=TREND, right=TREND),
    Random(left=TREND, right=TREND),
]
TOLERATED = {
    *("lead", "left.edges", "left.rates", "left.sample", "right.edges", "right.rates", "right.sample"),
    *("rate.rates", "last.left", "last.right", "limits.latest"),
    *("scorer_left.strides", "scorer_right.strides"),
}
"""Fields that states of earlier layouts, or of a policy that has not learned them yet, may lack."""


def stepped(policy: Policy, steps: int = 30) -> RunningPolicy:
    rng = np.random.default_rng(2)
    moving = 2 * np.arange(steps * 20) + rng.integers(-6, 7, (2, steps * 20))
    times = np.arange(steps * 20)
    traces = [Trace.of({"key": key, "time": times, "importance": np.ones(len(key))}) for key in moving]
    join = Join(WINDOW, Budget(rows=30), policy)
    retention = PolicyRetention(join)
    operator = Operator(join, retention)
    arrivals = encode(traces[0], traces[1], WINDOW, "=", None).arrivals
    for step in arrivals.steps(arrivals.cuts(40), whole_instants=False):
        collected(operator.step(*step))
    return retention.policy


def started(policy: Policy) -> RunningPolicy:
    return PolicyRetention(Join(WINDOW, Budget(rows=30), policy)).policy


def same(one: dict[str, Array], other: dict[str, Array]) -> bool:
    return one.keys() == other.keys() and all(
        array.dtype == other[name].dtype and array.tobytes() == other[name].tobytes()
        for name, array in one.items()
    )


def is_stateful(value: object) -> TypeGuard[Stateful]:
    return Stateful in type(value).__mro__


def objects_in(owner: object) -> Iterator[Stateful]:
    """An object, and all that its attributes consist of."""
    if is_stateful(owner):
        yield owner
    inner = owner.values() if isinstance(owner, dict) else owner if isinstance(owner, tuple) else ()
    for value in [*inner, *getattr(owner, "__dict__", {}).values()]:
        if isinstance(value, dict | tuple) or is_stateful(value):
            yield from objects_in(value)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_a_round_trip_changes_nothing(policy: Policy) -> None:
    state = stepped(policy).snapshot()
    assert state
    assert same(started(policy).restore(state).snapshot(), state)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_a_restored_object_shares_no_array_with_the_state(policy: Policy) -> None:
    state = stepped(policy).snapshot()
    restored = started(policy).restore(state)
    kept = restored.snapshot()
    for array in state.values():
        if array.flags.writeable:
            array[:] = 0
    assert same(restored.snapshot(), kept)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_a_state_without_a_field_is_refused_by_its_name(policy: Policy) -> None:
    state = stepped(policy).snapshot()
    for name in state:
        rest = {other: array for other, array in state.items() if other != name}
        if name in TOLERATED:
            continue
        with pytest.raises(InputError, match=r"the saved state of .* has no '") as refused:
            started(policy).restore(rest)
        missing = str(refused.value).split("'")[1]
        assert name.endswith(missing)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_a_state_with_another_field_is_refused_by_its_name(policy: Policy) -> None:
    state = stepped(policy).snapshot() | {"foreign": np.zeros(1)}
    with pytest.raises(InputError, match=r"was given \['foreign'\]; restore with its own"):
        started(policy).restore(state)


def test_every_declared_class_is_tested_here() -> None:
    for module in walk_packages(tidegate.__path__, "tidegate."):
        if module.name.startswith(("tidegate.models", "tidegate.policies")):
            import_module(module.name)
    declared = {
        kind
        for kind in _with_subclasses(Stateful)
        if vars(kind).get("state") and kind.__module__.startswith(("tidegate.models", "tidegate.policies"))
    }
    tested: set[type] = set()
    for policy in POLICIES:
        for each in objects_in(stepped(policy, 2)):
            tested.update(type(each).__mro__)
    assert declared
    assert declared <= tested


def _with_subclasses(kind: type[object]) -> set[type]:
    found: set[type] = {kind}
    for subclass in kind.__subclasses__():
        found |= _with_subclasses(subclass)
    return found
