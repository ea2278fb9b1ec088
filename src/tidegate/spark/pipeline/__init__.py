"""Pipelines: two sources, a join and a sink, described in a TOML file."""

from tidegate.spark.pipeline.file import load
from tidegate.spark.pipeline.models import Pipeline
from tidegate.spark.pipeline.run import PipelineResult, check, run
from tidegate.spark.session.spark_errors import QueryFailedError

__all__ = ["Pipeline", "PipelineResult", "QueryFailedError", "check", "load", "run"]
