"""Results are known by the code that made them: the core, and what a cell function is made of, and no more."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tidegate.experiments.code import code_of
from tidegate.experiments.ijoin.measured import section5
from tidegate.experiments.stochastic_streams.measured import results


def changed(module: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    other = tmp_path / "other.py"
    other.write_text("# changed\n")
    monkeypatch.setattr(sys.modules[f"tidegate.experiments.{module}"], "__file__", str(other))
    return code_of(results)


def test_what_a_cell_function_is_made_of_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = code_of(results)
    assert code_of(results) == before != code_of(section5)
    assert changed("stochastic_streams.claims", monkeypatch, tmp_path) == before
    assert changed("picture", monkeypatch, tmp_path) == before
    assert changed("stochastic_streams.setups", monkeypatch, tmp_path) != before
