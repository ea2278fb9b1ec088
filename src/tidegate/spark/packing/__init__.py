"""How rows are sent to buckets and back: buckets, packed Arrow batches and column types."""
