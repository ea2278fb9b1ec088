"""Write numbers, charts, a page for each experiment, and an index. The pages need no network."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyarrow import csv, parquet

from tidegate.experiments import PAPERS
from tidegate.experiments.claims import JudgedClaim, Verdict
from tidegate.experiments.summary import ExperimentSummary
from tidegate.types import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE: Final = """
body { font: 15px/1.5 Inter, "DejaVu Sans", Arial, sans-serif; color: #1c2833; background: #fbfcfd;
  max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
a { color: #1f6fb2; text-decoration: none; }
p.quiet, small { color: #5d6d7e; }
table { border-collapse: collapse; font-size: 13px; display: block; overflow-x: auto; }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #d6dce1; white-space: nowrap; }
svg { max-width: 40rem; width: 100%; height: auto; display: block; margin: 1rem 0; }
li { margin: .3rem 0; }
b.holds { color: #2f6f3e; } b.part { color: #9a6b00; } b.not { color: #b03a2e; } b.open { color: #5d6d7e; }
""".strip()
_CLASSES: Final = {"holds": "holds", "holds in part": "part", "does not hold": "not", "open": "open"}


def write_pages(summaries: Sequence[ExperimentSummary], out: Path, run: str) -> Path:
    """Write the pages of a run to a folder, and return the path of the index.

    Parameters
    ----------
    summaries
        The experiments.
    out
        The folder.
    run
        A description of the run.
    """
    with report_write_errors(out):
        for one in summaries:
            folder, name = out / one.experiment.paper, one.experiment.name.partition("/")[2]
            folder.mkdir(parents=True, exist_ok=True)
            _write_numbers(one, folder / name)
            for picture, chart in named_charts(one):
                (folder / f"{picture}.svg").write_text(svg(chart), encoding="utf-8")
                (folder / f"{picture}.png").write_bytes(_png(chart))
            (folder / f"{name}.html").write_text(_page(one, run), encoding="utf-8")
        index = out / "index.html"
        index.write_text(_index(summaries, run), encoding="utf-8")
    return index


@contextlib.contextmanager
def report_write_errors(out: Path) -> Iterator[None]:
    """Turn an `OSError` into a message that names the folder."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot write to {out} ({error}); set --out to a folder that can be written"
        ) from error


def svg(chart: Figure) -> str:
    """A chart as SVG."""
    from tidegate.pictures import to_svg  # noqa: PLC0415 - Matplotlib is needed here only

    return to_svg(chart)


def _png(chart: Figure) -> bytes:
    from tidegate.pictures import to_png  # noqa: PLC0415 - Matplotlib is needed here only

    return to_png(chart)


def named_charts(summary: ExperimentSummary) -> Iterator[tuple[str, Figure]]:
    """The charts with the names of their files, without a suffix."""
    name = summary.experiment.name.partition("/")[2]
    labels: Counter[str] = Counter()
    for panel, chart in summary.charts:
        words = "".join(letter if letter.isalnum() else "-" for letter in panel.lower()).strip("-")
        label = f"{name}-{words}" if words else name
        labels[label] += 1
        yield (label if labels[label] == 1 else f"{label}-{labels[label]}"), chart


def count_verdicts(claims: Iterable[JudgedClaim]) -> str:
    """How many claims hold, in words.

    Examples
    --------
    >>> count_verdicts([JudgedClaim("a", "holds", ""), JudgedClaim("b", "does not hold", "")])
    '1 holds, 1 does not hold'
    """
    counts = Counter(claim.verdict for claim in claims)
    words: dict[Verdict, str] = {
        "holds": "hold",
        "holds in part": "hold in part",
        "does not hold": "do not hold",
        "open": "open",
    }
    return (
        ", ".join(
            f"{counts[verdict]} {verdict if counts[verdict] == 1 else word}"
            for verdict, word in words.items()
            if counts[verdict]
        )
        or "no claims"
    )


def _write_numbers(summary: ExperimentSummary, path: Path) -> None:
    if not len(summary.results):
        return
    names = list(dict.fromkeys(name for row in summary.results.rows for name in row))
    table = pa.table({name: [row.get(name) for row in summary.results.rows] for name in names})
    csv.write_csv(table, path.with_suffix(".csv"))
    parquet.write_table(table, path.with_suffix(".parquet"))


def _page(summary: ExperimentSummary, run: str) -> str:
    experiment = summary.experiment
    paper = PAPERS[experiment.paper]
    name = experiment.name.partition("/")[2]
    files = f'<a href="{name}.csv">CSV</a>, <a href="{name}.parquet">Parquet</a>'
    runs = f"{summary.runs} run{'s' if summary.runs > 1 else ''} per configuration"
    effort = f"{runs}, {summary.seconds:.0f} s of processor time"
    effort += f"; {summary.reductions}" if summary.reductions else ""
    parts = [
        '<p class="quiet"><a href="../index.html">all experiments</a></p>',
        f"<h1>{escape(summary.figure)}: {escape(experiment.text.title)}</h1>",
        f'<p class="quiet">{escape(paper.title)} ({escape(paper.authors)})</p>',
        f"<p><b>The paper:</b> {escape(experiment.text.finding)}</p>",
        _claims(summary.claims),
        f"<p>{escape(experiment.text.deviation)}</p>"
        if experiment.text.deviation and not _all_hold(summary)
        else "",
        *(svg(chart) for _, chart in summary.charts),
        _table(summary.header, summary.rows),
        f'<p class="quiet">{escape(experiment.text.choices)}</p>',
        f'<p class="quiet">{effort}; {escape(run)}. All numbers: {files}.</p>',
    ]
    if summary.failed:
        failures = "".join(
            f"<li>{escape(one.cell.description)}: {escape(str(one.error))}</li>" for one in summary.failed
        )
        parts.append(f"<h2>Cells that failed</h2><ul>{failures}</ul>")
    return _document(f"{summary.figure}: {experiment.text.title}", parts)


def _all_hold(summary: ExperimentSummary) -> bool:
    return all(claim.verdict == "holds" for claim in summary.claims)


def _claims(claims: Iterable[JudgedClaim]) -> str:
    items = "".join(
        f'<li><b class="{_CLASSES[claim.verdict]}">{claim.verdict}</b>: {escape(claim.text)} '
        f"<small>({escape(claim.numbers)})</small></li>"
        for claim in claims
    )
    return f"<ul>{items}</ul>" if items else ""


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _index(summaries: Sequence[ExperimentSummary], run: str) -> str:
    parts = ["<h1>The papers' experiments, reproduced</h1>", f'<p class="quiet">{escape(run)}</p>']
    for name, paper in PAPERS.items():
        chosen = [one for one in summaries if one.experiment.paper == name]
        if not chosen:
            continue
        rows = "".join(
            f'<tr><td><a href="{one.experiment.name}.html">{escape(one.figure)}</a></td>'
            f"<td>{escape(one.experiment.text.title)}</td><td>{escape(count_verdicts(one.claims))}</td>"
            f"<td>{f'{len(one.failed)} cells failed' if one.failed else ''}</td></tr>"
            for one in chosen
        )
        parts.append(f"<h2>{escape(paper.title)}</h2><table>{rows}</table>")
    return _document("The papers' experiments, reproduced", parts)


def _document(title: str, parts: Iterable[str]) -> str:
    body = "\n".join(part for part in parts if part)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )
