"""Invalid input is refused at once, by an error that names the value and the remedy."""

from __future__ import annotations

from typing import Any

import pytest

import tidegate as tg
from tests.sampling.workload import MODEL, stream
from tidegate.engine.join import Join
from tidegate.engine.sampler_retention import SamplerRetention
from tidegate.sampling import EqCluster, PpsCluster, Uniform

LEFT, RIGHT = stream(10, 1), stream(10, 2)


@pytest.mark.parametrize("sampler", [Uniform, EqCluster, PpsCluster])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"p": 0.0}, r"p must be a number .*; got 0.0"),
        ({"p": 1.5}, r"p must be a number .*; got 1.5"),
        ({"p": "half"}, r"p must be a number .*; got 'half'"),
        ({"p": True}, r"p must be a number .*; got True"),
        ({"overflow": 0.0}, r"overflow must be a probability .*; got 0.0"),
        ({"overflow": 1}, r"overflow must be a probability .*; got 1"),
        ({"overflow": "0.1"}, r"overflow must be a probability .*; got '0.1'"),
        ({"model": "keys"}, r"model must be a Frequency.*; got 'keys'"),
        ({"model": (None, 3)}, r"model must be a Frequency"),
        ({"rates": (1, 0)}, r"rate on the right is 0"),
    ],
)
def test_invalid_parameters_are_refused(
    sampler: type[tg.sampling.Sampler], given: dict[str, Any], message: str
) -> None:
    if sampler is PpsCluster and given == {"p": 1.5}:
        assert PpsCluster(**given).p == 1.5  # it multiplies the expected matches of a row
        given, message = {"p": float("inf")}, r"p must be a number .*; got inf"
    with pytest.raises(tg.InputError, match=message):
        sampler(**given)


def test_an_unknown_name_lists_similar_ones() -> None:
    assert tg.sampling.names() == ["eq_cluster", "pps_cluster", "uniform"]
    with pytest.raises(tg.InputError, match="did you mean 'uniform'"):
        tg.simulate_sample(LEFT, RIGHT, window=(5, 5), sampler="unifrom")


def test_budgets_without_room_for_a_row_are_refused() -> None:
    with pytest.raises(tg.InputError, match="budget must be more than 32 bytes"):
        tg.simulate_sample(LEFT, RIGHT, window=(5, 5), budget="20 B")
    with pytest.raises(tg.InputError, match="holds nothing"):
        tg.simulate_sample(LEFT, RIGHT, window=(5, 5), budget=0)


def test_joins_that_do_not_suit_the_model_are_refused() -> None:
    with pytest.raises(tg.InputError, match="a Frequency needs a join on equal keys"):
        tg.simulate_sample(LEFT, RIGHT, window=(5, 5), condition="<", sampler=Uniform(model=MODEL))
    with pytest.raises(tg.InputError, match="is a number of rows"):
        tg.simulate_sample(LEFT, RIGHT, window=(tg.Last(3), 0), sampler=Uniform(model="age"))
    with pytest.raises(tg.InputError, match="needs a window of finite length"):
        tg.simulate_sample(LEFT, RIGHT, window=(None, None), sampler=Uniform(model="age"))
    with pytest.raises(tg.InputError, match="split='even'"):
        SamplerRetention(Join(tg.Window(5, 5), tg.Budget(rows=4), split="even"), "uniform")


def test_thinning_to_a_higher_probability_is_refused() -> None:
    found = tg.simulate_sample(LEFT, RIGHT, window=(5, 5), sampler=EqCluster(p=0.5)).pairs
    with pytest.raises(tg.InputError, match=r"at most 0.5"):
        tg.sampling.thin(found, 0.6)
