"""The only code that touches buffers: the operator, and a simulation that runs it over recorded streams.

Which file has what:

- joins: `join` configures, `operator` runs. What stays is chosen by its `retention`: by a policy
  (`policy_retention`), or by a sampler (`sampler_retention`, with the draws of a `sampled_step`). Both use
  `join_state` (`buffer` holds rows, `tally` counts) and `matching`: `index` finds partners by equal keys,
  `nested_loop` in steps of few rows, `ordered` by comparisons. `ages` and `combining` measure results, `removals`
  lists the rows that a step removes, `clocks` follows how far each side has come, `snapshot` writes state as bytes;
- recorded streams: `simulate`, `simulate_sample` and `reservoir_join`. `encode` makes rows of traces (`valuing`
  with their importance), `arrivals` cuts them into steps, `replay` runs these, and `one_loop` runs steps of few rows,
  with the scores of `loop_scores`. `report` is what was measured.
"""

from typing import TYPE_CHECKING

from tidegate.lazy_package import load_on_first_use

if TYPE_CHECKING:
    from tidegate.engine.join import Join as Join
    from tidegate.engine.join_state import StepOutcome as StepOutcome
    from tidegate.engine.operator import Operator as Operator
    from tidegate.engine.operator import collected as collected
    from tidegate.engine.reservoir_join import ReservoirReport as ReservoirReport
    from tidegate.engine.reservoir_join import simulate_reservoir as simulate_reservoir
    from tidegate.engine.sampler_retention import SamplerRetention as SamplerRetention
    from tidegate.engine.simulate import simulate as simulate
    from tidegate.engine.simulate_sample import SampleReport as SampleReport
    from tidegate.engine.simulate_sample import simulate_sample as simulate_sample

__all__ = load_on_first_use(__name__)
