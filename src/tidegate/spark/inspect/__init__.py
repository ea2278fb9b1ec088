"""Reads and rewrites checkpoints: `inspect`, and `rescale` for another number of buckets."""
