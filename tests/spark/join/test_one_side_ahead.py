"""A bucket of a join in which one side is ahead of the other in event time."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

import tidegate as tg
from tests.spark.buckets_by_hand import Arrival, Batch, Hand, plan, saved
from tidegate.spark.bucket.join.saved import BucketProgress
from tidegate.types import Clocks

SECOND = 1_000_000


def batches(lead: int, rows: int = 3000) -> list[Batch]:
    """Auctions and bids in micro-batches of 50 seconds, with the auctions ahead; the first bids come late."""
    opened, bids = tg.streams.Auctions(length=400.0, rate=1.0, lateness=3.0).both(rows, seed=2)
    found: list[Batch] = []
    for begin in range(0, int(bids.time[-1]) + lead, 50):
        batch: Batch = {}
        for side, stream, shift in (("left", opened, lead), ("right", bids, 0)):
            some = np.flatnonzero(
                (stream.time >= begin + shift - lead) & (stream.time < begin + 50 + shift - lead)
            )
            keys = stream.keys[0].to_numpy()
            arrived = [Arrival(int(keys[i]), int(stream.time[i] * SECOND), f"{side}{i}") for i in some]
            if side == "left":
                batch["left"] = arrived
            else:
                batch["right"] = arrived
        found.append(batch)
    return found


def results(policy: str, lead: int) -> int:
    hand = Hand(plan((400 * SECOND, 0), tg.Budget(rows=60), policy))
    reached, watermark = {"left": 0, "right": 0}, 0
    for batch in batches(lead):
        hand.step(batch, watermark)
        reached |= {side: rows[-1].time for side, rows in batch.items() if rows}
        watermark = min(reached.values())
        hand.restart()
        assert hand.bucket.operator.rows <= 60
    return len(hand.results)


@pytest.mark.parametrize("lead", [0, 400])
def test_age_finds_what_the_other_policies_find(lead: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {policy: results(policy, lead) for policy in ("age", "fifo", "random", "until_expiry")}
    # Part of the memory is for learning, and the first curve is learned from few rows.
    assert found.pop("age") >= 0.9 * max(found.values())


def ahead(budget: int | None, lead: int = 600) -> Hand:
    hand = Hand(plan((400 * SECOND, 0), budget and tg.Budget(rows=budget)))
    rows = [Arrival(1, (lead + i) * SECOND, f"l{i}") for i in range(20)]
    hand.step({"left": rows, "right": [Arrival(2, SECOND, "r")]})
    return hand


def test_it_warns_if_rows_are_evicted_while_one_side_waits() -> None:
    with pytest.warns(UserWarning, match="the left side is ahead of the right side .* maxOffsetsPerTrigger"):
        ahead(budget=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ahead(budget=None)
        ahead(budget=5, lead=100)


def test_the_clocks_are_part_of_the_state() -> None:
    hand = ahead(budget=None)
    assert hand.bucket.clocks.now == Clocks(619 * SECOND, SECOND)
    hand.restart()
    assert hand.bucket.clocks.now == Clocks(619 * SECOND, SECOND)
    assert hand.bucket.operator.state.clocks == hand.bucket.clocks.now


def test_a_state_of_one_clock_has_the_same_for_both_sides() -> None:
    progress = json.loads(saved(ahead(budget=None).bucket).progress.to_json())
    del progress["clocks"]
    assert BucketProgress.from_json(json.dumps(progress).encode()).clocks.now == Clocks.both(619 * SECOND)
