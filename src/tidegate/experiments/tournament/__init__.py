"""Beyond the papers: all policies on all workloads, against the optimum that knows the future."""

from tidegate.experiments.tournament.figures import EXPERIMENTS

__all__ = ["EXPERIMENTS"]
