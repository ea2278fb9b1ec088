"""What a pipeline file says: two sources, a join, a sink.

Everything here is data. Expressions are Spark SQL over the columns of rows, and may call only functions that do not
reach outside of these (`functions`). All that can be checked without Spark is checked when the file is loaded.
"""

from __future__ import annotations

import difflib
import os.path
import re
import typing
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from sqlglot import parse_one
from sqlglot.errors import SqlglotError

from tidegate.engine.operator import Join
from tidegate.importance import Definition, Expression, Stated
from tidegate.importance.definition import walk
from tidegate.policies import Fifo, Policy
from tidegate.spark.durations import microseconds, window_of
from tidegate.spark.importance import check_needs
from tidegate.spark.pipeline.functions import check_expression
from tidegate.spark.pipeline.table import (
    Document,
    Table,
    at_least,
    expected,
    filled,
    flag,
    scalars,
    shown,
    text,
    texts,
    whole,
)
from tidegate.spark.plan import How, how_of
from tidegate.spark.settings import online
from tidegate.spark.where import SPARK
from tidegate.types import (
    SIDES,
    Band,
    Budget,
    Combine,
    Comparison,
    Condition,
    InputError,
    Split,
    Window,
    check_choice,
)

if TYPE_CHECKING:
    from tidegate.types import Side

T = TypeVar("T")
Mode = Literal["append", "overwrite", "error", "ignore"]

FOREVER: Final = "forever"
FILES: Final = ("parquet", "csv", "json", "orc", "text", "xml", "avro")
_SELF_DESCRIBED: Final = ("text", "avro")
_STREAMS: Final = ("rate", "rate-micro-batch", "socket")
_SOURCES: Final = (*FILES, *_STREAMS, "kafka", "binaryfile", "delta", "iceberg")
_SINKS: Final = (*FILES, "kafka", "console", "noop", "delta", "iceberg")
_PATHLESS: Final = (*_STREAMS, "kafka", "console", "noop")
_FORGETFUL: Final = ("console", "noop")
_INFERENCE: Final = "spark.sql.streaming.schemaInference"
_SERVERS: Final = "kafka.bootstrap.servers"
_TOPICS: Final = ("subscribe", "subscribePattern", "assign")


@dataclass(frozen=True)
class Engine:
    """The Spark that runs it.

    Parameters
    ----------
    master
        Where: "local[2]", "spark://...", "yarn".
    remote
        Or a Spark Connect server: "sc://...".
    app
        What Spark calls it.
    conf
        Its settings.
    """

    master: str = "local[*]"
    remote: str | None = None
    app: str = "tidegate"
    conf: dict[str, str] | None = None

    @property
    def local(self) -> bool:
        """Whether Spark runs on this machine, and so sees its files."""
        return self.remote is None and self.master.startswith("local")


@dataclass(frozen=True)
class Source:
    """One side of the join.

    Parameters
    ----------
    side
        Which.
    format, path, table
        What is read: a format, with the path that it needs, or a table.
    schema
        Its columns, as DDL.
    options
        What Spark's reader takes.
    select, where
        Its columns and its rows, as Spark SQL.
    time
        The column of event time, after `select`.
    lateness
        How late a row may come, in microseconds; None on batches.
    """

    side: Side
    format: str | None = None
    path: str | None = None
    table: str | None = None
    schema: str | None = None
    options: dict[str, str] | None = None
    select: tuple[str, ...] = ()
    where: str | None = None
    time: str = ""
    lateness: int | None = None


@dataclass(frozen=True)
class Joining:
    """What `tidegate.join` is given beside the sides and their times."""

    on: str | list[str | tuple[str, str]]
    window: tuple[str | None, str | None]
    budget: Budget | None = None
    policy: Policy = field(default_factory=Fifo)
    how: How = "inner"
    where: str | None = None
    condition: Condition = "="
    by: str | tuple[str, str] | None = None
    importance: Definition | None = None
    combine: Combine = "min"
    split: Split = "shared"
    buckets: int | None = None
    suffix: str = "_right"
    seed: int = 0
    step: int = 100_000


@dataclass(frozen=True)
class Sink:
    """Where results go: a format, with the path that it needs, or a table; `select` shapes them first."""

    format: str | None = None
    path: str | None = None
    table: str | None = None
    mode: Mode = "append"
    options: dict[str, str] | None = None
    partition_by: tuple[str, ...] = ()
    select: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """What to call it."""
        return self.path or self.table or self.format or ""


@dataclass(frozen=True)
class Trigger:
    """When a micro-batch begins: as soon as the last is done, unless one of these is given.

    Parameters
    ----------
    available_now
        Handle what is there, in micro-batches, and end.
    every
        Begin one so often, in microseconds.
    """

    available_now: bool = False
    every: int | None = None


@dataclass(frozen=True)
class Pipeline:
    """A pipeline, as its file has it; paths are absolute."""

    file: Path
    left: Source
    right: Source
    join: Joining
    sink: Sink
    streaming: bool = True
    checkpoint: str | None = None
    trigger: Trigger = Trigger()
    spark: Engine = Engine()

    def side(self, side: Side) -> Source:
        """One of the sources."""
        return self.left if side == "left" else self.right

    def __str__(self) -> str:
        sources = " and ".join(f"{self.side(side).format or self.side(side).table}" for side in SIDES)
        budget = self.join.budget
        limit = f"{budget.limit:,} {budget.unit}" if budget else "no limit"
        kind = "stream" if self.streaming else "batch"
        policy = self.join.policy.name
        return f"{kind} of {sources}, {self.join.how} join within {limit} ({policy}), to {self.sink.place}"


def load(path: str | Path) -> Pipeline:
    """Read a pipeline file and check all of it that needs no Spark.

    Raises
    ------
    InputError
        Everything that is wrong, a line each: `auctions.toml: join.budget: ...`.
    """
    document = Document(Path(path))
    top = document.top
    streaming = top.read("streaming", flag, default=True)
    for name, remedy in (
        ("left", "add a table [left] with what to read"),
        ("right", "add a table [right] with what to read"),
        ("join", "add a table [join] with on, time, window and budget"),
        ("sink", "add a table [sink] with where results go"),
    ):
        top.need(name, remedy)
    engine = _engine(top.table("spark"))
    base = Path(path).resolve().parent
    parts = {name: top.table(name) for name in ("left", "right", "join", "sink")}
    left, right = (
        _source(parts[side], parts["join"], side, base, engine, streaming=streaming) for side in SIDES
    )
    joining = _joining(parts["join"], base)
    sink = _sink(parts["sink"], base, streaming=streaming)
    trigger = _trigger(top.table("trigger"))
    checkpoint = top.read("checkpoint", _place(base), None)
    if streaming and sink.format not in _FORGETFUL:
        top.need("checkpoint", 'the stream notes there what it has done: checkpoint = "out/checkpoint"')
    if document.sound:
        _check_places(document, (left, right), sink, checkpoint)
    document.finish()
    return Pipeline(Path(path), left, right, joining, sink, streaming, checkpoint, trigger, engine)


def check_inputs(pipeline: Pipeline) -> None:
    """Refuse input paths that are not there, where Spark sees this machine's files."""
    if not pipeline.spark.local:
        return
    for side in SIDES:
        source = pipeline.side(side)
        if source.path is None or _elsewhere(source.path) or re.search(r"[*?{\[]", source.path):
            continue
        path, key = Path(source.path), f"{pipeline.file}: {side}.path"
        if not path.exists():
            raise InputError(
                f"{key}: {path} does not exist; a relative path starts from the folder of the pipeline file"
            )
        if pipeline.streaming and source.format in FILES and not path.is_dir():
            raise InputError(f"{key}: {path} is a file; a stream of files reads a folder: {path.parent}")


def _engine(spark: Table) -> Engine:
    engine = Engine(
        spark.read("master", filled, "local[*]"),
        spark.read("remote", filled, None),
        spark.read("app", filled, "tidegate"),
        spark.read("conf", scalars, {}),
    )
    if "master" in spark and "remote" in spark:
        spark.note("remote", "stands beside spark.master; keep one of them")
    return engine


def _timing(part: Table, join: Table, side: Side, *, streaming: bool) -> tuple[str, int | None]:
    """The time and the lateness of a side: its own, or what [join] says for both."""
    both = join.read("time", _both, None)
    shared = both if both is None or isinstance(both, str) else both[SIDES.index(side)]
    own = part.read("time", filled, None)
    if own and shared:
        part.note("time", f"join.time names {shared!r} too; keep one of them")
    if "time" not in part and "time" not in join and join.there:
        part.note("time", 'missing; name the column of event time: time = "...", or join.time for both sides')
    lateness = part.read("lateness", _span, join.read("lateness", _span, None))
    if streaming and "lateness" not in part and "lateness" not in join and join.there:
        part.note(
            "lateness",
            'missing; say how late a row may come, so that state can be let go: lateness = "10 minutes", '
            "or join.lateness for both sides",
        )
    return own or shared or "", lateness


def _source(part: Table, join: Table, side: Side, base: Path, engine: Engine, *, streaming: bool) -> Source:
    time, lateness = _timing(part, join, side, streaming=streaming)
    source = Source(
        side=side,
        format=part.read("format", _format(_SOURCES), None),
        path=part.read("path", _place(base), None),
        table=part.read("table", filled, None),
        schema=part.read("schema", filled, None),
        options=part.read("options", scalars, {}),
        select=_select(part),
        where=part.read("where", _column, None),
        time=time,
        lateness=lateness,
    )
    _check_place(part, source.format, source.path, source.table)
    _check_source(part, source, engine, streaming=streaming)
    return source


def _check_place(part: Table, name: str | None, path: str | None, table: str | None) -> None:
    if "table" in part:
        for key in ("format", "path"):
            if key in part:
                part.note(key, f"stands beside {part.named('table')} {table!r}; keep one of them")
    elif "format" not in part:
        part.need("format", f'write format = "parquet" (or {", ".join(FILES[1:4])}, kafka, ...)')
    elif name in FILES and "path" not in part:
        part.need("path", f"{name} needs one")
    elif name in _PATHLESS and path is not None:
        part.note("path", f"{name} takes none")


def _check_source(part: Table, source: Source, engine: Engine, *, streaming: bool) -> None:
    name, options = source.format, source.options or {}
    if name in _STREAMS and not streaming:
        part.note("format", f"{name} is a stream only; remove streaming = false, or read files")
    if name in (*_STREAMS, "kafka", "text") and source.schema is not None:
        part.note("schema", f"{name} has its own columns; take them apart with select")
    inferred = (engine.conf or {}).get(_INFERENCE) == "true" or name in _SELF_DESCRIBED
    if streaming and name in FILES and source.schema is None and not inferred and "schema" not in part:
        part.note("schema", 'missing; a stream of files needs one: schema = "id BIGINT, at TIMESTAMP"')
    if name == "socket":
        _need_options(part, options, "host", "port")
    if name == "kafka":
        _need_options(part, options, _SERVERS)
        if not any(topic in options for topic in _TOPICS):
            part.note("options", f"kafka needs one of {', '.join(_TOPICS)}")


def _need_options(part: Table, options: dict[str, str], *names: str) -> None:
    for name in names:
        if name not in options:
            part.note("options", f'{part.read("format", text, "")} needs {name}: options."{name}" = "..."')


def _joining(join: Table, base: Path) -> Joining:
    join.need("on", 'name the key: on = "id", on = ["a", "b"], or on = [["a", "b"]] where names differ')
    join.need("window", 'how long rows stay joinable: window = ["10 minutes", "0 seconds"]')
    joining = Joining(
        on=join.read("on", _on, ""),
        window=join.read("window", _window, (None, None)),
        budget=join.read("budget", _budget, None),
        policy=join.read("policy", _policy, Fifo()),
        how=join.read("how", _how, "inner"),
        where=join.read("where", _expression, None),
        condition=join.read("condition", _condition, "="),
        by=join.read("by", _both, None),
        importance=join.read("importance", _importance(base), None),
        combine=join.read("combine", _combine, "min"),
        split=join.read("split", _split, "shared"),
        buckets=join.read("buckets", at_least(1), None),
        suffix=join.read("suffix", filled, "_right"),
        seed=join.read("seed", whole, 0),
        step=join.read("step", at_least(1), 100_000),
    )
    _check_budget(join, joining)
    _check_condition(join, joining)
    if "importance" not in join:
        try:
            check_needs(joining.policy, None)
        except InputError as error:
            join.note("importance", str(error))
    return joining


def _check_budget(join: Table, joining: Joining) -> None:
    try:
        Join(Window(0, 0), joining.budget, joining.policy, joining.split)
    except InputError as error:
        join.note("split", str(error))
    if joining.budget is not None and joining.buckets is not None:
        try:
            joining.budget.divided(joining.buckets)
        except InputError as error:
            join.note("buckets", str(error))


def _check_condition(join: Table, joining: Joining) -> None:
    if joining.condition == "=":
        if joining.by is not None:
            join.note("by", 'goes with a condition other than "="; add its columns to join.on instead')
        return
    if not isinstance(joining.on, str) and len(joining.on) != 1:
        join.note("on", f"the condition compares one column, got {len(joining.on)}; name one")
    if joining.by is None and (joining.buckets or 1) != 1:
        join.note("buckets", f"{joining.buckets} need join.by: without it every row may match every other")


def _sink(part: Table, base: Path, *, streaming: bool) -> Sink:
    sink = Sink(
        format=part.read("format", _format(_SINKS), None),
        path=part.read("path", _place(base), None),
        table=part.read("table", filled, None),
        mode=part.read("mode", _mode, "append" if streaming else "error"),
        options=part.read("options", scalars, {}),
        partition_by=part.read("partition_by", texts, ()),
        select=_select(part),
    )
    _check_place(part, sink.format, sink.path, sink.table)
    if streaming and sink.mode != "append":
        part.note("mode", f'{sink.mode!r} is for batches; a stream of results is written with "append"')
    if sink.format == "kafka":
        _need_options(part, sink.options or {}, _SERVERS)
        if not sink.select:
            part.note(
                "select", 'missing; kafka writes a column value: select = ["to_json(struct(*)) as value"]'
            )
    return sink


def _trigger(part: Table) -> Trigger:
    trigger = Trigger(
        part.read("available_now", flag, default=False), part.read("processing_time", _span, None)
    )
    if trigger.available_now and trigger.every is not None:
        part.note("processing_time", "stands beside trigger.available_now; keep one of them")
    return trigger


def _check_places(
    document: Document, sources: tuple[Source, ...], sink: Sink, checkpoint: str | None
) -> None:
    """Refuse a stream that would read what it writes."""
    if sink.path and sink.path == checkpoint:
        document.note("checkpoint", "is sink.path too; give each a folder of its own")
    for source in sources:
        if source.path and source.path in (sink.path, checkpoint):
            other = "sink.path" if source.path == sink.path else "checkpoint"
            document.note(f"{source.side}.path", f"is {other} too; give each a folder of its own")


def _elsewhere(path: str) -> bool:
    """Whether a path has a scheme: "s3a://bucket/rows"."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", path) is not None


def _place(base: Path) -> Callable[[object], str]:
    def reader(value: object) -> str:
        path = filled(value)
        return path if _elsewhere(path) else os.path.normpath(base / path)

    return reader


def _format(known: tuple[str, ...]) -> Callable[[object], str]:
    def reader(value: object) -> str:
        name = filled(value)
        if name.lower() in known:
            return name.lower()
        near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.75)
        if near:
            raise InputError(
                f"{name!r} is not known; did you mean {near[0]!r}? Others by their class's full name"
            )
        if name == "memory":
            raise InputError('"memory" is gone when the run ends; use "console", or files')
        return name

    return reader


def _span(value: object) -> int:
    span = microseconds(text(value), "the span")
    if span < 0:
        raise InputError(f"{value!r} is negative; give 0 seconds or more")
    return span


def _window(value: object) -> tuple[str | None, str | None]:
    if not isinstance(value, list) or len(value) != len(SIDES) or not all(isinstance(v, str) for v in value):
        raise expected('[left, right] like ["10 minutes", "0 seconds"]', value)
    left, right = (None if span.strip().lower() == FOREVER else span for span in value)
    window_of((left, right))
    return left, right


def _budget(value: object) -> Budget | None:
    if isinstance(value, dict):
        unknown = [key for key in value if key not in ("rows", "bytes")]
        if unknown:
            raise InputError(
                f'{unknown[0]!r} is not a unit; write {{ rows = 50000 }} or {{ bytes = "64 MB" }}'
            )
        return Budget(**value)
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise expected('a number of rows like 50000, or bytes like "64 MB"', value)
    return Budget.of(value)


def _policy(value: object) -> Policy:
    if isinstance(value, str):
        return online(value)
    if not isinstance(value, dict):
        raise expected('a name like "fifo", or a table like { name = "random", seed = 1 }', value)
    settings = dict(value)
    policy = online(filled(settings.pop("name", "")))
    known: list[str] = [item.name for item in fields(policy) if item.init] if is_dataclass(policy) else []
    hints = typing.get_type_hints(type(policy))
    for key, setting in settings.items():
        if key not in known:
            has = f"; it has {', '.join(known)}" if known else " and takes no settings"
            raise InputError(f"policy {policy.name!r} has no {key!r}{has}")
        if not _fits(setting, hints[key]):
            raise InputError(
                f"{key} of policy {policy.name!r} cannot be {shown(setting)}; see its documentation"
            )
    try:
        return type(policy).made_of((policy.parameters() or {}) | settings) if settings else policy
    except TypeError as error:
        raise InputError(f"policy {policy.name!r} cannot be made of {shown(settings)}: {error}") from error


def _fits(value: object, hint: object) -> bool:
    """Whether a plain value is of a plain type; what is not plain is left to the policy."""
    kinds = typing.get_args(hint) or (hint,)
    plain = [kind for kind in kinds if kind in (bool, int, float, str)]
    if len(plain) < len([kind for kind in kinds if kind is not type(None)]):
        return True
    return type(value) in plain or (float in plain and type(value) is int)


def _how(value: object) -> How:
    return how_of(value)


def _combine(value: object) -> Combine:
    check_choice(value, Combine, "combine")
    return typing.cast("Combine", value)


def _importance(base: Path) -> Callable[[object], Definition]:
    place = _place(base)

    def placed(value: object) -> object:
        """The same, with paths that start from the folder of the pipeline file."""
        if isinstance(value, list):
            return [placed(part) for part in value]
        if not isinstance(value, dict):
            return value
        return {
            k: place(v) if value.get("kind") == "watched" and k == "path" else placed(v)
            for k, v in value.items()
        }

    def reader(value: object) -> Definition:
        definition = Definition.of(typing.cast("Stated", placed(value)))
        for part in walk(definition):
            if isinstance(part, Expression):
                check_expression(part.sql)
        return definition

    return reader


def _mode(value: object) -> Mode:
    check_choice(value, Mode, "mode")
    return typing.cast("Mode", value)


def _column(value: object) -> str:
    """A Spark SQL expression over the columns of a row."""
    check_expression(filled(value))
    return text(value)


def _select(part: Table) -> tuple[str, ...]:
    select = part.read("select", texts, ())
    for number, expression in enumerate(select):
        try:
            check_expression(expression)
        except InputError as error:
            part.note(f"select[{number}]", str(error))
    return select


def _expression(value: object) -> str:
    """A condition over the pair; `tidegate.join` parses it the same way, and gives Spark what it understood."""
    check_expression(filled(value))
    try:
        understood = parse_one(text(value), read=SPARK).sql(SPARK)
    except SqlglotError as error:
        raise InputError(f"{value!r} cannot be parsed: {str(error).splitlines()[0]}") from error
    except RecursionError as error:
        raise InputError("is nested too deep to be parsed; simplify it") from error
    check_expression(understood)
    return text(value)


def _condition(value: object) -> Condition:
    if isinstance(value, dict):
        if set(value) != {"low", "high"} or not all(_fits(end, float) for end in value.values()):
            raise InputError("a band is written { low = -5, high = 5 }: low <= r.key - l.key <= high")
        return Band(**value)
    check_choice(value, Comparison, "condition")
    return typing.cast("Comparison", value)


def _split(value: object) -> Split:
    if isinstance(value, list):
        if len(value) != len(SIDES) or not all(type(part) is int for part in value):
            raise expected('"shared", "even", "optimal" or [left, right] in the budget\'s unit', value)
        return (value[0], value[1])
    if value not in ("shared", "even", "optimal"):
        raise expected('"shared", "even", "optimal" or [left, right] in the budget\'s unit', value)
    return typing.cast("Split", value)


def _both(value: object) -> str | tuple[str, str]:
    """A name for both sides, or one for each."""
    if isinstance(value, str):
        return filled(value)
    if not isinstance(value, list) or len(value) != len(SIDES):
        raise expected("a column, or [left, right]", value)
    left, right = texts(value)
    return left, right


def _on(value: object) -> str | list[str | tuple[str, str]]:
    if isinstance(value, str):
        return filled(value)
    if not isinstance(value, list) or not value:
        raise expected('a column, or a list of columns and of pairs like [["a", "b"]]', value)
    return [_both(part) for part in value]
