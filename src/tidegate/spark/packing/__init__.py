"""Rows on their way to a bucket and back: buckets, packed Arrow batches and column types."""
