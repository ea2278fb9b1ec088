"""Frequencies of keys: given (`frequency`) or learned (`learned_frequency`).

`key_counts` counts keys: the frequent ones exactly, in a `key_table`, and all others by `key_sketches`.
"""
