"""Reservoir Sampling over Memory-Limited Stream Joins (Al-Kateb, Lee, Wang): sections 2 and 5.

RJS and PRJS run on the sampling join, each in two forms: by ranks with the UNIFORM of `tidegate.sampling`, and as
printed with the printed UNIFORM.

Deviations
----------
The paper does not state when samples are used (here after half of the time), and which side has the averaged
attribute (here the left). A step has six rows, one unit of time. Keys are rounded to whole numbers; otherwise
none would match.
"""

from tidegate.experiments.reservoir_joins.figures import EXPERIMENTS

__all__ = ["EXPERIMENTS"]
