"""Pages and the guide say what was found, and need nothing from elsewhere."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from pyarrow import csv, parquet

from tidegate.experiments import EXPERIMENTS
from tidegate.experiments.claims import Claim, Interval
from tidegate.experiments.document import write_document
from tidegate.experiments.outcomes import Plan
from tidegate.experiments.pages import write_pages
from tidegate.experiments.picture import bars, colours, heat, lines
from tidegate.experiments.reproduced import Reproduced, reproduced
from tidegate.types import InputError


@pytest.fixture(scope="module")
def made() -> list[Reproduced]:
    chosen = [EXPERIMENTS[name] for name in ("ijoin/table2", "stochastic-streams/figure6")]
    plan = Plan.of(chosen, None)
    cells = {one.name: one.cells() for one in chosen}
    ended = {cell: plan.run(cell) for some in cells.values() for cell in some}
    broken = cells["ijoin/table2"][0]
    ended[broken] = plan.ended(broken, None, "KeyError: <odd>")
    return [reproduced(one, cells[one.name], ended) for one in chosen]


def test_a_run_is_written_as_numbers_pictures_and_pages(made: list[Reproduced], tmp_path: Path) -> None:
    index = write_pages(made, tmp_path / "new", "quick & <small>").read_text()
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


def test_the_guide_has_every_figure_and_what_was_found(made: list[Reproduced], tmp_path: Path) -> None:
    guide = tmp_path / "reproduction.md"
    write_document(made, guide, "a run", ["ijoin/tickers"])
    text = guide.read_text()
    for link in re.findall(r"\]\(([^)]+\.svg)\)", text):
        assert (tmp_path / link).is_file()
    assert "Not run: ijoin/tickers." in text
    assert "1 cells failed: ijoin.tables.instants: join exact, seed 0." in text
    assert text.count("### ") == 2


def test_a_deviation_is_explained_only_where_there_is_one(made: list[Reproduced], tmp_path: Path) -> None:
    walks = made[1]._replace(experiment=replace(made[1].experiment, deviates="Because of this."))
    held = walks._replace(claims=(Claim("a", "holds", ""),))
    for one, there in ((walks, True), (held, False)):
        write_document([one], tmp_path / "guide.md", "a run")
        assert ("Because of this." in (tmp_path / "guide.md").read_text()) == there


def test_what_cannot_be_written_is_told(made: list[Reproduced], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot be written .* by --out"):
        write_pages(made, tmp_path / "file", "")


def test_claims_that_cannot_be_judged_are_open() -> None:
    experiment = EXPERIMENTS["ijoin/figure5"]
    plan = Plan.of([experiment], None)
    cells = experiment.cells(quick=True)[:1]
    ended = {cells[0]: plan.ended(cells[0], '[{"importance": 1, "size": 1, "fairness": 1}]', None)}
    [claim] = reproduced(experiment, cells, ended).claims
    assert claim.verdict == "open"


def test_a_policy_has_one_colour_whatever_a_paper_calls_it() -> None:
    assert colours(["random", "age"])["random"] == colours(["EXACT", "RAND"])["RAND"]
    assert colours(["fifo"])["fifo"] == colours(["recent"])["recent"]
    many = colours(["IJOIN", "IJOIN as printed", "x", "y", "z"])
    assert len(set(many.values())) == 5


def test_pictures_stay_inside_their_frame() -> None:
    line = lines(
        "t", "x", "y", {"a": [(-5.0, Interval(2, 1, 3)), (5.0, 7.0)]}, dashed={"a": [(0.0, 9.0), (1.0, 1.0)]}
    )
    assert all(0 <= float(number) <= 680 for number in re.findall(r'c[xy]="([-\d.]+)"', line))
    assert "stroke-dasharray" in line
    drawn = bars("<t>", "x", "y", {"g": {"a": Interval(3, 2, 4), "b": 1.0}})
    assert "&lt;t&gt;" in drawn
    assert heat("t", "x", "y", {"r": {"a": 0.5, "b": 0.5}}).count('class="best"') == 2


def test_a_bar_of_less_than_nothing_hangs_from_it() -> None:
    drawn = bars("t", "x", "y", {"g": {"up": 3.0, "down": -6.0}})
    shape = r'class="bar" x="[\d.]+" y="([\d.]+)" width="[\d.]+" height="([\d.]+)"'
    (above, tall), (below, deep) = (tuple(map(float, found)) for found in re.findall(shape, drawn))
    assert above + tall == pytest.approx(below, abs=0.2)
    assert deep == pytest.approx(2 * tall, abs=0.2)
