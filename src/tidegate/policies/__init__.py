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

from typing import TYPE_CHECKING

from tidegate.lazy_package import load_on_first_use

if TYPE_CHECKING:
    from tidegate.policies.age import Age as Age
    from tidegate.policies.fifo import Fifo as Fifo
    from tidegate.policies.flow_expect import FlowExpect as FlowExpect
    from tidegate.policies.heeb import Exponential as Exponential
    from tidegate.policies.heeb import Fixed as Fixed
    from tidegate.policies.heeb import Heeb as Heeb
    from tidegate.policies.heeb import HeebHistogram as HeebHistogram
    from tidegate.policies.heeb import Survival as Survival
    from tidegate.policies.ijoin import IJoin as IJoin
    from tidegate.policies.importance import Importance as Importance
    from tidegate.policies.life import Life as Life
    from tidegate.policies.offline import Offline as Offline
    from tidegate.policies.policy import Need as Need
    from tidegate.policies.policy import Policy as Policy
    from tidegate.policies.policy import RunningPolicy as RunningPolicy
    from tidegate.policies.policy import describe as describe
    from tidegate.policies.policy import find as find
    from tidegate.policies.policy import names as names
    from tidegate.policies.policy import registered as registered
    from tidegate.policies.prob import Prob as Prob
    from tidegate.policies.random import Random as Random
    from tidegate.policies.size import Size as Size
    from tidegate.policies.until_expiry import UntilExpiry as UntilExpiry

__all__ = load_on_first_use(__name__)
