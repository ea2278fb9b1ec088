"""Estimates: aggregates of a whole join from a sample of it, with intervals.

| module | content |
|---|---|
| `estimate` | the entry point |
| `aggregate` | reads `avg(x)` and the like |
| `sample_design` | how the sample was drawn: probabilities, clusters, reservoirs |
| `time_windows` | assigns rows to windows of time |
| `moments`, `intervals`, `quantiles` | the computation |
"""
