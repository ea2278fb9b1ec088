"""Spark sessions: settings, local sessions, and explanations of Spark's errors."""
