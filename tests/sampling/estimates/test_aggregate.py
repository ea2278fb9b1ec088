"""Aggregates are parsed as in SQL; other texts are refused with a remedy."""

import pytest

from tidegate.sampling.estimates.aggregate import Aggregate
from tidegate.types import InputError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("count(*)", Aggregate("count", None)),
        (" COUNT( x ) ", Aggregate("count", "x")),
        ("sum(a * (b + 1))", Aggregate("sum", "a * (b + 1)")),
        ("mean(odd name)", Aggregate("avg", "odd name")),
        ("median(x)", Aggregate("quantile", "x")),
        ("percentile(f(x, 2), .25)", Aggregate("quantile", "f(x, 2)", 0.25)),
        ("count(distinct_users)", Aggregate("count", "distinct_users")),
    ],
)
def test_aggregates_are_parsed(text: str, expected: Aggregate) -> None:
    assert Aggregate.parse(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("price", "not one aggregate"),
        ("sum(a) + sum(b)", "not one aggregate"),
        ("sum(a", "not one aggregate"),
        ("max(a)", "'max'.*cannot|'max'.*not an aggregate"),
        ("sum(*)", "needs a column"),
        ("avg()", "needs a column"),
        ("count(distinct x)", "DISTINCT cannot be estimated"),
        ("quantile(x)", "needs a fraction as second argument"),
        ("quantile(x, 90)", "'90'.*between 0 and 1"),
        ("quantile(x, y)", "'y'.*between 0 and 1"),
    ],
)
def test_other_texts_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Aggregate.parse(text)
