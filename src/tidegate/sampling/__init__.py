"""Unbiased samples of a join, with inclusion probabilities; reservoirs that hold them; estimates from them.

| folder | content |
|---|---|
| `samplers` | `sampler` is the contract; `uniform`, `eq_cluster` and `pps_cluster` implement it |
| `reservoirs` | samples of a fixed or growing size, of rows or of a join's results |
| `estimates` | `estimate`: counts, sums, averages and quantiles of the whole join, with intervals |
"""

from tidegate.sampling.estimates.estimate import estimate
from tidegate.sampling.reservoirs.grouped import GroupedReservoir, GroupedSample
from tidegate.sampling.reservoirs.grouped_join import GroupedJoinReservoir
from tidegate.sampling.reservoirs.join_reservoir import JoinReservoir
from tidegate.sampling.reservoirs.memory import best_size, reservoir_memory, sample_error
from tidegate.sampling.reservoirs.merge import merge
from tidegate.sampling.reservoirs.progressive import ProgressiveReservoir
from tidegate.sampling.reservoirs.progressive_join import ProgressiveJoinReservoir, expected_results
from tidegate.sampling.reservoirs.ranked import Demand
from tidegate.sampling.reservoirs.reservoir import Reservoir
from tidegate.sampling.reservoirs.slots import Sample, SlotChanges
from tidegate.sampling.reservoirs.uniformity import (
    inclusion_chances,
    recovery_count,
    refill_confidence,
    retained_chances,
    uniformity_confidence,
)
from tidegate.sampling.samplers.eq_cluster import EqCluster
from tidegate.sampling.samplers.memory_model import proportional, safe_mean
from tidegate.sampling.samplers.pps_cluster import PpsCluster
from tidegate.sampling.samplers.sampler import Owners, RunningSampler, Sampler, find, names, thin
from tidegate.sampling.samplers.uniform import Uniform

__all__ = [
    "Demand",
    "EqCluster",
    "GroupedJoinReservoir",
    "GroupedReservoir",
    "GroupedSample",
    "JoinReservoir",
    "Owners",
    "PpsCluster",
    "ProgressiveJoinReservoir",
    "ProgressiveReservoir",
    "Reservoir",
    "RunningSampler",
    "Sample",
    "Sampler",
    "SlotChanges",
    "Uniform",
    "best_size",
    "estimate",
    "expected_results",
    "find",
    "inclusion_chances",
    "merge",
    "names",
    "proportional",
    "recovery_count",
    "refill_confidence",
    "reservoir_memory",
    "retained_chances",
    "safe_mean",
    "sample_error",
    "thin",
    "uniformity_confidence",
]


def __dir__() -> list[str]:
    return __all__
