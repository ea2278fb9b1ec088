"""What is computed for buffered rows from their columns is what Spark computes for arriving ones."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - its usual name

import tidegate as tg
from tests.spark import streams
from tests.spark.state.test_inspection import source
from tidegate.spark.frames.side import SideFrame
from tidegate.spark.packing.arrow_types import arrow_type
from tidegate.spark.query.arrow_expression import compute
from tidegate.spark.query.sql_to_arrow import arrow_expressions
from tidegate.types import SIDES, InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
SCHEMA = (
    "b tinyint, s smallint, i int, l bigint, f float, d double, m decimal(9,2), t timestamp, n timestamp_ntz, "
    "a date, c string, o boolean, `odd ``name` int"
)


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    rng = random.Random(3)  # noqa: S311 - not for secrets
    specials = [0.0, -0.0, float("nan"), float("inf"), -1.5, 2.5]

    def row() -> tuple[Any, ...]:
        time = datetime(2026, 3, 28, tzinfo=UTC) + timedelta(minutes=rng.randrange(5000))
        values = [
            *(rng.randrange(-9, 9) for _ in range(4)),
            *(rng.choice([*specials, rng.random() * 9]) for _ in range(2)),
            None,
            time,
            time.replace(tzinfo=None),
            time.date(),
            rng.choice(["", "a", "b", "ä"]),
            rng.random() < 0.5,
            rng.randrange(4),
        ]
        return tuple(None if rng.random() < 0.1 else value for value in values)

    return spark.createDataFrame([row() for _ in range(300)], SCHEMA)


def side(frame: DataFrame) -> SideFrame:
    return SideFrame.of("left", frame, "t", None, streaming=False)


@pytest.mark.parametrize(
    "sql",
    [
        "`i` + 800",
        "-(`b` + `s`) * 3 - `l`",
        "`f` * 2",
        "`d` * 0.5 - (-1.25)",
        "`d` / 4",
        "`i` / 3",
        "`f` + `d`",
        "`odd ``name` - 1",
        "abs(`d` - 2)",
        "`t` + INTERVAL '90' MINUTES",
        "`t` - INTERVAL '5' SECOND",
        "`n` + INTERVAL '30' HOURS",
        "`i` > 3",
        "`d` >= 2.5 AND NOT `o`",
        "`d` = `i` OR `l` <> 2",
        "`f` < `f`",
        "`c` = 'a'",
        "`n` < `n`",
        "`t` <= `t` + INTERVAL '1' HOUR",
        "`a` = `a`",
        "`i` BETWEEN -3 AND `l`",
        "CASE WHEN (`i` <> 0) AND NOT coalesce(`d` > 3, false) THEN `l` * 2 END",
        "CASE WHEN `i` < 5 THEN `d` + 1 END",
    ],
)
def test_computed_values_are_those_of_spark(frame: DataFrame, sql: str) -> None:
    """Values and types, in a session with a time zone in which clocks change within these days."""
    names = [f"c{i}" for i in range(len(frame.columns))]
    with streams.conf(frame.sparkSession, spark__sql__session__timeZone="Europe/Berlin"):
        form = arrow_expressions(side(frame), [sql])[sql]
        expected = frame.select(F.expr(sql).alias("value"))
        wanted = expected.toArrow().column(0)
        kind = arrow_type(expected.schema.fields[0].dataType)
        found = compute(form, frame.toArrow().rename_columns(names))
    assert found.type == kind
    assert repr(found.to_pylist()) == repr(pa.chunked_array(wanted).cast(kind).to_pylist())


@pytest.mark.parametrize(
    "sql",
    [
        "`m` + 1",
        "upper(`c`)",
        "`i` / `l`",
        "`t` + INTERVAL '2' DAYS",
        "`t` + INTERVAL '24' HOURS",
        "`c` > 3",
        "`f` > 0.1",
        "CASE WHEN `o` THEN 1 ELSE 2 END",
        "`i` % 3",
    ],
)
def test_what_arrow_may_compute_in_another_way_is_not_computable(frame: DataFrame, sql: str) -> None:
    assert arrow_expressions(side(frame), [sql]) == {}


def test_an_importance_is_a_double(frame: DataFrame) -> None:
    forms = arrow_expressions(side(frame), ["I * 2", "`m`", "`l`"], as_double=True)
    values = frame.select("i", "l").toArrow()
    table = pa.table({"c2": values.column(0), "c3": values.column(1)})
    assert sorted(forms) == ["I * 2", "`l`"]
    assert compute(forms["I * 2"], table).type == pa.float64()
    assert compute(forms["`l`"], table).to_pylist() == values.column(1).cast(pa.float64()).to_pylist()


def test_a_constant_of_where_may_change_at_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    def run(where: str, name: str, **options: Any) -> list[Any]:  # noqa: ANN401 - as join's
        sides = [streams.read(spark, tmp_path / side, "t", "90 seconds") for side in SIDES]
        frame = tg.join(*sides, on="k", time="t", window=("90 s", "90 s"), where=where, buckets=2, **options)
        streams.run_to_files(frame, tmp_path / name, tmp_path / f"{name} out")
        return sorted(streams.rows_of(spark, tmp_path / f"{name} out").elements())

    source(tmp_path, [(key, 10 * key) for key in range(20)])
    run("r.t + interval 800 milliseconds > l.t", "changed")
    source(tmp_path, [], [(key, 400 + 60 * key) for key in range(20)])
    with pytest.raises(InputError, match=r'where uses the right expression "DATE_TRUNC.*arithmetic and comp'):
        run("date_trunc('hour', r.t) > l.t", "changed", checkpoint=tmp_path / "changed")
    less = "r.t + interval 500 milliseconds > l.t"
    changed = run(less, "changed", checkpoint=tmp_path / "changed")
    # Of the first micro-batch, of its right rows with new left rows, and of the second with both.
    assert len(changed) == 20 + 2 + 40
    assert changed == run(less, "fresh")
