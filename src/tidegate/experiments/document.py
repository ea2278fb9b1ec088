"""Write one Markdown document with all charts, the papers' findings and our verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tidegate.experiments import PAPERS
from tidegate.experiments.pages import count_verdicts, named_charts, report_write_errors, svg
from tidegate.experiments.summary import ExperimentSummary


def write_document(
    summaries: Sequence[ExperimentSummary], path: Path, run: str, skipped: Sequence[str] = ()
) -> None:
    """Write a Markdown file, and its charts to a folder of the same name next to it.

    Parameters
    ----------
    summaries
        The experiments.
    path
        The file.
    run
        A description of the run.
    skipped
        Experiments that were not run.
    """
    folder = path.with_suffix("")
    with report_write_errors(path):
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.svg"):
            old.unlink()
        for one in summaries:
            for name, chart in named_charts(one):
                (folder / f"{one.experiment.paper}-{name}.svg").write_text(svg(chart), encoding="utf-8")
        path.write_text(_text(summaries, folder.name, run, skipped), encoding="utf-8")


def _text(summaries: Sequence[ExperimentSummary], folder: str, run: str, skipped: Sequence[str]) -> str:
    lines = [
        "# The papers' claims and what we measured",
        "",
        "`tidegate reproduce` lists the experiments. `tidegate reproduce fig8 --paper xie` runs one of them, and",
        "`--all` runs all. Each experiment is a grid of independent cells that run on Spark.",
        "",
        "| option | effect |",
        "|---|---|",
        "| `--quick` | fewer runs and rows |",
        "| `--data FOLDER` | the folder of recorded streams |",
        "| `--master MASTER` | Spark's master; `none` runs in one process without Spark |",
        "| `--out FOLDER` | where numbers, charts and a page for each experiment go |",
        "",
        "A run that was stopped continues where it stopped.",
        "",
        f"`--docs` wrote this page: {run}.",
        "",
        "A claim states that some margins are above 0. Each margin is a mean over runs with the same seeds, with its",
        'confidence interval at 95 %. "Open" means that there were too few runs, or that they differed too much, to',
        "decide.",
        "",
        "| paper | experiments | hold | in part | do not hold | open |",
        "|---|---|---|---|---|---|",
    ]
    for name, paper in PAPERS.items():
        chosen = [one for one in summaries if one.experiment.paper == name]
        counts = Counter(claim.verdict for one in chosen for claim in one.claims)
        numbers = [counts[verdict] for verdict in ("holds", "holds in part", "does not hold", "open")]
        if chosen:
            lines.append(f"| {paper.title} | {len(chosen)} | {' | '.join(map(str, numbers))} |")
    if skipped:
        lines += ["", f"Not run: {', '.join(skipped)}."]
    for name, paper in PAPERS.items():
        chosen = [one for one in summaries if one.experiment.paper == name]
        if chosen:
            lines += ["", f"## {paper.title}", "", f"{paper.authors}."]
        for one in chosen:
            lines += ["", *_section(one, folder)]
    return "\n".join(lines) + "\n"


def _section(summary: ExperimentSummary, folder: str) -> list[str]:
    experiment, text = summary.experiment, summary.experiment.text
    lines = [
        f"### {summary.figure}: {text.title}",
        "",
        text.finding if text.finding.startswith("Not in") else f"The paper: {text.finding}",
        f"Verdicts: {count_verdicts(summary.claims)} (`tidegate reproduce {experiment.name}`).",
        "",
    ]
    for name, _ in named_charts(summary):
        file = f"{experiment.paper}-{name}"
        lines.append(f"![{summary.figure}: {name}]({folder}/{file}.svg)")
    if summary.charts:
        lines.append("")
    lines += [f"- **{claim.verdict}**: {claim.text} ({_short(claim.numbers)})" for claim in summary.claims]
    if not summary.charts:
        lines += _table(summary)
    if text.deviation and any(claim.verdict != "holds" for claim in summary.claims):
        lines += ["", text.deviation]
    runs = f"{summary.runs} run{'s' if summary.runs > 1 else ''} per configuration."
    reductions = f" In this run: {summary.reductions}." if summary.reductions else ""
    lines += ["", f"{text.choices}{reductions or f' {runs}'}".strip()]
    if summary.failed:
        lines += [
            "",
            f"{len(summary.failed)} cells failed: {'; '.join(one.cell.description for one in summary.failed)}.",
        ]
    return lines


def _table(summary: ExperimentSummary) -> list[str]:
    rows = [summary.header, ("---",) * len(summary.header), *summary.rows]
    return ["", *("| " + " | ".join(row) + " |" for row in rows)]


def _short(numbers: str) -> str:
    """The first eight numbers, and how many more there are."""
    parts = numbers.split("; ")
    return numbers if len(parts) <= 8 else "; ".join(parts[:8]) + f"; and {len(parts) - 8} more"  # noqa: PLR2004 - two lines
