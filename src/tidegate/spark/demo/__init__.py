"""A bounded join at work: auctions and bids, made while several policies join them side by side."""

from tidegate.spark.causes import QueryFailedError
from tidegate.spark.demo.run import POLICIES, Scale, run_demo

__all__ = ["POLICIES", "QueryFailedError", "Scale", "run_demo"]
