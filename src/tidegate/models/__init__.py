"""What we believe will arrive, and what memory pays then."""

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
