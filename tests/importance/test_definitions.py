"""Definitions of importance equal a loop over rows, convert to JSON and back, and check their arguments."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidegate as tg
from tests.importance.per_row import importance_of
from tidegate.importance import (
    Attributes,
    Categories,
    Column,
    Combined,
    Definition,
    DefinitionFile,
    Expression,
    Histogram,
    Sides,
    Source,
    evaluate_importance,
)
from tidegate.types import SIDES, InputError, Side

NAN = float("nan")


def unchecked(value: object) -> Any:  # noqa: ANN401 - what no type checker would let pass
    return value


numbers = st.integers(0, 8).map(lambda n: n / 2)
defaults = st.one_of(st.none(), numbers)
columns = st.builds(Column, st.just("price"), defaults)
categories = st.one_of(
    st.builds(
        Categories, st.just("topic"), st.dictionaries(st.sampled_from("abc"), numbers, min_size=1), defaults
    ),
    st.builds(
        Categories, st.just("level"), st.dictionaries(st.integers(0, 3), numbers, min_size=1), defaults
    ),
)


@st.composite
def histograms(draw: st.DrawFn) -> Histogram:
    column = draw(st.sampled_from(["price", "level"]))
    edges = sorted(draw(st.sets(st.integers(-2, 6), min_size=2, max_size=5)))
    values = draw(st.lists(numbers, min_size=len(edges) - 1, max_size=len(edges) - 1))
    return Histogram(column, edges, values, draw(defaults))


sources = st.builds(Source, numbers, numbers)
simple = st.one_of(columns, categories, histograms(), sources)
definitions = st.recursive(
    simple,
    lambda part: st.one_of(
        st.builds(
            Combined,
            st.sampled_from(["min", "max", "sum", "product", "mean"]),
            st.lists(part, min_size=1, max_size=3),
        ),
        st.builds(Sides, part, part),
    ),
    max_leaves=4,
)
rows = st.lists(
    st.fixed_dictionaries(
        {
            "price": st.sampled_from([None, 0.0, 0.5, 1.0, 2.0, 6.0]),
            "topic": st.sampled_from([None, "a", "b", "c", "d"]),
            "level": st.sampled_from([None, 0, 1, 2, 5]),
        }
    ),
    max_size=6,
)
KINDS = {"price": pa.float64(), "topic": pa.string(), "level": pa.int64()}


def attributes(side: Side, given: list[dict[str, Any]]) -> Attributes:
    made = {name: pa.array([row[name] for row in given], kind) for name, kind in KINDS.items()}
    return Attributes(side, len(given), made)


def of(definition: Definition, values: object, kind: pa.DataType | None = None) -> list[float]:
    column = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values, kind)
    worths: list[float] = evaluate_importance(
        definition, Attributes("left", len(column), {"x": column})
    ).tolist()
    return worths


@given(definitions, rows, st.sampled_from(SIDES))
def test_columns_give_the_same_as_a_loop_over_rows(
    definition: Definition, stream: list[dict[str, Any]], side: Side
) -> None:
    expected = [importance_of(definition, side, row) for row in stream]
    if None in expected:
        with pytest.raises(InputError, match="importance: "):
            evaluate_importance(definition, attributes(side, stream))
    else:
        found = evaluate_importance(definition, attributes(side, stream))
        assert found.dtype == np.float64
        assert found.tolist() == pytest.approx(expected)


@given(definitions)
def test_json_round_trip(definition: Definition) -> None:
    assert Definition.of(json.loads(json.dumps(definition.to_dict()))) == definition


def test_short_forms() -> None:
    assert Definition.of("price") == Column("price")
    assert Definition.of(2) == Source(2, 2)
    assert Definition.of(("price", 1)) == Sides(Column("price"), Source(1, 1))
    assert Definition.of({"kind": "combined", "how": "sum", "definitions": ["a", 1]}) == Combined(
        "sum", [Column("a"), Source(1, 1)]
    )
    assert Categories("x", [("a", 1)]) == Categories("x", {"a": 1})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("definition", "values", "kind", "expected"),
    [
        (Column("x"), [1, 2**60], pa.int64(), [1.0, 2.0**60]),
        (Column("x"), [Decimal("1.50")], pa.decimal128(38, 18), [1.5]),
        (Column("x", default=3), [None, NAN, 1.0], pa.float64(), [3.0, 3.0, 1.0]),
        (Column("x", default=3), [None], pa.null(), [3.0]),
        (Categories("x", {"1": 5}), [1, 1], pa.int32(), [5.0, 5.0]),
        (Categories("x", {1: 5}), ["1"], pa.string(), [5.0]),
        (Categories("x", {1: 5, 2.5: 6}), [Decimal("2.50"), 1], pa.decimal128(5, 2), [6.0, 5.0]),
        (Categories("x", {True: 2, False: 1}), [True, False], pa.bool_(), [2.0, 1.0]),
        (Categories("x", {"2026-01-31": 2}), [dt.date(2026, 1, 31)], pa.date32(), [2.0]),
        (Categories("x", {"a": 2}, default=0), ["a", None], pa.string_view(), [2.0, 0.0]),
        (Histogram("x", [0, 18, 65], [1, 3]), [0, 17.5, 18, 65], pa.float32(), [1.0, 1.0, 3.0, 3.0]),
        (Histogram("x", [0, 1], [2], default=7), [-1, 2, None, NAN], pa.float64(), [7.0] * 4),
    ],
)
def test_types(definition: Definition, values: list[Any], kind: pa.DataType, expected: list[float]) -> None:
    assert of(definition, values, kind) == expected


def test_dictionaries_and_chunks() -> None:
    column = pa.chunked_array([["a", "b"], ["a"]])
    for values in (column, column.combine_chunks().dictionary_encode()):
        assert of(Categories("x", {"a": 1, "b": 2}), values) == [1.0, 2.0, 1.0]


@pytest.mark.parametrize(
    ("definition", "values", "words"),
    [
        (Column("y"), [1], ["left has no column 'y'", "it has x"]),
        (Column("x"), ["high"], ["left.x is of type string", "give numbers", "Categories"]),
        (Column("x"), [True], ["left.x is of type bool"]),
        (Column("x"), [1, None], ["left.x is null or NaN", "coalesce", "default="]),
        (Column("x"), [NAN], ["left.x is null or NaN"]),
        (Column("x", default=1), [-2.0], ["left.x is -2", "0 or more"]),
        (Column("x"), [float("inf")], ["left.x is inf", "finite"]),
        (Categories("x", {"a": 1}), ["a", "b"], ["left.x is 'b'", "list it in Categories", "default="]),
        (Categories("x", {"a": 1}), [None, "a"], ["left.x is None"]),
        (Categories("x", {"a": 1}), [1], ["left.x is of type int64", "'a'", "of one type"]),
        (Categories("x", {1.5: 1}), [1], ["left.x is of type int64", "1.5"]),
        (Categories("x", {1: 1, "a": 2}), ["a"], ["of one type"]),
        (Histogram("x", [0, 1], [1]), [1.5], ["left.x is 1.5", "edges 0 to 1", "widen", "default="]),
        (Histogram("x", [0, 1], [1]), [None, 0.5], ["left.x is null or NaN"]),
        (Histogram("x", [0, 1], [1]), ["a"], ["left.x is of type string"]),
        (Combined("product", [Column("x"), 1e200]), [1e200], ["inf", "finite"]),
        (Expression("x + 1"), [1], ["Spark SQL", "use Column"]),
    ],
)
def test_rows_without_an_importance_are_refused(
    definition: Definition, values: list[Any], words: list[str]
) -> None:
    with pytest.raises(InputError) as raised:
        of(definition, values)
    for word in words:
        assert word in str(raised.value)


@pytest.mark.parametrize("definition", [Column("x"), Categories("x", {"a": 1}), Histogram("x", [0, 1], [1])])
def test_unsuitable_columns_are_refused_even_without_rows(definition: Definition) -> None:
    for columns in ({}, {"x": pa.array([], pa.list_(pa.int64()))}):
        with pytest.raises(InputError, match="importance: left"):
            evaluate_importance(definition, Attributes("left", 0, columns))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Column(""), ["the name of a column"]),
        (lambda: Column("x", default=-1), ["default is -1", "0 or more"]),
        (lambda: Categories("x", {}), ["empty"]),
        (lambda: Categories("x", unchecked(3)), ["3", "{value: importance}"]),
        (lambda: Categories("x", unchecked({None: 1})), ["None", "default="]),
        (lambda: Categories("x", {"a": NAN}), ["the importance of 'a' is nan"]),
        (lambda: Categories("x", unchecked({"a": None})), ["the importance of 'a' is None"]),
        (lambda: Categories("x", {"a": True}), ["the importance of 'a' is True"]),
        (lambda: Histogram("x", [0, 0], [1]), ["go from 0 to 0", "ascend"]),
        (lambda: Histogram("x", [0, 1], [1, 2]), ["2 edges and 2 values", "one value fewer"]),
        (lambda: Histogram("x", [0], []), ["1 edges and 0 values"]),
        (lambda: Histogram("x", [0, NAN], [1]), ["edges of 'x'", "give finite numbers"]),
        (lambda: Histogram("x", unchecked(["a", 1]), [1]), ["edges of 'x'", "a list of numbers"]),
        (lambda: Histogram("x", [0, 1], [-1]), ["-1", "0 or more"]),
        (lambda: Histogram("x", [0, 1], unchecked(3)), ["values of 'x' are 3", "a list of numbers"]),
        (lambda: Source(1, float("inf")), ["the right is inf"]),
        (lambda: Combined(unchecked("average"), ["x"]), ["'average'", "'mean'"]),
        (lambda: Combined("sum", []), ["at least one"]),
        (lambda: Combined("sum", "x"), ["a list"]),
        (lambda: Definition.of(unchecked(None)), ["None", "a pair"]),
        (lambda: Definition.of([True, 1]), ["True"]),
        (lambda: Definition.of({"kind": "colum"}), ["'colum'", "column"]),
        (lambda: Definition.of({"column": "x"}), ["kind None"]),
        (lambda: Definition.of({"kind": ["column"]}), ["kind ['column']"]),
        (lambda: Definition.of({"kind": "column", "nam": "x"}), ["no 'nam'", "name, default"]),
        (lambda: Definition.of({"kind": "categories", "column": "x"}), ["lacks 'values'"]),
        (lambda: DefinitionFile("topics.csv"), ["column="]),
        (lambda: DefinitionFile("topics.json", column="x"), ["leave out column="]),
    ],
)
def test_invalid_arguments_are_refused(make: Any, words: list[str]) -> None:  # noqa: ANN401 - any call
    with pytest.raises(InputError) as raised:
        make()
    for word in words:
        assert word in str(raised.value)


def test_a_column_named_importance_must_not_be_negative() -> None:
    stream = {"key": [1], "time": [0], "importance": [-0.5]}
    with pytest.raises(InputError, match=r"left.importance has -0.5; give 0 or more"):
        tg.simulate(stream, stream, window=(1, 1))
