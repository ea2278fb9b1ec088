"""Which rows of a stream are kept: those that are highest or lowest in some interval of time.

- `bracket_store` keeps the rows of one stream;
- `brackets` and `block_filter` are its compiled loops.
"""
