"""The kinds of fields by which classes declare their state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import pytest

from tidegate import InputError
from tidegate.types import (
    SIDES,
    Array,
    ArrayField,
    Nested,
    Numbers,
    Opposites,
    Record,
    State,
    Stateful,
    Time,
    TimeOrNone,
    Tuple,
)


class Point(NamedTuple):
    x: Array
    y: Array


@dataclass(frozen=True)
class Curve:
    edges: Array
    rates: Array


class Part(Stateful):
    state: ClassVar[State] = {"numbers": Numbers(count=int)}

    def __init__(self, count: int = 0) -> None:
        self.count = count


class Whole(Stateful):
    """An object with each kind of field."""

    state: ClassVar[State] = {
        "table": ArrayField("table", (-1, 2)),
        "mixed": Numbers(now=Time, rate=float, on=bool, held=dict, span=tuple, grid=np.ndarray),
        "mark": TimeOrNone("mark"),
        "last.{}": Tuple("last", np.int64).optional(),
        "lead": Opposites("lead").optional(),
        "point_": Record("point", Point),
        "{}.": (Record("curves", Curve).optional(), Nested("parts").optional()),
        "part-": Nested("part"),
        "inner": ArrayField("part.extra").optional(),
    }

    def __init__(self) -> None:
        self.table = np.zeros((0, 2))
        self.now, self.rate, self.on, self.span = 0, 0.0, False, (0, 0)
        self.held = dict.fromkeys(SIDES, 0)
        self.grid = np.zeros((2, 2))
        self.mark: Time | None = None
        self.last: dict[str, tuple[int, ...] | None] = dict.fromkeys(SIDES)
        self.lead = dict.fromkeys(SIDES, 0)
        self.point = Point(np.empty(0), np.empty(0))
        self.curves: dict[str, Curve] = {}
        self.parts = {side: Part() for side in SIDES}
        self.part = Part()
        self.part.extra = np.zeros(1)  # type: ignore[attr-defined]
        self.restored = 0

    def after_restore(self) -> None:
        self.restored += 1


def filled() -> Whole:
    whole = Whole()
    whole.table = np.arange(6.0).reshape(3, 2)
    whole.now, whole.rate, whole.on, whole.span = 7, 0.5, True, (1, 2)
    whole.held, whole.lead = {"left": 3, "right": 4}, {"left": 2, "right": -2}
    whole.grid = np.arange(4.0).reshape(2, 2)
    whole.mark, whole.last["right"] = 9, (1, 2)
    whole.point = Point(np.arange(2), np.ones(2))
    whole.curves["left"] = Curve(np.arange(3), np.arange(2.0))
    whole.parts["left"].count, whole.part.count = 5, 6
    return whole


def test_every_kind_of_field_is_saved_and_restored() -> None:
    state = filled().snapshot()
    assert {name: array.tolist() for name, array in state.items()} == {
        "table": [0, 1, 2, 3, 4, 5],
        "mixed": [7, 0.5, 1, 3, 4, 1, 2, 0, 1, 2, 3],
        "mark": [9],
        "last.right": [1, 2],
        "lead": [2],
        "point_x": [0, 1],
        "point_y": [1, 1],
        "left.edges": [0, 1, 2],
        "left.rates": [0, 1],
        "left.numbers": [5],
        "right.numbers": [0],
        "part-numbers": [6],
        "inner": [0],
    }
    whole = Whole().restore(state)
    assert whole.restored == 1
    assert whole.on is True
    assert whole.last == {"left": None, "right": (1, 2)}
    assert whole.lead == {"left": 2, "right": -2}
    assert whole.grid.shape == (2, 2)
    assert whole.curves.keys() == {"left"}
    again = whole.snapshot()
    assert again.keys() == state.keys()
    assert all(array.dtype == again[name].dtype for name, array in state.items())
    assert all(np.array_equal(array, again[name]) for name, array in state.items())


def test_fields_that_a_state_lacks_keep_their_values() -> None:
    state = filled().snapshot()
    whole = Whole().restore(
        {name: array for name, array in state.items() if name not in ("lead", "last.right")}
    )
    assert whole.lead == {"left": 0, "right": 0}
    assert whole.last == {"left": None, "right": None}


def test_whole_numbers_and_times_keep_their_type() -> None:
    class Clock(Stateful):
        state: ClassVar[State] = {"now": Numbers(now=Time), "rows": Numbers(rows=int, held=dict)}

        def __init__(self, now: Time) -> None:
            self.now, self.rows, self.held = now, 1, {"left": 2}

    assert [Clock(now).snapshot()["now"].dtype.kind for now in (1, 1.0)] == ["i", "f"]
    restored = Clock(0).restore(Clock(3).snapshot())
    assert (restored.now, type(restored.now), restored.held) == (3, int, {"left": 2})


def without(name: str) -> Callable[[dict[str, Array]], dict[str, Array]]:
    return lambda state: {other: array for other, array in state.items() if other != name}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without("table"), "the saved state of Whole has no 'table'"),
        (without("left.rates"), "the saved state of Whole has no 'left.rates'"),
        (without("part-numbers"), "the saved state of Part has no 'numbers'"),
        (lambda state: state | {"other": np.zeros(1)}, r"but was given \['other'\]; restore with its own"),
        (lambda state: state | {"mixed": np.zeros(3)}, "has 3 numbers in 'mixed', not 11"),
        (lambda state: state | {"mixed": np.zeros(12)}, "has 12 numbers in 'mixed', not 11"),
    ],
)
def test_other_states_are_refused(
    change: Callable[[dict[str, Array]], dict[str, Array]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Whole().restore(change(filled().snapshot()))


def test_further_numbers_of_earlier_layouts_are_ignored_where_declared() -> None:
    class Shorter(Stateful):
        state: ClassVar[State] = {"numbers": Numbers(one=int).or_longer()}
        one = 1

    assert Shorter().restore({"numbers": np.array([5, 6, 7])}).one == 5


def test_arrays_are_copied() -> None:
    whole = filled()
    state = whole.snapshot()
    restored = Whole().restore(state)
    whole.table[:] = 0
    assert state["table"].any()
    for name in ("table", "point_x"):
        state[name][:] = 0
    assert restored.table.any()
    assert restored.point.x.any()
