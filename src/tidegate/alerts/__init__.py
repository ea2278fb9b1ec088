"""Threshold alarms over several streams that omit rows and miss nothing."""

from tidegate.alerts.bracket_store import BracketStore, Closed, Retained, Shape
from tidegate.alerts.edge import Edge
from tidegate.alerts.matching import AlarmFinder, Alarms
from tidegate.alerts.topology import Omission, Topology, omittable

__all__ = [
    "AlarmFinder",
    "Alarms",
    "BracketStore",
    "Closed",
    "Edge",
    "Omission",
    "Retained",
    "Shape",
    "Topology",
    "omittable",
]
