"""Random expressions and boxes, for Hypothesis."""

from hypothesis import strategies as st

from tidegate.alerts.expressions.evaluation import FUNCTIONS
from tidegate.alerts.expressions.nodes import Call, Name, Node, Number

NAMES = ("x", "y", "z")
NUMBERS = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0, 18.678, 257.14, 1e-3])
LEAVES = st.one_of(st.sampled_from(NAMES).map(Name), NUMBERS.map(Number))


def _calls(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    pair = st.tuples(inner, inner)
    exponents = st.sampled_from([0.5, 1.0, 1.5, 2.0, 3.0, 4.0]).map(Number)
    signed = st.one_of(exponents, exponents.map(lambda e: Call("negate", (e,))))
    return st.one_of(
        st.builds(Call, st.sampled_from(["+", "-", "*", "/"]), pair),
        st.builds(Call, st.sampled_from(["+", "-", "*"]), pair),
        st.builds(lambda u: Call("negate", (u,)), inner),
        st.builds(lambda name, u: Call(name, (u,)), st.sampled_from(sorted(FUNCTIONS)), inner),
        st.builds(lambda u, e: Call("pow", (u, e)), inner, signed),
        st.builds(lambda u: Call("*", (u, u)), inner),
        st.builds(Call, st.sampled_from(["pow", "greatest", "least"]), pair),
        st.builds(lambda *us: Call("greatest", us), inner, inner, inner),
    )


TREES: st.SearchStrategy[Node] = st.recursive(LEAVES, _calls, max_leaves=7)
ENDS = st.tuples(
    st.sampled_from([-3.0, -1.0, -0.25, 0.0, 0.1, 1.0, 2.0]), st.sampled_from([0.0, 0.01, 0.3, 1.0, 4.0])
).map(lambda pair: (pair[0], pair[0] + pair[1]))
BOXES = st.fixed_dictionaries(dict.fromkeys(NAMES, ENDS))
