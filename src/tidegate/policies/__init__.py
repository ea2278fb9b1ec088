"""Policies decide which rows stay in a full buffer: one policy a file, a family of files a folder.

| module | contents |
|---|---|
| `policy` | the contract of all policies, and how they are found by name |
| `abilities` | what only some policies can do |
| `selection` | which rows fit a budget, given their scores |
| `ranking` | how rows rank in a recorded run, if that is known beforehand |
| `age`, `fifo`, `flow_expect`, `ijoin`, `importance`, `life` | a policy each |
| `offline`, `prob`, `random`, `size`, `until_expiry` | a policy each |
| `heeb` | HEEB and its variants |
| `arrival_models` | models of the rows that arrive next, for `flow_expect` |
| `min_cost_flow` | the solver of `offline` and `flow_expect` |
| `trend_limits` | for how long a stream with a trend can still bring a key |
| `waiting` | how long rows wait for the other side, where their side is ahead |
"""

from tidegate.policies.age import Age
from tidegate.policies.fifo import Fifo
from tidegate.policies.flow_expect import FlowExpect
from tidegate.policies.heeb import Exponential, Fixed, Heeb, HeebHistogram, Survival
from tidegate.policies.ijoin import IJoin
from tidegate.policies.importance import Importance
from tidegate.policies.life import Life
from tidegate.policies.offline import Offline
from tidegate.policies.policy import Need, Policy, RunningPolicy, describe, find, names, registered
from tidegate.policies.prob import Prob
from tidegate.policies.random import Random
from tidegate.policies.size import Size
from tidegate.policies.until_expiry import UntilExpiry

__all__ = [
    "Age",
    "Exponential",
    "Fifo",
    "Fixed",
    "FlowExpect",
    "Heeb",
    "HeebHistogram",
    "IJoin",
    "Importance",
    "Life",
    "Need",
    "Offline",
    "Policy",
    "Prob",
    "Random",
    "RunningPolicy",
    "Size",
    "Survival",
    "UntilExpiry",
    "describe",
    "find",
    "names",
    "registered",
]


def __dir__() -> list[str]:
    return __all__
