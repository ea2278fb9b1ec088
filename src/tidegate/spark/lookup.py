"""A stream against a relation of a database: rows enriched through a bounded cache."""

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
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
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

from tidegate.engine.cache_policies import Retention, check_probabilities, ranking
from tidegate.relations import Relation, UnreachableError, find
from tidegate.relations.file import FileRelation
from tidegate.relations.relation import Column
from tidegate.spark.columns import travelled
from tidegate.spark.durations import microseconds
from tidegate.spark.lookup_task import FOUND, HIT, LookupTask, patiently
from tidegate.spark.plan import how_of
from tidegate.spark.session import UNSET, partitions_of
from tidegate.spark.side import INTEGERS, On, check_frame, pairs_of, quoted
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
    policy: Retention = "heeb",
    probabilities: Mapping[Any, float] | None = None,
    how: str = "inner",
    ttl: str | timedelta | None = None,
    hit: str | None = None,
    tasks: int | None = None,
    patience: str | timedelta = "30 seconds",
    chunk: int = 131_072,
    suffix: str = "_right",
    seed: int = 0,
) -> DataFrame:
    """Look each row up in a relation of a database, through a bounded cache of the relation's rows.

    The stream may be streaming or batch. Each of its rows matches at most one row of the relation; null keys never
    match. The cache holds no state: what comes out does not depend on it, and after a restart it fills again.

    Parameters
    ----------
    stream
        The rows to enrich.
    relation
        Where the rows are: `tidegate.relations.DuckDB(path, table)`, `SQLite(path, table)`, `PostgreSQL(dsn, table)`;
        or a path or URL, with `table`.
    on
        The key: a column that both have, or `[(stream's, relation's)]` where names differ. It must be unique in the
        relation, and of one type; whole numbers of different sizes go together.
    cache
        What the tasks of this lookup may keep between chunks, together, on one machine: a number of rows, a string of
        bytes ("64 MB") or a `Budget`. Each of at most `tasks` processes has its part. Equal lookups share one cache.
    table
        The table or view, where `relation` is a path or URL: "users", "sales.users" or ("sales", "users"). A name
        with a dot stands in a pair, or in double quotes: '"us.ers"'.
    columns
        Which columns of the relation to add; all by default.
    policy
        Who stays: "heeb" (by the process that references are found to follow, if keys are whole numbers or dates and
        there is one; else the greatest share of references, of which old ones fade), "lfu" (the greatest share, and
        nothing fades), "lru", "a0" (the most probable, by the `probabilities` given) or "random".
    probabilities
        For "a0": how probable each key is to be referred to; a key that is not listed has none. Every process that
        holds a part of the cache holds them too.
    how
        "inner" drops rows without a match; "left" keeps them, with nulls.
    ttl
        After what time a cached row is fetched anew: "10 minutes". None: never, for a relation that does not change.
    hit
        Names a column that says of each row whether its key was cached; null for a null key.
    tasks
        In how many parts the cache is divided: as many as tasks run at once on a machine. By default the cores of a
        Spark that runs on one machine ("local[8]"), else as many as the session has shuffle partitions.
    patience
        For how long a database that does not answer is asked again, at growing intervals, before the query fails.
    chunk
        How many rows of a task are looked up together: their misses are fetched by one query.
    suffix
        Appended to the relation's columns whose names the stream has too.
    seed
        Fixes the draws of "random".

    Returns
    -------
    DataFrame
        The stream's columns as they are, then the relation's; a key that has one name in both is there once.
    """
    check_frame(stream, "stream")
    kept = how_of(how, get_args(LookupHow))
    check_choice(policy, Retention, "cache policy")
    check_probabilities(policy, probabilities)
    budget = Budget.of(cache)
    if budget is None:
        raise InputError("cache=None has no bound; give a number of rows, or bytes like '64 MB'")
    ours, theirs = _key_names(on)
    where, waits = find(relation, table), _seconds(patience, "patience")
    every = {column.name: column for column in _columns_of(where, waits)}
    key, added = _wanted(where, every, theirs, columns, shared=ours == theirs)
    kind = _checked_key(stream, ours, key)
    spark = stream.sparkSession
    parts = _tasks_at_once(spark) if tasks is None else tasks
    _check_counts(tasks=parts, chunk=chunk)
    budget.divided(parts)
    task = LookupTask(
        name="",
        relation=where,
        key=key,
        columns=tuple(added),
        key_type=travelled(to_arrow_type(kind, timezone="UTC")),
        cache=budget,
        tasks=parts,
        policy=policy,
        ttl=None if ttl is None else _seconds(ttl, "ttl"),
        probabilities=probabilities,
        seed=seed,
        patience=waits,
        chunk=chunk,
    )
    ranking(policy, budget, task.key_type, probabilities, seed)  # which refuses keys of another type
    # Equal but for what they tell of a row, lookups still share a cache.
    task = replace(task, name=_name(task, ours, spark), tells=(FOUND,) if hit is None else (FOUND, HIT))
    names = _result_names(stream, added, suffix, hit)
    looked_up = stream.withColumn(_ROW, _asking(task, added)(F.col(quoted(ours)).cast(kind)))
    if kept == "inner":
        looked_up = looked_up.where(F.col(_ROW)[FOUND])
    given = [F.col(quoted(name)) for name in stream.columns]
    given += [F.col(_ROW)[f"c{i}"].alias(name) for i, name in enumerate(names)]
    if hit is not None:
        given.append(F.col(_ROW)[HIT].alias(hit))
    return looked_up.select(*given)


def _tasks_at_once(spark: SparkSession) -> int:
    """How many tasks a machine runs at once, as far as this can be known here."""
    context = getattr(spark, "sparkContext", None)  # a Connect session has none
    if context is not None and (context.master == "local" or context.master.startswith("local[")):
        return int(context.defaultParallelism)
    parts = partitions_of(spark)
    if parts == UNSET:
        warnings.warn(
            f"the cache is divided into {parts} parts, as many as Spark has shuffle partitions unless it is told; "
            "a machine uses one for each task that it runs at once; give that number as tasks=, or set it by "
            "tidegate.configure(spark, partitions=...)",
            stacklevel=3,
        )
    return parts


def _name(task: LookupTask, key: str, spark: SparkSession) -> str:
    """What equal lookups have in common: on the same key of the stream, and in one application."""
    said = repr((spark.conf.get("spark.app.id", ""), key, task))
    # Not all of a relation is in its text.
    relation: bytes = cloudpickle.dumps(task.relation)  # type: ignore[no-untyped-call]
    return hashlib.sha256(relation + said.encode()).hexdigest()


def _asking(task: LookupTask, columns: Sequence[Column]) -> Any:  # noqa: ANN401 - what Spark calls a function of its own
    """The task as a function of Spark's; its answers change with the database, so Spark must not ask twice."""

    def ask(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        return task.run(batches)

    # Spark looks at the hints themselves, not at their text.
    ask.__annotations__ = {"batches": Iterator[pa.Array], "return": Iterator[pa.Array]}
    answer = StructType(
        [
            *(StructField(told, BooleanType(), nullable=told != FOUND) for told in task.tells),
            *(StructField(f"c{i}", _spark_type(column)) for i, column in enumerate(columns)),
        ]
    )
    function = arrow_udf(ask, answer)  # type: ignore[call-overload]  # its types know no struct
    return function.asNondeterministic()


def _key_names(on: On) -> tuple[str, str]:
    pairs = pairs_of(on)
    if len(pairs) != 1:
        raise InputError(
            f"on={on!r} names {len(pairs)} columns, and a lookup goes by one; combine them into one on both sides, "
            "e.g. in a view of the database"
        )
    return pairs[0]


def _columns_of(relation: Relation, patience: float) -> list[Column]:
    if isinstance(relation, FileRelation) and not Path(relation.path).exists():
        raise InputError(f"{relation.described} cannot be reached: there is no such file; correct the path")
    source = relation.open()
    try:
        return patiently(source.columns, patience)
    except UnreachableError as error:
        raise InputError(
            f"{relation.described} cannot be reached, {error}; see that it is there and answers"
        ) from None
    finally:
        source.close()


def _wanted(
    relation: Relation, every: dict[str, Column], key: str, columns: Sequence[str] | None, *, shared: bool
) -> tuple[Column, list[Column]]:
    """The key, and the columns to add."""
    if isinstance(columns, str):
        raise InputError(f"columns={columns!r} is one name; write columns=[{columns!r}]")
    wanted = list(every) if columns is None else list(columns)
    missing = first_missing([key, *wanted], list(every))
    if missing is not None:
        raise InputError(f"{relation.described} has no column {missing!r}; it has {', '.join(every)}")
    if shared:
        wanted = [name for name in wanted if name != key]
    for name in {key, *wanted}:
        column = every[name]
        if column.type is None:
            raise InputError(
                f"{name!r} of {relation.described} is of type {column.declared}, which has no counterpart in Spark; "
                "leave it out by columns=, or cast it in a view"
            )
    return every[key], [every[name] for name in wanted]


def _spark_type(column: Column) -> DataType:
    kind: DataType = from_arrow_type(column.type, prefer_timestamp_ntz=True)
    return kind


def _checked_key(stream: DataFrame, name: str, key: Column) -> DataType:
    """The type in which keys are compared, if that is possible."""
    if name not in stream.columns:
        raise InputError(f"stream has no column {name!r}; it has {', '.join(stream.columns)}")
    ours, theirs = stream.schema[name].dataType, _spark_type(key)
    if not key.keyed:
        raise InputError(
            f"the key {key.name!r} is declared {key.declared}, of which the database can hold one value in several "
            "ways; go by another column, or cast it to text or a number in a view"
        )
    if isinstance(ours, INTEGERS) and isinstance(theirs, INTEGERS):
        return LongType()
    told = theirs.simpleString()
    if ours.simpleString() != told:
        raise InputError(
            f"the stream's key {name!r} is {ours.simpleString()}, the relation's {key.name!r} is {told}; cast one, "
            f"e.g. F.col({name!r}).cast({told!r})"
        )
    if not isinstance(ours, _KEYS):
        raise InputError(
            f"the key {name!r} of type {ours.simpleString()} cannot be looked up: such values are not told apart "
            "exactly; use whole numbers, decimals, text, dates or times"
        )
    return ours


def _result_names(stream: DataFrame, added: Sequence[Column], suffix: str, hit: str | None) -> list[str]:
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
        raise InputError(f"{what}={value!r} is no time; give more than none")
    return seconds


def _check_counts(**counts: int) -> None:
    for name, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise InputError(f"{name}={count!r} is not a number of them; give a whole number, at least 1")
