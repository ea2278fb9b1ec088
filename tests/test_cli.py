from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tidegate as tg
from tidegate import cli, experiments
from tidegate.experiments.claims import Claim
from tidegate.experiments.reproduced import Reproduced
from tidegate.types import InputError

EXAMPLE = Path(__file__).parents[1] / "examples" / "auctions.toml"


def output(*arguments: str) -> str:
    result = CliRunner().invoke(cli.app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_policies_are_all_listed() -> None:
    shown = output("policies")
    assert all(name in shown for name in tg.policies.names())


def test_table_2_of_ijoin_has_the_printed_totals() -> None:
    totals = [line.split() for line in output("reproduce", "ijoin/table2").splitlines() if " total " in line]
    assert [(line[1], line[-2]) for line in totals] == [("exact", "36"), ("fifo", "6")]


def test_claims_are_judged_below_their_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(*, rows: int) -> Reproduced:
        return Reproduced(
            "Made up", ("rows",), [(str(rows), "")], (Claim("[more] is more", "holds", "+1 %"),)
        )

    monkeypatch.setitem(experiments.ALL, "made/up", partial(made, rows=7))
    monkeypatch.setitem(experiments.FULL, "made/up", partial(made, rows=70))
    assert "holds: [more] is more (+1 %)" in output("reproduce", "made/up")
    assert "│ 7 " in output("reproduce", "made/up")
    assert "│ 70 " in output("reproduce", "made/up", "--full")


def test_pictures_are_drawn_where_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    drawn = Reproduced("made up", ("a", "b"), [("1", "2")], picture="<svg/>")
    monkeypatch.setitem(experiments.ALL, "made/up", lambda: drawn)
    output("reproduce", "made/up", "--pictures", str(tmp_path / "new"))
    assert (tmp_path / "new" / "made-up.svg").read_text() == "<svg/>"
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"made-up.svg cannot be written .* by --pictures"):
        output("reproduce", "made/up", "--pictures", str(tmp_path / "file"))


def test_what_cannot_be_reproduced_is_named() -> None:
    with pytest.raises(InputError, match="'fig99' cannot be reproduced yet; there is ijoin/table2"):
        output("reproduce", "fig99")


def test_what_needs_recorded_streams_asks_for_their_folder() -> None:
    with pytest.raises(InputError, match=r"windowed-joins/recorded needs recorded streams; .* by --data"):
        output("reproduce", "windowed-joins/recorded")


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
