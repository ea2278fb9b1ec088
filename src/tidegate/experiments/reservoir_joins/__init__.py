"""Reservoir Sampling over Memory-Limited Stream Joins (Al-Kateb, Lee, Wang): sections 2 and 5.

RJS and PRJS run on the sampling join itself, once by ranks and once as printed, over one UNIFORM each: that of
`tidegate.sampling`, and the printed one.

Deviations
----------
The paper does not tell when samples are used: here at half of the time. Nor on which side the averaged attribute
is: here on the left. Steps are of six rows, one unit of time. Keys are rounded to whole numbers, or none would match.
"""

from tidegate.experiments.reservoir_joins.figures import EXPERIMENTS

__all__ = ["EXPERIMENTS"]
