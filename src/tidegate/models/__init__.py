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

from tidegate.models.age_curve import AgeCurve
from tidegate.models.age_curve_learner import AgeCurveLearner
from tidegate.models.frequencies.frequency import Frequency
from tidegate.models.frequencies.learned_frequency import FrequencyLearner, LearnedFrequency
from tidegate.models.joint_payoff import joint_payoff
from tidegate.models.payoff import Payoff
from tidegate.models.processes.ar1 import AR1
from tidegate.models.processes.benefit import Problem, gains
from tidegate.models.processes.linear_trend import LinearTrend
from tidegate.models.processes.markov_learners import AR1Learner, WalkLearner
from tidegate.models.processes.noise import Noise
from tidegate.models.processes.oracle import Oracle
from tidegate.models.processes.process import History, Markov, Process
from tidegate.models.processes.process_learner import LearnedProcess, ProcessLearner
from tidegate.models.processes.random_walk import RandomWalk
from tidegate.models.processes.running_fit import RecentRows, RunningFit
from tidegate.models.processes.stationary import Stationary
from tidegate.models.processes.trend_learner import TrendLearner
from tidegate.models.rates import Rates
from tidegate.models.sample_memory import sample_rows

__all__ = [
    "AR1",
    "AR1Learner",
    "AgeCurve",
    "AgeCurveLearner",
    "Frequency",
    "FrequencyLearner",
    "History",
    "LearnedFrequency",
    "LearnedProcess",
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
    "RecentRows",
    "RunningFit",
    "Stationary",
    "TrendLearner",
    "WalkLearner",
    "gains",
    "joint_payoff",
    "sample_rows",
]


def __dir__() -> list[str]:
    return __all__
