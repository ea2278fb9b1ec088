"""Spark sessions: settings, local sessions, and errors of Spark in plain words."""
