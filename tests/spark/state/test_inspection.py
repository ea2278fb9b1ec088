"""`inspect` scores with the query's own policy: the rows that it ranks last are evicted next."""

from __future__ import annotations

import math
import shutil
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.spark import buckets_by_hand as by_hand
from tests.spark import streams
from tests.spark.buckets_by_hand import Arrival, Batch, Hand
from tidegate.engine.join_state import JoinState
from tidegate.engine.policy_retention import PolicyRetention
from tidegate.policies import Policy, Random
from tidegate.spark.bucket.join import settings
from tidegate.spark.bucket.join.saved import SavedBucket
from tidegate.spark.state.log import StateLog
from tidegate.spark.state.values import DictValueStore
from tidegate.types import SIDES, Array, InputError, Rows, Step, Time

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAST = 5_900
BUCKETS = 2


def source(folder: Path, *batches: list[tuple[int, int]]) -> None:
    """A file per side and micro-batch, of keys and milliseconds, the same on both sides; every text is unique."""
    for side in SIDES:
        begin = len(list((folder / side).glob("*.parquet")))
        tables = [
            pa.table(
                {
                    "k": pa.array([key for key, _ in rows], pa.int64()),
                    "t": pa.array([streams.at(time) for _, time in rows], pa.timestamp("us", "UTC")),
                    f"{side}_text": [f"{side} {number}-{i}" for i in range(len(rows))],
                }
            )
            for number, rows in enumerate(batches, start=begin)
        ]
        streams.write(folder / side, tables)


def run(spark: SparkSession, folder: Path, checkpoint: Path, **settings: Any) -> None:  # noqa: ANN401 - as join's
    """Continue a query without a limit of the window, so that rows leave only by eviction."""
    sides = [streams.read(spark, folder / side, "t", "9 seconds") for side in SIDES]
    joined = tg.join(*sides, on="k", time="t", window=(None, None), buckets=BUCKETS, **settings)
    streams.run_to_files(joined, checkpoint, checkpoint.parent / "out")


@dataclass(frozen=True)
class Buffered:
    """What `inspect` reports about one row."""

    text: str
    score: float | None


def buffered(
    spark: SparkSession, checkpoint: Path, policy: Policy | None = None
) -> dict[int, list[Buffered]]:
    """The buffered rows of each bucket, the lowest score first."""
    found = defaultdict(list)
    for row in tg.inspect(checkpoint, policy=policy, spark=spark).collect():
        text = row.left.left_text if row.side == "left" else row.right.right_text
        found[row.bucket].append(Buffered(text, row.score))
    return {
        bucket: sorted(rows, key=lambda row: math.inf if row.score is None else row.score)
        for bucket, rows in found.items()
    }


def evicted(before: list[Buffered], after: list[Buffered]) -> list[Buffered]:
    stayed = {row.text for row in after}
    return [row for row in before if row.text not in stayed]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two micro-batches of a hundred rows a side; the largest time of each bucket is the same."""
    folder = tmp_path_factory.mktemp("rows")
    early = [(key, 30 * i + key) for i in range(10) for key in range(10)]
    late = [(key, LAST if i == 9 else 3_000 + 30 * i + key) for i in range(10) for key in range(10)]
    source(folder, early, late)
    return folder


@pytest.mark.spark
@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"policy": "random", "seed": 7}, marks=pytest.mark.slow, id="join"),
        pytest.param({"policy": Random(seed=5)}, id="policy"),
    ],
)
def test_the_lowest_scores_are_evicted_next(
    spark: SparkSession, rows: Path, tmp_path: Path, settings: dict[str, Any]
) -> None:
    folder = Path(shutil.copytree(rows, tmp_path / "rows"))
    checkpoint = tmp_path / "checkpoint"
    run(spark, folder, checkpoint, budget=40, **settings)
    before = buffered(spark, checkpoint)
    assert [len(before[bucket]) for bucket in range(BUCKETS)] == [20, 20]
    # No later than the buffered rows, so that the time of the buckets does not change.
    source(folder, [(3, LAST)])
    run(spark, folder, checkpoint, budget=40, **settings)
    after = buffered(spark, checkpoint)
    evicted_rows = {bucket: evicted(before[bucket], after[bucket]) for bucket in before}
    assert sorted(len(some) for some in evicted_rows.values())[1] > 0
    for bucket, some in evicted_rows.items():
        assert some == before[bucket][: len(some)]
    # A smaller budget applies from a bucket's next step on, and the scores predict these evictions, too.
    source(folder, [(3, LAST)])
    run(spark, folder, checkpoint, budget=16, **settings)
    last = buffered(spark, checkpoint)
    for bucket, some in after.items():
        evicted_now = evicted(some, last[bucket])
        assert len(evicted_now) >= 12
        assert evicted_now == some[: len(evicted_now)]
    counts = tg.inspect(checkpoint, "counts", spark=spark).collect()
    assert [row.budget for row in counts] == [8, 8]


@pytest.mark.spark
def test_a_policy_of_ones_own(spark: SparkSession, rows: Path, tmp_path: Path) -> None:
    """Defined here, so that no worker can import it; found by its name."""

    @dataclass(frozen=True)
    class Favourite(Policy):
        name: ClassVar[str] = "favourite"

        key: int = 0

        def scores(self, rows: Rows, now: Time) -> Array:
            return np.where(rows.key % 7 == self.key, 1e6, 0.0) + rows.id

    checkpoint = tmp_path / "checkpoint"
    run(spark, rows, checkpoint, budget=20, policy=Favourite(2))
    assert {row.policy for row in tg.inspect(checkpoint, "counts", spark=spark).collect()} == {"favourite"}
    given, default = (buffered(spark, checkpoint, Favourite(key)) for key in (2, 0))
    assert buffered(spark, checkpoint) == given != default
    del Favourite.name
    unknown = [row.score for rows in buffered(spark, checkpoint).values() for row in rows]
    assert unknown == [None] * 20


@dataclass(frozen=True)
class Curve:
    """A parameter that is not a plain value."""

    rates: tuple[float, ...]


@dataclass(frozen=True)
class Learner(Policy):
    """Prefers keys that it has seen often, by a curve; learns, and has a nested parameter."""

    curve: Curve = Curve((1.0,))
    seen: dict[int, int] = field(default_factory=dict, init=False, compare=False)

    def start(self, setting: Any) -> Self:  # noqa: ANN401
        return type(self)(self.curve)

    def observe(self, step: Step) -> None:
        for side in SIDES:
            for key in step.arrivals(side).key.tolist():
                self.seen[key] = self.seen.get(key, 0) + 1

    def scores(self, rows: Rows, now: Time) -> Array:
        return np.array([self.seen.get(key, 0) * sum(self.curve.rates) for key in rows.key.tolist()])

    def snapshot(self) -> dict[str, Array]:
        return {"keys": np.array([*self.seen], np.int64), "counts": np.array([*self.seen.values()], np.int64)}

    def restore(self, state: dict[str, Array]) -> Self:
        self.seen.update(zip(state["keys"].tolist(), state["counts"].tolist(), strict=True))
        return self

    def parameters(self) -> dict[str, Any]:
        return {"curve": list(self.curve.rates)}

    @classmethod
    def from_parameters(cls, parameters: dict[str, Any]) -> Self:
        return cls(Curve(tuple(parameters["curve"])))


class Unnamed(Random):
    """Inherits the name of another policy."""


@dataclass(frozen=True)
class Called(Policy):
    """Has a parameter that is code."""

    by: Any = math.sin

    def scores(self, rows: Rows, now: Time) -> Array:
        return np.array([self.by(i) for i in rows.id.tolist()])


BATCH: Batch = {"left": [Arrival(k, 20 + k, f"l{k}{i}") for k in range(6) for i in range(k)]}
BATCH |= {"right": [Arrival(k, 20 + k, f"r{k}") for k in range(6)]}


def scored(hand: Hand, policy: Policy | type[Policy] | None = None) -> list[float] | None:
    """The scores that are read from the saved state, in order of arrival."""
    restored = by_hand.saved(hand.bucket).restore_policy(policy)
    return None if restored is None else in_order(restored.state, restored.retention)


def own_scores(hand: Hand) -> list[float]:
    """The scores by the running policy, in order of arrival."""
    operator = hand.bucket.operator
    assert isinstance(operator.retention, PolicyRetention)
    return in_order(operator.state, operator.retention)


def in_order(state: JoinState, retention: PolicyRetention) -> list[float]:
    rows = [state.buffers[side].rows for side in SIDES]
    return [score for some in rows for score in retention.scores(some, state)[np.argsort(some.id)].tolist()]


class TestOneBucket:
    @pytest.mark.parametrize(
        ("policy", "seed"),
        [("random", 7), (Random(3), 7), (Learner(Curve((0.5, 2.0))), 0), ("fifo", 0)],
        ids=str,
    )
    def test_scores_are_the_querys_own(self, policy: Policy | str, seed: int) -> None:
        hand = Hand(by_hand.plan(budget=9, policy=policy, seed=seed))
        hand.step(BATCH)
        own = own_scores(hand)
        assert scored(hand, type(tg.policies.find(policy))) == own
        assert len(own) == 9

    def test_a_row_that_only_waits_for_others_out_of_order_goes_first(self) -> None:
        hand = Hand(by_hand.plan((10, 10), budget=9))
        hand.step({"left": [Arrival(1, 20, "a"), Arrival(2, 45, "b")], "right": [Arrival(3, 40, "c")]})
        assert scored(hand, tg.policies.Fifo) == [-math.inf, 45.0, 40.0]

    @pytest.mark.parametrize("policy", [Unnamed(4), Called()], ids=lambda policy: type(policy).__name__)
    def test_a_policy_that_cannot_be_made_again_is_not_guessed(self, policy: Policy) -> None:
        hand = Hand(by_hand.plan(budget=9, policy=policy))
        hand.step(BATCH)
        saved = by_hand.saved(hand.bucket)
        for kind in (None, Random, tg.policies.registered(saved.settings.policy)):
            assert saved.restore_policy(kind) is None
        own = own_scores(hand)
        assert scored(hand, policy) == own

    def test_what_was_learned_is_left_to_the_policy_that_learned_it(self) -> None:
        hand = Hand(by_hand.plan(budget=9, policy=Learner(Curve((2.0,)))))
        hand.step(BATCH)
        learned = scored(hand, Learner)
        assert learned is not None
        assert scored(hand, Learner(Curve((4.0,)))) == [2 * score for score in learned]
        assert scored(hand, Random) is None
        hand.restart(by_hand.plan(budget=9, policy=Learner(Curve((6.0,)))))
        assert scored(hand, Learner) == [3 * score for score in learned]
        hand.restart(by_hand.plan(budget=9, policy=Random(4)))
        assert scored(hand, Learner) is None
        assert scored(hand, Learner()) == [0.0] * 9

    def test_settings_of_another_version_are_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        hand = Hand(by_hand.plan(budget=9))
        monkeypatch.setattr(settings, "VERSION", 9)
        values = DictValueStore()
        hand.bucket.save(StateLog(values, local=False))
        monkeypatch.undo()
        with pytest.raises(InputError, match=r"version 9, not 1; continue with the release that wrote it"):
            SavedBucket.read(StateLog(values, local=False))
