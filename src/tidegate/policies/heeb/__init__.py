"""HEEB: score a row by its expected results while it stays in memory.

| module | contents |
|---|---|
| `heeb` | `Heeb`, and how it runs with given processes |
| `adaptive` | how it runs without: it learns processes, or shares of keys |
| `histogram` | `HeebHistogram`, which learns benefits by distance between the streams |
| `survival` | the probability that a row is still in memory, and the benefit as a plain sum |
| `incremental` | benefits that follow from one another, step by step |
| `precomputed` | benefits from tables: `h1` for random walks, `h2` for AR(1) processes |
| `windowed_benefit` | benefits of many rows at once, each within its own window |
| `lifetime` | the mean time that rows spend in memory, as observed |
| `tracked_rows` | the sample of rows from which histograms learn |
"""

from tidegate.policies.heeb.heeb import Heeb
from tidegate.policies.heeb.histogram import HeebHistogram
from tidegate.policies.heeb.incremental import DriftingBenefit, earlier, over_time
from tidegate.policies.heeb.precomputed import BenefitCurve, BenefitSurface, h1, h2
from tidegate.policies.heeb.survival import (
    Exponential,
    Fixed,
    Survival,
    expected_benefit,
)

__all__ = [
    "BenefitCurve",
    "BenefitSurface",
    "DriftingBenefit",
    "Exponential",
    "Fixed",
    "Heeb",
    "HeebHistogram",
    "Survival",
    "earlier",
    "expected_benefit",
    "h1",
    "h2",
    "over_time",
]
