from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tidegate as tg
from tidegate import cli, experiments
from tidegate.experiments.claims import Claim
from tidegate.experiments.experiment import Experiment, Grid
from tidegate.experiments.plots import Bars
from tidegate.experiments.shown import Shown
from tidegate.types import InputError

EXAMPLE = Path(__file__).parents[1] / "examples" / "auctions.toml"


def output(*arguments: str) -> str:
    result = CliRunner().invoke(cli.app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_policies_are_all_listed() -> None:
    shown = output("policies")
    assert all(name in shown for name in tg.policies.names())


def test_table_2_of_ijoin_has_the_printed_totals(tmp_path: Path) -> None:
    told = output("reproduce", "ijoin/table2", "--master", "none", "--out", str(tmp_path))
    totals = [line.split() for line in told.splitlines() if "│ total " in line]
    assert [(line[1], line[-2]) for line in totals] == [("exact", "36"), ("fifo", "6")]


def measure(*, policy: str, seed: int) -> dict[str, float]:
    if policy == "broken":
        raise ValueError("no [luck]")
    return {"results": len(policy) + seed}


MADE_UP = Experiment(
    "ijoin/made-up",
    "[lengths]",
    "longer is more",
    Grid({"policy": ("age", "random")}, runs=4, quick_runs=2),
    measure,
    Shown(("policy",), ("results",)),
    (Bars("policy", "results", "policy"),),
    lambda _: (Claim("[more] is more", "holds", "+1 %"),),
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
    told = ["reproduce", "made-up", "--paper", "kulkarni", "--master", "none", "--out", str(tmp_path)]
    assert "4.5" in output(*told)
    assert "3.5" in output(*told, "--quick")
    assert "± " in output(*told)
    assert "± " not in output(*told, "--runs", "1")
    shown = output(*told, "--docs", str(tmp_path / "guide.md"))
    assert "holds: [more] is more (+1 %)" in shown
    assert (tmp_path / "ijoin/made-up.svg").read_text().startswith("<svg")
    assert (tmp_path / "index.html").is_file()
    assert "[lengths]" in (tmp_path / "guide.md").read_text()


@pytest.mark.usefixtures("made_up")
def test_what_is_finished_can_be_told_without_running_more(tmp_path: Path) -> None:
    told = ["reproduce", MADE_UP.name, "--master", "none", "--out", str(tmp_path)]
    nothing = output(*told, "--finished")
    assert f"not run, or not without --data: {MADE_UP.name}" in nothing
    output(*told, "--runs", "1")
    shown = output(*told, "--finished", "--docs", str(tmp_path / "guide.md"))
    assert "│ age    │ 3 " in shown
    assert "as far as it was finished" in (tmp_path / "guide.md").read_text()


def test_cells_that_fail_are_told_and_the_others_shown(
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
def test_an_output_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file cannot be written .* by --out"):
        output("reproduce", MADE_UP.name, "--master", "none", "--out", str(tmp_path / "file"))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["fig99"], "'fig99' cannot be reproduced yet; there is .*ijoin/table2"),
        (["fig5"], "'fig5' is in several papers; give --paper, or one of windowed-joins/figure5"),
        (["fig5", "--paper", "nobody"], r"'nobody' is no paper here; .*ijoin \(Kulkarni"),
        (["windowed-joins/recorded"], "windowed-joins/recorded needs recorded streams; .* by --data"),
        (["ijoin/table2", "--data", "no-such"], "there is no folder no-such; .* by --data"),
        (["ijoin/table2", "--conf", "odd"], "--conf 'odd' is no setting; write name=value"),
    ],
)
def test_what_cannot_be_reproduced_is_told(given: list[str], told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=told):
        output("reproduce", *given, "--out", str(tmp_path))


def test_a_pipeline_is_checked_without_spark() -> None:
    assert "until_expiry" in output("run", str(EXAMPLE), "--check")


def test_an_unknown_benchmark_lists_the_known_ones() -> None:
    result = CliRunner().invoke(cli.app, ["bench", "speed"])
    assert result.exit_code == 2
    known = sorted(path.stem for path in (Path(__file__).parents[1] / "benchmarks").glob("*.py"))
    assert all(name in result.output for name in ("core", *known))


def test_errors_of_the_user_s_are_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["tidegate", "run", "no such [file].toml"])
    with pytest.raises(SystemExit) as exit_:
        cli.run()
    assert exit_.value.code == 2
    told = capsys.readouterr().err
    assert told.startswith("error: ")
    assert "no such [file].toml" in told
    assert "Traceback" not in told
