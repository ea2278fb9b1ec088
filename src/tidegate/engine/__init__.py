"""The only code that touches buffers: the operator, and a simulation that runs it over recorded streams."""

from tidegate.engine.cache import CacheReport, simulate_cache
from tidegate.engine.operator import Join, Operator, Outcome, collected
from tidegate.engine.reservoir_join import ReservoirReport, simulate_reservoir
from tidegate.engine.sampling_operator import SamplingOperator
from tidegate.engine.simulate import simulate
from tidegate.engine.simulate_sample import SampleReport, simulate_sample

__all__ = [
    "CacheReport",
    "Join",
    "Operator",
    "Outcome",
    "ReservoirReport",
    "SampleReport",
    "SamplingOperator",
    "collected",
    "simulate",
    "simulate_cache",
    "simulate_reservoir",
    "simulate_sample",
]
