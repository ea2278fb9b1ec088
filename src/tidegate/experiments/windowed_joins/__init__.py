"""Memory-Limited Execution of Windowed Stream Joins (Srivastava, Widom): sections 3, 5 and 6.

All count from_left results only, as the paper does, and begin after a warm-up.

Deviations
----------
The generator's true rates are 0.8 of the nominal ones, so that a full window holds 400 rows; memory is in
percent of those, and theory uses the true rates. Where a model is learned, steps are of some rows, about one
unit of time, rather than of one; results within a step need no memory and are left out of account. The trace of
section 6.1 was not published: `wan` makes one like it.
"""

from tidegate.experiments.windowed_joins.figures import EXPERIMENTS

__all__ = ["EXPERIMENTS"]
