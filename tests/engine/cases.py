"""Generated joins: two streams and a window, in every kind that the vocabulary knows."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from hypothesis import strategies as st

import tidegate as tg
from tests.engine.brute_force import Arrived, Pair, Spans, arrive, exact, rows_of
from tidegate import Band, Last, Report
from tidegate.types import Condition, StepSize, Time

KeyKind: TypeAlias = Literal["int", "float", "text", "several"]
TimeKind: TypeAlias = Literal["int", "float"]

CONDITIONS: list[Condition] = ["=", "<", "<=", "!=", ">", ">=", Band(-1, 2)]
TIME_WINDOWS: dict[str, Spans] = {
    "even": (5, 5),
    "asymmetric": (7, 2),
    "one-sided": (6, 0),
    "zero": (0, 0),
    "shifted right": (8, -3),
    "shifted left": (-2, 9),
    "shifted to a point": (4, -4),
    "unbounded": (None, None),
    "half unbounded": (None, 1),
    "shifted unbounded": (None, -2),
    "fractional": (2.5, 3.75),
}
COUNTED_WINDOWS: dict[str, Spans] = {
    "last": (Last(3), Last(1)),
    "last and time": (Last(2), 4),
    "time and last": (0, Last(4)),
    "last and unbounded": (Last(2), None),
}
WINDOWS = TIME_WINDOWS | COUNTED_WINDOWS
STEPS: list[StepSize] = [1, 3, 1000, "instant"]


@dataclass
class Stream:
    """One stream as a user gives it, and as the reference wants it."""

    keys: list[Any]
    times: list[Time]
    worth: list[float] = field(default_factory=list)

    def columns(self) -> dict[str, list[Any]]:
        columns: dict[str, list[Any]] = {"time": list(self.times)}
        if self.keys and isinstance(self.keys[0], tuple):
            columns |= {"a": [key[0] for key in self.keys], "b": [key[1] for key in self.keys]}
        else:
            columns |= {"key": list(self.keys)}
            # An empty stream has its columns too.
            columns |= {} if self.keys else {"a": [], "b": []}
        if self.worth:
            columns["importance"] = list(self.worth)
        return columns


@dataclass
class Streams:
    left: Stream
    right: Stream

    @property
    def on(self) -> str | list[str]:
        keys = [*self.left.keys, *self.right.keys]
        return ["a", "b"] if keys and isinstance(keys[0], tuple) else "key"

    def arrived(self, lateness: Time | None = None) -> Arrived:
        return arrive(
            rows_of("left", self.left.keys, self.left.times, self.left.worth),
            rows_of("right", self.right.keys, self.right.times, self.right.worth),
            lateness,
        )

    def exact(self, window: Spans, condition: Condition = "=", lateness: Time | None = None) -> list[Pair]:
        return exact(self.arrived(lateness), window, condition)

    def simulate(self, window: Spans, **settings: Any) -> Report:  # noqa: ANN401 - those of simulate
        settings.setdefault("collect", True)
        return tg.simulate(self.left.columns(), self.right.columns(), window=window, on=self.on, **settings)


def pairs_of(report: Report) -> list[Pair]:
    assert report.pairs is not None
    return sorted(zip(report.pairs.left.tolist(), report.pairs.right.tolist(), strict=True))


def is_part(some: list[Pair], whole: list[Pair]) -> bool:
    return not Counter(some) - Counter(whole)


def drawn_streams(seed: int, keys: KeyKind, times: TimeKind, rows: int = 14) -> Streams:
    """Two streams from a seed: cheap to make, for the grids that cover every combination."""
    draw = random.Random(seed)  # noqa: S311 - not a secret
    sides = []
    for _ in range(2):
        n = draw.randint(0, rows)
        whole: list[Time] = [draw.randint(0, 15) for _ in range(n)]
        sides.append(
            Stream(
                [drawn_key(draw, keys) for _ in range(n)],
                whole if times == "int" else [t * 0.7 for t in whole],
            )
        )
    return Streams(*sides)


def drawn_key(draw: random.Random, kind: KeyKind) -> Any:  # noqa: ANN401 - of that kind
    if draw.random() < 0.1:
        return draw.choice([(1, None), (None, "k1")]) if kind == "several" else None
    number = draw.randint(-2, 4)
    if kind == "int":
        return number
    if kind == "float":
        return number / 4
    return f"k{number}" if kind == "text" else (number // 3, f"k{number % 3}")


def plain_times(kind: TimeKind) -> st.SearchStrategy[Time]:
    # Quarters are exact in binary, so that even sums and differences of them compare as one expects.
    whole = st.integers(0, 15)
    return whole if kind == "int" else whole.map(lambda n: n / 4)


@st.composite
def streams(
    draw: st.DrawFn,
    *,
    keys: tuple[KeyKind, ...] = ("int",),
    times: tuple[TimeKind, ...] = ("int", "float"),
    nulls: bool = False,
    importance: bool = False,
    max_rows: int = 12,
) -> Streams:
    """Two streams by Hypothesis, which shrinks what fails."""
    key_kind, time_kind = draw(st.sampled_from(keys)), draw(st.sampled_from(times))
    number = st.integers(-1, 2)
    key: st.SearchStrategy[Any] = {
        "int": number,
        "float": number.map(lambda n: n / 4),
        "text": number.map(lambda n: f"k{n}"),
        "several": st.tuples(st.integers(0, 1), st.sampled_from(["x", "y"])),
    }[key_kind]
    if nulls:
        key |= st.sampled_from([(1, None), (None, "x")]) if key_kind == "several" else st.none()
    row = st.tuples(key, plain_times(time_kind), st.integers(0, 4) if importance else st.just(0))
    sides = []
    for _ in range(2):
        rows = draw(st.lists(row, max_size=max_rows))
        sides.append(
            Stream(
                [k for k, _, _ in rows],
                [t for _, t, _ in rows],
                [w / 2 for _, _, w in rows] if importance else [],
            )
        )
    return Streams(*sides)
