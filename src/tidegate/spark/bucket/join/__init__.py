"""One bucket of a join or a sample; `bucket.py` lists its parts."""
