"""Quiet pictures, as SVG: lines, bars and heat maps in one style, each policy in one colour everywhere."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

from tidegate.experiments.claims import Interval

Point = tuple[float, float] | tuple[float, Interval]
"""A place, and how high: a number, or a mean with its interval, which is drawn where it is known."""

COLOURS: Final = {
    "offline": "#1c2833",
    "heeb": "#1f6fb2",
    "heeb_histogram": "#5aa9d6",
    "flow_expect": "#16837a",
    "random": "#8a97a3",
    "prob": "#c0562b",
    "life": "#d99a2b",
    "fifo": "#7b5aa6",
    "age": "#3a8f5c",
    "until_expiry": "#a05a7b",
    "importance": "#b8860b",
    "size": "#9c6b4f",
    "ijoin": "#2f6f3e",
    "expected": "#64b078",
    "lru": "#4a6fa5",
    "alloc": "#1f6fb2",
    "prop": "#c0562b",
}
_SAME: Final = {
    "rand": "random",
    "recent": "fifo",
    "greedy": "importance",
    "exact": "offline",
    "optimum": "offline",
    "lfd": "offline",
    "lfu": "prob",
    "hist": "heeb_histogram",
}
_OTHERS: Final = ("#0e7c9e", "#d1495b", "#6a994e", "#9a5ea1", "#e08e45", "#4d5d8a", "#3d8c95", "#b56576")
"""Colours that no policy has."""
_INK, _PALE, _GREY = "#1c2833", "#d6dce1", "#5d6d7e"
_DARK: Final = 0.7
_FONT: Final = 'font-family="Inter, DejaVu Sans, Liberation Sans, Arial, sans-serif" font-size="12"'
_WIDE, _HIGH, _LEFT, _RIGHT, _TOP, _BOTTOM = 680, 400, 70, 180, 46, 56


def colours(names: Iterable[str]) -> dict[str, str]:
    """A colour for each name: a policy's own, whatever a paper calls it; for others one that is still free.

    Examples
    --------
    >>> colours(["age", "RAND", "drift 2"])
    {'age': '#3a8f5c', 'RAND': '#8a97a3', 'drift 2': '#0e7c9e'}
    """
    found: dict[str, str | None] = {}
    for name in names:
        word = name.lower()
        first = word.replace(",", " ").split()[0] if word.strip() else ""
        known = next((w for w in (word, first) if _SAME.get(w, w) in COLOURS), None)
        found[name] = COLOURS[_SAME.get(known, known)] if known else None
    # Variants of one policy are told apart by a colour that nobody has.
    seen: set[str] = set()
    for name, colour in found.items():
        if colour is None or colour in seen:
            free = [other for other in _OTHERS if other not in found.values()] or list(_OTHERS)
            found[name] = free[0]
        seen.add(found[name] or _INK)
    return {name: colour or _INK for name, colour in found.items()}


@dataclass(frozen=True)
class _Frame:
    """The paper that is drawn on, between the ends of both axes."""

    x: tuple[float, float]
    y: tuple[float, float]
    left: int = _LEFT
    bottom: int = _BOTTOM
    doubling: bool = False

    def at(self, x: float, y: float) -> tuple[float, float]:
        wide, high = _WIDE - self.left - _RIGHT, _HIGH - _TOP - self.bottom
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return self.left + across * wide, _HIGH - self.bottom - up * high

    def opened(self, title: str, x: str, y: str, *, ticks: bool = True) -> list[str]:
        middle = (self.left + _WIDE - _RIGHT) / 2
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE} {_HIGH}" {_FONT} fill="{_INK}">',
            f'<rect width="{_WIDE}" height="{_HIGH}" fill="#fbfcfd"/>',
            f'<text x="{self.left}" y="20" font-size="14" font-weight="600">{escape(title)}</text>',
            f'<text x="{middle}" y="{_HIGH - 14}" text-anchor="middle">{escape(x)}</text>',
            f'<text x="{self.left}" y="{_TOP - 8}" fill="{_GREY}">{escape(y)}</text>',
        ]
        for value in _between(*self.y):
            (start, level), (end, _) = self.at(self.x[0], value), self.at(self.x[1], value)
            parts += [
                f'<line x1="{start:.1f}" x2="{end:.1f}" y1="{level:.1f}" y2="{level:.1f}" stroke="{_PALE}"/>',
                _faint(self.left - 8, level + 4, "end", _number(value)),
            ]
        if ticks:
            whole = range(math.ceil(self.x[0]), math.floor(self.x[1]) + 1)
            for value in whole if self.doubling else _between(*self.x):
                place, _ = self.at(value, self.y[0])
                told = _number(2.0**value if self.doubling else value)
                parts.append(_faint(place, _HIGH - self.bottom + 18, "middle", told))
        return parts


def lines(
    title: str,
    x: str,
    y: str,
    series: Mapping[str, Sequence[Point]],
    *,
    marked: Mapping[str, Point] | None = None,
    dashed: Mapping[str, Sequence[Point]] | None = None,
    beside_is: str = "predicted",
    dots: bool = True,
    doubling: bool = False,
) -> str:
    """Draw lines with a dot at each point, dashed lines in the colours of their namesakes, and single points.

    Parameters
    ----------
    title, x, y
        What the picture and its axes say.
    series
        The points of each line.
    marked
        Points of their own, such as rivals.
    dashed, beside_is
        Lines beside those of the same name, such as what theory predicts, and what they are.
    dots
        Whether points are marked; not for curves of many.
    doubling
        Whether the axis across doubles from place to place.

    Examples
    --------
    >>> drawn = lines("recall", "memory", "recall", {"age": [(1, 0.2), (2, 0.4)]}, marked={"fifo": (1, 0.1)})
    >>> drawn.count("<circle"), drawn.count("<polyline")
    (3, 1)
    >>> ">16<" in lines("kept", "rows", "kept", {"age": [(1, 0.9), (32, 0.4)]}, doubling=True)
    True
    """
    if doubling:
        series = {name: _doubling(line) for name, line in series.items()}
        dashed = {name: _doubling(line) for name, line in (dashed or {}).items()}
    alone = dict(marked or {})
    beside = {name: list(line) for name, line in (dashed or {}).items()}
    points = [p for line in (*series.values(), *beside.values(), alone.values()) for p in line]
    across = [point[0] for point in points]
    frame = _Frame(
        (min(across), max(across) + (len(set(across)) == 1)) if doubling else _ends(across),
        _ends([0.0, *(end for point in points for end in _reach(point[1]))]),
        doubling=doubling,
    )
    parts = frame.opened(title, x, y)
    named = {**series, **{name: [point] for name, point in alone.items()}}
    coloured = colours([*named, *(name for name in beside if name not in named)])
    for name, line in named.items():
        places = [frame.at(px, _mean(py)) for px, py in line]
        if len(places) > 1:
            parts.append(_line(places, coloured[name]))
        parts += [_whisker(frame, px, py, coloured[name]) for px, py in line if isinstance(py, Interval)]
        if dots or len(places) == 1:
            parts += [
                f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.2" fill="{coloured[name]}"/>' for a, b in places
            ]
    for name, line in beside.items():
        parts.append(_line([frame.at(px, _mean(py)) for px, py in line], coloured[name], "5 4"))
    return _closed(
        parts, {**{n: coloured[n] for n in named}, **({f"dashed: {beside_is}": _GREY} if beside else {})}
    )


def bars(title: str, x: str, y: str, groups: Mapping[str, Mapping[str, float | Interval]]) -> str:
    """Draw bars in groups, one of each name; where an interval is known, it is drawn.

    Examples
    --------
    >>> drawn = bars("results", "stream", "results", {"WALK": {"heeb": 3, "random": 1}, "FLOOR": {"heeb": 2}})
    >>> drawn.count('class="bar"')
    3
    """
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    heights = [end for group in groups.values() for value in group.values() for end in _reach(value)]
    frame = _Frame((0.0, float(len(groups))), _ends([0.0, *heights]))
    parts, coloured = frame.opened(title, x, y, ticks=False), colours(names)
    width = 0.84 / max(len(names), 1)
    for number, (label, group) in enumerate(groups.items()):
        middle, _ = frame.at(number + 0.5, frame.y[0])
        parts.append(_faint(middle, _HIGH - _BOTTOM + 18, "middle", escape(label)))
        for name, value in group.items():
            start = number + 0.08 + width * names.index(name)
            (left, top), (right, low) = (
                frame.at(start, max(_mean(value), 0.0)),
                frame.at(start + width * 0.9, min(_mean(value), 0.0)),
            )
            parts.append(
                f'<rect class="bar" x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" '
                f'height="{low - top:.1f}" fill="{coloured[name]}"/>'
            )
            if isinstance(value, Interval):
                parts.append(_whisker(frame, start + width * 0.45, value, _INK))
    return _closed(parts, coloured)


def heat(title: str, x: str, y: str, cells: Mapping[str, Mapping[str, float]]) -> str:
    """Draw numbers from 0 to 1 as a map of rows and columns, the higher the darker; a frame around each row's best.

    Examples
    --------
    >>> drawn = heat("recall", "policy", "workload", {"INC": {"age": 0.9, "fifo": 0.1}})
    >>> drawn.count('class="cell"'), drawn.count('class="best"')
    (2, 1)
    """
    columns = list(dict.fromkeys(name for row in cells.values() for name in row))
    wide, high, left, top = 58, 24, 190, 120
    across, down = left + wide * len(columns) + 70, top + high * len(cells) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {across} {down}" {_FONT} fill="{_INK}">',
        f'<rect width="{across}" height="{down}" fill="#fbfcfd"/>',
        f'<text x="16" y="20" font-size="14" font-weight="600">{escape(title)}</text>',
        f'<text x="16" y="40" fill="{_GREY}">{escape(y)} by {escape(x)}</text>',
    ]
    for number, name in enumerate(columns):
        place = left + wide * (number + 0.5)
        parts.append(
            f'<text x="{place}" y="{top - 8}" transform="rotate(-40 {place} {top - 8})">{escape(name)}</text>'
        )
    for number, (label, row) in enumerate(cells.items()):
        level = top + high * number
        parts.append(f'<text x="{left - 8}" y="{level + 16}" text-anchor="end">{escape(label)}</text>')
        best = max(row.values(), default=0.0)
        for name, value in row.items():
            place, strength = left + wide * columns.index(name), min(max(value, 0.0), 1.0)
            box = f'x="{place}" y="{level}" width="{wide - 2}" height="{high - 2}"'
            ink = "#ffffff" if strength > _DARK else _INK
            middle = f'x="{place + wide / 2 - 1}" y="{level + 15}" text-anchor="middle"'
            parts.append(
                f'<rect class="cell" {box} fill="#1f6fb2" fill-opacity="{0.06 + 0.8 * strength:.2f}"/>'
            )
            if value == best:
                parts.append(f'<rect class="best" {box} fill="none" stroke="{_INK}" stroke-width="2"/>')
            parts.append(f'<text {middle} fill="{ink}">{value:.2f}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _line(places: Sequence[tuple[float, float]], colour: str, dash: str = "") -> str:
    path = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"{dashes}/>'


def _whisker(frame: _Frame, x: float, over: Interval, colour: str) -> str:
    if not math.isfinite(over.half) or not over.half:
        return ""
    (place, low), (_, high) = frame.at(x, max(over.low, frame.y[0])), frame.at(x, min(over.high, frame.y[1]))
    return (
        f'<path d="M{place:.1f} {low:.1f}V{high:.1f}M{place - 3:.1f} {low:.1f}h6M{place - 3:.1f} {high:.1f}h6" '
        f'stroke="{colour}" stroke-opacity="0.6" fill="none"/>'
    )


def _closed(parts: list[str], legend: Mapping[str, str]) -> str:
    for number, (name, colour) in enumerate(legend.items()):
        below = _TOP + 16 + 20 * number
        parts += [
            f'<rect x="{_WIDE - _RIGHT + 18}" y="{below - 9}" width="12" height="4" fill="{colour}"/>',
            f'<text x="{_WIDE - _RIGHT + 36}" y="{below - 3}">{escape(name)}</text>',
        ]
    return "\n".join([*(part for part in parts if part), "</svg>", ""])


def _doubling(line: Sequence[Point]) -> list[Point]:
    return [(math.log2(x), y) for x, y in line]  # type: ignore[misc]  # of either kind


def _mean(value: float | Interval) -> float:
    return value.mean if isinstance(value, Interval) else float(value)


def _reach(value: float | Interval) -> tuple[float, ...]:
    if isinstance(value, Interval) and math.isfinite(value.half):
        return max(value.low, 0.0) if value.mean >= 0 else value.low, value.high
    return (_mean(value),)


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """Round ends around some values, from 0 on where that is near."""
    low, high = min(values), max(values)
    if 0 <= low <= 0.5 * high:
        low = 0.0
    if low == high:
        high = low + 1.0
    ticks = _between(low, high)
    step = ticks[1] - ticks[0]
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step


def _between(low: float, high: float) -> list[float]:
    """Some four to seven round numbers from one end to the other."""
    raw = (high - low) / 5
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * times for times in (1, 2, 2.5, 5, 10) if unit * times >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [number * step for number in range(first, max(last, first + 1) + 1)]


def _faint(x: float, y: float, anchor: str, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{_GREY}">{text}</text>'


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"  # noqa: PLR2004 - where digits want grouping
