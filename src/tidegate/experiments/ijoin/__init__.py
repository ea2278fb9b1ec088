"""iJoin: Importance-aware Join Approximation over Data Streams (Kulkarni, Ravishankar)."""

from tidegate.experiments.ijoin.figures import EXPERIMENTS

__all__ = ["EXPERIMENTS"]
