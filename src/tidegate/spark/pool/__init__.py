"""One budget for several joins: `shares` has the rules, `folder` the files where buckets exchange their status."""
