"""Joins with importance: equal to a simulation, redefined while they run, or refused."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

import tidegate as tg
from tests.spark import streams
from tidegate.importance import (
    Categories,
    Column,
    Combined,
    DefinitionFile,
    DefinitionLike,
    Expression,
    Histogram,
    Source,
)
from tidegate.policies import IJoin, Importance, Policy
from tidegate.spark.session.spark_errors import root_cause
from tidegate.types import SIDES, InputError, Side

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

MORNING = Categories("topic", {"politics": 5, "sports": 1}, default=2)
EVENING = Categories("topic", {"politics": 0.5, "sports": 7}, default=2)
BUDGET = 12
BATCHES = 6


def batch(number: int) -> dict[Side, pa.Table]:
    """Rows of one time for both sides; no two have the same importance."""
    rng = random.Random(number)  # noqa: S311 - not for secrets
    found: dict[Side, pa.Table] = {}
    for side in SIDES:
        found[side] = pa.table(
            {
                "k": pa.array([rng.randint(0, 3) for _ in range(12)], pa.int64()),
                "t": pa.array([streams.at(1000 * (number + 1))] * 12, pa.timestamp("us", "UTC")),
                "topic": [rng.choice(["politics", "sports", "weather"]) for _ in range(12)],
                "price": [rng.random() for _ in range(12)],
            }
        )
    return found


@pytest.fixture(scope="module")
def news(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("news")
    for number in range(BATCHES):
        for side, table in batch(number).items():
            streams.write(folder / side, [table])
    return folder


def micros(number: int) -> int:
    """The time of a micro-batch in a simulation."""
    return int(streams.at(1000 * (number + 1)).timestamp()) * 1_000_000


def simulated(importance: DefinitionLike, policy: Policy = Importance()) -> tg.Report:  # noqa: B008 - it is frozen
    tables = [pa.concat_tables([batch(n)[side] for n in range(BATCHES)]) for side in SIDES]
    return tg.simulate(
        *tables,
        on="k",
        time="t",
        window=(None, None),
        budget=BUDGET,
        policy=policy,
        step="instant",
        importance=importance,
        combine="sum",
        collect=True,
    )


def joined(sides: list[DataFrame], importance: Any, **settings: Any) -> DataFrame:  # noqa: ANN401
    chosen: dict[str, Any] = {
        "budget": BUDGET,
        "policy": Importance(),
        "combine": "sum",
        "buckets": 1,
    } | settings
    return tg.join(
        *sides,
        on="k",
        time="t",
        window=(None, None),
        importance=importance,
        **chosen,
    )


def prices(report: tg.Report) -> Counter[tuple[float, float]]:
    assert report.pairs is not None
    columns = [
        [p for n in range(BATCHES) for p in batch(n)[side].column("price").to_pylist()] for side in SIDES
    ]
    return Counter((columns[0][i], columns[1][j]) for i, j in zip(*report.pairs, strict=True))


def run(
    frame: DataFrame, checkpoint: Path, before: Callable[[int], object] = bool
) -> Counter[tuple[float, float]]:
    """Run a stream; `before` is called with the number of each micro-batch before it begins."""
    found: list[tuple[float, float]] = []

    def save(batch: DataFrame, number: int) -> None:
        before(number)
        found.extend((row.price, row.price_right) for row in batch.collect())

    query = frame.writeStream.foreachBatch(save).option("checkpointLocation", str(checkpoint))
    streams.run_to_end(query.trigger(availableNow=True).start)
    return Counter(found)


def test_a_file_redefines_importance_while_a_query_runs(
    spark: SparkSession, news: Path, tmp_path: Path
) -> None:
    file = tmp_path / "topics.json"
    definitions = {0: MORNING, 1: EVENING, 2: EVENING, 3: None, 4: MORNING, 5: MORNING}
    file.write_text(json.dumps(MORNING.to_dict()))

    def change(number: int) -> None:
        definition = definitions.get(number, MORNING)
        file.write_text("{" if definition is None else json.dumps(definition.to_dict()))

    importance = Combined("product", [DefinitionFile(file), Expression("price * 2"), 0.5])
    sides = [streams.read(spark, news / side, "t", "1 hour") for side in SIDES]
    checkpoint = tmp_path / "checkpoint"
    with streams.conf(spark, spark__sql__streaming__noDataMicroBatches__enabled="false"):
        results = run(joined(sides, importance), checkpoint, change)
    plain = {
        micros(number): Combined("product", [definition, "price"])
        for number, definition in ((0, MORNING), (2, EVENING), (5, MORNING))
    }
    expected = simulated(plain)
    assert results == prices(expected)
    assert results != prices(simulated(plain[micros(0)]))
    [counts] = tg.inspect(checkpoint, "counts", spark=spark).collect()
    assert counts.results == expected.results
    assert counts.importance == pytest.approx(expected.importance)
    assert (counts.redefined, counts.refused) == (2, 1)
    assert "is not a definition" in counts.refusal
    for row in tg.inspect(checkpoint, policy=Importance(), spark=spark).collect():
        source = row.left or row.right
        expected_importance = MORNING.values.get(source.topic, 2) * source.price
        assert row.importance == row.score == pytest.approx(expected_importance)


def test_ijoin_is_the_same_in_a_stream_that_stops_and_continues(spark: SparkSession, tmp_path: Path) -> None:
    policy = IJoin(unproductive=2e9)
    expected = simulated(Column("price"), policy)
    found: Counter[tuple[float, float]] = Counter()
    checkpoint = tmp_path / "checkpoint"
    for begin, end in ((0, 4), (4, BATCHES)):
        for number in range(begin, end):
            for side, table in batch(number).items():
                streams.write(tmp_path / side, [table])
        sides = [streams.read(spark, tmp_path / side, "t", "1 hour") for side in SIDES]
        with streams.conf(spark, spark__sql__streaming__noDataMicroBatches__enabled="false"):
            found += run(joined(sides, "price", policy=policy), checkpoint)
    assert found == prices(expected)
    [counts] = tg.inspect(checkpoint, "counts", spark=spark).collect()
    assert counts.importance == pytest.approx(expected.importance)
    assert counts.fairness == pytest.approx(expected.fairness)
    learned = {row.model: row for row in tg.inspect(checkpoint, "model", spark=spark).collect()}
    assert 0 < learned["maturity"].value < 10_000
    assert all(row.score is not None for row in tg.inspect(checkpoint, spark=spark).collect())


def test_a_batch_is_a_simulation(spark: SparkSession, news: Path, tmp_path: Path) -> None:
    (tmp_path / "topics.csv").write_text("value,importance\npolitics,5\nsports,1\n")
    watched = DefinitionFile(tmp_path / "topics.csv", column="topic", default=2)
    expected = simulated(Combined("product", [MORNING, "price"]))
    assert expected.evicted
    for topics in (MORNING, watched):
        sides = [spark.read.parquet(str(news / side)) for side in SIDES]
        importance = Combined("product", [topics, (Expression("price"), Column("price"))])
        rows = joined(sides, importance, step=1).collect()
        assert Counter((row.price, row.price_right) for row in rows) == prices(expected)


@pytest.mark.slow
def test_a_restart_with_another_definition(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint, folder = tmp_path / "checkpoint", tmp_path / "news"
    for number in range(2):
        for side, table in batch(number).items():
            streams.write(folder / side, [table])
    sides = [streams.read(spark, folder / side, "t", "1 hour") for side in SIDES]
    for importance in (Histogram("price", [0, 0.5, 1], [1, 2]), None, (Column("price"), Source(1, 3))):
        policy = {"policy": "fifo"} if importance is None else {}
        run(joined(sides, importance, **policy), checkpoint)
        rows = tg.inspect(checkpoint, spark=spark).collect()
        assert len(rows) == BUDGET
        for side, table in batch(9).items():
            streams.write(folder / side, [table])
        if isinstance(importance, Histogram):
            assert {row.importance for row in rows} <= {1.0, 2.0}
        elif importance is None:
            assert {row.importance for row in rows} == {None}
            [counts] = tg.inspect(checkpoint, "counts", spark=spark).collect()
            assert (counts.importance, counts.redefined, counts.refusal) == (None, None, None)
    for row in rows:
        assert row.importance == (row.left.price if row.left else 3.0)
    with pytest.raises(PySparkException) as raised:
        run(joined(sides, Expression("price")), checkpoint)
    assert "with importance=None, the query now has {'left': {'price': 'v0'}" in root_cause(raised.value)


def test_rows_that_cannot_be_valued_stop_the_query_with_a_clear_word(spark: SparkSession, news: Path) -> None:
    frames = [spark.read.parquet(str(news / side)) for side in SIDES]
    for importance, word in (
        (Categories("topic", {"politics": 5, "sports": 1}), "left.topic is 'weather'"),
        (
            Expression("if(price > 0.5, null, price)"),
            "'if(price > 0.5, null, price)' on the left is null or NaN",
        ),
    ):
        with pytest.raises(PySparkException) as raised:
            joined(frames, importance).collect()
        message = root_cause(raised.value)
        assert word in message
        assert "default=" in message


def test_without_importance_every_row_has_one(spark: SparkSession, news: Path) -> None:
    frames = [spark.read.parquet(str(news / side)) for side in SIDES]
    bare, ones = (sorted(map(repr, joined(frames, importance).collect())) for importance in (None, 1))
    assert bare == ones != []


@pytest.mark.parametrize(
    ("importance", "words"),
    [
        ("prize", ["left has no column 'prize'", "it has k, t, topic, price"]),
        (("price", "prize"), ["right has no column 'prize'"]),
        ("topic", ["left.topic is of type string", "give numbers"]),
        (Categories("price", {"high": 1}), ["left.price is of type double", "'high'"]),
        (Expression("prize * 2"), ["'prize * 2' on the left", "prize", "it has k, t, topic, price"]),
        (Expression("topic"), ["'topic' on the left is of type string"]),
        (Expression("sum(price)"), ["'sum(price)' on the left"]),
        (Expression("explode(array(1, 2))"), ["on the left"]),
        (Expression("price +"), ["'price +' on the left"]),
        (DefinitionFile("nowhere.json"), ["nowhere.json cannot be read"]),
        (3.5j, ["not a definition"]),
    ],
)
def test_what_could_not_work_is_refused_before_the_start(
    spark: SparkSession, news: Path, importance: object, words: list[str]
) -> None:
    sides = [streams.read(spark, news / side, "t", "1 hour") for side in SIDES]
    with pytest.raises(InputError) as raised:
        joined(sides, importance)
    for word in words:
        assert word in str(raised.value)


def test_combine_is_one_of_five(spark: SparkSession, news: Path) -> None:
    frames = [spark.read.parquet(str(news / side)) for side in SIDES]
    with pytest.raises(InputError, match="combine 'average' is not known"):
        joined(frames, "price", combine="average")
