"""Unbiased samples of a join, each result with its inclusion probability: one sampler a file."""

from tidegate.sampling.eq_cluster import EqCluster
from tidegate.sampling.fraction import proportional, safe_mean
from tidegate.sampling.pps_cluster import PpsCluster
from tidegate.sampling.sampler import Owners, Sampler, Sampling, find, names, thinned
from tidegate.sampling.uniform import Uniform

__all__ = [
    "EqCluster",
    "Owners",
    "PpsCluster",
    "Sampler",
    "Sampling",
    "Uniform",
    "find",
    "names",
    "proportional",
    "safe_mean",
    "thinned",
]
