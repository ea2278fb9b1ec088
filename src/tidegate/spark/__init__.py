"""Joins, samples, alarms and lookups as DataFrame functions; the only package that imports pyspark.

Names are loaded on first use, so that a Python worker imports only what its task needs.

Folders and modules:

- `join`: joins, from their options to the plan that workers get, and what runs in a bucket;
- `sample`: samples of joins, estimates from them, and the reservoir of a running query;
- `alert`: alarms over several streams, their bucket, and how their state is read;
- `lookup`: a stream against a relation of a database, through a bounded cache;
- `pool`: one budget for several joins, its rules and its folder;
- `frames`: checks of DataFrames, their columns, keys, times and durations;
- `packing`: how rows are sent to workers: buckets, packed Arrow batches and column types;
- `state`: the stored state of a bucket, and how a checkpoint is inspected;
- `session`: settings of sessions, local sessions, Java, and explanations of Spark's errors;
- `pipeline`: the command `tidegate run`, a join described in a TOML file;
- `demo`: the command `tidegate demo`;
- `grid`: the cells of an experiment as Spark jobs.
"""

from typing import TYPE_CHECKING

from tidegate.lazy_package import load_on_first_use

if TYPE_CHECKING:
    from tidegate.spark.alert.alert import alert as alert
    from tidegate.spark.join.join import join as join
    from tidegate.spark.lookup.lookup import lookup as lookup
    from tidegate.spark.pool.pool import Pool as Pool
    from tidegate.spark.sample.estimate import estimate as estimate
    from tidegate.spark.sample.reservoir import reservoir as reservoir
    from tidegate.spark.sample.sample import sample as sample
    from tidegate.spark.session.configuration import configure as configure
    from tidegate.spark.session.spark_errors import explain_failure as explain_failure
    from tidegate.spark.state.inspection import inspect as inspect

__all__ = load_on_first_use(__name__)
