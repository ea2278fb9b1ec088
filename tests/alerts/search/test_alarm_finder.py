"""The alarms with omission are those of the full join, by brute force over all combinations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.alerts.brute_force import Joined, Row, best_of_arrivals
from tidegate import InputError
from tidegate.alerts import AlarmFinder, Alarms, BracketStore, ClosedEnds, Shape, Topology, omittable
from tidegate.types import Array

Arrival = tuple[str, float, float]


def close_in_time(topology: Topology, closed: ClosedEnds = "both") -> Joined:
    def joined(times: Mapping[str, float]) -> bool:
        apart = [abs(times[one] - times[other]) for one, other in topology.edges]
        return max(apart) <= topology.within if closed == "both" else max(apart) < topology.within

    return joined


def in_one_window(within: float, hop: float, closed: ClosedEnds) -> Joined:
    def joined(times: Mapping[str, float]) -> bool:
        first, last = min(times.values()), max(times.values())
        ends = (begin * hop + within for begin in range(-100, 100) if begin * hop <= first)
        return any(last < end or (last == end and closed == "both") for end in ends)

    return joined


def arrivals_of(steps: list[list[Arrival]], names: tuple[str, ...]) -> list[Arrival]:
    return [row for step in steps for row in sorted(step, key=lambda row: (row[1], names.index(row[0])))]


def columns(step: list[Arrival], name: str) -> tuple[list[float], list[float]]:
    return [time for of, time, _ in step if of == name], [value for of, _, value in step if of == name]


def run_steps(finder: AlarmFinder, steps: list[list[Arrival]]) -> list[Alarms]:
    names = finder.search.topology.streams
    return [finder.step({name: columns(step, name) for name in names}) for step in steps]


def check(finder: AlarmFinder, steps: list[list[Arrival]], joined: Joined, f: Callable[..., float]) -> None:
    """Check that every arrival raises an alarm exactly if it does without omission, and of the same height."""
    names = finder.search.topology.streams
    arrivals = arrivals_of(steps, names)
    best = best_of_arrivals(arrivals, names, joined, f)
    wanted = [
        (names.index(name), time, value, level)
        for (name, time, value), level in zip(arrivals, best, strict=True)
        if level is not None and level > finder.search.threshold
    ]
    alarms = run_steps(finder, steps)
    raised = []
    for some in alarms:
        for at in range(len(some)):
            own = names[some.stream[at]]
            raised.append((int(some.stream[at]), some.time[own][at], some.value[own][at], some.level[at]))
            assert joined({name: some.time[name][at] for name in names})
            assert f(*(some.value[name][at] for name in names)) == some.level[at]
    assert raised == wanted


FUNCTIONS: dict[str, tuple[dict[str, Any], Callable[..., Any]]] = {
    "sum": ({}, lambda *of: sum(of) - 2 * len(of)),
    "increasing": (dict.fromkeys("abcd", "increasing"), lambda *of: sum(of) - 2 * len(of)),
    "decreasing": (dict.fromkeys("abcd", "decreasing"), lambda *of: 2 * len(of) - sum(of)),
    "spread": ({}, lambda *of: sum(abs(one - other) for one, other in combinations(of, 2)) - 4),
    "squares": ({}, lambda *of: sum((one - 2) ** 2 for one in of) - 3 * len(of)),
    "wave": ({"a": "any"}, lambda *of: np.sin(3 * of[0]) + sum(of[1:]) - 2 * len(of)),
}
TOPOLOGIES: dict[str, Callable[..., Topology]] = {
    "pair": partial(Topology.clique, "ab"),
    "trio": partial(Topology.clique, "abc"),
    "four": partial(Topology.clique, "abcd"),
    "star": partial(Topology.star, "a", "bcd"),
    "chain": partial(Topology.chain, "abcd"),
    "near": partial(Topology.near_clique, "abcd", ("b", "d")),
}


@st.composite
def steps(draw: st.DrawFn, most: int = 18) -> list[list[Arrival]]:
    time = st.integers(0, 8) | st.sampled_from([0.5, 2.25])
    row = st.tuples(st.sampled_from("abcd"), time, st.integers(0, 5).map(float))
    return draw(
        st.lists(st.lists(row, max_size=most // 2), max_size=4).filter(lambda s: sum(map(len, s)) <= most)
    )


@pytest.mark.parametrize("shape", TOPOLOGIES)
@settings(max_examples=60, deadline=None)
@given(
    data=st.data(), function=st.sampled_from(sorted(FUNCTIONS)), closed=st.sampled_from(["both", "neither"])
)
def test_every_arrival_raises_an_alarm_exactly_if_it_does_in_the_full_join(
    shape: str, data: st.DataObject, function: str, closed: ClosedEnds
) -> None:
    shapes, f = FUNCTIONS[function]
    within = data.draw(st.sampled_from([1, 2, 3, 1.5]))
    names = TOPOLOGIES[shape](within=within).streams
    topology = TOPOLOGIES[shape](
        within=within, shapes={name: each for name, each in shapes.items() if name in names}
    )
    finder = AlarmFinder(topology, lambda of: f(*(of[name] for name in names)), closed=closed)
    fed = [[row for row in step if row[0] in names] for step in data.draw(steps())]
    check(finder, fed, close_in_time(topology, closed), f)


@settings(max_examples=100, deadline=None)
@given(
    data=st.data(),
    function=st.sampled_from(["sum", "squares", "spread"]),
    closed=st.sampled_from(["both", "left"]),
    hop=st.sampled_from([1, 2, 4, 0.5]),
    shape=st.sampled_from(["pair", "trio"]),
)
def test_hopping_windows(
    data: st.DataObject, function: str, closed: ClosedEnds, hop: float, shape: str
) -> None:
    _, f = FUNCTIONS[function]
    topology = TOPOLOGIES[shape](within=2)
    names = topology.streams
    finder = AlarmFinder(topology, lambda of: f(*(of[name] for name in names)), closed=closed, hop=hop)
    fed = [[row for row in step if row[0] in names] for step in data.draw(steps())]
    check(finder, fed, in_one_window(2, hop, closed), f)


def test_two_streams_exhaustively() -> None:
    """All traces of four left rows and a right one: brackets of 2 * within lose no alarm, longer brackets do."""
    lost = 0
    for values, at, sign in product(product((0.0, 1.0, 2.0), repeat=4), (0, 1, 1.5, 3), (1, -1)):
        steps: list[list[Arrival]] = [
            [("a", time, value) for time, value in enumerate(values)],
            [("b", at, 1.0)],
        ]
        topology = Topology.clique("ab", 1, shapes={"a": "increasing" if sign > 0 else "decreasing"})
        f = partial(_weighted_sum, sign)
        check(AlarmFinder(topology, lambda of, f=f: f(of["a"], of["b"])), steps, close_in_time(topology), f)  # type: ignore[misc]
        longer = AlarmFinder(topology, lambda of, f=f: f(of["a"], of["b"]))  # type: ignore[misc]
        longer.stores["a"].omega = 3
        found = run_steps(longer, steps)[1].level
        best = best_of_arrivals(arrivals_of(steps, ("a", "b")), "ab", close_in_time(topology), f)[-1]
        lost += best is not None and best > 0 and not len(found)
    assert lost > 0


def _weighted_sum(sign: int, a: float, b: float) -> float:
    return sign * a + b - 1


def _sum(a: Any, b: Any, c: Any) -> Any:  # noqa: ANN401 - numbers or columns of them
    return a + b + c


def test_three_streams_need_brackets_of_within() -> None:
    topology = Topology.clique("abc", 2, shapes={"a": "increasing"})
    steps = [[("a", 0.0, 9.0), ("a", 2.0, 5.0), ("a", 4.0, 9.0)], [("b", 1.0, 0.0), ("c", 3.0, 0.0)]]

    f = _sum
    finder = AlarmFinder(topology, lambda of: f(of["a"], of["b"], of["c"]))
    check(finder, steps, close_in_time(topology), f)
    longer = AlarmFinder(topology, lambda of: f(of["a"], of["b"], of["c"]))
    longer.stores["a"].omega = 4
    assert not any(map(len, run_steps(longer, steps)))


def test_figure_8a_a_stream_whose_partners_are_not_joined_keeps_all_rows() -> None:
    topology = Topology.near_clique(["r1", "u1", "r2"], ("r1", "r2"), 2)
    finder = AlarmFinder(topology, lambda of: of["r1"] + of["u1"] + of["r2"])
    step = {"u1": ([1, 2, 3], [9.0, 5.0, 9.0])}
    finder.step(step)
    assert len(finder.stores["u1"]) == 3
    alarms = finder.step({"r1": ([4], [0.0]), "r2": ([0], [0.0])})
    assert alarms.time["u1"].tolist() == [2]


def test_one_large_step_equals_many_small_ones() -> None:
    rng = np.random.default_rng(1)
    rows = {name: (np.sort(rng.integers(0, 20_000, 3000)), rng.normal(size=3000)) for name in "abc"}
    topology = Topology.clique("abc", 12)

    def function(of: dict[str, Array]) -> Array:
        levels: Array = of["a"] + abs(of["b"]) - of["c"] - 5
        return levels

    whole = AlarmFinder(topology, function)
    at_once = whole.step(rows)
    parts = AlarmFinder(topology, function)
    levels, times = [], []
    for begin in range(0, 20_000, 500):
        step = {
            name: (time[some], value[some])
            for name, (time, value) in rows.items()
            for some in [(time >= begin) & (time < begin + 500)]
        }
        alarms = parts.step(step, watermark=begin + 499)
        levels += alarms.level.tolist()
        times += alarms.time["a"].tolist()
        parts = AlarmFinder(topology, function).restore(parts.snapshot())
    assert len(levels) > 20
    assert levels == at_once.level.tolist()
    assert times == at_once.time["a"].tolist()
    assert sum(len(store) for store in parts.stores.values()) < 40
    assert (at_once.value["b"] == rows["b"][1][at_once.id["b"]]).all()


def test_a_state_with_counts_in_rows_opens() -> None:
    finder = AlarmFinder(Topology.clique("ab", 5), lambda of: of["a"] - of["b"])
    finder.step({"a": ([1, 2], [0.0, np.nan]), "b": ([3], [1.0])}, watermark=1)
    state = finder.snapshot()
    earlier = state | {"counts": state["counts"].reshape(3, -1)}
    opened = AlarmFinder(finder.search.topology, finder.search.function).restore(earlier)
    assert (opened.arrived, opened.nan) == ({"a": 2, "b": 1}, {"a": 1, "b": 0})


@pytest.mark.parametrize("streams", [("a", "a.b"), ("a.b", "a"), ("a", "a.time")])
def test_a_state_opens_if_the_name_of_a_stream_begins_with_that_of_another(streams: tuple[str, str]) -> None:
    first, second = streams
    finder = AlarmFinder(Topology.clique(streams, 5), lambda of: of[first] - of[second])
    finder.step({first: ([1, 2], [0.0, 4.0]), second: ([3], [1.0])}, watermark=1)
    state = finder.snapshot()
    opened = AlarmFinder(finder.search.topology, finder.search.function).restore(state).snapshot()
    assert {name: array.tolist() for name, array in opened.items()} == {
        name: array.tolist() for name, array in state.items()
    }


def test_a_silent_stream_costs_few_rows_and_misses_no_alarm() -> None:
    rng = np.random.default_rng(2)
    topology = Topology.clique("ab", 50)
    finder = AlarmFinder(topology, lambda of: of["a"] + of["b"] - 1.9)
    times, values = np.arange(20_000), rng.random(20_000)
    for some in np.array_split(times, 40):
        assert not len(finder.step({"a": (some, values[some])}, watermark=-1))
    assert len(finder.stores["a"]) < 20_000 * 5 / 100
    late = rng.integers(0, 20_000, 300)
    late_values = rng.random(300)
    alarms = finder.step({"b": (late, late_values)}, watermark=20_000)
    order = np.argsort(late, kind="stable")
    highest = [values[max(at - 50, 0) : at + 51].max() for at in late[order]]
    due = late_values[order] + highest - 1.9
    assert alarms.level.tolist() == pytest.approx(due[due > 0].tolist())
    assert len(finder.stores["a"]) <= 10


def test_very_many_combinations_of_an_arrival_are_searched_in_parts() -> None:
    """Without a known shape all combinations are tried, but not all at once."""
    rng, most = np.random.default_rng(4), 0

    def function(of: dict[str, Array]) -> Array:
        nonlocal most
        most = max(most, len(of["a"]))
        levels: Array = np.sin(of["a"] + of["b"]) + of["c"]
        return levels

    finder = AlarmFinder(Topology.clique("abc", 1000, shapes=dict.fromkeys("abc", "any")), function)
    a, b = rng.normal(size=(2, 700))
    finder.step({"a": (np.arange(700), a), "b": (np.arange(700), b)})
    alarms = finder.step({"c": ([300, 301], [0.0, 1.0])})
    highest = np.sin(a[:, None] + b).max()
    assert alarms.level.tolist() == [highest, highest + 1]
    assert most < 300_000 < 700 * 700


def test_late_nan_and_undefined_values_are_counted() -> None:
    topology = Topology.clique("ab", 5)
    finder = AlarmFinder(topology, lambda of: np.log(of["a"]) + of["b"])
    with np.errstate(invalid="ignore"):
        first = finder.step({"a": ([1, 2], [float("nan"), -1.0]), "b": ([3], [9.0])}, watermark=2)
        second = finder.step({"a": ([2, 3], [5.0, 1.0])})
    assert (len(first), len(second)) == (0, 1)
    assert finder.nan == {"a": 1, "b": 0}
    assert finder.late == {"a": 1, "b": 0}
    assert finder.undefined == 1
    assert second.id["a"].tolist() == [3]


def test_integer_times_are_not_rounded() -> None:
    at = 2**60 + 1
    finder = AlarmFinder(Topology.clique("ab", 1), lambda of: of["a"] + of["b"])
    assert len(finder.step({"a": ([at], [1.0]), "b": ([at + 2], [1.0])})) == 0
    alarms = finder.step({"b": ([at - 1], [1.0])})
    assert (alarms.time["a"].tolist(), alarms.time["b"].tolist()) == ([at], [at - 1])


@pytest.mark.parametrize(("hop", "closed"), [(None, "both"), (None, "neither"), (2, "left"), (2, "both")])
@pytest.mark.parametrize("within", [2, 2.5])
def test_integer_times_are_not_rounded_in_a_step_of_a_long_range(
    within: float, hop: int | None, closed: ClosedEnds
) -> None:
    """The rows are so far apart that floats could not represent differences of 1 at both."""
    for apart in range(5):
        pair: list[list[float]] = [[-(2**60), 2**60], [-(2**60) + apart, 2**60 + apart]]
        finder = AlarmFinder(
            Topology.clique("ab", within), lambda of: of["a"] + of["b"], hop=hop, closed=closed
        )
        alarms = finder.step({"a": (pair[0], [1.0, 1.0]), "b": (pair[1], [1.0, 1.0])})
        near = apart <= within if closed == "both" else apart < within
        assert alarms.time["b"].tolist() == (pair[1] if near else [])


def test_a_budget_reports_that_alarms_may_be_missed() -> None:
    rng = np.random.default_rng(3)
    finder = AlarmFinder(Topology.clique("ab", 10), lambda of: of["a"] + of["b"], budget=20)
    finder.step({"a": (np.arange(1000), rng.random(1000))})
    assert len(finder.stores["a"]) == 20
    assert 0 < finder.miss_probability <= 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t, f: AlarmFinder(t, f, closed="left"), "closed='left' is not supported here"),
        (lambda t, f: AlarmFinder(t, f, hop=2, closed="neither"), "closed='neither' is not supported"),
        (lambda t, f: AlarmFinder(t, f, hop=0), "hop is 0"),
        (lambda _, f: AlarmFinder(Topology.chain("abc", 1), f, hop=1), "hop needs all streams to be joined"),
        (lambda t, f: AlarmFinder(t, f).step({"x": ([1], [1.0])}), "no stream 'x'; the streams are: a, b"),
        (
            lambda t, f: AlarmFinder(t, f).step({"a": ([1], [1.0]), "b": ([1], [1.0])}),
            "must return one number",
        ),
    ],
)
def test_invalid_input_is_refused(call: Callable[..., object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(Topology.clique("ab", 1), lambda _: 1.0)


GUARANTEES: list[tuple[str, str]] = [(shape, omitting) for shape in TOPOLOGIES for omitting in ("one", "all")]
SMALL_TRACES: dict[str, tuple[tuple[float, ...], ...]] = {
    "pair": ((0, 1, 2, 3, 4), (1, 2, 3)),
    "trio": ((0, 0, 1, 2, 2), (1, 2, 3), (3,)),
    "four": ((0, 0, 1, 2, 2), (1, 2, 3), (3,), (2,)),
    "star": ((2,), (0, 1, 2, 3, 4), (1, 2, 4), (3,)),
    "chain": ((0, 1, 2, 3, 4), (2,), (3,), (2, 3, 5)),
    "near": ((2,), (0, 0, 1, 2, 2), (3,), (1, 2, 3)),
}
"""The times of small traces by stream; rows are joined if they are at most 2 apart."""


def all_values(shape: str) -> Array:
    """All combinations of values of a trace, as columns: three values for the longest stream, two for the others."""
    counts = [3 if len(times) == 5 else 2 for times in SMALL_TRACES[shape] for _ in times]
    return np.indices(counts).reshape(len(counts), -1).astype(np.float64)


@pytest.mark.parametrize(("shape", "omitting"), GUARANTEES)
@settings(max_examples=40, deadline=None)
@given(data=st.data(), function=st.sampled_from(["sum", "spread", "squares"]))
def test_guarantees_for_kept_rows(shape: str, omitting: str, data: st.DataObject, function: str) -> None:
    """Guarantees 1, 2 and 4 of `tidegate.alerts`: combinations of the kept rows against those of all rows."""
    _, f = FUNCTIONS[function]
    topology = TOPOLOGIES[shape](within=data.draw(st.sampled_from([1, 2, 3])))
    names = topology.streams
    row = st.tuples(st.integers(0, 9).map(float), st.integers(0, 5).map(float))
    most = {2: 12, 3: 6, 4: 4}[len(names)]
    whole = {name: tuple(data.draw(st.lists(row, max_size=most), label=name)) for name in names}
    check_guarantees(topology, whole, omitting, f)


@pytest.mark.parametrize(
    ("omitting", "function"), [("one", "spread"), ("all", "spread"), ("all", "increasing")]
)
@pytest.mark.parametrize("shape", SMALL_TRACES)
def test_guarantees_for_kept_rows_of_all_small_traces(shape: str, omitting: str, function: str) -> None:
    """The same for all traces of a few rows with a few values."""
    topology = TOPOLOGIES[shape](within=2)
    kind: Shape = "increasing" if function == "increasing" else "quasiconvex"
    ends = np.cumsum([len(times) for times in SMALL_TRACES[shape]]).tolist()
    some = 0
    for values in all_values(shape).T.tolist():
        whole = {
            name: tuple(zip(times, values[end - len(times) : end], strict=True))
            for name, times, end in zip(topology.streams, SMALL_TRACES[shape], ends, strict=True)
        }
        some += check_guarantees(topology, whole, omitting, FUNCTIONS[function][1], kind)
    assert some > 100


def check_guarantees(
    topology: Topology,
    whole: dict[str, tuple[Row, ...]],
    omitting: str,
    f: Callable[..., float],
    kind: Shape = "quasiconvex",
) -> bool:
    """Compare the kept rows with all rows; returns whether any was omitted."""
    joined, omissions, names = close_in_time(topology), omittable(topology), topology.streams
    omits = [name for name in names if omissions[name].omega is not None]
    if omitting == "one":
        omits = omits[:1]
    kept = {
        name: keep_rows(whole[name], omissions[name].omega, kind) if name in omits else whole[name]
        for name in names
    }
    before, after = (levels_of(rows, names, joined, f) for rows in (whole, kept))
    assert set(after) <= set(before)  # guarantee 4
    if omitting == "one":
        assert best_without(before, names.index(omits[0])) == best_without(after, names.index(omits[0]))
    reach = [omissions[name].omega if name in omits else 0 for name in names]
    for rows, level in before.items():
        assert any(
            other >= level and all(map(close, rows, other_rows, reach)) for other_rows, other in after.items()
        ), (rows, level)
    return kept != whole


@cache
def keep_rows(rows: tuple[Row, ...], omega: float | None, kind: Shape) -> tuple[Row, ...]:
    store = BracketStore(omega or 0, kind)
    store.extend([time for time, _ in rows], [value for _, value in rows])
    time, value = store.retained()
    return tuple(zip(time.tolist(), value.tolist(), strict=True))


def close(one: Row, other: Row, reach: float | None) -> bool:
    return one == other or abs(one[0] - other[0]) < (reach or 0)


def levels_of(
    rows: dict[str, tuple[Row, ...]], names: tuple[str, ...], joined: Joined, f: Callable[..., float]
) -> dict[tuple[Row, ...], float]:
    """The value of each combination."""
    return {
        some: f(*(value for _, value in some))
        for some in product(*(rows[name] for name in names))
        if joined({name: time for name, (time, _) in zip(names, some, strict=True)})
    }


def best_without(levels: dict[tuple[Row, ...], float], stream: int) -> dict[tuple[Row, ...], float]:
    """The largest value for each combination of the other streams' rows."""
    best: dict[tuple[Row, ...], float] = {}
    for rows, level in levels.items():
        others = rows[:stream] + rows[stream + 1 :]
        best[others] = max(level, best.get(others, level))
    return best
