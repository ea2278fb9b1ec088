"""The only code that touches buffers: the operator, and a simulation that runs it over recorded streams."""

from tidegate.engine.operator import Join, Operator, Outcome, collected
from tidegate.engine.simulate import simulate

__all__ = ["Join", "Operator", "Outcome", "collected", "simulate"]
