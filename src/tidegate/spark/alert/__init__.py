"""Alarms on Spark: the function `alert`, what runs in a bucket, and how its state is read."""
