"""Threshold alarms over joined streams that omit rows and miss nothing."""

from tidegate.alerts.certify import Certificate, Judgement, certify
from tidegate.alerts.condition import Condition
from tidegate.alerts.expression import inputs
from tidegate.alerts.sampling import Counterexample

__all__ = ["Certificate", "Condition", "Counterexample", "Judgement", "certify", "inputs"]
