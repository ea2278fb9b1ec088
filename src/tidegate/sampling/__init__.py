"""Unbiased samples of a join, each result with its inclusion probability, and reservoirs that hold them."""

from tidegate.sampling.eq_cluster import EqCluster
from tidegate.sampling.fraction import proportional, safe_mean
from tidegate.sampling.pps_cluster import PpsCluster
from tidegate.sampling.sampler import Owners, Sampler, Sampling, find, names, thinned
from tidegate.sampling.uniform import Uniform
from tidegate.sampling.grouped import GroupedReservoir, GroupedSample
from tidegate.sampling.join_reservoir import JoinReservoir
from tidegate.sampling.merge import merge
from tidegate.sampling.progressive import ProgressiveReservoir
from tidegate.sampling.progressive_join import ProgressiveJoinReservoir, expected_results
from tidegate.sampling.ranks import Wants
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
    "EqCluster",
    "GroupedReservoir",
    "GroupedSample",
    "JoinReservoir",
    "Owners",
    "PpsCluster",
    "ProgressiveJoinReservoir",
    "ProgressiveReservoir",
    "Reservoir",
    "Sample",
    "Sampler",
    "Sampling",
    "Taken",
    "Uniform",
    "Wants",
    "expected_results",
    "find",
    "inclusion_chances",
    "merge",
    "names",
    "proportional",
    "recovery_count",
    "refill_confidence",
    "retained_chances",
    "safe_mean",
    "thinned",
    "uniformity_confidence",
]
