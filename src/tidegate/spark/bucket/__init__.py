"""What happens in one bucket, without pyspark: streaming queries, batch queries and tests run the same code.

- `join`: a bucket of a join or a sample;
- `alert`: a bucket of an alarm.
"""
