"""Frequencies of keys: given (`frequency`) or learned (`learned_frequency`).

`stream_shares` learns those of the streams of a join. `key_counts` counts keys: the frequent ones exactly, in a
`key_table`, and all others by `key_sketches`.
"""
