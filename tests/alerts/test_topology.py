"""Which streams may omit rows."""

from __future__ import annotations

import pytest

from tidegate import InputError
from tidegate.alerts import Topology, omittable


def lengths(topology: Topology) -> dict[str, float | None]:
    return {name: omission.omega for name, omission in omittable(topology).items()}


def test_figure_7a_all_streams_of_a_clique_have_brackets_of_within() -> None:
    assert lengths(Topology.clique("abcd", 3)) == dict.fromkeys("abcd", 3)


def test_two_streams_have_brackets_of_twice_within() -> None:
    assert lengths(Topology.clique("ab", 3)) == {"a": 6, "b": 6}


def test_figure_7b_only_the_ends_of_a_chain_omit_rows() -> None:
    assert lengths(Topology.chain("abcd", 3)) == {"a": 6, "b": None, "c": None, "d": 6}


def test_figure_7c_all_but_the_centre_of_a_star_omit_rows() -> None:
    assert lengths(Topology.star("c", "abd", 3)) == {"c": None, "a": 6, "b": 6, "d": 6}


def test_figure_8_only_the_two_unjoined_streams_omit_rows() -> None:
    names = ["r1", "r2", "u1", "u2", "u3", "u4", "u5"]
    omissions = omittable(Topology.near_clique(names, ("r1", "r2"), 3))
    assert {name for name, one in omissions.items() if one.omega is not None} == {"r1", "r2"}
    assert omissions["r1"].omega == 3
    assert omissions["u1"].reason == "its partners r1 and r2 are not joined to each other"


def test_an_unknown_shape_keeps_all_rows_of_its_stream_only() -> None:
    omissions = omittable(Topology.clique("abc", 3, shapes={"a": "any", "b": "increasing"}))
    assert {name: (one.omega, one.shape) for name, one in omissions.items()} == {
        "a": (None, "any"),
        "b": (3, "increasing"),
        "c": (3, "quasiconvex"),
    }


def test_the_strictest_of_several_joins_decides() -> None:
    omissions = omittable(
        Topology.clique("ab", 10, shapes={"a": "increasing"}),
        Topology.clique("ac", 4, shapes={"a": "decreasing"}),
        Topology.chain("bdc", 1),
    )
    assert omissions["a"][:2] == (8, "quasiconvex")
    assert omissions["b"].omega == 2
    assert omissions["d"].omega is None
    assert omittable(Topology.clique("ab", 1), Topology.star("a", "bc", 1))["a"].omega is None


def test_distances_are_counted_in_joins() -> None:
    assert Topology.chain("abcd", 1).distances("a") == {"a": 0, "b": 1, "c": 2, "d": 3}
    assert Topology((("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")), 1).distances("a") == {
        "a": 0, "b": 1, "d": 1, "c": 2,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Topology((("a", "b"), ("c", "d")), 1), "c, d and a are not connected"),
        (lambda: Topology((("a", "a"),), 1), "'a' is joined to itself"),
        (lambda: Topology((), 1), "edges is empty"),
        (lambda: Topology.clique("ab", 0), "within is 0; give a number above 0"),
        (lambda: Topology.clique("ab", -2.5), "within is -2.5"),
        (lambda: Topology.clique("a", 1), "give at least two different names"),
        (lambda: Topology.clique("aba", 1), "give at least two different names"),
        (
            lambda: Topology.clique("ab", 1, shapes={"x": "any"}),
            "there is no stream 'x'; the streams are: a, b",
        ),
        (lambda: Topology.clique("ab", 1, shapes={"a": "odd"}), "shape of a 'odd' is not known"),  # type: ignore[dict-item]
        (lambda: Topology.clique("ab", 1).partners("x"), "there is no stream 'x'"),
        (lambda: Topology.near_clique("abc", ("a", "x"), 1), "is not a pair of a, b, c"),
        (omittable, "needs at least one Topology"),
    ],
)
def test_invalid_topologies_are_refused(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(InputError, match=message):
        call()
