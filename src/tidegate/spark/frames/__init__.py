"""The arguments of users: DataFrames with their columns, keys and times, and durations."""
