"""The tables of a pipeline file, as pydantic models."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, StrictBool, StrictInt

from tidegate.policies import Fifo
from tidegate.spark.pipeline import values
from tidegate.types import SIDES, Combine, Side


class _Table(BaseModel):
    """A table of the file: its keys, and no others."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class SparkConfig(_Table):
    """The Spark session that runs the pipeline.

    Parameters
    ----------
    master
        Where Spark runs: "local[2]", "spark://...", "yarn".
    remote
        A Spark Connect server instead: "sc://...".
    app
        The name of the application.
    conf
        Spark's settings.
    """

    master: values.Text = "local[*]"
    remote: values.Text | None = None
    app: values.Text = "tidegate"
    conf: values.Options = {}

    @property
    def local(self) -> bool:
        """Whether Spark runs on this machine, and so sees its files."""
        return self.remote is None and self.master.startswith("local")


class SourceConfig(_Table):
    """One side of the join.

    Parameters
    ----------
    format, path, table
        What to read: a format, with the path that it needs, or a table of the catalog.
    ddl
        The columns, as DDL; `schema` in the file.
    options
        Options of Spark's reader.
    select, where
        Columns and rows to keep, as Spark SQL.
    time
        The column of event time, after `select`; `join.time` if None.
    lateness
        How late a row may arrive, in microseconds; `join.lateness` if None.
    """

    format: values.SourceFormat | None = None
    path: values.PathOrUrl | None = None
    table: values.Text | None = None
    ddl: values.Text | None = Field(default=None, alias="schema")
    options: values.Options = {}
    select: values.SqlTexts = ()
    where: values.SqlText | None = None
    time: values.Text | None = None
    lateness: values.Microseconds | None = None


class JoinConfig(_Table):
    """What `tidegate.join` takes, and the event time and lateness of both sides."""

    on: values.KeyColumns
    window: values.WindowEnds
    time: values.ColumnOrPair | None = None
    lateness: values.Microseconds | None = None
    budget: values.BudgetValue = None
    policy: values.PolicyValue = Field(default_factory=Fifo)
    how: values.HowValue = "inner"
    where: values.PairCondition | None = None
    condition: values.ConditionValue = "="
    by: values.ColumnOrPair | None = None
    importance: values.ImportanceValue = None
    combine: Combine = "min"
    split: values.SplitValue = "shared"
    buckets: values.Count | None = None
    suffix: values.Text = "_right"
    seed: StrictInt = 0
    step: values.Count = 100_000

    def arguments(self) -> dict[str, Any]:
        """The keyword arguments of `tidegate.join`, without `time`."""
        return {name: value for name, value in self if name not in ("time", "lateness")}


class SinkConfig(_Table):
    """Where results go.

    Parameters
    ----------
    format, path, table
        Where to write: a format, with the path that it needs, or a table of the catalog.
    mode
        What to do with results that are already there. By default "append" for a stream, "error" for a batch.
    options
        Options of Spark's writer.
    partition_by
        Columns that divide the files into folders.
    select
        Columns of the results, as Spark SQL.
    """

    format: values.SinkFormat | None = None
    path: values.PathOrUrl | None = None
    table: values.Text | None = None
    mode: Literal["append", "overwrite", "error", "ignore"] | None = None
    options: values.Options = {}
    partition_by: values.Texts = ()
    select: values.SqlTexts = ()

    @property
    def destination(self) -> str:
        """The path, table or format, for messages."""
        return self.path or self.table or self.format or ""


class TriggerConfig(_Table):
    """When a micro-batch begins: as soon as the one before it is done, unless a key is given.

    Parameters
    ----------
    available_now
        Process what is there, in micro-batches, and end.
    processing_time
        Start a micro-batch at this interval, in microseconds.
    """

    available_now: StrictBool = False
    processing_time: values.Microseconds | None = None


class Pipeline(_Table):
    """A pipeline as its file describes it; paths are absolute.

    Parameters
    ----------
    left, right
        The two sources.
    join, sink, trigger, spark
        The other tables of the file.
    streaming
        Whether the sources are read as streams.
    checkpoint
        The folder of the query's checkpoint.
    """

    left: SourceConfig
    right: SourceConfig
    join: JoinConfig
    sink: SinkConfig
    streaming: StrictBool = True
    checkpoint: values.PathOrUrl | None = None
    trigger: TriggerConfig = TriggerConfig()
    spark: SparkConfig = SparkConfig()
    _file: Path = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:  # noqa: ANN401 - pydantic's own signature
        """Keep the path of the file, which relative paths start from."""
        self._file = context["file"]

    @property
    def file(self) -> Path:
        """The path of the file."""
        return self._file

    def source(self, side: Side) -> SourceConfig:
        """The source of one side."""
        return self.left if side == "left" else self.right

    def time(self, side: Side) -> str:
        """The column of event time of one side: its own, or the one that [join] gives."""
        shared = self.join.time or ""
        return self.source(side).time or (shared if isinstance(shared, str) else shared[SIDES.index(side)])

    def lateness(self, side: Side) -> int | None:
        """How late a row of one side may arrive, in microseconds."""
        own = self.source(side).lateness
        return self.join.lateness if own is None else own

    @property
    def write_mode(self) -> str:
        """The mode of the sink, or its default."""
        return self.sink.mode or ("append" if self.streaming else "error")

    def __str__(self) -> str:
        sources = " and ".join(f"{self.source(side).format or self.source(side).table}" for side in SIDES)
        budget = self.join.budget
        limit = f"{budget.limit:,} {budget.unit}" if budget else "no limit"
        kind = "stream" if self.streaming else "batch"
        policy = self.join.policy.name
        return (
            f"{kind} of {sources}, {self.join.how} join within {limit} ({policy}), to {self.sink.destination}"
        )
