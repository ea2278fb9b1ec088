"""A simulation values rows by definitions, and anew when they are redefined."""

from __future__ import annotations

import math
import random
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidegate as tg
from tests.importance.per_row import importance_of
from tidegate.importance import (
    Categories,
    Column,
    Combined,
    Definition,
    DefinitionLike,
    Histogram,
    Sides,
    Source,
)
from tidegate.policies import Importance, Need
from tidegate.streams import Trace
from tidegate.types import SIDES, InputError, Side, StepSize

FIRST = Sides(Categories("topic", {"a": 1, "b": 4}, default=2), Column("price"))
SECOND = Combined("sum", [Histogram("price", [0, 2, 9], [3, 1]), Source(0, 1)])
THIRD = Categories("topic", {"a": 5, "c": 0.5}, default=0)


class Row(NamedTuple):
    time: int
    key: int | None
    topic: str
    price: int


rows = st.lists(
    st.builds(
        Row,
        st.integers(0, 12),
        st.one_of(st.integers(0, 2), st.none()),
        st.sampled_from("abc"),
        st.integers(0, 5),
    ),
    max_size=14,
)
redefinitions = st.dictionaries(
    st.integers(-2, 14), st.sampled_from([FIRST, SECOND, THIRD]), min_size=1, max_size=3
)
STEPS: list[StepSize] = [1, 3, 1000, "instant"]


def columns(stream: list[Row]) -> dict[str, pa.Array]:
    kinds = {"time": pa.int64(), "key": pa.int64(), "topic": pa.string(), "price": pa.int64()}
    return {name: pa.array([getattr(row, name) for row in stream], kind) for name, kind in kinds.items()}


def reference(
    streams: dict[Side, list[Row]],
    importance: dict[int, Definition],
    window: int | None,
    budget: int | None,
    step: StepSize,
) -> tuple[int, float]:
    """Results and their total importance (least of both), a row at a time; the least important make room."""
    arrivals = [
        (row, side)
        for side in SIDES
        for row in sorted(streams[side], key=lambda r: r.time)
        if row.key is not None
    ]
    arrivals.sort(key=lambda arrival: (arrival[0].time, arrival[1]))
    times = sorted(importance)
    held: list[int] = []
    results, total = 0, 0.0
    number = 0
    while number < len(arrivals):
        now = arrivals[number][0].time
        definition = importance[max([t for t in times if t <= now], default=times[0])]
        until = min([t for t in times[1:] if t > now], default=math.inf)
        fresh = []
        begin = number
        while number < len(arrivals) and arrivals[number][0].time < until:
            if step == "instant" and arrivals[number][0].time != now:
                break
            fresh.append(number)
            number += 1
            if step != "instant" and number % step == 0:
                break
        assert number > begin
        worths = {
            i: importance_of(definition, arrivals[i][1], arrivals[i][0]._asdict()) or 0.0
            for i in [*held, *fresh]
        }
        for j in fresh:
            for i in [*held, *(k for k in fresh if k < j)]:
                (a, left), (b, right) = arrivals[i], arrivals[j]
                near = window is None or abs(a.time - b.time) <= window
                if left != right and a.key == b.key and near:
                    results += 1
                    total += min(worths[i], worths[j])
        held = sorted([*held, *fresh], key=lambda i: (worths[i], i))
        if budget is not None:
            held = held[max(0, len(held) - budget) :]
    return results, total


@given(rows, rows, redefinitions, st.sampled_from(STEPS), st.integers(1, 6))
def test_redefined_as_a_row_at_a_time(
    left: list[Row], right: list[Row], importance: dict[int, Definition], step: StepSize, budget: int
) -> None:
    streams: dict[Side, list[Row]] = {"left": left, "right": right}
    report = tg.simulate(
        columns(left),
        columns(right),
        window=(None, None),
        budget=budget,
        policy=Importance(),
        step=step,
        importance=importance,
    )
    assert (report.results, report.importance) == pytest.approx(
        reference(streams, importance, None, budget, step)
    )
    assert (report.exact, report.exact_importance) == pytest.approx(
        reference(streams, importance, None, None, step)
    )


@given(rows, rows, redefinitions, st.sampled_from(STEPS), st.sampled_from(["fifo", "random"]))
def test_ample_is_exact(
    left: list[Row], right: list[Row], importance: dict[int, Definition], step: StepSize, policy: str
) -> None:
    report = tg.simulate(
        columns(left),
        columns(right),
        window=(4, 4),
        policy=policy,
        step=step,
        importance=importance,
        collect=True,
    )
    expected = reference({"left": left, "right": right}, importance, 4, None, step)
    assert (report.results, report.importance) == pytest.approx(expected)
    assert (report.exact, report.exact_importance) == pytest.approx(expected)


def test_one_definition_takes_the_compiled_loop_and_gives_the_same() -> None:
    stream = columns([Row(i, i % 3, "abc"[i % 3], i % 5) for i in range(60)])
    valued_before = {
        side: {
            **stream,
            "importance": [importance_of(FIRST, side, row) for row in pa.table(stream).to_pylist()],
        }
        for side in SIDES
    }
    settings: dict[str, Any] = {"window": (9, 5), "budget": 4}
    once = tg.simulate(valued_before["left"], valued_before["right"], **settings)
    assert tg.simulate(stream, stream, importance=FIRST, **settings).importance == once.importance > 0
    again = tg.simulate(stream, stream, importance={0: FIRST, 30: FIRST}, **settings)
    assert again.importance == pytest.approx(once.importance)


def test_a_redefinition_changes_which_rows_are_buffered() -> None:
    left: dict[str, list[Any]] = {"key": [1, 2], "time": [0, 1], "topic": ["a", "b"]}
    right: dict[str, list[Any]] = {"key": [1, 2], "time": [20, 21], "topic": ["a", "b"]}
    some: dict[str, list[Any]] = {"key": [9], "time": [11], "topic": ["a"]}
    for_a, for_b = (Categories("topic", {topic: 2}, default=1) for topic in "ab")
    right = {name: [*some[name], *right[name]] for name in right}
    settings: dict[str, Any] = {"window": (None, None), "budget": 2, "split": (1, 1), "policy": Importance()}
    report = tg.simulate(left, right, importance=for_a, collect=True, **settings)
    assert report.pairs is not None
    assert report.pairs.left.tolist() == [0]
    left |= {"key": [1, 2, 3], "time": [0, 1, 12], "topic": ["a", "b", "b"]}
    right |= {"key": [9, 1, 3]}
    report = tg.simulate(left, right, importance={0: for_a, 10: for_b}, collect=True, **settings)
    assert report.pairs is not None
    assert report.pairs.left.tolist() == [2]


def test_warmup_and_lateness() -> None:
    stream = columns([Row(i, 1, "a", 1) for i in range(6)])
    steady = tg.simulate(stream, stream, window=(0, 0), importance={0: 1, 3: 2, 5: 7}, warmup=2)
    assert (steady.importance, steady.exact_importance) == (1 + 2 + 2 + 7, 12.0)
    late = tg.simulate(stream, stream, window=(0, 0), importance={0: 1, 3: 2}, lateness=0)
    assert late.importance == 1 + 1 + 1 + 2 + 2 + 2


def test_rows_that_never_arrive_need_no_importance() -> None:
    stream = {"key": [1, None], "time": [0, 1], "price": [2, None]}
    assert tg.simulate(stream, stream, window=(1, 1), importance="price").importance == 2.0
    listed = {0: Categories("x", {"a": 1}), 5: Categories("x", {"a": 1, "b": 3})}
    stream = {"key": [1, 1], "time": [0, 6], "x": ["a", "b"]}
    assert tg.simulate(stream, stream, window=(0, 0), importance=listed).importance == 4.0


def test_traces_keep_their_attributes() -> None:
    trace = Trace.of({"key": [1], "time": [3], "price": [2]})
    assert tg.simulate(trace, trace, window=(1, 1), importance="price").importance == 2.0
    bare = Trace(trace.keys, trace.time)
    assert tg.simulate(bare, bare, window=(1, 1), importance="time").importance == 3.0


@pytest.mark.parametrize(
    ("importance", "words"),
    [
        ("prize", ["left has no column 'prize'", "key, time, price"]),
        (("price", "prize"), ["right has no column 'prize'"]),
        ({}, ["defines nothing"]),
        ({"noon": 1}, ["'noon'", "finite times"]),
        ({0: "price", float("inf"): 1}, ["inf"]),
        (Histogram("price", [0, 1], [1]), ["left.price is 2"]),
        ({0: 1, 50: Histogram("price", [0, 1], [1])}, ["left.price is 2"]),
    ],
)
@pytest.mark.parametrize("count", [1, 0])
def test_bad_input_is_refused_before_the_run(
    importance: DefinitionLike, words: list[str], count: int
) -> None:
    stream = columns([Row(0, 1, "a", 2)] * count)
    stream.pop("topic")
    if not count and "is 2" in words[0]:
        return
    with pytest.raises(InputError) as raised:
        tg.simulate(
            {n: stream[n] for n in ("key", "time", "price")}, stream, window=(1, 1), importance=importance
        )
    for word in words:
        assert word in str(raised.value)


class Demanding(Importance):
    """A policy of one's own that is of no use without importance."""

    needs: ClassVar[frozenset[Need]] = frozenset({"importance"})


def test_a_policy_that_needs_importance_says_so() -> None:
    stream = {"key": [1], "time": [0]}
    with pytest.raises(InputError, match="needs the importance"):
        tg.simulate(stream, stream, window=(1, 1), policy=Demanding())
    tg.simulate(stream, stream, window=(1, 1), policy=Demanding(), importance=1)


@pytest.mark.parametrize("step", [1, 7, "instant"])
@pytest.mark.parametrize("policy", ["fifo", "random"])
def test_more_steps_than_a_report_has_times(step: StepSize, policy: str) -> None:
    """The exact join takes larger steps than the bounded one, and some policies take one loop."""
    rng = random.Random(4)  # noqa: S311 - not for secrets
    streams: dict[Side, list[Row]] = {
        side: [Row(t, rng.randint(0, 5), rng.choice("abc"), rng.randint(0, 5)) for t in range(130)]
        for side in SIDES
    }
    importance = {0: FIRST, 31: SECOND, 64: THIRD, 65: FIRST}
    report = tg.simulate(
        columns(streams["left"]),
        columns(streams["right"]),
        window=(20, 20),
        policy=policy,
        step=step,
        importance=importance,
    )
    expected = reference(streams, importance, 20, None, step)
    assert (report.results, report.importance) == pytest.approx(expected)
    assert (report.exact, report.exact_importance) == pytest.approx(expected)
