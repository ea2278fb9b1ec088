"""Frequencies of keys: given (`frequency`) or learned (`learned_frequency`).

The learned ones are counted in `key_counts`: frequent keys one by one in a `key_table`, all other keys together.
"""
