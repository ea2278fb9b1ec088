"""The two charts of the demo's page, as SVG: recall and memory over time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from matplotlib.ticker import FuncFormatter

from tidegate.pictures import FONT, add_axes, new_figure, round_ticks, to_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tidegate.spark.demo.page import DemoResult

CSS_FONTS: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
INK: Final = "#1f2933"
GREY: Final = "#7b8794"
LINE: Final = "#e4e7eb"
_COLOURS: Final = {"age": "#6d4fb3", "until_expiry": "#0f766e", "random": "#7c86a2", "fifo": "#c2622d"}
_MORE_COLOURS: Final = ("#2f8fa8", "#b3396b", "#4f7a28", "#2b6cb0")
_LABEL_SIZE: Final = 13
_LABEL_GAP: Final = 0.07
"""The smallest distance between two labels, as a share of the y axis."""


class _Size(NamedTuple):
    """The size of a chart in pixels, with the margins for labels."""

    css_class: str
    width: int
    height: int
    left: int
    right: int


_SIZES: Final = (_Size("wide", 876, 340, 88, 160), _Size("narrow", 400, 300, 84, 136))
"""A page shows the narrow one on small screens, where text of the wide one would be too small to read."""


def colour(policy: str) -> str:
    """The colour of a policy on the page and on the terminal."""
    return _COLOURS.get(policy) or _MORE_COLOURS[sum(policy.encode()) % len(_MORE_COLOURS)]


def recall_chart(result: DemoResult) -> str:
    """Recall over time, a line for each policy, for wide and narrow screens."""
    return _both_sizes(lambda size: _draw_recall(result, size))


def memory_chart(result: DemoResult) -> str:
    """Buffered rows over time, with the budget and what an exact join holds, for wide and narrow screens."""
    return _both_sizes(lambda size: _draw_memory(result, size))


def _both_sizes(draw: Callable[[_Size], Figure]) -> str:
    charts = ((size, to_svg(draw(size), CSS_FONTS)) for size in _SIZES)
    return "\n".join(f'<div class="{size.css_class}">{svg}</div>' for size, svg in charts)


def _draw_recall(result: DemoResult, size: _Size) -> Figure:
    top = min(1.0, 3 * max((record.recall for record in result.records), default=1.0)) or 1.0
    figure, axes = _new_chart(size, "recall so far", len(result.needed) - 1, 1.02 * top)
    for record in result.records:
        counted = [reading for reading in record.readings if reading.exact]
        axes.plot(
            [reading.minute for reading in counted],
            [reading.results / reading.exact for reading in counted],
            color=colour(record.policy),
            linewidth=2.5,
        )
    ends = [
        (record.recall, f"{record.policy} {record.recall:.1%}", colour(record.policy))
        for record in result.records
        if record.exact
    ]
    _label_ends(axes, ends, _LABEL_GAP * top)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
    return figure


def _draw_memory(result: DemoResult, size: _Size) -> Figure:
    minutes, rows = zip(*result.needed, strict=True)
    top = max(*rows, result.budget)
    figure, axes = _new_chart(size, "rows buffered", minutes[-1], 1.04 * top)
    axes.fill_between(minutes, rows, color="#f0f3f6", linewidth=0)
    axes.plot(minutes, rows, color="#b8c2cc", linewidth=1)
    axes.axhline(result.budget, color=INK, linewidth=1, linestyle=(0, (3, 3)))
    # All policies are nearly always at the budget, so lines would hide each other. Policies are read alternately.
    for record in result.records:
        axes.plot(
            [minute for minute, _ in record.memory],
            [held for _, held in record.memory],
            linestyle="none",
            marker="o",
            markersize=10,
            markerfacecolor=colour(record.policy),
            markeredgecolor="#fff",
            markeredgewidth=1.5,
            clip_on=False,
        )
    ends = [(rows[-1], "an exact join", GREY), (result.budget, f"budget {result.budget:,}", INK)]
    _label_ends(axes, ends, _LABEL_GAP * top)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    return figure


def _label_ends(axes: Axes, ends: list[tuple[float, str, str]], gap: float) -> None:
    """Label lines at their right ends instead of in a legend, at least `gap` apart."""
    lowest = -gap
    for y, text, shade in sorted(ends):
        lowest = max(y, lowest + gap)
        axes.annotate(
            text,
            (1, lowest),
            xycoords=("axes fraction", "data"),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            color=shade,
            fontsize=_LABEL_SIZE,
            fontfamily=FONT,
            annotation_clip=False,
        )


def _new_chart(size: _Size, y: str, right: float, top: float) -> tuple[Figure, Axes]:
    figure = new_figure(size.width, size.height)
    axes = add_axes(figure, left=size.left, right=size.right, top=12, bottom=48, grid=LINE, ink=GREY)
    axes.set_xticks([tick for tick in round_ticks(0, max(right, 1)) if tick <= max(right, 1)])
    axes.set_yticks([tick for tick in round_ticks(0, top) if tick <= top])
    axes.set(xlim=(0, max(right, 1)), ylim=(0, top))
    axes.tick_params(labelsize=_LABEL_SIZE)
    style: dict[str, Any] = {"color": GREY, "fontsize": _LABEL_SIZE, "fontfamily": FONT}
    axes.set_xlabel("minute of the stream", labelpad=8, **style)
    axes.set_ylabel(y, labelpad=8, **style)
    return figure, axes
