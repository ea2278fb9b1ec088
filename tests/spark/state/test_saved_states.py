"""States that released layouts wrote are stored here, and open for ever.

`python -m tests.spark.state.test_saved_states` writes one of the present layout. It never replaces an older one.
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.spark import buckets_by_hand as by_hand
from tests.spark.buckets_by_hand import Arrival, Batch
from tests.spark.state.test_log import run_batch
from tidegate.spark.bucket.join.plan import BucketPlan
from tidegate.spark.bucket.join.saved import SavedBucket
from tidegate.spark.state.log import VERSION, StateLog
from tidegate.spark.state.values import DictValueStore
from tidegate.types import SIDES

FOLDER = Path(__file__).parent / "saved"
POLICIES = ("fifo", "prob", "age")
BATCHES = 5


def plan(policy: str) -> BucketPlan:
    return by_hand.plan((300, 300), 40, policy)


def batches() -> list[Batch]:
    """Rows at distinct times, so that their order does not depend on the hashes of a process."""
    return [
        {
            side: [
                Arrival((7 * j + 3 * n) % 11, 120 * n + 2 * j + shift + 1, f"{side} {n}-{j}")
                for j in range(30)
            ]
            for shift, side in enumerate(SIDES)
        }
        for n in range(BATCHES + 1)
    ]


def results(values: DictValueStore, policy: str) -> list[Any]:
    """The number of results of the next micro-batch, and a digest of their rows."""
    found = run_batch(plan(policy), values, batches()[BATCHES], BATCHES, local=False)
    pairs = sorted(f"{row['o2']}, {row['o4']}" for row in found)
    return [len(pairs), hashlib.sha256("\n".join(pairs).encode()).hexdigest()]


def read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text())
    return found


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.json")), ids=lambda file: file.stem)
def test_a_saved_state_opens_and_continues(file: Path) -> None:
    for policy, saved in read(file).items():
        values = DictValueStore({name: base64.b64decode(value) for name, value in saved["values"].items()})
        state = SavedBucket.read(StateLog(values, local=False))
        assert state is not None
        assert state.operator.rows == 40
        assert state.settings.policy == policy
        assert results(values, policy) == saved["results"]


def test_the_present_layout_is_stored() -> None:
    assert (FOLDER / f"layout-{VERSION}.json").exists()


def main() -> None:
    """Write a state of the present layout."""
    stored = {}
    for policy in POLICIES:
        values = DictValueStore()
        for number, batch in enumerate(batches()[:BATCHES]):
            run_batch(plan(policy), values, batch, number, local=False)
        content = {name: base64.b64encode(value).decode() for name, value in values.content.items()}
        stored[policy] = {"values": content, "results": results(values, policy)}
    file = FOLDER / f"layout-{VERSION}.json"
    if file.exists():
        raise SystemExit(f"{file} exists; a stored state is never replaced")
    file.write_text(json.dumps(stored) + "\n")


if __name__ == "__main__":
    main()
