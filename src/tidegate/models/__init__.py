"""What we believe will arrive, and what memory pays then."""

from tidegate.models.age_curve import AgeCurve
from tidegate.models.curve_learner import CurveLearner
from tidegate.models.frequency import Frequency
from tidegate.models.joint import joint_payoff
from tidegate.models.learned_frequency import FrequencyLearner, LearnedFrequency
from tidegate.models.payoff import Payoff
from tidegate.models.rates import Rates
from tidegate.models.sample_memory import sample_rows

__all__ = [
    "AgeCurve",
    "CurveLearner",
    "Frequency",
    "FrequencyLearner",
    "LearnedFrequency",
    "Payoff",
    "Rates",
    "joint_payoff",
    "sample_rows",
]
