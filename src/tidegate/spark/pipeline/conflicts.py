"""Conflicts between the keys of a pipeline file whose values are valid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from tidegate.engine.join import Join
from tidegate.spark.frames.durations import parse_window
from tidegate.spark.join.arguments import find_conflicts as find_join_conflicts
from tidegate.spark.pipeline.models import JoinConfig, Pipeline, SinkConfig, SourceConfig
from tidegate.spark.pipeline.values import FILE_FORMATS, STREAM_FORMATS
from tidegate.types import SIDES, InputError, Side

Problems: TypeAlias = Iterator[tuple[str, str]]
"""Pairs of a key and a message."""

_WITH_SCHEMA: Final = ("text", "avro")
_WITHOUT_PATH: Final = (*STREAM_FORMATS, "kafka", "console", "noop")
_WITHOUT_CHECKPOINT: Final = ("console", "noop")
_INFERENCE: Final = "spark.sql.streaming.schemaInference"
_NEEDED_OPTIONS: Final = {"socket": ("host", "port"), "kafka": ("kafka.bootstrap.servers",)}
_TOPICS: Final = ("subscribe", "subscribePattern", "assign")


def find_conflicts(pipeline: Pipeline) -> Problems:
    """Every key that conflicts with another or that another one requires."""
    if {"master", "remote"} <= pipeline.spark.model_fields_set:
        yield "spark.remote", "conflicts with spark.master; keep one of them"
    for side in SIDES:
        yield from _check_timing(pipeline, side)
        yield from _check_source(pipeline, side)
    yield from _check_join(pipeline.join)
    yield from _check_sink(pipeline.sink, streaming=pipeline.streaming)
    trigger, sink, checkpoint = pipeline.trigger, pipeline.sink, pipeline.checkpoint
    if trigger.available_now and trigger.processing_time is not None:
        yield "trigger.processing_time", "conflicts with trigger.available_now; keep one of them"
    if pipeline.streaming and checkpoint is None and sink.format not in _WITHOUT_CHECKPOINT:
        yield (
            "checkpoint",
            'missing; give a folder for the progress of the stream: checkpoint = "out/checkpoint"',
        )
    yield from _check_paths(pipeline)


def _check_timing(pipeline: Pipeline, side: Side) -> Problems:
    source, join = pipeline.source(side), pipeline.join
    if not pipeline.time(side):
        yield (
            f"{side}.time",
            'missing; name the column of event time: time = "...", or join.time for both sides',
        )
    elif source.time is not None and join.time is not None:
        yield f"{side}.time", "conflicts with join.time; keep one of them"
    if pipeline.streaming and pipeline.lateness(side) is None:
        yield (
            f"{side}.lateness",
            (
                'missing; give how late a row may arrive, so that old state can be removed: lateness = "10 minutes", '
                "or join.lateness for both sides"
            ),
        )


def _check_location(name: str, config: SourceConfig | SinkConfig) -> Problems:
    if config.table is not None:
        for key in ("format", "path"):
            if getattr(config, key) is not None:
                yield f"{name}.{key}", f"conflicts with {name}.table {config.table!r}; keep one of them"
    elif config.format is None:
        yield (
            f"{name}.format",
            f'missing; write format = "parquet" (or {", ".join(FILE_FORMATS[1:4])}, kafka, ...)',
        )
    elif config.format in FILE_FORMATS and config.path is None:
        yield f"{name}.path", f"missing; {config.format} needs one"
    elif config.format in _WITHOUT_PATH and config.path is not None:
        yield f"{name}.path", f"{config.format} takes no path; remove it"
    for option in _NEEDED_OPTIONS.get(config.format or "", ()):
        if option not in config.options:
            yield f"{name}.options", f'{config.format} needs {option}: options."{option}" = "..."'


def _check_source(pipeline: Pipeline, side: Side) -> Problems:
    source, streaming = pipeline.source(side), pipeline.streaming
    yield from _check_location(side, source)
    form = source.format
    if form in STREAM_FORMATS and not streaming:
        yield f"{side}.format", f"{form} is a stream only; remove streaming = false, or read files"
    if form in (*STREAM_FORMATS, "kafka", "text") and source.ddl is not None:
        yield f"{side}.schema", f"{form} has a schema of its own; remove this one, and use select"
    inferred = pipeline.spark.conf.get(_INFERENCE) == "true" or form in _WITH_SCHEMA
    if streaming and form in FILE_FORMATS and source.ddl is None and not inferred:
        yield f"{side}.schema", 'missing; a stream of files needs one: schema = "id BIGINT, at TIMESTAMP"'
    if form == "kafka" and not any(topic in source.options for topic in _TOPICS):
        yield f"{side}.options", f"kafka needs one of {', '.join(_TOPICS)}"


def _check_join(join: JoinConfig) -> Problems:
    window = parse_window(join.window)
    try:
        core = Join(window, join.budget, join.policy, join.split, condition=join.condition)
    except InputError as error:
        by_key = join.condition != "=" and join.policy.by_key
        yield "join.condition" if by_key else "join.split", str(error)
        return
    for argument, message in find_join_conflicts(core, join.on, join.by, join.importance, join.buckets):
        yield f"join.{argument}", message


def _check_sink(sink: SinkConfig, *, streaming: bool) -> Problems:
    yield from _check_location("sink", sink)
    if streaming and sink.mode not in (None, "append"):
        yield "sink.mode", f'{sink.mode!r} is for batches; a stream writes with "append"'
    if sink.format == "kafka" and not sink.select:
        yield "sink.select", 'missing; kafka writes a column value: select = ["to_json(struct(*)) as value"]'


def _check_paths(pipeline: Pipeline) -> Problems:
    """A stream must not read what it writes."""
    sink, checkpoint = pipeline.sink.path, pipeline.checkpoint
    if sink and sink == checkpoint:
        yield "checkpoint", "is the same as sink.path; give each a folder of its own"
    for side in SIDES:
        path = pipeline.source(side).path
        if path and path in (sink, checkpoint):
            other = "sink.path" if path == sink else "checkpoint"
            yield f"{side}.path", f"is the same as {other}; give each a folder of its own"
