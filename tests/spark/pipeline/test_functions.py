"""The Spark SQL of a pipeline file may call listed functions only, however it is written."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger

from tidegate.spark.pipeline.functions import ALLOWED, KEYWORDS, REFUSED, check_expression
from tidegate.types import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    "text",
    [
        "price > 10 AND lower(name) LIKE 'a%' AND k IN (1, 2)",
        "to_json(struct(*)) AS value",
        "CAST(a AS DECIMAL(10, 2))",
        "a::decimal(3, 1)",
        "regexp_extract(a, '(\\\\d+) reflect(', 1)",
        "r'\\d' || \"it's\" || 'it''s reflect(' || `odd ``reflect( name`",
        "size(filter(xs, x -> x > (1)))",
        "aggregate(xs, 0, (a, x) -> a + x)",
        "extract(day FROM t) = 1 AND trim(BOTH 'x' FROM s) = substring(s FROM 1 FOR 2)",
        "CASE WHEN (a > 1) THEN (2) ELSE (3) END",
        "sum(x) OVER (PARTITION BY y ORDER BY z ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "percentile_cont(0.5) WITHIN GROUP (ORDER BY x)",
        "count(*) FILTER (WHERE x > 1)",
        "DATE'2026-01-01' < t AND t < current_timestamp() - INTERVAL '1' DAY",
        'from_avro(value, \'{"type": "int"}\')',
        "((map(1, 2)))[1]",
        "a - -b",
        "user = 'ann'",
        "EXISTS(xs, x -> x IS NULL)",
    ],
)
def test_functions_that_only_compute_are_allowed(text: str) -> None:
    check_expression(text)
    with pytest.raises(InputError, match="reflect may not be called"):  # the text was read to its end
        check_expression(f"{text} || reflect('a')")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("reflect('java.lang.System', 'exit', 1)", "reflect may not be called .*runs code outside"),
        ("1 + REFLECT  \n\t('a')", "reflect may not be called"),
        ("`reflect`('a')", "reflect may not be called"),
        ("`java_method` ('a')", "java_method may not be called"),
        ("try_reflect('a')", "try_reflect may not be called"),
        ("system.builtin.reflect('a')", "'reflect' has a dot in its name"),
        ("`system`.`builtin`.`abs`(a)", "'abs' has a dot in its name"),
        ("builtin . reflect('a')", "has a dot in its name"),
        ("\"reflect\"('a')", "write it without quotes"),
        ("'reflect'('a')", "write it without quotes"),
        ("IDENTIFIER('ref' || 'lect')('a')", "identifier may not be called"),
        ("(reflect)('a')", "expression in brackets is called"),
        ("a[reflect]('a')", "expression in brackets is called"),
        ("reflect/**/('a')", "comment begins at character 8"),
        ("reflect--\n('a')", "comment begins at character 8"),
        ("'a' /* ' */ || reflect('a') || '", "comment begins"),
        ("r'\\' || reflect('a') || '", "cannot be read"),
        ("r'\\' || reflect('a') || ''", "reflect may not be called"),
        ("'\\' || reflect('a') || '\\", "reflect may not be called|cannot be read"),
        ("1.5r'\\' || reflect('a') || '", "need a space in between"),
        ("$$ ' $$ || reflect('a') || $$ ' $$", "cannot be read"),
        ("re\u017flect('a')", "cannot be read"),
        ("(\u017felect 1)", "cannot be read"),
        ("a\u00a0+ 1", "cannot be read"),
        ("a\0", "cannot be read"),
        ("(SELECT max(a) FROM t)", "SELECT would begin a sub-query"),
        ("a IN (TABLE t)", r"\(TABLE would begin a sub-query"),
        ("a IN (VALUES 1)", r"\(VALUES would begin a sub-query"),
        ("EXISTS (FROM t)", r"\(FROM would begin a sub-query"),
        ("EXISTS (WITH x AS (TABLE t) TABLE x)", r"\(WITH would begin a sub-query"),
        ("a IN (MAP b USING 'rm' AS c FROM t)", r"\(MAP would begin a sub-query"),
        ("current_user", "current_user may not be called"),
        ("input_file_name()", "input_file_name may not be called .*_metadata.file_path"),
        ("from_protobuf(a, 'b', '/etc/passwd')", "from_protobuf may not be called .*read a file"),
        ("from_avro(a, 'b', map('avroSchemaUrl', 'http://x'))", "from_avro with more than 2 arguments"),
        ("from_xml(a, concat('b', 'c'), map('rowValidationXSDPath', 'x'))", "from_xml with more than 2"),
        ("my_udf(a)", "'my_udf' is not a function that a pipeline file may call"),
        ("lowr(a)", "did you mean lower"),
        ("(" * 101 + "1" + ")" * 101, "nested more than 100 deep"),
        ("a" * 70_000, "70,000 characters long"),
    ],
)
def test_functions_with_other_effects_are_refused_however_they_are_written(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_expression(text)


@pytest.mark.spark
def test_every_function_of_spark_is_either_allowed_or_refused(spark: SparkSession) -> None:
    """Fails for the functions of a new version: add each to ALLOWED if it only computes, otherwise to REFUSED."""
    named = {row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    functions = {name for name in named if re.fullmatch(r"\w+", name)}
    assert len(functions) > 400
    assert functions - ALLOWED - set(REFUSED) == set()
    assert (ALLOWED | KEYWORDS).isdisjoint(REFUSED)


PIECES = [
    *("reflect", "Reflect", "`reflect`", '"reflect"', "abs", "a", "r", "R", "system.builtin.", "b.", "x"),
    *(
        "(",
        ")",
        "(",
        ")",
        "((",
        "[",
        "]",
        ",",
        ".",
        " ",
        "\n",
        "+",
        "-",
        "--",
        "/",
        "*",
        "/*",
        "*/",
        "|",
        ":",
    ),
    *("'", '"', "`", "\\", "''", '""', "``", "\\'", "'\\'", "r'", 'R"', "'a'", '"a"', "1", "1.5", "1e", "$$"),
    *(
        " IN ",
        " AND ",
        "NOT ",
        " AS ",
        "CASE WHEN ",
        " THEN ",
        " END ",
        " FROM ",
        "SELECT ",
        "TABLE ",
        "IDENTIFIER",
    ),
    *(
        "\u017f",
        "\u0131",
        "\u00a0",
        "\u2028",
        "=",
        ">",
        "?",
        "{",
        "}",
        ";",
        "@",
        "X",
        "EXISTS",
        "VALUES ",
        "USING ",
    ),
]


@pytest.mark.spark
def test_spark_finds_no_call_that_was_not_checked(spark: SparkSession) -> None:
    """Random texts that pass are parsed by Spark itself: every function and plan in them must be allowed."""
    parser = spark._jsparkSession.sessionState().sqlParser()
    PySparkLogger.getLogger("SQLQueryContextLogger").disabled = True
    draw = random.Random(7)  # noqa: S311 - not for secrets
    parsed = called = 0
    for _ in range(15_000):
        around = ["".join(draw.choices(PIECES, k=draw.randint(0, 4))) for _ in range(2)]
        text = draw.choice(["reflect(1)", "abs(1)", "", "+reflect(1)+", "+abs(1)+"]).join(around)
        try:
            check_expression(text)
        except InputError:
            continue
        try:
            tree = parser.parseExpression(text)
        except (Py4JJavaError, PySparkException):
            continue
        parsed += 1
        for node in nodes(tree):
            kind = node.getClass().getSimpleName()
            assert "Subquery" not in kind, text
            if kind == "UnresolvedFunction":
                called += 1
                name = [node.nameParts().apply(i) for i in range(node.nameParts().length())]
                assert len(name) == 1, text
                assert name[0].lower() in ALLOWED | KEYWORDS, text
    assert parsed > 100
    assert called > 20


def nodes(tree: Any) -> Iterator[Any]:  # noqa: ANN401 - Spark's own
    yield tree
    children = tree.children()
    for i in range(children.length()):
        yield from nodes(children.apply(i))
