"""Draw the import graph of the package: its folders as layers, and which folder imports which.

Run by `make graph`. Writes `docs/import-graph.svg`, which CONTRIBUTING.md shows.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from xml.sax.saxutils import escape

import grimp
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from tidegate.pictures import FONT, new_figure, to_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = "tidegate"
PICTURE: Final = ROOT / "docs/import-graph.svg"
_HIDDEN: Final = ("_version", "lazy_package")
"""Modules that have no part in the architecture."""
_INK, _GREY, _PALE, _BOX, _EDGE = "#1c2833", "#5d6d7e", "#cfd6dc", "#eef3f7", "#1f6fb2"
_NOTE: Final = (
    "Blue: imports. Grey: imports that a chain of others implies. A folder imports only from layers below it."
)
_WIDTH, _ROW, _BOX_HEIGHT, _MARGIN, _GAP = 1000, 92, 54, 24, 190


class ImportGraph(NamedTuple):
    """Layers of folders and modules, the highest first, and the imports between them.

    `subfolders` has the names of the packages inside each folder. `direct` has the imports that no chain of other
    imports implies; `implied` has the rest.
    """

    layers: list[list[str]]
    subfolders: dict[str, list[str]]
    direct: list[tuple[str, str]]
    implied: list[tuple[str, str]]


def read_graph() -> ImportGraph:
    """The import graph of the package as it is now."""
    graph = grimp.build_graph(PACKAGE)
    modules = {name.rpartition(".")[2] for name in graph.find_children(PACKAGE)} - set(_HIDDEN)
    edges = set()
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            one, other = _part(module), _part(imported)
            if one != other and {one, other} <= modules:
                edges.add((one, other))
    subfolders = {
        name: sorted(path.parent.name for path in (ROOT / "src" / PACKAGE / name).glob("[a-z]*/__init__.py"))
        for name in modules
    }
    implied = {edge for edge in edges if _is_implied(edge, edges)}
    return ImportGraph(
        [kept for layer in _layers() if (kept := [name for name in layer if name in modules])],
        subfolders,
        sorted(edges - implied),
        sorted(implied),
    )


def _part(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def _layers() -> list[list[str]]:
    """The layers that import-linter checks, the highest first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    [contract] = [one for one in contracts if one.get("containers") == [PACKAGE]]
    return [re.findall(r"\w+", layer) for layer in contract["layers"]]


def _is_implied(edge: tuple[str, str], edges: set[tuple[str, str]]) -> bool:
    """Whether other imports lead from the first to the second, too."""
    first, second = edge
    waiting = [to for start, to in edges if start == first and to != second]
    visited = set[str]()
    while waiting:
        at = waiting.pop()
        if at == second:
            return True
        if at not in visited:
            visited.add(at)
            waiting += [to for start, to in edges if start == at]
    return False


def listing(graph: ImportGraph) -> str:
    """The folders and their imports as text, which the picture contains as its description."""
    layers = " / ".join(" ".join(layer) for layer in graph.layers)
    imports = ", ".join(f"{one}>{other}" for one, other in sorted(graph.direct + graph.implied))
    return f"layers: {layers}; imports: {imports}"


def draw(graph: ImportGraph) -> str:
    """The graph as SVG: a box for each folder, blue arrows for direct imports, grey ones for implied imports."""
    height = _ROW * len(graph.layers) + 2 * _MARGIN
    figure = new_figure(_WIDTH, height, "#ffffff")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, _WIDTH), ylim=(height, 0))
    axes.set_axis_off()
    boxes = _place(graph)
    for edges, colour, width, order in ((graph.implied, _PALE, 0.8, 1), (graph.direct, _EDGE, 1.2, 2)):
        for one, other in edges:
            (x1, y1, _), (x2, y2, _) = boxes[one], boxes[other]
            bend = 0.0 if y2 - y1 <= _ROW else 0.06 if x2 >= x1 else -0.06
            axes.add_patch(
                FancyArrowPatch(
                    (x1, y1 + _BOX_HEIGHT / 2),
                    (x2, y2 - _BOX_HEIGHT / 2),
                    arrowstyle="-|>",
                    mutation_scale=9,
                    connectionstyle=f"arc3,rad={bend}",
                    color=colour,
                    linewidth=width,
                    shrinkA=0,
                    shrinkB=1,
                    zorder=order,
                )
            )
    for name, (x, y, width) in boxes.items():
        corner = x - width / 2, y - _BOX_HEIGHT / 2
        shape = FancyBboxPatch(
            corner,
            width,
            _BOX_HEIGHT,
            boxstyle="round,pad=0,rounding_size=6",
            facecolor=_BOX,
            edgecolor=_GREY,
        )
        shape.set_zorder(3)
        axes.add_patch(shape)
        inside = " ".join(graph.subfolders[name])
        _write(axes, x, y - 3 if inside else y + 5, name, size=13, ink=_INK)
        _write(axes, x, y + 15, inside, size=10, ink=_GREY)
    _write(axes, _WIDTH / 2, height - _MARGIN + 4, _NOTE, size=11, ink=_GREY)
    return to_svg(figure).replace("<g>", f"<desc>{escape(listing(graph))}</desc>\n <g>", 1)


def _place(graph: ImportGraph) -> dict[str, tuple[float, float, float]]:
    """The centre and the width of each box; the boxes of a layer are evenly spread."""
    boxes = {}
    for row, layer in enumerate(graph.layers):
        widths = [max(8.5 * len(name), 5.8 * len(" ".join(graph.subfolders[name]))) + 24 for name in layer]
        gap = min(_GAP, (_WIDTH - 2 * _MARGIN - sum(widths)) / max(1, len(layer) - 1))
        left = (_WIDTH - sum(widths) - gap * (len(layer) - 1)) / 2
        for name, width in zip(layer, widths, strict=True):
            boxes[name] = (left + width / 2, _MARGIN + _ROW * row + _BOX_HEIGHT / 2, width)
            left += width + gap
    return boxes


def _write(axes: Axes, x: float, y: float, text: str, *, size: float, ink: str) -> None:
    axes.text(x, y, text, ha="center", color=ink, fontsize=size, fontfamily=FONT, zorder=4)


def main() -> None:
    """Write the picture."""
    PICTURE.write_text(draw(read_graph()), encoding="utf-8")


if __name__ == "__main__":
    main()
