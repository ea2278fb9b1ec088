"""Who stays: one policy a file."""

from tidegate.policies.fifo import Fifo
from tidegate.policies.policy import Need, Policy, Ranking, find, names, registered
from tidegate.policies.random import Random
from tidegate.policies.until_expiry import UntilExpiry

__all__ = ["Fifo", "Need", "Policy", "Random", "Ranking", "UntilExpiry", "find", "names", "registered"]
