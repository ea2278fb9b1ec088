"""What we believe will arrive, and what memory pays then."""

from tidegate.models.age_curve import AgeCurve
from tidegate.models.joint import joint_payoff
from tidegate.models.payoff import Payoff
from tidegate.models.sample_memory import sample_rows

__all__ = ["AgeCurve", "Payoff", "joint_payoff", "sample_rows"]
