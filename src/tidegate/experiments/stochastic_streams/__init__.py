"""On Joining and Caching Stochastic Streams (Xie, Yang, Chen): sections 5, 7 and 8.

R is the left stream and S the right; each brings a row at every step.

Deviations
----------
Counted are results with a row in memory; rows of one step match each other whatever the policy. All memories have
one warm-up, of four times the largest. Noise is continuous up to half a step beyond its bounds, and rounded; walks
begin at 0. The paper's window of values is given to `random`, `prob` and `life` as the lines that keys follow, with
their bounds. Section 7 leaves HEEB's survival for normal noise to a report: here it is
that of uniform noise. Figure 16 begins with TOWER's R on both sides. `fifo` is not among the paper's policies.
"""

from tidegate.experiments.stochastic_streams.figures import EXPERIMENTS

__all__ = ["EXPERIMENTS"]
