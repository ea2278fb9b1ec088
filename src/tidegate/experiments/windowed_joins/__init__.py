"""Memory-Limited Execution of Windowed Stream Joins (Srivastava, Widom): sections 3, 5 and 6.

All experiments count `from_left` results only, as the paper does, and start to count after a warm-up.

Deviations
----------
The generator's true rates are 0.8 of the nominal ones, so a full window holds 400 rows. Memory is in percent of
those, and predictions use the true rates. If a model is learned, a step has several rows, about one unit of time.
Results within a step need no memory and are not counted. The trace of section 6.1 was not published; `wan_trace`
generates a similar one.
"""

from tidegate.experiments.windowed_joins.figures import EXPERIMENTS

__all__ = ["EXPERIMENTS"]
