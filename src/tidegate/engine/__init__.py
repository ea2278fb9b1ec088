"""The only code that touches buffers: the operator, and a simulation that runs it over recorded streams.

Which file has what:

- joins: `operator`, and `sampling_operator` where a sample leaves. `buffer` holds rows, `fates` says who leaves,
  `index` finds partners by equal keys (`few` where a step has few rows) and `ordered` by comparisons; `ages`,
  `combining` and `tally` note what was found, `snapshot` makes bytes of it all;
- recorded streams: `simulate`, `simulate_sample` and `reservoir_join`. `encode` makes rows of traces (`valuing`
  with their importance), `arrivals` cuts them into steps, and `one_loop` runs steps of few rows;
- caches: `cache` for recorded references (`foretold` where they follow a process), `lookup_cache` for batches, with
  `cache_store`, `cache_policies`, `cache_outlook`, `key_codes` and `row_sizes`.
"""

from tidegate.engine.cache import CacheReport, simulate_cache
from tidegate.engine.operator import Join, Operator, Outcome, collected
from tidegate.engine.reservoir_join import ReservoirReport, simulate_reservoir
from tidegate.engine.sampling_operator import SamplingOperator
from tidegate.engine.simulate import simulate
from tidegate.engine.simulate_sample import SampleReport, simulate_sample

__all__ = [
    "CacheReport",
    "Join",
    "Operator",
    "Outcome",
    "ReservoirReport",
    "SampleReport",
    "SamplingOperator",
    "collected",
    "simulate",
    "simulate_cache",
    "simulate_reservoir",
    "simulate_sample",
]
