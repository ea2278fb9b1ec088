"""Samples of a join, with what is known of them."""

from tidegate.sampling.grouped import GroupedReservoir, GroupedSample
from tidegate.sampling.join_reservoir import JoinReservoir
from tidegate.sampling.memory import best_size, reservoir_memory, sample_error
from tidegate.sampling.merge import merge
from tidegate.sampling.progressive import ProgressiveReservoir
from tidegate.sampling.progressive_join import ProgressiveJoinReservoir, expected_results
from tidegate.sampling.ranks import Wants, merge_ranked
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
    "GroupedReservoir",
    "GroupedSample",
    "JoinReservoir",
    "ProgressiveJoinReservoir",
    "ProgressiveReservoir",
    "Reservoir",
    "Sample",
    "Taken",
    "Wants",
    "best_size",
    "expected_results",
    "inclusion_chances",
    "merge",
    "merge_ranked",
    "recovery_count",
    "refill_confidence",
    "reservoir_memory",
    "retained_chances",
    "sample_error",
    "uniformity_confidence",
]
