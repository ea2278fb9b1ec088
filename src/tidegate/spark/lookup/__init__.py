"""Lookups on Spark: a stream against a relation through a bounded cache."""
