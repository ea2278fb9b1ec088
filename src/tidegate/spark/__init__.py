"""The only room that imports pyspark: joins, samples, alarms and lookups as DataFrame functions."""

from tidegate.spark.alert import alert
from tidegate.spark.estimate import estimate
from tidegate.spark.inspection import inspect
from tidegate.spark.join import join
from tidegate.spark.lookup import lookup
from tidegate.spark.pool import Pool
from tidegate.spark.reservoir import reservoir
from tidegate.spark.sample import sample
from tidegate.spark.session import configure

__all__ = ["Pool", "alert", "configure", "estimate", "inspect", "join", "lookup", "reservoir", "sample"]
