"""The public names exist, and configuration objects are frozen."""

import dataclasses
import importlib
import importlib.metadata
import inspect
import types

import numpy as np
import pytest

import tidegate
from tidegate import alerts, caching, engine, importance, models, policies, relations, sampling, streams
from tidegate import types as vocabulary

MODULES = [tidegate, alerts, caching, engine, importance, models, policies, relations, sampling, streams]
NUMBERS = np.arange(3)
FROZEN = [
    tidegate.Window(1, 1),
    tidegate.Budget(rows=1),
    tidegate.Band(0, 1),
    tidegate.Last(1),
    vocabulary.Rows("left", NUMBERS, NUMBERS, NUMBERS, NUMBERS),
    vocabulary.Setting(tidegate.Window(1, 1)),
    tidegate.simulate({"key": [], "time": []}, {"key": [], "time": []}, window=(1, 1)),
    tidegate.simulate_cache([1, 2, 1], 1),
    streams.Trace.of({"key": [1], "time": [1]}),
    streams.Aged(),
    streams.Correlated(),
    streams.Normal(),
    streams.Zipf(keys=1),
    sampling.Reservoir(1),
    sampling.ProgressiveReservoir(1),
    sampling.Sample(1, {"x": NUMBERS[:1]}),
    sampling.GroupedReservoir(1),
    sampling.JoinReservoir(1, 2),
    sampling.ProgressiveJoinReservoir(1, 2, 1, ([1.0], [1.0]), (1, 1), (1, 1)),
    streams.Readings(),
    alerts.Topology.clique("ab", 1),
    alerts.Edge(1),
    engine.Join(tidegate.Window(1, 1)),
    models.AgeCurve([0, 1], [1]),
    models.Payoff([0, 1], [0, 1]),
    tidegate.allocate([models.Payoff([0, 1], [0, 1])], total=1),
    models.Frequency({1: 1.0}, {1: 1.0}),
    models.LearnedFrequency(),
    models.Noise(1),
    models.Stationary({1: 1.0}),
    models.LinearTrend(1, 0, models.Noise(1)),
    models.RandomWalk(0, models.Noise(1)),
    models.AR1(0, 0.5, 1),
    models.Oracle([1]),
    relations.DuckDB("file", "table"),
    relations.SQLite("file", "table"),
    relations.PostgreSQL("postgresql://host/database", "table"),
    importance.Column("x"),
    importance.Categories("x", {"a": 1}),
    importance.Histogram("x", [0, 1], [1]),
    importance.Source(1, 1),
    importance.Expression("x"),
    importance.Combined("sum", ["x"]),
    importance.Sides("x", 1),
    importance.DefinitionFile("x.json"),
]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_all_names_exist(module: types.ModuleType) -> None:
    assert module.__all__ == sorted(module.__all__)
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None, name


def test_the_documented_public_names() -> None:
    promised = {"Band", "Budget", "InputError", "Last", "Report", "Window", "policies", "simulate", "streams"}
    assert promised | {
        "alert",
        "alerts",
        "allocate",
        "lookup",
        "models",
        "predict_recall",
        "relations",
        "sampling",
        "simulate_cache",
    } <= set(tidegate.__all__)
    parameters = inspect.signature(tidegate.simulate).parameters
    assert list(parameters)[:2] == ["left", "right"]
    defaults = {
        "split": "shared",
        "order": "probe-first",
        "step": 1,
        "condition": "=",
        "seed": 0,
        "warmup": 0,
        "collect": False,
        "lateness": None,
        "combine": "min",
    }
    assert {name: parameters[name].default for name in defaults} == defaults
    assert all(p.kind is p.KEYWORD_ONLY for p in list(parameters.values())[2:])
    fields = {"results", "from_left", "from_right", "from_step", "exact", "importance", "fairness", "pairs"}
    assert fields | {"peak_rows", "peak_bytes", "evicted", "expired", "late"} <= {
        field.name for field in dataclasses.fields(tidegate.Report)
    }


def test_dir_lists_all_names_and_the_version() -> None:
    assert {*tidegate.__all__, "__version__"} <= set(dir(tidegate))
    assert {"alert", "inspect", "join", "lookup", "sample"} <= set(dir(tidegate))
    assert tidegate.__version__ == importlib.metadata.version("tidegate")


def test_input_errors_are_value_errors() -> None:
    assert issubclass(tidegate.InputError, ValueError)


@pytest.mark.parametrize("value", FROZEN, ids=lambda value: type(value).__name__)
def test_frozen_is_frozen(value: object) -> None:
    assert dataclasses.is_dataclass(value)
    for field in dataclasses.fields(value):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, field.name, None)


def test_every_dataclass_of_the_vocabulary_is_frozen() -> None:
    found = [
        cls
        for _, cls in inspect.getmembers(importlib.import_module("tidegate.types"), inspect.isclass)
        if dataclasses.is_dataclass(cls)
    ]
    assert len(found) >= 8
    for cls in found:
        assert cls.__dataclass_params__.frozen, cls  # type: ignore[attr-defined]
