"""One budget for several joins: the rules and the folder where buckets exchange their status."""
