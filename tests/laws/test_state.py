"""What every class that declares its state keeps: a round trip changes nothing, and other arrays are refused."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages
from typing import TypeAlias, TypeGuard

import numpy as np
import pytest

import tidegate
from tidegate import Budget, InputError, Window
from tidegate.engine.encode import encode
from tidegate.engine.join import Join
from tidegate.engine.operator import Operator, collected
from tidegate.engine.policy_retention import PolicyRetention
from tidegate.engine.sampler_retention import SamplerRetention
from tidegate.models import AgeCurve, LinearTrend
from tidegate.models.processes.noise import Noise
from tidegate.policies import Age, FlowExpect, Heeb, HeebHistogram, IJoin, Life, Policy, Prob, Random
from tidegate.sampling import (
    EqCluster,
    GroupedJoinReservoir,
    GroupedReservoir,
    JoinReservoir,
    PpsCluster,
    ProgressiveJoinReservoir,
    ProgressiveReservoir,
    Reservoir,
    Sampler,
    Uniform,
)
from tidegate.sampling.reservoirs.grouped import RunningGroups
from tidegate.sampling.reservoirs.ranked import RankedReservoir
from tidegate.streams import Trace
from tidegate.types import Array, Pairs, Stateful

FOLDERS = "tidegate.models", "tidegate.policies", "tidegate.sampling"
WINDOW = Window(40, 40)
KEYS = [1 / 50] * 50
Reservoirs: TypeAlias = (
    Reservoir
    | ProgressiveReservoir
    | GroupedReservoir
    | JoinReservoir
    | GroupedJoinReservoir
    | ProgressiveJoinReservoir
)
TREND = LinearTrend(2.0, 0.0, Noise(bound=6.0))
CONFIGS: list[Policy | Sampler | Reservoirs] = [
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
    EqCluster(),
    EqCluster(model="age"),
    PpsCluster(),
    Uniform(),
    Reservoir(30),
    ProgressiveReservoir(30, 0.6),
    GroupedReservoir(40, 2),
    JoinReservoir(20, 500),
    GroupedJoinReservoir(40, 500, 2),
    ProgressiveJoinReservoir(20, 500, 200, (KEYS, KEYS), (1, 1), (50, 50)),
]
TOLERATED = {
    *("lead", "left.edges", "left.rates", "left.sample", "right.edges", "right.rates", "right.sample"),
    *("rate.rates", "last.left", "last.right", "limits.latest"),
    *("scorer_left.strides", "scorer_right.strides", "forecaster.lead"),
}
"""Fields that states of earlier layouts, or of what has not learned them yet, may lack."""


def retention_of(config: Policy | Sampler) -> PolicyRetention | SamplerRetention:
    join = Join(WINDOW, Budget(rows=30), config if isinstance(config, Policy) else "fifo")
    return SamplerRetention(join, config) if isinstance(config, Sampler) else PolicyRetention(join)


def running(retention: PolicyRetention | SamplerRetention) -> Stateful:
    return retention.policy if isinstance(retention, PolicyRetention) else retention.sampling


def started(config: Policy | Sampler | Reservoirs) -> Stateful:
    if isinstance(config, Policy | Sampler):
        return running(retention_of(config))
    return config.start(3)


def stepped(config: Policy | Sampler | Reservoirs, steps: int = 30) -> Stateful:
    rng = np.random.default_rng(2)
    if not isinstance(config, Policy | Sampler):
        return offered(config, rng)
    moving = 2 * np.arange(steps * 20) + rng.integers(-6, 7, (2, steps * 20))
    times = np.arange(steps * 20)
    traces = [Trace.of({"key": key, "time": times, "importance": np.ones(len(key))}) for key in moving]
    retention = retention_of(config)
    operator: Operator[Pairs] = Operator(Join(WINDOW, Budget(rows=30)), retention)
    arrivals = encode(traces[0], traces[1], WINDOW, "=", None).arrivals
    for step in arrivals.steps(arrivals.cuts(40), whole_instants=False):
        collected(operator.step(*step))
    return running(retention)


def offered(config: Reservoirs, rng: np.random.Generator) -> Stateful:
    reservoir = config.start(3)
    rows = {"a": np.arange(100), "b": rng.random(100)}
    if isinstance(reservoir, RankedReservoir):
        reservoir.offer(1 - rows["b"])
    elif isinstance(reservoir, RunningGroups):
        reservoir.offer(rows, rows["a"] % 3)
    else:
        reservoir.offer(rows)
    return reservoir


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


@pytest.mark.parametrize("config", CONFIGS, ids=repr)
def test_a_round_trip_changes_nothing(config: Policy | Sampler | Reservoirs) -> None:
    state = stepped(config).snapshot()
    assert state
    assert same(started(config).restore(state).snapshot(), state)


@pytest.mark.parametrize("config", CONFIGS, ids=repr)
def test_a_restored_object_shares_no_array_with_the_state(config: Policy | Sampler | Reservoirs) -> None:
    state = stepped(config).snapshot()
    restored = started(config).restore(state)
    kept = restored.snapshot()
    for array in state.values():
        if array.flags.writeable:
            array[:] = 0
    assert same(restored.snapshot(), kept)


@pytest.mark.parametrize("config", CONFIGS, ids=repr)
def test_a_state_without_a_field_is_refused_by_its_name(config: Policy | Sampler | Reservoirs) -> None:
    state = stepped(config).snapshot()
    for name in state:  # those of rows have any names
        rest = {other: array for other, array in state.items() if other != name}
        if name in TOLERATED or name.startswith("row."):
            continue
        with pytest.raises(InputError, match=r"the saved state of .* has no '") as refused:
            started(config).restore(rest)
        missing = str(refused.value).split("'")[1]
        assert name.endswith(missing)


@pytest.mark.parametrize("config", CONFIGS, ids=repr)
def test_a_state_with_another_field_is_refused_by_its_name(config: Policy | Sampler | Reservoirs) -> None:
    state = stepped(config).snapshot() | {"foreign": np.zeros(1)}
    with pytest.raises(InputError, match=r"was given \['foreign'\]; restore with its own"):
        started(config).restore(state)


def test_every_declared_class_is_tested_here() -> None:
    for module in walk_packages(tidegate.__path__, "tidegate."):
        if module.name.startswith(FOLDERS):
            import_module(module.name)
    declared = {
        kind
        for kind in _with_subclasses(Stateful)
        if vars(kind).get("state") and kind.__module__.startswith(FOLDERS)
    }
    tested: set[type] = set()
    for config in CONFIGS:
        for each in objects_in(stepped(config, 2)):
            tested.update(type(each).__mro__)
    assert declared
    assert declared <= tested


def _with_subclasses(kind: type[object]) -> set[type]:
    found: set[type] = {kind}
    for subclass in kind.__subclasses__():
        found |= _with_subclasses(subclass)
    return found
