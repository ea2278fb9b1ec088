"""Who stays: one policy a file."""

from tidegate.policies.age import Age
from tidegate.policies.fifo import Fifo
from tidegate.policies.flow_expect import FlowExpect
from tidegate.policies.heeb import Heeb
from tidegate.policies.heeb_histogram import HeebHistogram
from tidegate.policies.incremental import DriftingBenefit, earlier, later, over_time, trusted
from tidegate.policies.life import Life
from tidegate.policies.offline import Offline
from tidegate.policies.policy import Learned, Need, Policy, find, names, registered
from tidegate.policies.prob import Prob
from tidegate.policies.random import Random
from tidegate.policies.size import Size
from tidegate.policies.survival import Exponential, Fixed, Infinite, Inverse, Survival, expected_benefit
from tidegate.policies.until_expiry import UntilExpiry

__all__ = [
    "Age",
    "DriftingBenefit",
    "Exponential",
    "Fifo",
    "Fixed",
    "FlowExpect",
    "Heeb",
    "HeebHistogram",
    "Infinite",
    "Inverse",
    "Learned",
    "Life",
    "Need",
    "Offline",
    "Policy",
    "Prob",
    "Random",
    "Size",
    "Survival",
    "UntilExpiry",
    "earlier",
    "expected_benefit",
    "find",
    "later",
    "names",
    "over_time",
    "registered",
    "trusted",
]
