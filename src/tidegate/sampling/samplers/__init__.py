"""Samplers: which results of a join are returned, and with what probability.

`sampler` is the contract. `uniform`, `eq_cluster` and `pps_cluster` implement it, the last two on top of `cluster`.

| module | content |
|---|---|
| `uniform_owners` | the draws of `uniform` |
| `match_forecaster` | the number of matches that a row will own; `forecast_correction` corrects it |
| `memory_model` | the memory that a sampling probability needs |
| `probability_control` | the probability of new draws, from the budget and the memory in use |
| `probability_levels` | probabilities stored in one byte, and random draws |
| `step_function` | fast evaluation of a step function |
"""
