"""A quiet picture of some lines, as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from xml.sax.saxutils import escape

Point = tuple[float, float]
COLOURS: Final = ("#1f6fb2", "#c0562b", "#3a8f5c", "#7b5aa6", "#5d6d7e", "#b8860b")
_FONT: Final = 'font-family="system-ui, sans-serif" font-size="12"'
_WIDE, _HIGH, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 400, 70, 150, 46, 56


def lines(
    title: str,
    x: str,
    y: str,
    series: Mapping[str, Sequence[Point]],
    *,
    marked: Mapping[str, Point] | None = None,
) -> str:
    """Draw lines with a dot at each point, and single marked points, all from 0 on.

    Parameters
    ----------
    title, x, y
        What the picture and its axes say.
    series
        The points of each line.
    marked
        Points of their own, such as rivals.

    Examples
    --------
    >>> drawn = lines("recall", "memory", "recall", {"age": [(1, 0.2), (2, 0.4)]}, marked={"fifo": (1, 0.1)})
    >>> drawn.count("<circle"), drawn.count("<polyline")
    (3, 1)
    """
    alone = dict(marked or {})
    points = [point for line in series.values() for point in line] + list(alone.values())
    across, up = (_rounded(max(point[axis] for point in points)) for axis in (0, 1))

    def at(point: Point) -> tuple[float, float]:
        inner_wide, inner_high = _WIDE - _LEFT - _RIGHT, _HIGH - _TOP - _BOTTOM
        return _LEFT + point[0] / across * inner_wide, _HIGH - _BOTTOM - point[1] / up * inner_high

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE} {_HIGH}" {_FONT} fill="#1c2833">',
        f'<rect width="{_WIDE}" height="{_HIGH}" fill="#fbfcfd"/>',
        f'<text x="{_LEFT}" y="24" font-size="14" font-weight="600">{escape(title)}</text>',
        f'<text x="{(_LEFT + _WIDE - _RIGHT) / 2}" y="{_HIGH - 14}" text-anchor="middle">{escape(x)}</text>',
        f'<text x="{_LEFT}" y="{_TOP - 6}" fill="#5d6d7e">{escape(y)}</text>',
    ]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        (right, level), (place, _) = at((across, up * share)), at((across * share, 0))
        parts += [
            f'<line x1="{_LEFT}" x2="{right:.1f}" y1="{level:.1f}" y2="{level:.1f}" stroke="#d6dce1"/>',
            _faint(_LEFT - 8, level + 4, "end", _number(up * share)),
            _faint(place, _HIGH - _BOTTOM + 18, "middle", _number(across * share)),
        ]
    named = [*series.items(), *((name, [point]) for name, point in alone.items())]
    for number, (name, line) in enumerate(named):
        colour = COLOURS[number % len(COLOURS)]
        places = [at(point) for point in line]
        if len(places) > 1:
            path = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
            parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.5" fill="{colour}"/>' for a, b in places]
        below = _TOP + 16 + 20 * number
        parts += [
            f'<rect x="{_WIDE - _RIGHT + 18}" y="{below - 9}" width="12" height="4" fill="{colour}"/>',
            f'<text x="{_WIDE - _RIGHT + 36}" y="{below - 3}">{escape(name)}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


def _faint(x: float, y: float, anchor: str, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#5d6d7e">{text}</text>'


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"  # noqa: PLR2004 - where digits want grouping


def _rounded(most: float) -> float:
    """The next number that divides well into four."""
    unit = 10.0 ** (len(f"{int(most):d}") - 1) if most >= 1 else 0.1
    return next(unit * step for step in (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10, 12) if unit * step >= most)
