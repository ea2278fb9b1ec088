"""Stochastic processes: the probabilities of a stream's next values, given the past ones.

`process` is the contract; `stationary`, `linear_trend`, `random_walk`, `ar1` and `oracle` implement it, with
`noise`. `benefit` and `arrival_forecast` compute expected results of a join or a cache. `process_learner` chooses a
process for a stream from the fits of `trend_learner` and `markov_learners`, whose contract is `running_fit`.
"""
