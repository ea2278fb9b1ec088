"""One bucket of an alarm."""
