"""Joins, samples, alarms and lookups as DataFrame functions; the only package that imports pyspark.

Names are loaded on first use, so that a Python worker imports only what its task needs.

Folders and modules, each of which imports only from those below it:

- `pipeline`, `demo`: the commands `tidegate run`, a join described in a TOML file, and `tidegate demo`;
- `grid`: the cells of an experiment as Spark jobs;
- `inspect`: reads checkpoints, and rewrites them for another number of buckets;
- `join`, `sample`, `alert`, `lookup`: the public functions of these names, and what only they need;
- `query`: what every query in buckets shares, from checked DataFrames and a plan to a DataFrame of results;
- `bucket`: what happens in one bucket, without pyspark;
- `pool`: one budget for several joins, its rules and its folder;
- `state`: the stored state of a bucket, its log and its local copies;
- `frames`: checks of DataFrames, their columns, keys, times and durations;
- `packing`: how rows are sent to workers: buckets, packed Arrow batches and column types;
- `session`: settings of sessions, what a task knows of itself, Java, and explanations of Spark's errors.
"""

from typing import TYPE_CHECKING

from tidegate.lazy_package import load_on_first_use

if TYPE_CHECKING:
    from tidegate.spark.alert.alert import alert as alert
    from tidegate.spark.inspect.inspect import inspect as inspect
    from tidegate.spark.join.join import join as join
    from tidegate.spark.join.joining import joining as joining
    from tidegate.spark.lookup.lookup import lookup as lookup
    from tidegate.spark.pool.pool import Pool as Pool
    from tidegate.spark.sample.estimate import estimate as estimate
    from tidegate.spark.sample.reservoir import reservoir as reservoir
    from tidegate.spark.sample.sample import sample as sample
    from tidegate.spark.session.configuration import configure as configure
    from tidegate.spark.session.spark_errors import explain_failure as explain_failure

__all__ = load_on_first_use(__name__)
