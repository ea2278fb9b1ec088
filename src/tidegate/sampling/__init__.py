"""Samples of a join, with what is known of them."""

from tidegate.sampling.merge import merge
from tidegate.sampling.progressive import ProgressiveReservoir
from tidegate.sampling.reservoir import Reservoir
from tidegate.sampling.slots import Sample, Taken
from tidegate.sampling.uniformity import (
    inclusion_chances,
    recovery_count,
    refill_confidence,
    retained_chances,
    uniformity_confidence,
)

__all__ = [
    "ProgressiveReservoir",
    "Reservoir",
    "Sample",
    "Taken",
    "inclusion_chances",
    "merge",
    "recovery_count",
    "refill_confidence",
    "retained_chances",
    "uniformity_confidence",
]
