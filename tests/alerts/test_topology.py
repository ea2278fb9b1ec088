"""Which streams may omit rows."""

from __future__ import annotations

import pytest

from tidegate import InputError
from tidegate.alerts import Topology, omittable


def lengths(topology: Topology) -> dict[str, float | None]:
    return {name: told.omega for name, told in omittable(topology).items()}


def test_figure_7a_all_of_a_clique_omit_by_brackets_of_the_bound() -> None:
    assert lengths(Topology.clique("abcd", 3)) == dict.fromkeys("abcd", 3)


def test_two_streams_omit_by_brackets_of_twice_the_bound() -> None:
    assert lengths(Topology.clique("ab", 3)) == {"a": 6, "b": 6}


def test_figure_7b_only_the_ends_of_a_chain_omit() -> None:
    assert lengths(Topology.chain("abcd", 3)) == {"a": 6, "b": None, "c": None, "d": 6}


def test_figure_7c_all_but_the_centre_of_a_star_omit() -> None:
    assert lengths(Topology.star("c", "abd", 3)) == {"c": None, "a": 6, "b": 6, "d": 6}


def test_figure_8_only_the_two_that_are_apart_omit() -> None:
    names = ["r1", "r2", "u1", "u2", "u3", "u4", "u5"]
    told = omittable(Topology.near_clique(names, ("r1", "r2"), 3))
    assert {name for name, one in told.items() if one.omega is not None} == {"r1", "r2"}
    assert told["r1"].omega == 3
    assert told["u1"].reason == "its partners r1 and r2 are not joined to each other"


def test_a_function_of_no_known_shape_forces_all_of_its_stream_only() -> None:
    told = omittable(Topology.clique("abc", 3, shapes={"a": "any", "b": "increasing"}))
    assert {name: (one.omega, one.shape) for name, one in told.items()} == {
        "a": (None, "any"),
        "b": (3, "increasing"),
        "c": (3, "quasiconvex"),
    }


def test_of_several_joins_the_narrowest_decides() -> None:
    told = omittable(
        Topology.clique("ab", 10, shapes={"a": "increasing"}),
        Topology.clique("ac", 4, shapes={"a": "decreasing"}),
        Topology.chain("bdc", 1),
    )
    assert told["a"][:2] == (8, "quasiconvex")
    assert told["b"].omega == 2
    assert told["d"].omega is None
    assert omittable(Topology.clique("ab", 1), Topology.star("a", "bc", 1))["a"].omega is None


def test_distances_go_by_joins() -> None:
    assert Topology.chain("abcd", 1).distances("a") == {"a": 0, "b": 1, "c": 2, "d": 3}
    assert Topology((("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")), 1).distances("a") == {
        "a": 0, "b": 1, "d": 1, "c": 2,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: Topology((("a", "b"), ("c", "d")), 1), "c, d and a do not hang together"),
        (lambda: Topology((("a", "a"),), 1), "'a' is joined to itself"),
        (lambda: Topology((), 1), "a join of no pairs"),
        (lambda: Topology.clique("ab", 0), "within is 0; give a number above 0"),
        (lambda: Topology.clique("ab", -2.5), "within is -2.5"),
        (lambda: Topology.clique("a", 1), "make no join"),
        (lambda: Topology.clique("aba", 1), "each once"),
        (lambda: Topology.clique("ab", 1, shapes={"x": "any"}), "there is no stream 'x'; there is a, b"),
        (lambda: Topology.clique("ab", 1, shapes={"a": "odd"}), "shape of a 'odd' is not known"),  # type: ignore[dict-item]
        (lambda: Topology.clique("ab", 1).partners("x"), "there is no stream 'x'"),
        (lambda: Topology.near_clique("abc", ("a", "x"), 1), "is no pair of a, b, c"),
        (omittable, "no join was given"),
    ],
)
def test_what_is_no_join_is_named(call: object, told: str) -> None:
    assert callable(call)
    with pytest.raises(InputError, match=told):
        call()
