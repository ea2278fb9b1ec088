"""Two members of a pool without Spark, with real buckets, policies and files."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tests.spark import buckets_by_hand as by_hand
from tests.spark.buckets_by_hand import Arrival, Batch
from tidegate.spark.bucket.join.bucket import BucketJoin
from tidegate.spark.bucket.join.saved import SavedBucket
from tidegate.spark.pool.folder import PoolClient
from tidegate.spark.query.evolution import migrate

if TYPE_CHECKING:
    from tidegate.policies import Policy
    from tidegate.spark.bucket.join.plan import BucketPlan
    from tidegate.spark.pool.pool import PoolMember


def zipf_batches(seed: int, batches: int, rows: int, keys: int, skew: float, span: int) -> list[Batch]:
    """Rows of both sides whose keys are of unequal frequency, `span` of time per micro-batch."""
    rng = np.random.default_rng(seed)
    shares = 1.0 / np.arange(1, keys + 1) ** skew
    found: list[Batch] = []
    for number in range(batches):
        batch: Batch = {}
        for side in ("left", "right"):
            key = rng.choice(keys, rows, p=shares / shares.sum()).tolist()
            time = np.sort(rng.integers(0, span, rows) + 1 + number * span).tolist()
            batch[side] = [
                Arrival(k, t, f"{side}{number}-{i}") for i, (k, t) in enumerate(zip(key, time, strict=True))
            ]
        found.append(batch)
    return found


@dataclass
class Running:
    """A member's query: its buckets' committed states."""

    member: PoolMember
    buckets: int
    window: tuple[int, int]
    policy: Policy | str
    batch: int = 0
    states: dict[int, SavedBucket] = field(default_factory=dict)
    results: int = 0

    def plan(self, bucket: int) -> BucketPlan:
        budget = self.member.budget.divided(self.buckets)[bucket]
        plan = by_hand.plan(self.window, budget, self.policy)
        return replace(plan, join=replace(plan.join, partition=bucket))

    def run(self, batch: Batch) -> None:
        """One micro-batch: every bucket takes a step with the rows of its keys."""
        client = PoolClient(self.member, self.buckets, f"query of {self.member.name}")
        done = {}
        for number in range(self.buckets):
            bucket = BucketJoin.load(self.plan(number), migrate(self.states.get(number), self.plan(number)))
            bucket.clock.advance(self.batch, 0)
            bucket.request_grant(client)
            mine = {
                side: [row for row in rows if (row.key or 0) % self.buckets == number]
                for side, rows in batch.items()
            }
            tables = {side: by_hand.table(rows) for side, rows in mine.items() if rows}
            self.results += sum(part.num_rows for part in bucket.step(tables, 0))
            done[number] = by_hand.saved(bucket)
        self.states, self.batch = done, self.batch + 1

    def loaded(self) -> list[BucketJoin]:
        return [
            BucketJoin.load(self.plan(number), migrate(state, self.plan(number)))
            for number, state in sorted(self.states.items())
        ]

    def limits(self) -> list[int]:
        return [bucket.grant.limit for bucket in self.loaded() if bucket.grant]

    def held(self, unit: str = "rows") -> list[int]:
        return [b.operator.rows if unit == "rows" else b.operator.nbytes for b in self.loaded()]


def status(path: Path, member: str, bucket: int) -> dict[str, object]:
    """The last status that a bucket wrote."""
    found: dict[str, object] = json.loads((path / f"bucket-{member}-{bucket}.json").read_text())
    return found
