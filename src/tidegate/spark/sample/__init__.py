"""Samples of joins on Spark: the functions `sample`, `estimate` and `reservoir`."""
