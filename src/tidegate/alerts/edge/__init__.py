"""A filter for a device or a gateway: it sends only the readings that can decide an alarm.

| module | contents |
|---|---|
| `filtering` | which lines to send, and when |
| `lines` | reading of CSV and JSON lines |
"""

from tidegate.alerts.edge.filtering import Edge, EdgeFilter, EdgeReport
from tidegate.alerts.edge.lines import MAX_LINE_BYTES, LineFormat

__all__ = ["MAX_LINE_BYTES", "Edge", "EdgeFilter", "EdgeReport", "LineFormat"]
