"""Pages and the Markdown document show tables, charts and verdicts, and need no network."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from pyarrow import csv, parquet

from tidegate.experiments import EXPERIMENTS
from tidegate.experiments.cells import CellRunner
from tidegate.experiments.claims import JudgedClaim
from tidegate.experiments.document import write_document
from tidegate.experiments.pages import write_pages
from tidegate.experiments.summary import ExperimentSummary, summarize
from tidegate.types import InputError


@pytest.fixture(scope="module")
def summaries() -> list[ExperimentSummary]:
    chosen = [EXPERIMENTS[name] for name in ("ijoin/table2", "stochastic-streams/figure6")]
    runner = CellRunner.for_experiments(chosen, None)
    cells = {one.name: one.cells() for one in chosen}
    ended = {cell: runner.run(cell) for some in cells.values() for cell in some}
    broken = cells["ijoin/table2"][0]
    ended[broken] = runner.result(broken, None, "KeyError: <odd>")
    return [summarize(one, cells[one.name], ended) for one in chosen]


def test_a_run_is_written_as_numbers_charts_and_pages(
    summaries: list[ExperimentSummary], tmp_path: Path
) -> None:
    index = write_pages(summaries, tmp_path / "new", "quick & <small>").read_text()
    assert "quick &amp; &lt;small&gt;" in index
    assert 'href="stochastic-streams/figure6.html"' in index
    assert "1 cells failed" in index
    page = (tmp_path / "new/stochastic-streams/figure6.html").read_text()
    assert page.count("<svg") == 1
    assert "holds in part" in page
    assert "KeyError: &lt;odd&gt;" in (tmp_path / "new/ijoin/table2.html").read_text()
    for text in (index, page):
        assert not re.search(r"(?:src|href)=\"(?:https?:)?//", text)
    stem = tmp_path / "new/stochastic-streams/figure6"
    assert stem.with_suffix(".svg").read_text().startswith("<svg")
    assert stem.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    kept = parquet.read_table(stem.with_suffix(".parquet"))
    assert kept.num_rows == csv.read_csv(stem.with_suffix(".csv")).num_rows == 3 * 41


def test_the_document_has_every_chart_and_verdict(summaries: list[ExperimentSummary], tmp_path: Path) -> None:
    guide = tmp_path / "reproduction.md"
    write_document(summaries, guide, "a run", ["ijoin/tickers"])
    text = guide.read_text()
    for link in re.findall(r"\]\(([^)]+\.svg)\)", text):
        assert (tmp_path / link).is_file()
    assert "Not run: ijoin/tickers." in text
    assert "1 cells failed: ijoin.tables.instants: join exact, seed 0." in text
    assert text.count("### ") == 2


def test_a_deviation_is_explained_only_if_a_claim_does_not_hold(
    summaries: list[ExperimentSummary], tmp_path: Path
) -> None:
    experiment = summaries[1].experiment
    explained = replace(experiment, text=experiment.text._replace(deviation="Because of this."))
    walks = summaries[1]._replace(experiment=explained)
    held = walks._replace(claims=(JudgedClaim("a", "holds", ""),))
    for one, there in ((walks, True), (held, False)):
        write_document([one], tmp_path / "guide.md", "a run")
        assert ("Because of this." in (tmp_path / "guide.md").read_text()) == there


def test_a_folder_that_cannot_be_written_is_reported(
    summaries: list[ExperimentSummary], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot write to .*; set --out"):
        write_pages(summaries, tmp_path / "file", "")


def test_claims_that_cannot_be_judged_are_open() -> None:
    experiment = EXPERIMENTS["ijoin/figure5"]
    runner = CellRunner.for_experiments([experiment], None)
    cells = experiment.cells(quick=True)[:1]
    ended = {cells[0]: runner.result(cells[0], '[{"importance": 1, "size": 1, "fairness": 1}]', None)}
    [claim] = summarize(experiment, cells, ended).claims
    assert claim.verdict == "open"


def test_pages_have_no_charts_without_matplotlib(
    summaries: list[ExperimentSummary], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tidegate.experiments.summary.can_draw", lambda: False)
    experiment = summaries[1].experiment
    runner = CellRunner.for_experiments([experiment], None)
    cells = experiment.cells()
    summary = summarize(experiment, cells, {cell: runner.run(cell) for cell in cells})
    assert not summary.charts
    write_pages([summary], tmp_path, "a run")
    assert "<svg" not in (tmp_path / f"{experiment.name}.html").read_text()
