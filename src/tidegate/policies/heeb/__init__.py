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

from typing import TYPE_CHECKING

from tidegate.lazy_package import load_on_first_use

if TYPE_CHECKING:
    from tidegate.policies.heeb.heeb import Heeb as Heeb
    from tidegate.policies.heeb.histogram import HeebHistogram as HeebHistogram
    from tidegate.policies.heeb.incremental import DriftingBenefit as DriftingBenefit
    from tidegate.policies.heeb.incremental import earlier as earlier
    from tidegate.policies.heeb.incremental import over_time as over_time
    from tidegate.policies.heeb.precomputed import BenefitCurve as BenefitCurve
    from tidegate.policies.heeb.precomputed import BenefitSurface as BenefitSurface
    from tidegate.policies.heeb.precomputed import h1 as h1
    from tidegate.policies.heeb.precomputed import h2 as h2
    from tidegate.policies.heeb.survival import Exponential as Exponential
    from tidegate.policies.heeb.survival import Fixed as Fixed
    from tidegate.policies.heeb.survival import Survival as Survival
    from tidegate.policies.heeb.survival import expected_benefit as expected_benefit

__all__ = load_on_first_use(__name__)
