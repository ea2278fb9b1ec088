from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from typer.testing import CliRunner

import tidegate as tg
from tidegate import cli, experiments
from tidegate.alerts import edge
from tidegate.alerts.stores.bracket_store import Shape
from tidegate.experiments.claims import Claim
from tidegate.experiments.experiment import Experiment, Grid
from tidegate.experiments.figure_text import FigureText
from tidegate.experiments.plots import BarPlot
from tidegate.experiments.table_layout import TableLayout
from tidegate.types import InputError

EXAMPLE = Path(__file__).parents[1] / "examples" / "auctions.toml"


def output(*arguments: str) -> str:
    result = CliRunner().invoke(cli.app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def loaded_by(code: str) -> set[str]:
    """The modules that some code loads in a separate process."""
    listed = f"import sys\n{code}\nprint('loaded:', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", listed], capture_output=True, text=True, check=True)  # noqa: S603 - our own code
    return set(done.stdout.rpartition("loaded:")[2].split())


def test_the_version_is_shown() -> None:
    assert output("--version").strip() == f"tidegate {tg.__version__}"


def test_policies_are_listed_with_when_to_use_each() -> None:
    shown = output("policies")
    assert all(name in shown for name in tg.policies.names())
    assert "Keys recur, some far more often" in shown


@pytest.mark.parametrize("command", [[], ["policies"], ["demo"], ["run"], ["edge"], ["reproduce"], ["bench"]])
def test_help_ends_with_examples(command: list[str]) -> None:
    shown = output(*command, "--help")
    assert f"tidegate {' '.join(command)}".strip() in shown.rpartition("Examples:")[2]


def test_the_options_of_edge_are_those_of_the_filter() -> None:
    assert get_args(cli.Shape) == get_args(Shape)
    assert get_args(cli.LineFormat) == get_args(edge.LineFormat)
    assert cli._MAX_LINE_BYTES == edge.MAX_LINE_BYTES


def test_run_loads_neither_experiments_nor_the_demo() -> None:
    loaded = loaded_by(
        f"from tidegate.cli import app\napp(['run', {str(EXAMPLE)!r}, '--check'], standalone_mode=False)"
    )
    assert "tidegate.spark.pipeline.run" in loaded
    assert not [name for name in loaded if name.startswith(("tidegate.experiments", "tidegate.spark.demo"))]


def test_the_version_loads_neither_numba_nor_spark() -> None:
    loaded = loaded_by("from tidegate.cli import app\napp(['--version'], standalone_mode=False)")
    assert loaded.isdisjoint({"numba", "pyspark"})


def test_table_2_of_ijoin_has_the_printed_totals(tmp_path: Path) -> None:
    shown = output("reproduce", "ijoin/table2", "--master", "none", "--out", str(tmp_path))
    totals = [line.split() for line in shown.splitlines() if "│ total " in line]
    assert [(line[1], line[-2]) for line in totals] == [("exact", "36"), ("fifo", "6")]


def measure(*, policy: str, seed: int) -> dict[str, float]:
    if policy == "broken":
        raise ValueError("no [luck]")
    return {"results": len(policy) + seed}


MADE_UP = Experiment(
    FigureText("ijoin/made-up", "[lengths]", "longer is more"),
    Grid({"policy": ("age", "random")}, runs=4, quick_runs=2),
    measure,
    TableLayout(("policy",), ("results",)),
    (BarPlot("policy", "results", "policy"),),
    (Claim("[more] is more", lambda _: 1.0, label="always"),),
)


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(experiments.EXPERIMENTS, MADE_UP.name, MADE_UP)


def test_experiments_are_listed() -> None:
    listed = output("reproduce")
    assert all(name in listed for name in experiments.EXPERIMENTS)
    assert "needs --data" in listed


@pytest.mark.usefixtures("made_up")
def test_claims_are_judged_below_their_table_and_files_are_written(tmp_path: Path) -> None:
    command = ["reproduce", "made-up", "--paper", "kulkarni", "--master", "none", "--out", str(tmp_path)]
    assert "4.5" in output(*command)
    assert "3.5" in output(*command, "--quick")
    assert "± " in output(*command)
    assert "± " not in output(*command, "--runs", "1")
    shown = output(*command, "--docs", str(tmp_path / "guide.md"))
    assert "holds: [more] is more (always +1 %)" in shown
    assert (tmp_path / "ijoin/made-up.svg").read_text().startswith("<svg")
    assert (tmp_path / "index.html").is_file()
    assert "[lengths]" in (tmp_path / "guide.md").read_text()


@pytest.mark.usefixtures("made_up")
def test_finished_cells_are_reported_without_running_more(tmp_path: Path) -> None:
    command = ["reproduce", MADE_UP.name, "--master", "none", "--out", str(tmp_path)]
    nothing = output(*command, "--finished")
    assert f"not run: {MADE_UP.name}" in nothing
    output(*command, "--runs", "1")
    shown = output(*command, "--finished", "--docs", str(tmp_path / "guide.md"))
    assert "│ age    │ 3 " in shown
    assert "only the finished cells" in (tmp_path / "guide.md").read_text()


def test_failed_cells_are_reported_and_the_others_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = replace(MADE_UP, grid=Grid({"policy": ("age", "broken")}))
    monkeypatch.setitem(experiments.EXPERIMENTS, MADE_UP.name, broken)
    result = CliRunner().invoke(
        cli.app, ["reproduce", MADE_UP.name, "--master", "none", "--out", str(tmp_path)]
    )
    assert result.exit_code == 1
    assert "1 of 2 cells failed" in result.output
    assert "policy broken, seed 0: ValueError: no [luck]" in result.output
    assert "│ age" in result.output


@pytest.mark.usefixtures("made_up")
def test_an_output_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot write to .*file .*; set --out"):
        output("reproduce", MADE_UP.name, "--master", "none", "--out", str(tmp_path / "file"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["fig99"], "unknown experiment 'fig99'; use one of .*ijoin/table2"),
        (["fig5"], "several papers have 'fig5'; use --paper, or one of windowed-joins/figure5"),
        (["fig5", "--paper", "nobody"], r"'nobody' does not name one paper; .*ijoin \(Kulkarni"),
        (["windowed-joins/recorded"], "windowed-joins/recorded needs recorded streams; set --data"),
        (["ijoin/table2", "--data", "no-such"], "--data no-such is not a folder"),
        (["ijoin/table2", "--conf", "odd"], "--conf 'odd' must be written as name=value"),
    ],
)
def test_unknown_experiments_and_options_are_refused(given: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        output("reproduce", *given, "--out", str(tmp_path))


def test_a_pipeline_is_checked_without_spark() -> None:
    assert "until_expiry" in output("run", str(EXAMPLE), "--check")


def test_an_unknown_benchmark_lists_the_known_ones() -> None:
    result = CliRunner().invoke(cli.app, ["bench", "speed"])
    assert result.exit_code == 2
    known = sorted(path.stem for path in (Path(__file__).parents[1] / "benchmarks").glob("*.py"))
    assert all(name in result.output for name in ("core", *known))


def test_an_input_error_is_shown_as_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["tidegate", "run", "no such [file].toml"])
    with pytest.raises(SystemExit) as exit_:
        cli.run()
    assert exit_.value.code == 2
    printed = capsys.readouterr().err
    assert printed.startswith("error: ")
    assert "no such [file].toml" in printed
    assert "Traceback" not in printed
