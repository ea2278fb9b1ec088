"""Pipelines: two sources, a join and a sink, described in a TOML file."""

from tidegate.spark.causes import QueryFailedError
from tidegate.spark.pipeline.file import Pipeline, load
from tidegate.spark.pipeline.run import Outcome, check, run

__all__ = ["Outcome", "Pipeline", "QueryFailedError", "check", "load", "run"]
