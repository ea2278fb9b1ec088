"""Optimization of Threshold Functions over Streams (Cai, Wu, Bernstein, Chandramouli): section 6."""

from tidegate.experiments.threshold_functions.figures import EXPERIMENTS

__all__ = ["EXPERIMENTS"]
