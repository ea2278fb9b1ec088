"""The prose about figures is read from Markdown."""

from __future__ import annotations

from pathlib import Path

from tidegate.experiments.figure_text import FigureText, read_texts

TEXT = """# A paper

## Shared

RUNS: Ten
runs.

## figure1: recall: by memory

It rises.

Chosen: {RUNS} One
stream.

Deviation: It does not: {RUNS}

## table2: rows

Many.
"""


def test_a_section_is_a_figure_and_shared_paragraphs_are_filled_in(tmp_path: Path) -> None:
    path = tmp_path / "figures.md"
    path.write_text(TEXT)
    assert read_texts(path, "paper") == {
        "figure1": FigureText(
            "paper/figure1",
            "recall: by memory",
            "It rises.",
            "Ten runs. One stream.",
            "It does not: Ten runs.",
        ),
        "table2": FigureText("paper/table2", "rows", "Many."),
    }
