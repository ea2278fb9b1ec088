"""What the paper on threshold functions says of the rows that are kept, in small."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tidegate import InputError
from tidegate.experiments import recorded
from tidegate.experiments import threshold_functions as paper

READINGS = "".join(
    f"2012-02-22T16:46:{at // 100:02d}.{at % 100:02d}70321+00:00\t{at}\t{13000 + at % 7}\t1\n"
    for at in range(300)
)


def test_forty_percent_of_one_stream_of_table_1_and_more_of_the_other() -> None:
    made = paper.table1(rows=20_000, runs=3)
    assert [row[2] for row in made.rows] == ["39.43 %", "64.96 %"]
    assert [claim.verdict for claim in made.claims] == ["holds in part", "holds"]


def test_independent_values_level_off_at_four_and_a_wiener_process_does_not() -> None:
    made = paper.figure10(rows=20_000, runs=2)
    kept = {(row[0], row[1]): float(row[3]) for row in made.rows}
    assert kept["uniform values", "64"] == pytest.approx(4, abs=0.2)
    # It grows as the square root: by two where there are four times as many rows.
    assert kept["Gamma-Wiener", "256"] / kept["Gamma-Wiener", "64"] == pytest.approx(2, abs=0.2)
    verdicts = [claim.verdict for claim in made.claims]
    assert verdicts[:3] == ["holds", "does not hold", "does not hold"]
    assert made.picture is not None


def test_the_printed_algorithm_loses_a_row_that_is_needed() -> None:
    times, values = np.arange(3), np.arange(3.0)
    assert paper.as_printed(times, values, 1.0).tolist() == [True, False, True]
    assert paper.kept(times, values, 1)[0] == 1.0


def test_the_recording_is_read(tmp_path: Path) -> None:
    path = tmp_path / recorded.POWER
    path.parent.mkdir()
    path.write_text(READINGS)
    times, values = recorded.power(tmp_path)
    assert np.diff(times[:3]).tolist() == [10_000, 10_000]
    assert values[:8].tolist() == [13000, 13001, 13002, 13003, 13004, 13005, 13006, 13000]
    assert len(paper.debs(tmp_path).rows) == len(paper.DENSITIES)
    with pytest.raises(InputError, match="no file"):
        recorded.power(tmp_path / "none")
