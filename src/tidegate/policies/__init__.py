"""Who stays: one policy a file.

Which file has what:

- `policy` is the contract, `selection` who fits a budget by score, `ranking` what is known of a whole run beforehand;
- policies: `age`, `fifo`, `flow_expect`, `heeb`, `heeb_histogram`, `ijoin`, `importance`, `life`, `offline`,
  `prob`, `random`, `size` and `until_expiry`;
- what `heeb` and its kin reckon with: `survival` is how long a row stays and `lifetime` how long rows did;
  `expected` benefits are looked up, `incremental` ones come from one another, `precomputed` ones from tables;
  `heeb_learning` finds the processes itself; `followed` tells the histograms what rows match;
- what else policies reckon with: `arrivals_to_come` and `flow` for plans, `reach` for keys that move along a line.
"""

from tidegate.policies.age import Age
from tidegate.policies.fifo import Fifo
from tidegate.policies.flow_expect import FlowExpect
from tidegate.policies.heeb import Heeb
from tidegate.policies.heeb_histogram import HeebHistogram
from tidegate.policies.ijoin import IJoin
from tidegate.policies.importance import Importance
from tidegate.policies.incremental import DriftingBenefit, earlier, later, over_time, trusted
from tidegate.policies.life import Life
from tidegate.policies.offline import Offline
from tidegate.policies.policy import Need, Policy, find, names, registered
from tidegate.policies.precomputed import Curve, Surface, h1, h2
from tidegate.policies.prob import Prob
from tidegate.policies.random import Random
from tidegate.policies.size import Size
from tidegate.policies.survival import Exponential, Fixed, Infinite, Inverse, Survival, expected_benefit
from tidegate.policies.until_expiry import UntilExpiry
from tidegate.types import Learned

__all__ = [
    "Age",
    "Curve",
    "DriftingBenefit",
    "Exponential",
    "Fifo",
    "Fixed",
    "FlowExpect",
    "Heeb",
    "HeebHistogram",
    "IJoin",
    "Importance",
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
    "Surface",
    "Survival",
    "UntilExpiry",
    "earlier",
    "expected_benefit",
    "find",
    "h1",
    "h2",
    "later",
    "names",
    "over_time",
    "registered",
    "trusted",
]
