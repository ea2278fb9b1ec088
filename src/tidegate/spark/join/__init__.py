"""Joins on Spark: the function `join`, the plan that workers get, and what runs in a bucket."""
