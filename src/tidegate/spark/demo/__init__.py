"""The demo: a bounded join of auctions and bids, by several policies side by side."""

from tidegate.spark.demo.run import POLICIES, run_demo
from tidegate.spark.demo.stream import DemoScale
from tidegate.spark.session.spark_errors import QueryFailedError

__all__ = ["POLICIES", "DemoScale", "QueryFailedError", "run_demo"]
