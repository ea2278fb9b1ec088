"""Unbiased samples of a join, with inclusion probabilities; reservoirs that hold them; answers from them.

Which file has what:

- samplers: `sampler` is the contract; `uniform`, `eq_cluster` and `pps_cluster` (with `cluster`, what the two
  share) are one each. `expecting` says how many matches a row will own, `correction` by how much that is wrong,
  `fraction` what memory a probability takes,
  `control` which one new draws have; `ladder` holds probabilities in a byte, `stairs` looks up the first match;
- reservoirs of rows: `reservoir`, `progressive` and `grouped`; `slots` keeps their rows, `merge` makes one sample
  of several, `uniformity` and `chances` say what growing costs;
- reservoirs of a join's results: `join_reservoir`, `progressive_join` and `grouped_join` are what users write,
  `ranks` and `printed_join` what runs, `memory` how large one should be;
- answers: `estimators` is the front door. `aggregate` reads what is asked, `drawn` how the sample came about,
  `windows` which rows lie in which window; `moments`, `intervals` and `quantiles` do the sums.
"""

from tidegate.sampling.eq_cluster import EqCluster
from tidegate.sampling.estimators import estimate
from tidegate.sampling.fraction import proportional, safe_mean
from tidegate.sampling.grouped import GroupedReservoir, GroupedSample
from tidegate.sampling.grouped_join import GroupedJoinReservoir
from tidegate.sampling.join_reservoir import JoinReservoir
from tidegate.sampling.memory import best_size, reservoir_memory, sample_error
from tidegate.sampling.merge import merge
from tidegate.sampling.pps_cluster import PpsCluster
from tidegate.sampling.progressive import ProgressiveReservoir
from tidegate.sampling.progressive_join import ProgressiveJoinReservoir, expected_results
from tidegate.sampling.ranks import Wants
from tidegate.sampling.reservoir import Reservoir
from tidegate.sampling.sampler import Owners, Sampler, Sampling, find, names, thinned
from tidegate.sampling.slots import Sample, Taken
from tidegate.sampling.uniform import Uniform
from tidegate.sampling.uniformity import (
    inclusion_chances,
    recovery_count,
    refill_confidence,
    retained_chances,
    uniformity_confidence,
)

__all__ = [
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
    "Sample",
    "Sampler",
    "Sampling",
    "Taken",
    "Uniform",
    "Wants",
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
    "thinned",
    "uniformity_confidence",
]
