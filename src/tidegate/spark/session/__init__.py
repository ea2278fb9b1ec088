"""Spark sessions: settings, local sessions, what a task knows of itself, and explanations of Spark's errors."""
