"""Reservoirs: samples of a fixed or growing size.

| module | content |
|---|---|
| `reservoir`, `progressive`, `grouped` | reservoirs of rows |
| `join_reservoir`, `progressive_join`, `grouped_join` | reservoirs of a join's results; `ranked` runs them |
| `slots` | the rows that a reservoir holds |
| `merge` | one sample of several |
| `uniformity` | what it costs a sample that its reservoir grows |
| `memory` | how to divide a budget between join and reservoir |
"""
