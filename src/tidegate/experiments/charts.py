"""Line charts, bar charts and heat maps as Matplotlib figures. A policy has the same colour in all of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, NullLocator

from tidegate.experiments.claims import MeanInterval
from tidegate.pictures import FONT, add_axes, new_figure, round_ticks, tick_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Point = tuple[float, float] | tuple[float, MeanInterval]
"""An x and a y: a number, or a mean with its interval, which is drawn if it is finite."""

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
_SYNONYMS: Final = {
    "rand": "random",
    "recent": "fifo",
    "greedy": "importance",
    "exact": "offline",
    "optimum": "offline",
    "lfd": "offline",
    "lfu": "prob",
    "hist": "heeb_histogram",
}
"""The names of our policies in the papers."""
_OTHER_COLOURS: Final = (
    "#0e7c9e",
    "#d1495b",
    "#6a994e",
    "#9a5ea1",
    "#e08e45",
    "#4d5d8a",
    "#3d8c95",
    "#b56576",
)
"""Colours that no policy has."""
_INK, _PALE, _GREY, _PAPER, _CELL = "#1c2833", "#d6dce1", "#5d6d7e", "#fbfcfd", "#1f6fb2"
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 680, 400, 70, 180, 46, 56
_CELL_WIDTH, _CELL_HEIGHT, _CELLS_LEFT, _CELLS_TOP = 58, 24, 190, 120
_WHITE_TEXT_ABOVE: Final = 0.7
_GROUP_WIDTH: Final = 0.84
"""The part of a group's width that its bars take."""


def colours(names: Iterable[str]) -> dict[str, str]:
    """A colour for each name: the policy's own under any of its names, and an unused one for everything else.

    Examples
    --------
    >>> colours(["age", "RAND", "drift 2"])
    {'age': '#3a8f5c', 'RAND': '#8a97a3', 'drift 2': '#0e7c9e'}
    """
    chosen: dict[str, str | None] = {}
    for name in names:
        lowered = name.lower()
        first = lowered.replace(",", " ").split()[0] if lowered.strip() else ""
        known = next((w for w in (lowered, first) if _SYNONYMS.get(w, w) in COLOURS), None)
        chosen[name] = COLOURS[_SYNONYMS.get(known, known)] if known else None
    # The second variant of a policy gets an unused colour.
    used: set[str] = set()
    for name, colour in chosen.items():
        if colour is None or colour in used:
            unused = [other for other in _OTHER_COLOURS if other not in chosen.values()]
            chosen[name] = (unused or _OTHER_COLOURS)[0]
        used.add(chosen[name] or _INK)
    return {name: colour or _INK for name, colour in chosen.items()}


def line_chart(
    title: str,
    x: str,
    y: str,
    series: Mapping[str, Sequence[Point]],
    *,
    single: Mapping[str, Point] | None = None,
    dashed: Mapping[str, Sequence[Point]] | None = None,
    dashed_label: str = "predicted",
    markers: bool = True,
    log2_x: bool = False,
) -> Figure:
    """Lines with a marker at each point.

    Parameters
    ----------
    title, x, y
        The labels of the chart and of its axes.
    series
        The points of each line.
    single
        Single points in addition to the lines.
    dashed, dashed_label
        Dashed lines in the colour of the line with the same name, and their label.
    markers
        Whether points are marked. Turn this off for curves of many points.
    log2_x
        Whether the x axis is logarithmic, with a tick at each power of two.

    Examples
    --------
    >>> chart = line_chart("recall", "memory", "recall", {"age": [(1, 0.2), (2, 0.4)]}, single={"fifo": (1, 0.1)})
    >>> [line.get_label() for line in chart.axes[0].get_lines()]
    ['age', 'fifo']
    """
    points_only, dashed_lines = dict(single or {}), dict(dashed or {})
    named = {**series, **{name: [point] for name, point in points_only.items()}}
    points = [point for line in (*named.values(), *dashed_lines.values()) for point in line]
    figure, axes = _new_chart(title, x, y, [end for point in points for end in _extent(point[1])])
    _set_x_axis(axes, [point[0] for point in points], log2_x=log2_x)
    coloured = colours([*named, *(name for name in dashed_lines if name not in named)])
    for name, line in named.items():
        marker = "o" if markers or len(line) == 1 else ""
        xs, ys = [px for px, _ in line], [_mean(py) for _, py in line]
        style = {"color": coloured[name], "linewidth": 1.8, "marker": marker, "markersize": 6.4}
        axes.plot(xs, ys, label=name, clip_on=False, markeredgewidth=0, **style)  # type: ignore[arg-type]
        _draw_intervals(axes, line, coloured[name])
    for name, line in dashed_lines.items():
        xs, ys = [px for px, _ in line], [_mean(py) for _, py in line]
        axes.plot(xs, ys, color=coloured[name], linewidth=1.8, dashes=(5 / 1.8, 4 / 1.8))
    legend = {name: coloured[name] for name in named} | (
        {f"dashed: {dashed_label}": _GREY} if dashed_lines else {}
    )
    _draw_legend(axes, legend)
    return figure


def bar_chart(title: str, x: str, y: str, groups: Mapping[str, Mapping[str, float | MeanInterval]]) -> Figure:
    """Groups of bars, with the interval of each mean.

    Examples
    --------
    >>> chart = bar_chart("results", "stream", "results", {"WALK": {"heeb": 3, "random": 1}, "FLOOR": {"heeb": 2}})
    >>> [float(bar.get_height()) for bar in chart.axes[0].patches]
    [3.0, 1.0, 2.0]
    """
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    heights = [end for group in groups.values() for value in group.values() for end in _extent(value)]
    figure, axes = _new_chart(title, x, y, heights)
    coloured = colours(names)
    width = _GROUP_WIDTH / max(len(names), 1)
    for number, group in enumerate(groups.values()):
        for name, value in group.items():
            left = number + (1 - _GROUP_WIDTH) / 2 + width * names.index(name)
            axes.bar(left, _mean(value), width * 0.9, align="edge", color=coloured[name])
            _draw_intervals(axes, [(left + width * 0.45, value)], _INK)  # type: ignore[list-item]
    axes.set_xlim(0, len(groups))
    axes.set_xticks([number + 0.5 for number in range(len(groups))], list(groups))
    _draw_legend(axes, coloured)
    return figure


def heat_map(title: str, x: str, y: str, cells: Mapping[str, Mapping[str, float]]) -> Figure:
    """A table of numbers from 0 to 1: a higher number has a darker cell, and the best of a row has a frame.

    Examples
    --------
    >>> chart = heat_map("recall", "policy", "workload", {"INC": {"age": 0.9, "fifo": 0.1}})
    >>> [text.get_text() for text in chart.axes[0].texts]
    ['age', 'fifo', 'INC', '0.90', '0.10']
    """
    columns = list(dict.fromkeys(name for row in cells.values() for name in row))
    width = _CELLS_LEFT + _CELL_WIDTH * len(columns) + 70
    height = _CELLS_TOP + _CELL_HEIGHT * len(cells) + 40
    figure = new_figure(width, height, _PAPER)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    _write(figure, 16, 20, title, size=14, weight="bold")
    _write(figure, 16, 40, f"{y} by {x}", color=_GREY)
    for number, name in enumerate(columns):
        place = _CELLS_LEFT + _CELL_WIDTH * (number + 0.5), _CELLS_TOP - 8
        axes.text(*place, name, rotation=40, rotation_mode="anchor", **_TEXT)
    for number, (label, row) in enumerate(cells.items()):
        top = _CELLS_TOP + _CELL_HEIGHT * number
        axes.text(_CELLS_LEFT - 8, top + 16, label, ha="right", **_TEXT)
        best = max(row.values(), default=0.0)
        for name, value in row.items():
            left = _CELLS_LEFT + _CELL_WIDTH * columns.index(name)
            _draw_cell(axes, left, top, value, best=value == best)
    return figure


_TEXT: Final[dict[str, Any]] = {"fontsize": 12, "fontfamily": FONT, "color": _INK, "va": "baseline"}


def _draw_cell(axes: Axes, left: float, top: float, value: float, *, best: bool) -> None:
    strength = min(max(value, 0.0), 1.0)
    place, size = (left, top), (_CELL_WIDTH - 2, _CELL_HEIGHT - 2)
    axes.add_patch(Rectangle(place, *size, facecolor=_CELL, alpha=0.06 + 0.8 * strength, linewidth=0))
    if best:
        axes.add_patch(Rectangle(place, *size, fill=False, edgecolor=_INK, linewidth=2))
    ink = "#ffffff" if strength > _WHITE_TEXT_ABOVE else _INK
    axes.text(left + _CELL_WIDTH / 2 - 1, top + 15, f"{value:.2f}", ha="center", **(_TEXT | {"color": ink}))


def _new_chart(title: str, x: str, y: str, heights: Sequence[float]) -> tuple[Figure, Axes]:
    """A chart whose y axis includes 0 and the heights."""
    figure = new_figure(_WIDTH, _HEIGHT, _PAPER)
    axes = add_axes(figure, left=_LEFT, right=_RIGHT, top=_TOP, bottom=_BOTTOM, grid=_PALE, ink=_GREY)
    _write(figure, _LEFT, 20, title, size=14, weight="bold")
    _write(figure, _LEFT, _TOP - 8, y, color=_GREY)
    _write(figure, (_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 14, x, ha="center")
    ticks = _ticks([0.0, *heights])
    axes.set_yticks(ticks)
    axes.set_ylim(ticks[0], ticks[-1])
    axes.yaxis.set_major_formatter(tick_labels())
    return figure, axes


def _write(
    figure: Figure,
    x: float,
    y: float,
    text: str,
    *,
    size: float = 12,
    weight: str = "normal",
    color: str = _INK,
    ha: str = "left",
) -> None:
    """Text at a place in pixels from the top left."""
    width, height = figure.get_size_inches() * figure.dpi
    style = {"fontsize": size, "fontweight": weight, "fontfamily": FONT, "color": color, "ha": ha}
    figure.text(x / width, 1 - y / height, text, va="baseline", parse_math=False, **style)  # type: ignore[arg-type]


def _set_x_axis(axes: Axes, values: Sequence[float], *, log2_x: bool) -> None:
    if not log2_x:
        ticks = _ticks(values)
        axes.set_xticks(ticks)
        axes.set_xlim(ticks[0], ticks[-1])
        axes.xaxis.set_major_formatter(tick_labels())
        return
    low, high = math.log2(min(values)), math.log2(max(values))
    axes.set_xscale("log", base=2)
    axes.set_xlim(2**low, 2 ** (high + (low == high)))
    axes.xaxis.set_major_locator(
        FixedLocator([2.0**power for power in range(math.ceil(low), math.floor(high) + 1)])
    )
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(tick_labels())


def _ticks(values: Sequence[float]) -> list[float]:
    """Ticks that include the values, from 0 if 0 is near."""
    low, high = min(values), max(values)
    if 0 <= low <= 0.5 * high:
        low = 0.0
    return round_ticks(low, high if high > low else low + 1.0)


def _draw_intervals(axes: Axes, line: Sequence[Point], colour: str) -> None:
    """Error bars of means whose interval is finite and not empty, cut at the ends of the y axis."""
    low, high = axes.get_ylim()
    for x, value in line:
        if not isinstance(value, MeanInterval) or not math.isfinite(value.half) or not value.half:
            continue
        ends = [[value.mean - max(value.low, low)], [min(value.high, high) - value.mean]]
        axes.errorbar(
            x,
            value.mean,
            yerr=ends,
            fmt="none",
            ecolor=colour,
            elinewidth=1,
            capsize=3,
            alpha=0.6,
            clip_on=False,
        )


def _draw_legend(axes: Axes, legend: Mapping[str, str]) -> None:
    handles = [Line2D([], [], color=colour, linewidth=4, solid_capstyle="butt") for colour in legend.values()]
    axes.legend(
        handles,
        list(legend),
        loc="upper left",
        bbox_to_anchor=(1 + 18 / (_WIDTH - _LEFT - _RIGHT), 1 - 3 / (_HEIGHT - _TOP - _BOTTOM)),
        borderpad=0,
        borderaxespad=0,
        frameon=False,
        handlelength=1,
        handletextpad=0.5,
        labelspacing=0.67,
        labelcolor=_INK,
        prop={"family": FONT, "size": 12},
    )


def _mean(value: float | MeanInterval) -> float:
    return value.mean if isinstance(value, MeanInterval) else float(value)


def _extent(value: float | MeanInterval) -> tuple[float, ...]:
    """The numbers that the y axis must include."""
    if isinstance(value, MeanInterval) and math.isfinite(value.half):
        return max(value.low, 0.0) if value.mean >= 0 else value.low, value.high
    return (_mean(value),)
