"""Models of the rows that will arrive, and of results as a function of memory.

| module | contents |
|---|---|
| `age_curve`, `age_curve_learner` | matches of a row by its age: given, or learned while a join runs |
| `frequencies/` | frequencies of keys: given, or learned |
| `rates` | rows per unit of time on each side |
| `processes/` | processes that keys follow, how they are learned, and the benefit of a row |
| `adaptive_histogram` | a mean value as a function of position, if no process is known |
| `payoff`, `joint_payoff` | results as a function of memory, for one side and for both sides |
| `sample_memory` | the memory that a sample of a join needs |
| `decay` | the half-life of observations |
| `validation`, `value_object` | checks of arguments; equality and JSON of models |
"""

from typing import TYPE_CHECKING

from tidegate.lazy_package import load_on_first_use

if TYPE_CHECKING:
    from tidegate.models.age_curve import AgeCurve as AgeCurve
    from tidegate.models.age_curve_learner import AgeCurveLearner as AgeCurveLearner
    from tidegate.models.frequencies.frequency import Frequency as Frequency
    from tidegate.models.frequencies.learned_frequency import FrequencyLearner as FrequencyLearner
    from tidegate.models.frequencies.learned_frequency import LearnedFrequency as LearnedFrequency
    from tidegate.models.frequencies.stream_shares import StreamShares as StreamShares
    from tidegate.models.joint_payoff import joint_payoff as joint_payoff
    from tidegate.models.payoff import Payoff as Payoff
    from tidegate.models.processes.ar1 import AR1 as AR1
    from tidegate.models.processes.benefit import Problem as Problem
    from tidegate.models.processes.benefit import gains as gains
    from tidegate.models.processes.linear_trend import LinearTrend as LinearTrend
    from tidegate.models.processes.markov_learners import AR1Learner as AR1Learner
    from tidegate.models.processes.markov_learners import WalkLearner as WalkLearner
    from tidegate.models.processes.noise import Noise as Noise
    from tidegate.models.processes.oracle import Oracle as Oracle
    from tidegate.models.processes.process import History as History
    from tidegate.models.processes.process import Markov as Markov
    from tidegate.models.processes.process import Process as Process
    from tidegate.models.processes.process_learner import LearnedProcess as LearnedProcess
    from tidegate.models.processes.process_learner import ProcessLearner as ProcessLearner
    from tidegate.models.processes.random_walk import RandomWalk as RandomWalk
    from tidegate.models.processes.running_fit import RecentRows as RecentRows
    from tidegate.models.processes.running_fit import RunningFit as RunningFit
    from tidegate.models.processes.stationary import Stationary as Stationary
    from tidegate.models.processes.trend_learner import TrendLearner as TrendLearner
    from tidegate.models.rates import Rates as Rates
    from tidegate.models.sample_memory import sample_rows as sample_rows

__all__ = load_on_first_use(__name__)
