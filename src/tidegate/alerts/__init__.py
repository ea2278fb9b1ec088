"""Threshold alarms over several streams that omit rows and miss nothing.

An alarm is a combination of rows, one of each stream, whose times lie together (each pair of joined streams no more
than `within` apart, or all in one hopping window) and for which a function exceeds a threshold. The function is
quasiconvex in each stream that omits, the others held fixed: between two values of that stream it is never above both
of its values there. `omittable` says which streams may omit, and with brackets of what length; rows that are late,
NaN or shed for a budget are no part of the promise, but counted. Then:

1. One stream omits. For every combination of rows of the others, the largest value that the function has with any row
   of this stream is unchanged. So each row of the others is in an alarm exactly if it was, and of the same height.
2. Several omit. For every alarm there is one, of rows that are kept, that is at least as high; the time of each row
   of a stream that omits differs by less than that stream's omega, and the row of one that does not is the same. So
   there is an alarm exactly if there was; which rows, how many alarms, and in which part of time, is not promised.
3. `AlarmFinder`, whatever omits: an arrival is matched with what was kept of the rows before it, and only then
   offered to its own store. It raises an alarm exactly if it would with all rows before it, and the alarm is as high.
   So every alarm is raised as soon as its last row is there, by that row; its partners may be others than without
   omission, but lie together with it. A row raises one alarm at most, the highest.
4. No alarm is invented: all rows of an alarm arrived, and lie together.

The tests try this by brute force: all combinations of all rows, for pairs, cliques, stars, chains and near-cliques.

Which folder has what:

- `expressions`: the condition of an alarm, from text to values; `topology`: which streams are joined;
- `certification`: which streams may omit rows, and the proofs of that;
- `stores`: the rows of one stream that must be kept;
- `search`: alarms as rows arrive, of one join or of many keys at once;
- `edge`: the same as a filter, before rows are sent.
"""

from typing import TYPE_CHECKING

from tidegate.lazy_package import load_on_first_use

if TYPE_CHECKING:
    from tidegate.alerts.certification.certificate import Certificate, Judgement, certify
    from tidegate.alerts.certification.grid import Counterexample
    from tidegate.alerts.edge import Edge
    from tidegate.alerts.expressions.condition import Condition
    from tidegate.alerts.expressions.parsing import inputs
    from tidegate.alerts.search.alarm_finder import AlarmFinder, Alarms
    from tidegate.alerts.search.keyed_finder import KeyedAlarms, KeyedFinder, KeyedRows
    from tidegate.alerts.stores.bracket_store import BracketStore, Closed, Retained, Shape
    from tidegate.alerts.topology import Omission, Topology, omittable

__all__ = [
    "AlarmFinder",
    "Alarms",
    "BracketStore",
    "Certificate",
    "Closed",
    "Condition",
    "Counterexample",
    "Edge",
    "Judgement",
    "KeyedAlarms",
    "KeyedFinder",
    "KeyedRows",
    "Omission",
    "Retained",
    "Shape",
    "Topology",
    "certify",
    "inputs",
    "omittable",
]

load_on_first_use(
    __name__,
    {
        "AlarmFinder": "search.alarm_finder",
        "Alarms": "search.alarm_finder",
        "BracketStore": "stores.bracket_store",
        "Certificate": "certification.certificate",
        "Closed": "stores.bracket_store",
        "Condition": "expressions.condition",
        "Counterexample": "certification.grid",
        "Edge": "edge",
        "Judgement": "certification.certificate",
        "KeyedAlarms": "search.keyed_finder",
        "KeyedFinder": "search.keyed_finder",
        "KeyedRows": "search.keyed_finder",
        "Omission": "topology",
        "Retained": "stores.bracket_store",
        "Shape": "stores.bracket_store",
        "Topology": "topology",
        "certify": "certification.certificate",
        "inputs": "expressions.parsing",
        "omittable": "topology",
    },
)
