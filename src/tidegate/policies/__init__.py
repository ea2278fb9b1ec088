"""Who stays: one policy a file."""

from tidegate.policies.age import Age
from tidegate.policies.fifo import Fifo
from tidegate.policies.life import Life
from tidegate.policies.offline import Offline
from tidegate.policies.policy import Learned, Need, Policy, find, names, registered
from tidegate.policies.prob import Prob
from tidegate.policies.random import Random
from tidegate.policies.size import Size
from tidegate.policies.until_expiry import UntilExpiry

__all__ = [
    "Age",
    "Fifo",
    "Learned",
    "Life",
    "Need",
    "Offline",
    "Policy",
    "Prob",
    "Random",
    "Size",
    "UntilExpiry",
    "find",
    "names",
    "registered",
]
