"""Threshold alarms over several streams that keep few rows and miss no alarm.

An alarm is a combination of rows, one of each stream, that are close in time and for which a function exceeds a
threshold. Close in time means: each pair of joined streams is at most `within` apart, or all rows are in one hopping
window. Rows of a stream may be omitted if the function is quasiconvex in it: for fixed values of the other streams,
it is never higher between two values of this stream than at both of them. `omittable` returns which streams may omit
rows, and the length of the brackets. Late rows, NaN values and rows that are evicted for a budget are counted, and
excluded from these guarantees:

1. One stream omits rows. For every combination of rows of the other streams, the largest value of the function with
   any row of this stream is unchanged. So each row of the other streams is in an alarm exactly if it would be without
   omission, and of the same height.
2. Several streams omit rows. For every alarm there is one of kept rows that is at least as high. The time of each row
   of a stream that omits rows differs by less than that stream's omega; rows of the other streams are the same. So
   there is an alarm exactly if there would be one without omission. Which rows it has, the number of alarms and their
   exact times are not guaranteed.
3. `AlarmFinder`, whichever streams omit rows. An arrival is matched with the kept rows that arrived before it, and
   only then offered to its own store. It raises an alarm exactly if it would with all earlier rows, and the alarm is
   as high. So every alarm is raised by its last row, as soon as that arrives. The partners may be other rows than
   without omission, but they are close in time. A row raises at most one alarm, the highest.
4. No alarm is invented: all rows of an alarm arrived and are close in time.

The tests check this by brute force over all combinations of rows, for pairs, cliques, stars, chains and near-cliques.

| folder or module | contents |
|---|---|
| `expressions` | the condition of an alarm, from text to values |
| `topology` | which streams are joined |
| `certification` | which streams may omit rows, and the proofs |
| `stores` | the rows of one stream that must be kept |
| `search` | alarms as rows arrive, for one join or for many keys |
| `edge` | a filter that omits rows before they are sent |
| `validation` | checks of times, values and durations |
"""

from typing import TYPE_CHECKING

from tidegate.lazy_package import load_on_first_use

if TYPE_CHECKING:
    from tidegate.alerts.certification.certificate import Certificate as Certificate
    from tidegate.alerts.certification.certificate import InputCertificate as InputCertificate
    from tidegate.alerts.certification.certificate import certify as certify
    from tidegate.alerts.certification.grid import Counterexample as Counterexample
    from tidegate.alerts.edge import Edge as Edge
    from tidegate.alerts.expressions.condition import Condition as Condition
    from tidegate.alerts.search.alarm_finder import AlarmFinder as AlarmFinder
    from tidegate.alerts.search.alarm_search import Alarms as Alarms
    from tidegate.alerts.search.keyed_finder import KeyedAlarmFinder as KeyedAlarmFinder
    from tidegate.alerts.search.keyed_finder import KeyedAlarms as KeyedAlarms
    from tidegate.alerts.search.keyed_finder import KeyedRows as KeyedRows
    from tidegate.alerts.stores.bracket_store import BracketStore as BracketStore
    from tidegate.alerts.stores.bracket_store import ClosedEnds as ClosedEnds
    from tidegate.alerts.stores.bracket_store import RetainedRows as RetainedRows
    from tidegate.alerts.stores.bracket_store import Shape as Shape
    from tidegate.alerts.topology import Omission as Omission
    from tidegate.alerts.topology import Topology as Topology
    from tidegate.alerts.topology import omittable as omittable

__all__ = load_on_first_use(__name__)
