"""The only room that imports pyspark: joins, samples, alarms and lookups as DataFrame functions.

Which file has what:

- what users call: `join`, `sample`, `estimate`, `reservoir`, `alert`, `lookup`, `pool`, `inspection` (and
  `alert_inspection`), and `session` to configure; `pipeline` runs a TOML file, `demo` is `tidegate demo`, `grid`
  runs experiments;
- from what users write to what workers are told: `query` is the way of every join; `side`, `equalities`, `durations`,
  `where`, `importance` and `valuation` read one option each, `plan` and `settings` hold what was read; `explained`
  refuses what Spark could not run;
- the way of a row: `buckets` and `packing` before the shuffle, `carriers` and `columns` for its types, `ordering`
  for floats;
- in a bucket: `processor` is what Spark runs, `bucket_join` what it does, `held_sample` its reservoir, `state` and
  `saved` what stays, `clock` where it is in the query; `alert_processor` and `alert_bucket` are the same for
  alarms, and `lookup_task` with its `seats` for lookups;
- one budget for several queries: `pool_shares` has the rules, `pool_folder` the files;
- what went wrong: `causes` of queries, `java` where Spark does not start, `checkpoint` finds a state and its damage.
"""

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
