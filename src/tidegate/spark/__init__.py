"""The only room that imports pyspark: joins as DataFrame functions."""

from tidegate.spark.alert import alert
from tidegate.spark.inspection import inspect
from tidegate.spark.join import join
from tidegate.spark.lookup import lookup
from tidegate.spark.pool import Pool
from tidegate.spark.session import configure

__all__ = ["Pool", "alert", "configure", "inspect", "join", "lookup"]
