"""The digest of a measure covers the core and the modules that the measure imports, and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tidegate.experiments.cells import code_digest
from tidegate.experiments.ijoin.measures import section5
from tidegate.experiments.stochastic_streams.measures import results


def changed(module: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    other = tmp_path / "other.py"
    other.write_text("# changed\n")
    monkeypatch.setattr(sys.modules[f"tidegate.experiments.{module}"], "__file__", str(other))
    return code_digest(results)


def test_the_digest_covers_the_modules_that_a_measure_imports(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = code_digest(results)
    assert code_digest(results) == before != code_digest(section5)
    assert changed("stochastic_streams.claims", monkeypatch, tmp_path) == before
    assert changed("plots", monkeypatch, tmp_path) == before
    assert changed("stochastic_streams.setups", monkeypatch, tmp_path) != before
