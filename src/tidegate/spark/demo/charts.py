"""The two charts of the demo as SVG: recall and the size of the state over time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from matplotlib.ticker import FuncFormatter

from tidegate.pictures import FONT, add_axes, new_figure, round_ticks, to_svg
from tidegate.spark.demo.result import EXACT, OWN, megabytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tidegate.spark.demo.result import DemoResult

CSS_FONTS: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
INK: Final = "#1f2933"
GREY: Final = "#7b8794"
LINE: Final = "#e4e7eb"
_COLOURS: Final = {
    OWN: "#52606d",
    EXACT: "#2f8fa8",
    "prob": "#6d4fb3",
    "random": "#c79a1e",
    "fifo": "#c2622d",
    "offline": "#4f7a28",
}
_SHORT_NAMES: Final = {OWN: "Spark's own", EXACT: "no limit"}
_LABEL_SIZE: Final = 13
_LABEL_GAP: Final = 0.075
"""The smallest distance between two labels, as a share of the y axis."""


class _Size(NamedTuple):
    """The size of a chart in pixels, with the margins for labels."""

    css_class: str
    width: int
    height: int
    left: int
    right: int


_SIZES: Final = (_Size("wide", 876, 340, 76, 190), _Size("narrow", 400, 300, 66, 150))
"""A page shows the narrow one on small screens, where text of the wide one would be too small to read."""
_PICTURE: Final = (1040, 340)
"""The size of the picture with both charts side by side."""


def colour(name: str) -> str:
    """The colour of a query on the page and on the terminal."""
    return _COLOURS.get(name, GREY)


def recall_chart(result: DemoResult) -> str:
    """Recall over time, a line for each query with a tenth of the memory, for wide and narrow screens."""
    return _both_sizes(result, _draw_recall)


def memory_chart(result: DemoResult) -> str:
    """The size of the state over time, for wide and narrow screens."""
    return _both_sizes(result, _draw_memory)


def picture(result: DemoResult) -> str:
    """Both charts side by side in one SVG file, on white."""
    width, height = _PICTURE
    figure = new_figure(width, height, "#ffffff")
    for draw, left, title in (
        (_draw_recall, 0, "Recall with a tenth of the memory"),
        (_draw_memory, width // 2, "Memory, MB (labels: peak)"),
    ):
        axes = _add_axes(figure, result, left=left + 60, right=width // 2 - left + 165, top=52)
        draw(axes, result)
        axes.set_title(title, loc="left", pad=16, color=INK, fontsize=15, fontfamily=FONT, fontweight="bold")
    return to_svg(figure, CSS_FONTS)


def _both_sizes(result: DemoResult, draw: Callable[[Axes, DemoResult], None]) -> str:
    charts = []
    for size in _SIZES:
        figure = new_figure(size.width, size.height)
        draw(_add_axes(figure, result, left=size.left, right=size.right, top=12), result)
        charts.append(f'<div class="{size.css_class}">{to_svg(figure, CSS_FONTS)}</div>')
    return "\n".join(charts)


def _draw_recall(axes: Axes, result: DemoResult) -> None:
    ends = []
    for record in result.bounded:
        if not (shares := record.recall_by_minute(result.own)):
            continue
        axes.plot(range(1, len(shares) + 1), shares, color=colour(record.name), linewidth=2.5, clip_on=False)
        ends.append((shares[-1], f"{record.name} {shares[-1]:.0%}", colour(record.name)))
    if result.optimum is not None:
        axes.axhline(result.optimum, color=colour("offline"), linewidth=1.5, linestyle=(0, (4, 3)))
        ends.append((result.optimum, f"best possible {result.optimum:.0%}", colour("offline")))
    _scale_y(axes, 1.0, [0, 0.25, 0.5, 0.75, 1.0])
    _label_ends(axes, ends, _LABEL_GAP)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))


def _draw_memory(axes: Axes, result: DemoResult) -> None:
    top, ends = 0.0, []
    for record in (result.own, result.exact, *result.bounded[:1]):
        if not record.batches:
            continue
        sizes = [batch.state_bytes / 1e6 for batch in record.batches]
        axes.plot(range(1, len(sizes) + 1), sizes, color=colour(record.name), linewidth=2.5, clip_on=False)
        label = _SHORT_NAMES.get(record.name, "a tenth")
        ends.append((sizes[-1], f"{label} {megabytes(record.peak_bytes)} MB", colour(record.name)))
        top = max(top, *sizes)
    ticks = round_ticks(0, top or 1.0)
    _scale_y(axes, ticks[-1], ticks)
    _label_ends(axes, ends, _LABEL_GAP * ticks[-1])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def _label_ends(axes: Axes, ends: list[tuple[float, str, str]], gap: float) -> None:
    """Label lines at their right ends instead of in a legend, at least `gap` apart."""
    lowest = -gap
    for y, text, shade in sorted(ends):
        lowest = max(y, lowest + gap)
        axes.annotate(
            text,
            (1, lowest),
            xycoords=("axes fraction", "data"),
            xytext=(10, 0),
            textcoords="offset points",
            va="center",
            color=shade,
            fontsize=_LABEL_SIZE,
            fontfamily=FONT,
            annotation_clip=False,
        )


def _scale_y(axes: Axes, top: float, ticks: list[float]) -> None:
    axes.set_yticks(ticks)
    axes.set_ylim(0, top)


def _add_axes(figure: Figure, result: DemoResult, *, left: float, right: float, top: float) -> Axes:
    axes = add_axes(figure, left=left, right=right, top=top, bottom=48, grid=LINE, ink=GREY)
    last = max(2, *(len(record.batches) for record in result.records))
    axes.set_xlim(1, last)
    axes.set_xticks([tick for tick in round_ticks(0, last) if 1 <= tick <= last and tick == int(tick)])
    axes.tick_params(labelsize=_LABEL_SIZE)
    style: dict[str, Any] = {"color": GREY, "fontsize": _LABEL_SIZE, "fontfamily": FONT}
    axes.set_xlabel("minute of the stream", labelpad=8, **style)
    return axes
