"""Matplotlib figures in one style, saved as SVG and PNG. The same data gives the same bytes.

Matplotlib comes with the extra `pictures`, so import this module only where something is drawn. Figures are made
without `pyplot`, so there is no global state and no window. Sizes are in pixels: a figure of 680 by 400 has the SVG
view box `0 0 680 400`.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FONT: Final = "DejaVu Sans"
"""Comes with Matplotlib, so text is measured the same on every machine."""
_FONT_STACK: Final = "Inter, DejaVu Sans, Liberation Sans, Arial, sans-serif"
_DPI: Final = 72
"""At this resolution one point is one pixel."""
_RC: Final[dict[Any, Any]] = {"svg.fonttype": "none", "svg.hashsalt": "tidegate", "path.simplify": False}
_REMOVED: Final = re.compile(
    r"""
    ^.*?(?=<svg)                                  # everything before the element
    | <metadata>.*?</metadata>\s*
    | <!--.*?-->\s*
    | <defs>\s*<style.*?</defs>\s*                 # would apply to the whole page
    | [ ](?:width|height)="[^"]*pt"
    | [ ]id="(?P<id>[^"]*)"
    | <g(?:[ ]id="[^"]*")?/>\s*
    | [ ]font-family:[^;"]*;
    | [ ]transform="rotate\(-0[ ][^"]*"
    """,
    re.DOTALL | re.VERBOSE,
)
_REFERENCE: Final = re.compile(r'(?:url\(|href=")#([^")]+)')


def new_figure(width: float, height: float, background: str = "none") -> Figure:
    """An empty figure of some width and height, in pixels.

    Examples
    --------
    >>> to_svg(new_figure(680, 400)).split(">")[0]
    '<svg font-family="Inter, ...sans-serif" ... viewBox="0 0 680 400" ...
    """
    return Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI, facecolor=background, edgecolor="none")


def add_axes(
    figure: Figure, *, left: float, right: float, top: float, bottom: float, grid: str, ink: str
) -> Axes:
    """Axes with margins in pixels: no frame, horizontal grid lines only, tick labels without ticks.

    Parameters
    ----------
    figure
        The figure to add them to.
    left, right, top, bottom
        The margins.
    grid, ink
        The colours of grid lines and of tick labels.
    """
    width, height = figure.get_size_inches() * _DPI
    axes = figure.add_axes(
        (left / width, bottom / height, (width - left - right) / width, (height - top - bottom) / height)
    )
    axes.patch.set_visible(False)
    axes.spines[:].set_visible(False)
    axes.set_axisbelow(True)
    axes.grid(axis="y", color=grid, linewidth=1)
    axes.tick_params(length=0, pad=8, labelsize=12, labelcolor=ink, labelfontfamily=FONT)
    return axes


def round_ticks(low: float, high: float) -> list[float]:
    """A few round numbers at equal distances that cover the range.

    Examples
    --------
    >>> round_ticks(0, 3770), round_ticks(-4, 9)
    ([0.0, 1000.0, 2000.0, 3000.0, 4000.0], [-5.0, 0.0, 5.0, 10.0])
    """
    ticks = MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    return [round(float(tick), 12) for tick in ticks]


def tick_labels() -> FuncFormatter:
    """Numbers as labels of ticks: 1,000 and 0.25."""
    return FuncFormatter(lambda value, _: f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}")  # noqa: PLR2004


def to_svg(figure: Figure, font: str = _FONT_STACK) -> str:
    """A figure as one SVG element, to embed in a page or to save.

    Text stays text. The element has a view box but no size, so that it fits its container. Only identifiers that are
    referenced remain.

    Parameters
    ----------
    figure
        The figure.
    font
        The fonts of all text, as a CSS list.
    """
    file = io.StringIO()
    with mpl.rc_context(_RC):
        figure.savefig(file, format="svg", metadata={"Date": None})
    text = file.getvalue()
    used = set(_REFERENCE.findall(text))
    text = _REMOVED.sub(lambda match: match.group() if match["id"] in used else "", text)
    return text.replace("<svg", f'<svg font-family="{font}" stroke-linejoin="round"', 1)


def to_png(figure: Figure) -> bytes:
    """A figure as PNG, with two pixels for each of its own."""
    file = io.BytesIO()
    with mpl.rc_context(_RC):
        figure.savefig(file, format="png", dpi=2 * _DPI, metadata={"Software": None})
    return file.getvalue()
