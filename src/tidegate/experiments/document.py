"""What was reproduced, as a guide: all figures, beside what the paper says and what was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tidegate.experiments import PAPERS
from tidegate.experiments.pages import found, pictures, told
from tidegate.experiments.reproduced import Reproduced


def write_document(made: Sequence[Reproduced], path: Path, run: str, skipped: Sequence[str] = ()) -> None:
    """Write a Markdown file, and its pictures to a folder of the same name beside it.

    Parameters
    ----------
    made
        What was run.
    path
        The file.
    run
        How it was run, in words.
    skipped
        Experiments that were not run.
    """
    folder = path.with_suffix("")
    with told(path):
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.svg"):
            old.unlink()
        for one in made:
            for name, svg in pictures(one):
                (folder / f"{one.experiment.paper}-{name}.svg").write_text(svg, encoding="utf-8")
        path.write_text(_text(made, folder.name, run, skipped), encoding="utf-8")


def _text(made: Sequence[Reproduced], folder: str, run: str, skipped: Sequence[str]) -> str:
    lines = [
        "# What the papers say, and what was found",
        "",
        f"Written by `tidegate reproduce --all --docs`: {run}. Each claim is judged by its numbers:",
        "a margin that the paper says to be above 0, with the interval in which its mean lies with a confidence of",
        '95 %, over runs of the same seeds. "Open" means that the runs were too few or too unlike to tell.',
        "",
        "| paper | experiments | hold | in part | do not hold | open |",
        "|---|---|---|---|---|---|",
    ]
    for name, paper in PAPERS.items():
        of = [one for one in made if one.experiment.paper == name]
        counts = Counter(claim.verdict for one in of for claim in one.claims)
        numbers = [counts[verdict] for verdict in ("holds", "holds in part", "does not hold", "open")]
        if of:
            lines.append(f"| {paper.title} | {len(of)} | {' | '.join(map(str, numbers))} |")
    if skipped:
        lines += ["", f"Not run: {', '.join(skipped)}."]
    for name, paper in PAPERS.items():
        of = [one for one in made if one.experiment.paper == name]
        if of:
            lines += ["", f"## {paper.title}", "", f"{paper.authors}."]
        for one in of:
            lines += ["", *_section(one, folder)]
    return "\n".join(lines) + "\n"


def _section(made: Reproduced, folder: str) -> list[str]:
    experiment = made.experiment
    lines = [
        f"### {made.figure}: {experiment.title}",
        "",
        f"The paper: {experiment.says}" if not experiment.says.startswith("Not in") else experiment.says,
        f"Found: {found(made.claims)} (`tidegate reproduce {experiment.name}`).",
        "",
    ]
    for name, _ in pictures(made):
        file = f"{experiment.paper}-{name}"
        lines.append(f"![{made.figure}: {name}]({folder}/{file}.svg)")
    if made.pictures:
        lines.append("")
    lines += [f"- **{claim.verdict}**: {claim.text} ({_short(claim.numbers)})" for claim in made.claims]
    if not made.pictures:
        lines += _table(made)
    if experiment.deviates and any(claim.verdict != "holds" for claim in made.claims):
        lines += ["", experiment.deviates]
    runs = f"{made.runs} run{'s' if made.runs > 1 else ''} a configuration."
    lines += ["", f"{runs} {experiment.chosen}".strip()]
    if made.failed:
        lines += ["", f"{len(made.failed)} cells failed: {'; '.join(one.cell.told for one in made.failed)}."]
    return lines


def _table(made: Reproduced) -> list[str]:
    rows = [made.header, ("---",) * len(made.header), *made.rows]
    return ["", *("| " + " | ".join(row) + " |" for row in rows)]


def _short(numbers: str) -> str:
    """The first and worst of many numbers would be a choice: all of a few, or how many there are."""
    parts = numbers.split("; ")
    return numbers if len(parts) <= 8 else "; ".join(parts[:8]) + f"; and {len(parts) - 8} more"  # noqa: PLR2004 - a line or two
