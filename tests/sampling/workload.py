"""Small streams whose keys have known shares."""

from __future__ import annotations

import numpy as np

from tidegate.models import Frequency

Stream = dict[str, list[int]]
SHARES = {1: 0.5, 2: 0.25, 3: 0.15, 4: 0.07, 5: 0.03}
MODEL = Frequency(SHARES, SHARES)


def stream(rows: int, seed: int) -> Stream:
    """A stream with one row per unit of time."""
    rng = np.random.default_rng(seed)
    keys = rng.choice(list(SHARES), rows, p=list(SHARES.values()))
    return {"key": keys.tolist(), "time": list(range(rows))}
