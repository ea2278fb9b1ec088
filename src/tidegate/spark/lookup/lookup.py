"""`tidegate.lookup`: rows of a stream looked up in a database table, through a bounded cache."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from tidegate.caching.policies import LookupPolicy, check_probabilities, start_ranking
from tidegate.relations import Relation, UnreachableError, as_relation
from tidegate.relations.file import FileRelation
from tidegate.relations.relation import RelationColumn
from tidegate.spark.frames.durations import microseconds
from tidegate.spark.frames.keys import On, key_pairs
from tidegate.spark.frames.side import INTEGERS, check_frame, quoted
from tidegate.spark.lookup.task import FOUND, HIT, LookupTask, retry
from tidegate.spark.packing.arrow_types import arrow_type
from tidegate.spark.query.how import parse_how
from tidegate.spark.session.configuration import DEFAULT_PARTITIONS, shuffle_partitions
from tidegate.types import Budget, InputError, check_choice, first_missing

if TYPE_CHECKING:
    from datetime import timedelta

    from pyspark.sql import SparkSession

LookupHow = Literal["inner", "left"]

_KEYS: Final = (*INTEGERS, StringType, BinaryType, DateType, DecimalType, TimestampType, TimestampNTZType)
_ROW: Final = "tidegate_row"


def lookup(
    stream: DataFrame,
    relation: Relation | str | Path,
    *,
    on: On,
    cache: Budget | int | str,
    table: str | Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    policy: LookupPolicy = "heeb",
    probabilities: Mapping[Any, float] | None = None,
    how: str = "inner",
    ttl: str | timedelta | None = None,
    hit: str | None = None,
    tasks: int | None = None,
    retry_timeout: str | timedelta = "30 seconds",
    chunk: int = 131_072,
    suffix: str = "_right",
    seed: int = 0,
) -> DataFrame:
    """Look each row up in a relation of a database, through a bounded cache of the relation's rows.

    The stream may be streaming or batch. Each of its rows matches at most one row of the relation; null keys never
    match. The cache is not state: results do not depend on it, and after a restart it fills again.

    Parameters
    ----------
    stream
        The rows to enrich.
    relation
        The relation: `tidegate.relations.DuckDB(path, table)`, `SQLite(path, table)`, `PostgreSQL(dsn, table)`;
        or a path or URL, with `table`.
    on
        The key: a column that both have, or `[(stream's, relation's)]` where names differ. It must be unique in the
        relation, and of one type; whole numbers of different sizes go together.
    cache
        The budget of all tasks of this lookup on one machine, between chunks: a number of rows, a string of bytes
        ("64 MB") or a `Budget`. Each of at most `tasks` processes has its part. Equal lookups share one cache.
    table
        The table or view, if `relation` is a path or URL: "users", "sales.users" or ("sales", "users"). Write a name
        with a dot in a pair, or in double quotes: '"us.ers"'.
    columns
        The columns of the relation to add; all by default.
    policy
        Which rows stay in the cache.

        | policy | rows that stay |
        |---|---|
        | "heeb" | those expected soonest, if keys are numbers that follow a process; else the most frequent |
        | "lfu" | the most frequent, where old references count as much as new ones |
        | "lru" | the most recently used |
        | "a0" | the most probable, by `probabilities` |
        | "random" | a random choice |
    probabilities
        For "a0": the probability that a key is looked up; 0 for a key that is not listed. Every process that holds a
        part of the cache holds them too.
    how
        "inner" drops rows without a match; "left" keeps them, with nulls.
    ttl
        The time after which a cached row is fetched again: "10 minutes". None: never, for a relation that does not
        change.
    hit
        Name of a column to add: whether the key of the row was cached; null for a null key.
    tasks
        The number of parts of the cache: as many as tasks run at once on a machine. By default the cores of a Spark
        that runs on one machine ("local[8]"), else the number of shuffle partitions of the session.
    retry_timeout
        How long a query is retried, at growing intervals, if the database does not answer; then the query fails.
    chunk
        The number of rows of a task that are looked up together: their misses are fetched by one query.
    suffix
        Appended to the relation's columns whose names the stream has too.
    seed
        Seed of "random".

    Returns
    -------
    DataFrame
        The stream's columns as they are, then the relation's; a key that has one name in both is there once.
    """
    check_frame(stream, "stream")
    join_type = parse_how(how, get_args(LookupHow))
    check_choice(policy, LookupPolicy, "cache policy")
    check_probabilities(policy, probabilities)
    budget = Budget.of(cache)
    if budget is None:
        raise InputError("cache=None has no bound; give a number of rows, or bytes like '64 MB'")
    stream_key, relation_key = _key_names(on)
    source, timeout = as_relation(relation, table), _seconds(retry_timeout, "retry_timeout")
    available = {column.name: column for column in _columns_of(source, timeout)}
    key, added = _select_columns(source, available, relation_key, columns, shared=stream_key == relation_key)
    kind = _check_key(stream, stream_key, key)
    spark = stream.sparkSession
    parts = _tasks_at_once(spark) if tasks is None else tasks
    _check_counts(tasks=parts, chunk=chunk)
    budget.divided(parts)
    task = LookupTask(
        name="",
        relation=source,
        key=key,
        columns=tuple(added),
        key_type=arrow_type(kind),
        cache=budget,
        tasks=parts,
        policy=policy,
        ttl=None if ttl is None else _seconds(ttl, "ttl"),
        probabilities=probabilities,
        seed=seed,
        retry_timeout=timeout,
        chunk=chunk,
    )
    start_ranking(policy, budget, task.key_type, probabilities, seed)  # refuses keys of an unsuitable type
    # The flags are not part of the name: lookups that differ only in these share a cache.
    flags = (FOUND,) if hit is None else (FOUND, HIT)
    task = replace(task, name=_name(task, stream_key, spark), flags=flags)
    names = _result_names(stream, added, suffix, hit)
    looked_up = stream.withColumn(_ROW, _as_udf(task, added)(F.col(quoted(stream_key)).cast(kind)))
    if join_type == "inner":
        looked_up = looked_up.where(F.col(_ROW)[FOUND])
    selected = [F.col(quoted(name)) for name in stream.columns]
    selected += [F.col(_ROW)[f"c{i}"].alias(name) for i, name in enumerate(names)]
    if hit is not None:
        selected.append(F.col(_ROW)[HIT].alias(hit))
    return looked_up.select(*selected)


def _tasks_at_once(spark: SparkSession) -> int:
    """The number of tasks that a machine runs at once, as far as the driver knows it."""
    context = getattr(spark, "sparkContext", None)  # a Connect session has none
    if context is not None and (context.master == "local" or context.master.startswith("local[")):
        return int(context.defaultParallelism)
    parts = shuffle_partitions(spark)
    if parts == DEFAULT_PARTITIONS:
        warnings.warn(
            f"the cache is divided into {parts} parts, the default number of shuffle partitions; a machine uses one "
            "part for each task that it runs at once; give that number as tasks=, or set it by "
            "tidegate.configure(spark, partitions=...)",
            stacklevel=3,
        )
    return parts


def _name(task: LookupTask, key: str, spark: SparkSession) -> str:
    """A name that lookups share if they are equal, use the same key of the stream and run in one application."""
    described = repr((spark.conf.get("spark.app.id", ""), key, task))
    # The repr of a relation hides its password.
    relation: bytes = cloudpickle.dumps(task.relation)  # type: ignore[no-untyped-call]
    return hashlib.sha256(relation + described.encode()).hexdigest()


def _as_udf(task: LookupTask, columns: Sequence[RelationColumn]) -> Any:  # noqa: ANN401 - Spark's own type
    """The task as a Spark function: nondeterministic, since its results change with the database."""

    def look_up(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        return task.run(batches)

    # Spark needs the hints as types, not as text.
    look_up.__annotations__ = {"batches": Iterator[pa.Array], "return": Iterator[pa.Array]}
    result = StructType(
        [
            *(StructField(flag, BooleanType(), nullable=flag != FOUND) for flag in task.flags),
            *(StructField(f"c{i}", _spark_type(column)) for i, column in enumerate(columns)),
        ]
    )
    function = arrow_udf(look_up, result)  # type: ignore[call-overload]  # its stubs have no struct
    return function.asNondeterministic()


def _key_names(on: On) -> tuple[str, str]:
    pairs = key_pairs(on)
    if len(pairs) != 1:
        raise InputError(
            f"on={on!r} names {len(pairs)} columns, but a lookup uses one; combine them into one on both sides, "
            "such as in a view of the database"
        )
    return pairs[0]


def _columns_of(relation: Relation, retry_timeout: float) -> list[RelationColumn]:
    if isinstance(relation, FileRelation) and not Path(relation.path).exists():
        raise InputError(
            f"{relation.description} cannot be reached: the file does not exist; correct the path"
        )
    source = relation.open()
    try:
        return retry(source.columns, retry_timeout)
    except UnreachableError as error:
        raise InputError(
            f"{relation.description} cannot be reached, {error}; check that it runs and accepts connections"
        ) from None
    finally:
        source.close()


def _select_columns(
    relation: Relation,
    available: dict[str, RelationColumn],
    key: str,
    columns: Sequence[str] | None,
    *,
    shared: bool,
) -> tuple[RelationColumn, list[RelationColumn]]:
    """The key and the columns to add."""
    if isinstance(columns, str):
        raise InputError(f"columns={columns!r} is one name; write columns=[{columns!r}]")
    names = list(available) if columns is None else list(columns)
    missing = first_missing([key, *names], list(available))
    if missing is not None:
        raise InputError(f"{relation.description} has no column {missing!r}; it has {', '.join(available)}")
    if shared:
        names = [name for name in names if name != key]
    for name in {key, *names}:
        column = available[name]
        if column.type is None:
            raise InputError(
                f"{name!r} of {relation.description} is of type {column.declared}, which Spark does not have; "
                "exclude it with columns=, or cast it in a view"
            )
    return available[key], [available[name] for name in names]


def _spark_type(column: RelationColumn) -> DataType:
    kind: DataType = from_arrow_type(column.type, prefer_timestamp_ntz=True)
    return kind


def _check_key(stream: DataFrame, name: str, key: RelationColumn) -> DataType:
    """The type in which keys are compared; refuses keys that cannot be compared."""
    if name not in stream.columns:
        raise InputError(f"stream has no column {name!r}; it has {', '.join(stream.columns)}")
    ours, theirs = stream.schema[name].dataType, _spark_type(key)
    if not key.usable_as_key:
        raise InputError(
            f"the key {key.name!r} is declared {key.declared}, and the database can hold one value of it in several "
            "ways; use another column, or cast it to text or a number in a view"
        )
    if isinstance(ours, INTEGERS) and isinstance(theirs, INTEGERS):
        return LongType()
    wanted = theirs.simpleString()
    if ours.simpleString() != wanted:
        raise InputError(
            f"the stream's key {name!r} is {ours.simpleString()}, the relation's {key.name!r} is {wanted}; cast one, "
            f"such as F.col({name!r}).cast({wanted!r})"
        )
    if not isinstance(ours, _KEYS):
        raise InputError(
            f"the key {name!r} of type {ours.simpleString()} cannot be looked up: such values are not compared "
            "exactly; use whole numbers, decimals, text, dates or times"
        )
    return ours


def _result_names(
    stream: DataFrame, added: Sequence[RelationColumn], suffix: str, hit: str | None
) -> list[str]:
    taken = [name.casefold() for name in stream.columns]
    if _ROW in taken:
        raise InputError(f"the stream has a column {_ROW!r}, which a lookup uses; rename it")
    names = [c.name + suffix if c.name.casefold() in taken else c.name for c in added]
    every = [*stream.columns, *names, *([] if hit is None else [hit])]
    folded = [name.casefold() for name in every]
    double = next((name for name in every if folded.count(name.casefold()) > 1), None)
    if double is not None:
        raise InputError(
            f"the result would have two columns {double!r} (case aside); rename one before the lookup, or choose "
            f"another suffix than {suffix!r}"
        )
    return names


def _seconds(value: str | timedelta, what: str) -> float:
    seconds = microseconds(value, what) / 1e6
    if seconds <= 0:
        raise InputError(f"{what} must be a positive duration; got {value!r}")
    return seconds


def _check_counts(**counts: int) -> None:
    for name, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise InputError(f"{name} must be a whole number, at least 1; got {count!r}")
