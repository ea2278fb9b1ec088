"""DataFrames and options as users give them: columns, keys, times, durations."""
