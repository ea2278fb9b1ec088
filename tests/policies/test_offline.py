"""The offline optimum is what trying every plan finds, and no policy beats it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ortools.graph.python import min_cost_flow

import tidegate as tg
from tests.policies.plans import Row, most_results
from tidegate.policies import Offline, Size, find, names
from tidegate.policies.min_cost_flow import least_cost_flow
from tidegate.types import Array, Budget, InputError, Setting, Side, StepSize, Window

ROW = st.tuples(st.integers(0, 7), st.integers(0, 2))
STREAM = st.lists(ROW, max_size=6)
WINDOW = st.tuples(st.integers(-3, 6), st.integers(0, 6)).filter(lambda window: sum(window) >= 0)
SPLIT = st.sampled_from([(1,), (2,), (3,), (1, 1), (2, 0), (0, 1), (1, 2)])
OTHERS = [name for name in names() if name != "offline"]


def stream(rows: list[Row]) -> dict[str, list[int]]:
    return {"time": [time for time, _ in rows], "key": [key for _, key in rows]}


def simulated(left: list[Row], right: list[Row], rooms: tuple[int, ...], **settings: Any) -> tg.Report:  # noqa: ANN401
    split = "shared" if len(rooms) == 1 else rooms
    return tg.simulate(stream(left), stream(right), budget=sum(rooms), split=split, **settings)  # type: ignore[arg-type]


@settings(max_examples=300, deadline=None)
@given(STREAM, STREAM, WINDOW, SPLIT, st.sampled_from([1, "instant", 3]), st.sampled_from([0, 0, 3]))
def test_it_gets_what_trying_every_plan_finds(
    left: list[Row],
    right: list[Row],
    window: tuple[int, int],
    rooms: tuple[int, ...],
    step: StepSize,
    warmup: int,
) -> None:
    first = min((time for time, _ in left + right), default=0)
    most = most_results(left, right, window, rooms, step, first + warmup)
    report = simulated(left, right, rooms, window=window, step=step, warmup=warmup, policy="offline")
    assert report.results == most


@settings(max_examples=150, deadline=None)
@given(
    st.lists(ROW, max_size=6).map(sorted),
    st.lists(ROW, max_size=6).map(sorted),
    WINDOW,
    SPLIT,
    st.sampled_from([1, "instant", 3]),
    st.lists(st.integers(0, 9), min_size=12, max_size=12),
)
def test_it_gets_the_most_importance_that_any_plan_does(
    left: list[Row],
    right: list[Row],
    window: tuple[int, int],
    rooms: tuple[int, ...],
    step: StepSize,
    worth: list[int],
) -> None:
    sides = [
        stream(rows) | {"importance": worth[begin : begin + len(rows)]}
        for begin, rows in ((0, left), (6, right))
    ]
    first = min((time for time, _ in left + right), default=0)
    most = most_results(left, right, window, rooms, step, first, lambda a, b: max(worth[a], worth[6 + b]))
    split: Any = "shared" if len(rooms) == 1 else rooms
    report = tg.simulate(
        *sides, window=window, budget=sum(rooms), split=split, step=step, policy=Offline(weigh="importance"),
        combine="max",
    )  # fmt: skip
    assert report.importance == most


def test_importance_that_is_not_whole_is_weighed_in_proportion() -> None:
    left = {"key": [1, 2], "time": [0, 0], "importance": [1e-3, 1.1e-3]}
    right = {"key": [1, 2], "time": [1, 1], "importance": [1, 1]}
    report = tg.simulate(left, right, window=(2, 0), budget=1, policy=Offline(weigh="importance"))
    assert report.importance == 1.1e-3


def test_results_are_weighed_by_what_they_are_worth_when_they_are_found() -> None:
    left = {"key": [1, 2], "time": [0, 0], "topic": ["a", "b"]}
    right = {"key": [1, 2], "time": [9, 9], "topic": ["a", "b"]}
    first = tg.importance.Categories("topic", {"a": 9, "b": 1})
    then = tg.importance.Categories("topic", {"a": 1, "b": 9})
    for redefined, best in ((first, 9), ({0: first, 5: then}, 9)):
        report = tg.simulate(
            left, right, window=(10, 0), budget=1, policy=Offline(weigh="importance"), importance=redefined
        )
        assert report.importance == best


def test_a_redefinition_holds_for_the_row_that_arrives_first_after_it() -> None:
    left = {"key": [1, 2], "time": [0, 0], "topic": ["a", "b"]}
    right = {"key": [2, 1], "time": [5, 9], "topic": ["b", "a"]}
    first = tg.importance.Categories("topic", {"a": 9, "b": 1})
    then = tg.importance.Categories("topic", {"a": 2, "b": 9})
    report = tg.simulate(
        left,
        right,
        window=(10, 0),
        budget=1,
        policy=Offline(weigh="importance"),
        importance={0: first, 5: then},
    )
    assert report.importance == 9


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (lambda: Offline(weigh="importance"), "has no importance to weigh; add an importance column"),
        (lambda: Offline(weigh="rows"), "weigh"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_weighed(policy: Callable[[], Offline], message: str) -> None:
    with pytest.raises(InputError, match=message):
        tg.simulate(
            {"key": [1], "time": [0]}, {"key": [1], "time": [0]}, window=(1, 1), budget=1, policy=policy()
        )


@pytest.mark.parametrize("lead", [5, 12, 30, 100])
@pytest.mark.parametrize("side", ["left", "right"])
def test_no_policy_gets_more_where_one_side_is_ahead(side: Side, lead: int) -> None:
    rng = np.random.default_rng(lead)
    sides = [{"key": rng.zipf(1.5, 150) % 40, "time": np.arange(150)} for _ in range(2)]
    for budget, step in ((2, 1), (8, 3)):
        run: dict[str, Any] = {"window": (12, 9), "budget": budget, "step": step, "ahead": (side, lead)}
        found = {
            name: tg.simulate(*sides, policy=name, **run).results
            for name in ("offline", "age", "prob", "size", "until_expiry")
        }
        assert found["offline"] == max(found.values()), found


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 12), st.sampled_from([1, "instant", 4]), st.sampled_from(OTHERS))
def test_no_policy_gets_more(seed: int, budget: int, step: StepSize, other: str) -> None:
    rng = np.random.default_rng(seed)
    sides = [
        {
            "key": rng.integers(0, 6, 60),
            "time": np.sort(rng.integers(0, 50, 60)),
            "importance": rng.integers(1, 9, 60),
        }
        for _ in range(2)
    ]
    run: dict[str, Any] = {"window": (12, 9), "budget": budget, "step": step}
    best = tg.simulate(*sides, policy="offline", **run)
    report = tg.simulate(*sides, policy=other, **run)
    assert report.results <= best.results <= best.exact
    assert report.importance <= tg.simulate(*sides, policy=Offline(weigh="importance"), **run).importance
    assert best.peak_rows <= budget


@pytest.mark.parametrize("condition", ["<", "!=", tg.Band(-1, 2)])
@pytest.mark.parametrize("step", [1, "instant"])
def test_other_conditions_are_planned_for_row_by_row(condition: Any, step: StepSize) -> None:  # noqa: ANN401
    rng = np.random.default_rng(3)
    sides = [{"key": rng.integers(0, 9, 80), "time": np.sort(rng.integers(0, 60, 80))} for _ in range(2)]
    run: dict[str, Any] = {"window": (9, 9), "budget": 7, "step": step, "condition": condition}
    best = tg.simulate(*sides, policy="offline", **run).results
    assert all(
        tg.simulate(*sides, policy=other, **run).results < best
        for other in ("fifo", "random", Size(counts="matches"))
    )


@pytest.mark.parametrize("window", [(tg.Last(9), tg.Last(4)), (None, None), (7, tg.Last(3)), (2.5, 0.5)])
def test_rows_of_a_key_planned_for_together_or_one_by_one_give_the_same(window: Any) -> None:  # noqa: ANN401
    """A band from 0 to 0 is equality, but says nothing of keys that recur."""
    rng = np.random.default_rng(4)
    sides = [{"key": rng.integers(0, 4, 120), "time": np.sort(rng.integers(0, 60, 120))} for _ in range(2)]
    for step in (1, "instant", 7):
        run: dict[str, Any] = {"window": window, "budget": 6, "step": step, "policy": "offline"}
        together = tg.simulate(*sides, **run)
        assert (
            together.results == tg.simulate(*sides, condition=tg.Band(0, 0), **run).results < together.exact
        )


def test_a_budget_in_bytes_is_one_in_rows_of_one_size() -> None:
    rng = np.random.default_rng(5)
    sides = [{"key": rng.integers(0, 4, 90), "time": np.arange(90)} for _ in range(2)]
    in_rows = tg.simulate(*sides, window=(20, 20), budget=5, policy="offline")
    size = in_rows.peak_bytes // in_rows.peak_rows
    in_bytes = tg.simulate(*sides, window=(20, 20), budget=Budget(bytes=6 * size - 1), policy="offline")
    assert in_bytes.results == in_rows.results


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: find("offline").start(Setting(Window(1, 1))),
            "needs the future arrivals; use it in tidegate",
        ),
        (lambda: refused(order="shed-first"), "cannot plan for order='shed-first'; use 'probe-first'"),
        (lambda: refused(lateness=9), "rows out of order; use lateness=None"),
        (lambda: refused(split="optimal"), "needs a model"),
    ],
)
def test_what_it_cannot_do_is_refused(call: Any, message: str) -> None:  # noqa: ANN401
    with pytest.raises(InputError, match=message):
        call()


def refused(**settings: Any) -> None:  # noqa: ANN401
    side = {"key": [1, 1, 1], "time": [5, 3, 9]}
    tg.simulate(side, side, window=(5, 5), budget=1, policy=Offline(), **settings)


def random_network(rng: np.random.Generator) -> tuple[Array, Array, Array, Array]:
    """A line of nodes, so that all can be reached, and arcs at random."""
    nodes, arcs = int(rng.integers(2, 30)), int(rng.integers(0, 80))
    ends = np.array([rng.choice(nodes, 2, replace=False) for _ in range(arcs)], np.int64).reshape(-1, 2)
    ends.sort(axis=1)
    line = np.arange(nodes - 1)
    tail, head = np.concatenate((line, ends[:, 0])), np.concatenate((line + 1, ends[:, 1]))
    capacity, cost = rng.integers(1, 4, len(tail)), rng.integers(-9, 4, len(tail))
    return tail, head, capacity, cost


@pytest.mark.parametrize("seed", range(40))
def test_the_flow_costs_what_another_solver_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tail, head, capacity, cost = random_network(rng)
    last, units = int(head.max()), int(rng.integers(1, 12))
    # What is not sent goes past the network at no cost.
    peer = min_cost_flow.SimpleMinCostFlow()
    peer.add_arcs_with_capacity_and_unit_cost(
        np.append(tail, 0), np.append(head, last), np.append(capacity, units), np.append(cost, 0)
    )
    peer.set_node_supply(0, units)
    peer.set_node_supply(last, -units)
    assert peer.solve() == peer.OPTIMAL
    flow = least_cost_flow(tail, head, capacity, cost, units)
    assert (flow @ cost) == peer.optimal_cost()
    assert ((flow >= 0) & (flow <= capacity)).all()
    balance = np.bincount(tail, flow, last + 1) - np.bincount(head, flow, last + 1)
    assert not balance[1:-1].any()
    assert 0 <= balance[0] <= units
