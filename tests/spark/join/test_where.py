"""A further condition on pairs has the meaning of Spark SQL: unknown is not true, NaN exceeds all numbers."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tidegate.spark.bucket.join.pair_condition import PairCondition
from tidegate.spark.query.where_parser import TwoSidedExpressionError, parse, split_condition
from tidegate.types import InputError

if TYPE_CHECKING:
    from tidegate.types import Side

NAN, INF = float("nan"), float("inf")
LEFT, RIGHT = ["a", "k", "odd name"], ["b", "k"]


def apart(text: str) -> PairCondition:
    return split_condition(parse(text, LEFT, RIGHT))


def evaluate(
    text: str, left: list[Any], right: list[Any], kind: pa.DataType, other: pa.DataType | None = None
) -> list[bool]:
    """Evaluate `text` over the columns a and b, where each part of it is one of these columns."""
    where = apart(text)
    columns: dict[tuple[Side, str], pa.Array] = {}
    for name, sql in where.left.items():
        assert sql == "`a`"
        columns["left", name] = pa.array(left, kind)
    for name, sql in where.right.items():
        assert sql == "`b`"
        columns["right", name] = pa.array(right, other or kind)
    found: list[bool] = where.mask(lambda side, name: columns[side, name]).tolist()
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("l.a < r.b", [True, False, False, False, False]),
        ("l.a <= r.b", [True, True, False, False, False]),
        ("l.a = r.b", [False, True, False, False, False]),
        ("l.a == r.b", [False, True, False, False, False]),
        ("l.a != r.b", [True, False, True, False, False]),
        ("l.a <> r.b", [True, False, True, False, False]),
        ("l.a > r.b", [False, False, True, False, False]),
        ("l.a >= r.b", [False, True, True, False, False]),
        ("not l.a < r.b", [False, True, True, False, False]),
        ("not (l.a < r.b)", [False, True, True, False, False]),
        ("l.a < r.b or l.a > r.b", [True, False, True, False, False]),
        ("l.a <= r.b and l.a >= r.b", [False, True, False, False, False]),
        ("l.a between r.b and r.b", [False, True, False, False, False]),
        ("a < b", [True, False, False, False, False]),
        ("l.a - r.b < r.b - l.a", [True, False, False, False, False]),
        ("abs(l.a - r.b) = l.a * r.b", [False, False, False, False, False]),
    ],
)
def test_integers_and_nulls(text: str, expected: list[bool]) -> None:
    assert evaluate(text, [1, 2, 3, None, 1], [2, 2, 2, 2, None], pa.int64()) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("l.a < r.b", [False, True, False, False, True, False]),
        ("l.a <= r.b", [True, True, False, True, True, False]),
        ("l.a = r.b", [True, False, False, True, False, False]),
        ("l.a != r.b", [False, True, True, False, True, False]),
        ("l.a > r.b", [False, False, True, False, False, False]),
        ("l.a >= r.b", [True, False, True, True, False, False]),
    ],
)
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_floats_are_ordered_as_sql_has_it(text: str, expected: list[bool], kind: pa.DataType) -> None:
    left, right = [-0.0, INF, NAN, NAN, -INF, NAN], [0.0, NAN, INF, NAN, -1.5, None]
    assert evaluate(text, left, right, kind) == expected


@pytest.mark.parametrize("kind", [pa.int64(), pa.int8(), pa.decimal128(10, 2)])
def test_nan_is_above_every_number_of_another_type(kind: pa.DataType) -> None:
    values = [Decimal(1), Decimal(2)] if pa.types.is_decimal(kind) else [1, 2]
    assert evaluate("l.a < r.b", values, [NAN, 1.0], kind, pa.float64()) == [True, False]
    assert evaluate("l.a >= r.b", values, [NAN, 1.0], kind, pa.float64()) == [False, True]


def test_texts_are_ordered_by_their_bytes() -> None:
    assert evaluate("l.a < r.b", ["Z", "é", "\U0001f600", ""], ["a", "z", "\uffff", "a"], pa.string()) == [
        True,
        False,
        False,
        True,
    ]


def test_dates_and_booleans_compare() -> None:
    assert evaluate("l.a < r.b", [date(1, 1, 1)], [date(9999, 12, 31)], pa.date32()) == [True]
    assert evaluate("l.a < r.b", [False, True], [True, True], pa.bool_()) == [True, False]


@pytest.mark.parametrize(
    ("text", "left", "right"),
    [
        ("upper(l.a) = r.b", ["UPPER(`a`)"], ["`b`"]),
        ("l.a > 10 and r.b in (1, 2)", ["`a` > 10"], ["`b` IN (1, 2)"]),
        ("l.`odd name` = r.b", ["`odd name`"], ["`b`"]),
        ("l.k + 1 = r.k", ["`k` + 1"], ["`k`"]),
        ("true", ["TRUE"], []),
        ("l.a is null or r.b is not null", ["`a` IS NULL"], ["NOT `b` IS NULL"]),
        ("coalesce(l.a, 0) + r.b > 5", ["COALESCE(`a`, 0)", "5"], ["`b`"]),
    ],
)
def test_what_one_side_can_compute_spark_computes(text: str, left: list[str], right: list[str]) -> None:
    where = apart(text)
    assert list(where.left.values()) == left
    assert list(where.right.values()) == right


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("l.missing > r.b", "there is no column l.missing; there are l.a, l.k"),
        ("x.a > r.b", "column .x. is on neither side"),
        ("k > 1", "column 'k' is on both sides; write l.k or r.k"),
        ("nothing = 1", "column 'nothing' is on neither side"),
        ("l.a >", "where='l.a >' cannot be parsed: something is missing at '>', character 5$"),
        ("l.a > r.b)", "cannot be parsed: .*, at '.', character"),
        ("", "where='' cannot be parsed"),
        ("l.a; drop table x", "cannot be parsed"),
        ("l.a in (select b from t)", "has a sub-query; add its result to a side before the join"),
        ("l.a > (select max(b) from t)", "has a sub-query"),
        ("exists (select 1) and l.a > r.b", "has a sub-query"),
        ("l.a in (with x as (select 1) select * from x)", "has a sub-query"),
        ("l.\u0430 > r.b", "there is no column l.\u0430"),  # Cyrillic
        ("l.a \u017felect r.b", "cannot be parsed"),  # its capital letter is S
        ("l.a > r.b\0", "there is no column r.b\0"),
        ("(" * 5000 + "l.a > r.b" + ")" * 5000, "nested too deep to be parsed; simplify it"),
        ("not " * 5000 + "l.a > r.b", "nested too deep"),
        ("l.a" + ".f" * 5000 + " > r.b", "nested too deep"),
    ],
)
def test_what_cannot_be_meant_is_refused(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words.replace("l.", r"l\.")):
        apart(text)


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("l.a > 1 -- */ or reflect('x') /*", "`a` > 1"),
        ("l.a > /* ' */ 1 /* or true */", "`a` > 1"),
        ("l.a {# b #} > 1", "`a` > 1"),
        (r"upper(l.`odd name`) = 'it\'s --'", "UPPER(`odd name`) = 'it''s --'"),
        (r"""l.a = r'\d' or l.a = "'" """, r"`a` = '\\d' OR `a` = ''''"),
        ("size(filter(array(l.a), a -> a > greatest(abs(l.k), 1))) > 0", "> GREATEST(ABS(`k`), 1))) > 0"),
    ],
)
def test_generated_sql_has_no_comments_and_one_kind_of_quotes(text: str, sql: str) -> None:
    [generated] = apart(text).left.values()
    assert generated.endswith(sql)


def test_a_long_condition_is_parsed() -> None:
    assert len(apart(" and ".join(["l.a > r.b"] * 1000)).left) == 1000


@pytest.mark.parametrize("text", ["l.a >", "l.a > r.b)", "l.a > 'x", "(l.a", "l.a == = 1"])
def test_syntax_errors_are_one_plain_line(text: str) -> None:
    with pytest.raises(InputError) as raised:
        apart(text)
    assert str(raised.value).isprintable()
    assert "sqlglot" not in str(raised.value)


@pytest.mark.parametrize("condition", [5, ["l.a > r.b"]])
def test_a_condition_that_is_no_text_is_refused(condition: object) -> None:
    with pytest.raises(
        InputError, match=r"where=.* is of type \w+; write the condition as SQL over l\. and r\."
    ):
        apart(condition)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ["concat(l.a, r.b) = 'x'", "l.a / r.b > 1", "l.a % r.b = 0", "l.a <=> r.b", "l.a like r.b"]
)
def test_what_needs_both_sides_in_spark_says_so(text: str) -> None:
    with pytest.raises(TwoSidedExpressionError, match="uses both sides; between the sides use comparisons"):
        apart(text)
