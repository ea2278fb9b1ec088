"""On Joining and Caching Stochastic Streams (Xie, Yang, Chen): section 8.

Each experiment has a function that measures it and returns plain records, which tests read and claims are judged by,
and one that makes a table of them. R is the left stream and S the right; each brings a row at every step.

Deviations
----------
Counted are results with a row in memory; rows of one step match each other whatever the policy. All memories have
one warm-up, of four times the largest. Noise is continuous up to half a step beyond its bounds, and rounded; walks
begin at 0. The paper's window of values is given to `random`, `prob` and `life` as the lines that keys follow, with
their bounds. Section 7 leaves HEEB's survival for normal noise to a report: here it is
that of uniform noise. Figure 16 begins with TOWER's R on both sides. `fifo` is not among the paper's policies.
"""

from tidegate.experiments.stochastic_streams.figures import by_memory, figure8, figure15, figure16
from tidegate.experiments.stochastic_streams.setups import ROWS, RUNS, SETUPS

__all__ = ["ROWS", "RUNS", "SETUPS", "by_memory", "figure8", "figure15", "figure16"]
