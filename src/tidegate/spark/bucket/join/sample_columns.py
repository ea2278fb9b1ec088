"""The columns that a sample adds to those of its results."""

from __future__ import annotations

from typing import Final

PROBABILITY: Final = "probability"
WEIGHT: Final = "weight"
OWNER: Final = "owner"
SHOWN: Final = "shown"
RANK: Final = "rank"
BATCH: Final = "batch"
