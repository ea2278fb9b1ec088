"""What every query in buckets shares: from checked DataFrames and a plan to a DataFrame of results."""
