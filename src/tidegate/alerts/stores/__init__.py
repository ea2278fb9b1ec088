"""The rows of a stream that must be kept: those that are the highest or lowest of some time interval.

| module | contents |
|---|---|
| `bracket_store` | the kept rows of one stream |
| `brackets` | compiled loops that find the bracketed rows with a stack |
| `block_filter` | the same by comparing blocks of rows, for intervals with few rows |
"""
