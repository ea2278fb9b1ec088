"""The only code that touches buffers: the operator, and a simulation that runs it over recorded streams."""

from tidegate.engine.cache import CacheReport, simulate_cache
from tidegate.engine.operator import Join, Operator, Outcome, collected
from tidegate.engine.simulate import simulate

__all__ = ["CacheReport", "Join", "Operator", "Outcome", "collected", "simulate", "simulate_cache"]
