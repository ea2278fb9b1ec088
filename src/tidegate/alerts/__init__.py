"""Threshold alarms over several streams that omit rows and miss nothing."""

from tidegate.alerts.bracket_store import BracketStore, Closed, Retained, Shape

__all__ = ["BracketStore", "Closed", "Retained", "Shape"]
