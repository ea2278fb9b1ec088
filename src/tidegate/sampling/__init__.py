"""Unbiased samples of a join, and answers from them."""

from tidegate.sampling.estimators import estimate

__all__ = ["estimate"]
