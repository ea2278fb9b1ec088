"""What we believe will arrive."""

from tidegate.models.frequency import Frequency
from tidegate.models.learned_frequency import FrequencyLearner, LearnedFrequency
from tidegate.models.rates import Rates

__all__ = ["Frequency", "FrequencyLearner", "LearnedFrequency", "Rates"]
