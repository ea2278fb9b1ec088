"""What was reproduced, as files: numbers, pictures, a page for each experiment, and an index; no network needed."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyarrow import csv, parquet

from tidegate.experiments import PAPERS
from tidegate.experiments.claims import Claim, Verdict
from tidegate.experiments.png import png
from tidegate.experiments.reproduced import Reproduced
from tidegate.types import InputError

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


def write_pages(made: Sequence[Reproduced], out: Path, run: str) -> Path:
    """Write everything of a run to a folder; the index is returned.

    Parameters
    ----------
    made
        What was run.
    out
        The folder.
    run
        How it was run, in words.
    """
    with told(out):
        for one in made:
            folder, name = out / one.experiment.paper, one.experiment.name.partition("/")[2]
            folder.mkdir(parents=True, exist_ok=True)
            _numbers(one, folder / name)
            for picture, svg in pictures(one):
                (folder / f"{picture}.svg").write_text(svg, encoding="utf-8")
                drawn = png(svg)
                if drawn is not None:
                    (folder / f"{picture}.png").write_bytes(drawn)
            (folder / f"{name}.html").write_text(_page(one, run), encoding="utf-8")
        index = out / "index.html"
        index.write_text(_index(made, run), encoding="utf-8")
    return index


@contextlib.contextmanager
def told(out: Path) -> Iterator[None]:
    """Say what cannot be written."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{out} cannot be written ({error}); give a folder that can be by --out") from error


def pictures(made: Reproduced) -> Iterator[tuple[str, str]]:
    """The pictures by the names of their files, without what they end in."""
    name = made.experiment.name.partition("/")[2]
    seen: Counter[str] = Counter()
    for panel, svg in made.pictures:
        words = "".join(letter if letter.isalnum() else "-" for letter in panel.lower()).strip("-")
        label = f"{name}-{words}" if words else name
        seen[label] += 1
        yield (label if seen[label] == 1 else f"{label}-{seen[label]}"), svg


def found(claims: Iterable[Claim]) -> str:
    """How many claims hold, in words.

    Examples
    --------
    >>> found([Claim("a", "holds", ""), Claim("b", "does not hold", ""), Claim("c", "holds", "")])
    '2 hold, 1 does not hold'
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


def _numbers(made: Reproduced, path: Path) -> None:
    if not len(made.results):
        return
    names = list(dict.fromkeys(name for row in made.results.rows for name in row))
    table = pa.table({name: [row.get(name) for row in made.results.rows] for name in names})
    csv.write_csv(table, path.with_suffix(".csv"))
    parquet.write_table(table, path.with_suffix(".parquet"))


def _page(made: Reproduced, run: str) -> str:
    experiment = made.experiment
    paper = PAPERS[experiment.paper]
    name = experiment.name.partition("/")[2]
    files = f'<a href="{name}.csv">CSV</a>, <a href="{name}.parquet">Parquet</a>'
    effort = f"{made.runs} run{'s' if made.runs > 1 else ''} a configuration, {made.seconds:.0f} s of processor time"
    effort += f"; here: {made.shorter}" if made.shorter else ""
    parts = [
        '<p class="quiet"><a href="../index.html">all experiments</a></p>',
        f"<h1>{escape(made.figure)}: {escape(experiment.title)}</h1>",
        f'<p class="quiet">{escape(paper.title)} ({escape(paper.authors)})</p>',
        f"<p><b>The paper:</b> {escape(experiment.says)}</p>",
        _claims(made.claims),
        f"<p>{escape(experiment.deviates)}</p>" if experiment.deviates and not _all_hold(made) else "",
        *(svg for _, svg in made.pictures),
        _table(made.header, made.rows),
        f'<p class="quiet">{escape(experiment.chosen)}</p>',
        f'<p class="quiet">{effort}; {escape(run)}. All numbers: {files}.</p>',
    ]
    if made.failed:
        failures = "".join(
            f"<li>{escape(one.cell.told)}: {escape(str(one.error))}</li>" for one in made.failed
        )
        parts.append(f"<h2>Cells that failed</h2><ul>{failures}</ul>")
    return _document(f"{made.figure}: {experiment.title}", parts)


def _all_hold(made: Reproduced) -> bool:
    return all(claim.verdict == "holds" for claim in made.claims)


def _claims(claims: Iterable[Claim]) -> str:
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


def _index(made: Sequence[Reproduced], run: str) -> str:
    parts = ["<h1>What the papers published, done again</h1>", f'<p class="quiet">{escape(run)}</p>']
    for name, paper in PAPERS.items():
        of = [one for one in made if one.experiment.paper == name]
        if not of:
            continue
        rows = "".join(
            f'<tr><td><a href="{one.experiment.name}.html">{escape(one.figure)}</a></td>'
            f"<td>{escape(one.experiment.title)}</td><td>{escape(found(one.claims))}</td>"
            f"<td>{f'{len(one.failed)} cells failed' if one.failed else ''}</td></tr>"
            for one in of
        )
        parts.append(f"<h2>{escape(paper.title)}</h2><table>{rows}</table>")
    return _document("Reproduced", parts)


def _document(title: str, parts: Iterable[str]) -> str:
    body = "\n".join(part for part in parts if part)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )
