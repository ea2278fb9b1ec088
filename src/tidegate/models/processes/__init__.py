"""Stochastic processes: the probabilities of a stream's next values, given the past ones.

`process` is the contract; `stationary`, `linear_trend`, `random_walk`, `ar1` and `oracle` implement it, with
`noise`. `benefit` and `arrival_forecast` compute expected results of a join or a cache. `process_learner` chooses a
process for a stream from the fits of `trend_learner` and `markov_learners`, whose contract is `running_fit`.

All processes are imported, since `Process.from_parameters` finds them by name.
"""

from tidegate.models.processes.ar1 import AR1 as AR1
from tidegate.models.processes.linear_trend import LinearTrend as LinearTrend
from tidegate.models.processes.oracle import Oracle as Oracle
from tidegate.models.processes.random_walk import RandomWalk as RandomWalk
from tidegate.models.processes.stationary import Stationary as Stationary
