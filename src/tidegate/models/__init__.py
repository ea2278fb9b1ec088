"""What we believe will arrive, and what memory pays then.

Which file has what:

- matches by age: `age_curve`, learned by `curve_learner`;
- frequencies of keys: `frequency` where they are given, `learned_frequency` where not: it counts in `key_counts`,
  which holds the frequent in a `key_table` and knows the `rest` together. `rates` says how many rows come at all;
- processes that keys follow: `process` is the contract; `stationary`, `linear_trend`, `random_walk`, `ar1` and
  `oracle` are one each, and `noise` is what they scatter by. `process_learner` finds one out, by running fits:
  `fitted` is their contract, `trend_learner` and `neighbours` fit, `moments` adds up;
- what follows of them: `benefit` of a row, `meeting` of two streams, `payoff` of a memory, `joint` of one that two
  sides share, `sample_memory` of a sample; `histogram` learns where no process is known;
- for all of them: `numbers` checks columns, `horizon` says how fast they forget.
"""

from tidegate.models.age_curve import AgeCurve
from tidegate.models.ar1 import AR1
from tidegate.models.benefit import Problem, cumulative_benefit, dominates, gains, safe_to_discard
from tidegate.models.curve_learner import CurveLearner
from tidegate.models.fitted import Fitted, Recent
from tidegate.models.frequency import Frequency
from tidegate.models.joint import joint_payoff
from tidegate.models.learned_frequency import FrequencyLearner, LearnedFrequency
from tidegate.models.linear_trend import LinearTrend
from tidegate.models.neighbours import AR1Learner, WalkLearner
from tidegate.models.noise import Noise
from tidegate.models.oracle import Oracle
from tidegate.models.payoff import Payoff
from tidegate.models.process import History, Markov, Process
from tidegate.models.process_learner import Belief, ProcessLearner
from tidegate.models.random_walk import RandomWalk
from tidegate.models.rates import Rates
from tidegate.models.sample_memory import sample_rows
from tidegate.models.stationary import Stationary
from tidegate.models.trend_learner import TrendLearner

__all__ = [
    "AR1",
    "AR1Learner",
    "AgeCurve",
    "Belief",
    "CurveLearner",
    "Fitted",
    "Frequency",
    "FrequencyLearner",
    "History",
    "LearnedFrequency",
    "LinearTrend",
    "Markov",
    "Noise",
    "Oracle",
    "Payoff",
    "Problem",
    "Process",
    "ProcessLearner",
    "RandomWalk",
    "Rates",
    "Recent",
    "Stationary",
    "TrendLearner",
    "WalkLearner",
    "cumulative_benefit",
    "dominates",
    "gains",
    "joint_payoff",
    "safe_to_discard",
    "sample_rows",
]
