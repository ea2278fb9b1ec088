"""A filter for a device or a gateway: it sends only the readings that can decide an alarm.

- `filtering` decides which lines to send, and when;
- `lines` reads and writes CSV and JSON lines.
"""

from tidegate.alerts.edge.filtering import Edge, Emitter, Form, Savings
from tidegate.alerts.edge.lines import LONGEST_LINE

__all__ = ["LONGEST_LINE", "Edge", "Emitter", "Form", "Savings"]
