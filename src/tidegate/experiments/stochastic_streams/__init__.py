"""On Joining and Caching Stochastic Streams (Xie, Yang, Chen): sections 5, 7 and 8.

R is the left stream and S the right. Each has one row in every step.

Deviations
----------
Only results with a row in memory are counted, since rows of one step match each other with any policy. All memories
have the same warm-up, four times the largest memory. Noise is continuous up to half a step beyond its bounds, then
rounded. Walks begin at 0. `random`, `prob` and `life` get the paper's window of values as the lines that keys follow,
with their bounds. Section 7 leaves HEEB's survival for normal noise to a report; here it is that of uniform noise.
Figure 16 begins with TOWER's R on both sides. `fifo` is not one of the paper's policies.
"""

from tidegate.experiments.stochastic_streams.figures import EXPERIMENTS

__all__ = ["EXPERIMENTS"]
