"""The demo: a streaming join by Spark, by Tidegate, and by Tidegate with a tenth of the memory."""

from tidegate.spark.demo.run import POLICIES, run_demo
from tidegate.spark.demo.stream import DemoScale
from tidegate.spark.session.spark_errors import QueryFailedError

__all__ = ["POLICIES", "DemoScale", "QueryFailedError", "run_demo"]
