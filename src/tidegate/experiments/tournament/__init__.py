"""Beyond the papers: all policies on all workloads, compared with the offline optimum."""

from tidegate.experiments.tournament.figures import EXPERIMENTS

__all__ = ["EXPERIMENTS"]
