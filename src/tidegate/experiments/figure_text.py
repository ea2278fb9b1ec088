"""The prose about the experiments of a paper, which is in the file `figures.md` of its package.

Each figure is a section. Its heading has the figure's name and title, and its first paragraph says what the paper
found. Paragraphs that begin with "Chosen:" and "Deviation:" may follow. `{NAME}` stands for the paragraph with that
name in the section "Shared".
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class FigureText(NamedTuple):
    """The prose about an experiment.

    Parameters
    ----------
    name
        The paper and the figure: "ijoin/figure2".
    title
        What is measured.
    finding
        What the paper found, in one sentence.
    choices
        What the paper leaves open and how it was chosen here.
    deviation
        Why a claim of the paper does not hold here.
    """

    name: str
    title: str
    finding: str
    choices: str = ""
    deviation: str = ""


def read_texts(path: Path, paper: str) -> dict[str, FigureText]:
    """The prose about each figure of a paper, by the figure's name."""
    texts = {}
    shared: dict[str, str] = {}
    for section in path.read_text(encoding="utf-8").split("\n## ")[1:]:
        heading, *paragraphs = (" ".join(paragraph.split()) for paragraph in section.split("\n\n"))
        labelled = dict(
            paragraph.split(": ", 1) for paragraph in paragraphs[heading != "Shared" :] if paragraph
        )
        if heading == "Shared":
            shared = labelled
            continue
        name, _, title = heading.partition(": ")
        choices, deviation = (labelled.get(label, "").format_map(shared) for label in ("Chosen", "Deviation"))
        texts[name] = FigureText(f"{paper}/{name}", title, paragraphs[0], choices, deviation)
    return texts
