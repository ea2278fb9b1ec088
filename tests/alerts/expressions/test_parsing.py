"""Expressions: parsing, SQL text, and values on columns."""

import inspect
import math
import re
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sqlglot
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from tests.alerts.random_expressions import TREES
from tidegate.alerts import Condition
from tidegate.alerts.expressions.condition import _include_equality
from tidegate.alerts.expressions.evaluation import evaluate
from tidegate.alerts.expressions.nodes import Call, Name, Node, Number, input_names, is_condition, to_sql
from tidegate.alerts.expressions.parsing import MAX_DEPTH, parse
from tidegate.types import Array, InputError

COMPARED = st.builds(Call, st.sampled_from([">", ">=", "<", "<="]), st.tuples(TREES, TREES))
CONDITIONS = st.recursive(
    COMPARED,
    lambda inner: st.builds(Call, st.sampled_from(["and", "or"]), st.tuples(inner, inner)),
    max_leaves=4,
)


@given(st.one_of(TREES, CONDITIONS))
def test_sql_is_parsed_as_the_same_tree(tree: Node) -> None:
    assert to_sql(parse(to_sql(tree))) == to_sql(tree)


BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.And: "and",
    exp.Or: "or",
    exp.Pow: "pow",
}


def by_sqlglot(tree: exp.Expr) -> str:
    """An independent parse by Spark's grammar, with every operation in parentheses."""
    if isinstance(tree, exp.Paren):
        return by_sqlglot(tree.this)
    if isinstance(tree, exp.Neg):
        return f"negate({by_sqlglot(tree.this)})"
    if type(tree) in BINARY:
        return f"{BINARY[type(tree)]}({by_sqlglot(tree.this)}, {by_sqlglot(tree.expression)})"
    if isinstance(tree, exp.Literal):
        return repr(float(tree.name))
    assert isinstance(tree, exp.Column)
    return str(tree.name)


def prefix(tree: Node) -> str:
    if isinstance(tree, Number):
        return repr(tree.value)
    if isinstance(tree, Name):
        return tree.name
    return f"{tree.function}({', '.join(map(prefix, tree.arguments))})"


@given(
    st.lists(st.sampled_from(["a", "b", "2", "-a", "- 3", "(a - b)", "-(a + 1)"]), min_size=2, max_size=6),
    st.lists(st.sampled_from("+-*/"), min_size=5, max_size=5),
    st.sampled_from([">", "<=", "> 1 AND a + b >", "< 1 OR b > 2 AND a >"]),
)
def test_operators_have_the_precedence_of_spark(
    operands: list[str], operators: list[str], compare: str
) -> None:
    text = (
        operands[0]
        + "".join(f" {o} {x}" for o, x in zip(operators, operands[1:], strict=False))
        + f" {compare} b"
    )
    assert prefix(parse(text)) == by_sqlglot(sqlglot.parse_one(text, read="spark"))


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a-b-c", "a - b - c"),
        ("a-(b-c)", "a - (b - c)"),
        ("-a*b", "-a * b"),
        ("-(a*b)", "-(a * b)"),
        ("- -a", "-(-a)"),
        ("a - -b", "a - -b"),
        ("+a", "a"),
        ("POWER(a, 2) + LOG(a)", "pow(a, 2) + ln(a)"),
        ("log(2, a)", "ln(a) / ln(2)"),
        ("ceiling(a) * signum(b)", "ceil(a) * sign(b)"),
        ("1e3 + .5 + 2. + 1E-7", "1000 + 0.5 + 2 + 1e-07"),
        ("`air temp` + `a``b` + `and`", "`air temp` + `a``b` + `and`"),
        ("a>1 or b>2 and c>3", "a > 1 OR b > 2 AND c > 3"),
        ("(a>1 or b>2) and c>3", "(a > 1 OR b > 2) AND c > 3"),
        ("größe > 1", "größe > 1"),
    ],
)
def test_sql_of_an_expression(text: str, written: str) -> None:
    assert to_sql(parse(text)) == written


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"at character 1 \(its end\): expected a number"),
        ("a +", r"at character 4 \(its end\)"),
        ("a b", r"at character 3 \('b'\): expected an operator"),
        ("(a > 1", r"not closed; add \)"),
        ("a > 1)", r"at character 6 \('\)'\)"),
        ("a ^ 2 > 1", r"bitwise operation in Spark; write pow"),
        ("a % 2 > 1", r"use floor"),
        ("a = 1", r"at character 3 \('='\): an alarm needs a threshold"),
        ("a == 1", r"an alarm needs a threshold"),
        ("a <> 1", r"an alarm needs a threshold"),
        ("a != 1", r"an alarm needs a threshold"),
        ("!(a > 1)", r"invert the comparison"),
        ("not a > 1", r"invert the comparison instead of NOT"),
        ("a between 1 and 2", r"write x >= 1 AND x <= 2"),
        ("a > 'x'", r"values are numbers, not strings"),
        ('a > "x"', r"values are numbers, not strings"),
        ("a --b", r"starts a comment"),
        ("h.value > 1", r"at character 2 \('.'\): write the plain name"),
        ("1 < a < 3", r"a comparison compares two numbers, e.g. a > 1 AND b > 2"),
        ("a and b > 1", r"AND and OR connect comparisons"),
        ("a > 1 or b", r"at character 10 \('b'\): AND and OR"),
        ("-(a > 1)", r"a comparison cannot have a sign"),
        ("ln(a > 1) > 0", r"a function takes numbers"),
        ("foo(a) > 1", r"function foo is not supported; use one of ln, .*greatest"),
        ("ln(a, b, c) > 1", r"ln takes 1 arguments, not 3"),
        ("greatest(a) > 1", r"greatest takes at least 2 arguments, not 1"),
        ("pow(a) > 1", r"pow takes 2 arguments, not 1"),
        ("ln() > 1", r"ln takes 1 arguments, not 0"),
        ("ln(a b) > 1", r"expected , or \)"),
        ("2.5D > a", r"\('2.5D'\): write a plain number"),
        ("1e999 > a", r"beyond the range of 64-bit floats"),
        ("a > null", r"remove NULL"),
        ("a && b > 1", r"write AND"),
        ("h + H > 1", r"h and H are the same column for Spark"),
        ("a # b", r"at character 3 \('#'\)"),
        ("ln(a, b > 1) > 1", r"at character 7 \('b'\): a function takes numbers"),
        ("ln(a,) > 1", r"at character 6 \('\)'\): expected a number"),
        ("(a, b) > 1", r"at character 3 \(','\): a parenthesis is not closed"),
        ("() > 1", r"at character 2 \('\)'\): expected a number"),
        ("+(a > 1)", r"a comparison cannot have a sign"),
        ("a > > 1", r"at character 5 \('>'\): expected a number"),
        ("a * * 2", r"at character 5 \('\*'\): expected a number"),
        ("a < 1 /* high */", r"at character 7 \('/\*'\): this starts a comment"),
        ("a {# high #} < 1", r"at character 3 \('{#'\): this starts a comment"),
        ("`ln`(a) > 1", r"at character 5 \('\('\): expected an operator"),
        ("`a > 1", r"at character 1 \('`'\): a name in backticks is not closed"),
        ("`` > 1", r"a name is empty"),
        ("a\0 > 1", r"at character 2 \('\\x00'\): expected"),
        ("0x1F > a", r"\('0x1F'\): write a plain number"),
        ("1e > a", r"\('1e'\): write a plain number"),
        ("a::int > 1", r"at character 2 \(':'\)"),
        ("a[1] > 1", r"at character 2 \('\['\)"),
        ("a > 1; b > 2", r"at character 6 \(';'\)"),
        ("(" * 70 + "a" + ")" * 70, r"nested more than 60 deep"),
        ("- " * 70 + "a", r"nested more than 60 deep"),
        ("ln(" * 70 + "a" + ")" * 70, r"nested more than 60 deep"),
        ("(" * 90_000, r"more than 500 names"),
        ("a" * 100_001, r"has 100,001 characters; write an expression of at most 100,000"),
        ("+".join(["a"] * 400), r"more than 500 names"),
    ],
)
def test_errors_have_a_position_and_a_remedy(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse(text)


PIECES = [
    *"ab12()()(),,+-*/<>=.`'; ",
    "a",
    "ln(",
    "greatest(",
    " and ",
    " or ",
    "--",
    "/*",
    "not ",
    "`x y`",
    "é",
    "\0",
]


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_a_text_is_parsed_or_refused_with_a_position(text: str) -> None:
    try:
        tree = parse(text)
    except InputError as error:
        assert re.search(r", at character \d+ \(|are the same column", str(error))  # noqa: PT017 - one of two ways
    else:
        assert to_sql(parse(to_sql(tree))) == to_sql(tree)


def test_other_sql_keywords_are_names() -> None:
    words = (
        "select from where interval date timestamp left values table while over cast array current_date end"
    )
    for word in words.split():
        assert parse(f"{word} + 1") == Call("+", (Name(word), Number(1.0)))


def test_an_error_does_not_repeat_a_long_text() -> None:
    with pytest.raises(InputError) as raised:
        parse("a > " + "1 " * 10_000)
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize("opening", ["(", "ln(", "-(", "greatest(1, "])
def test_the_deepest_expression_is_parsed_also_in_a_deep_stack(opening: str) -> None:
    deep = MAX_DEPTH // (2 if opening == "-(" else 1) - 1
    text = opening * deep + "a" + ")" * deep
    expected = parse(text)
    limit = sys.getrecursionlimit()

    def far_down(frames: int) -> Node:
        return parse(text) if frames == 0 else far_down(frames - 1)

    assert far_down(limit - len(inspect.stack()) - 400) == expected
    assert sys.getrecursionlimit() == limit


def test_threads_parse_at_the_same_time() -> None:
    text = "(" * 50 + "a" + ")" * 50
    limit = sys.getrecursionlimit()
    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(parse, [text] * 40)) == {Name("a")}
    assert sys.getrecursionlimit() == limit


def test_input_that_is_not_a_condition_is_refused() -> None:
    with pytest.raises(InputError, match="5 is not an expression"):
        parse(5)  # type: ignore[arg-type]
    with pytest.raises(
        InputError, match=r"'a - b' is a number, not a condition; write a comparison, e.g. a - b > 0"
    ):
        Condition.parse("a - b")


def test_the_longest_expression_is_parsed() -> None:
    tree = parse("+".join(["a"] * 240))
    assert evaluate(tree, {"a": np.array([1.0])}) == 240
    assert to_sql(parse(to_sql(tree))) == to_sql(tree)


def test_inputs_in_order() -> None:
    assert input_names(parse("b + a * b > `c d`")) == ("b", "a", "c d")
    assert input_names(parse("1 > 0")) == ()


OPERANDS = st.recursive(
    st.sampled_from(["a", "b", "`c d`", "2", "0.5", ".25", "3.", "1e-3", "2E1"]).map(lambda word: [word]),
    lambda inner: st.one_of(
        st.builds(lambda u, o, v: [*u, o, *v], inner, st.sampled_from("+-*/"), inner),
        st.builds(lambda sign, u: [sign, *u], st.sampled_from("+-"), inner),
        st.builds(lambda u: ["(", *u, ")"], inner),
        st.builds(lambda f, u: [f, "(", *u, ")"], st.sampled_from(["abs", "floor", "TANH"]), inner),
        st.builds(
            lambda f, u, v: [f, "(", *u, ",", *v, ")"], st.sampled_from(["greatest", "least"]), inner, inner
        ),
    ),
    max_leaves=8,
)


@given(OPERANDS, st.lists(st.floats(-4, 4), min_size=3, max_size=3))
def test_values_equal_those_of_a_simple_evaluator(words: list[str], values: list[float]) -> None:
    at = dict(zip(["a", "b", "c d"], values, strict=True))
    with np.errstate(all="ignore"):
        found = float(evaluate(parse(" ".join(words)), {name: np.array(value) for name, value in at.items()}))
    assert found == pytest.approx(Evaluator(words, at).value(), rel=1e-12, abs=1e-300, nan_ok=True)


class Evaluator:
    """The value of an expression, computed while its tokens are read: without a tree, one number at a time."""

    def __init__(self, words: list[str], at: dict[str, float]) -> None:
        self.words, self.at = [*words, ""][::-1], at

    def value(self) -> float:
        total = self.product()
        while self.words[-1] in ("+", "-"):
            total += self.product() if self.words.pop() == "+" else -self.product()
        return total

    def product(self) -> float:
        total = self.operand()
        while self.words[-1] in ("*", "/"):
            times, factor = self.words.pop() == "*", self.operand()
            total = total * factor if times else total / factor if factor else math.nan
        return total

    def operand(self) -> float:
        word = self.words.pop()
        if word in ("+", "-"):
            return self.operand() if word == "+" else -self.operand()
        if word == "(" or self.words[-1] == "(":
            numbers, ends = [], self.words.pop() if word != "(" else word
            while ends != ")":
                numbers.append(self.value())
                ends = self.words.pop()
            return numbers[0] if word == "(" else float(PYTHON[word.lower()](*numbers))
        return self.at[word.strip("`")] if word.strip("`") in self.at else float(word)


@given(TREES, st.lists(st.floats(-5, 5), min_size=3, max_size=3))
def test_columns_have_the_values_of_single_numbers(tree: Node, values: list[float]) -> None:
    columns = {name: np.array([value, 1.5]) for name, value in zip("xyz", values, strict=True)}
    with np.errstate(all="ignore"):
        found = np.broadcast_to(evaluate(tree, columns), 2)[0]
    expected = by_python(tree, dict(zip("xyz", values, strict=True)))
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-300, nan_ok=True)


def by_python(tree: Node, at: dict[str, float]) -> float:
    """A slow reference: the math module, one number at a time; NaN where it is not defined."""
    if isinstance(tree, Number):
        return tree.value
    if isinstance(tree, Name):
        return at[tree.name]
    values = [by_python(part, at) for part in tree.arguments]
    try:
        return float(PYTHON[tree.function](*values))
    except OverflowError:
        if tree.function == "pow":
            return math.inf if values[0] > 0 or values[1] % 2 == 0 else -math.inf
        return (
            math.nan
            if tree.function in {"floor", "ceil"} and math.isnan(values[0])
            else math.copysign(math.inf, values[0])
        )
    except (ValueError, ZeroDivisionError):
        infinite = [value for value in values if math.isinf(value)]
        return infinite[0] if tree.function in {"floor", "ceil"} and infinite else math.nan


def known(values: tuple[float, ...]) -> list[float]:
    return [value for value in values if not math.isnan(value)] or [math.nan]


PYTHON: dict[str, Callable[..., float]] = {
    "+": lambda u, v: u + v,
    "-": lambda u, v: u - v,
    "*": lambda u, v: u * v,
    "/": lambda u, v: u / v,
    "negate": lambda u: -u,
    "pow": math.pow,
    "greatest": lambda *values: max(known(values)),
    "least": lambda *values: min(known(values)),
    "ln": math.log,
    "log10": math.log10,
    "log2": math.log2,
    "exp": math.exp,
    "sqrt": math.sqrt,
    "abs": abs,
    "sin": math.sin,
    "cos": math.cos,
    "tanh": math.tanh,
    "atan": math.atan,
    "sign": lambda u: u if math.isnan(u) else (u > 0) - (u < 0),
    "floor": lambda u: math.floor(u) if math.isfinite(u) else u,
    "ceil": lambda u: math.ceil(u) if math.isfinite(u) else u,
}


@pytest.mark.parametrize(
    ("text", "closed", "alarms"),
    [
        ("a > 2", False, [False, False, True]),
        ("a >= 2", True, [False, True, True]),
        ("a < 2", False, [True, False, False]),
        ("2 >= a", True, [True, True, False]),
        ("0 < a - 2", False, [False, False, True]),
        ("a - 2 < 0", False, [True, False, False]),
        ("a > 1 and a < 3", False, [False, True, False]),
        ("a < 2 or a > 2", False, [True, False, True]),
        ("1 / (a - 2) > 0", False, [False, False, True]),
        ("ln(a - 1) > -1", False, [False, True, True]),
        ("sqrt(a - 2) >= 0", True, [False, True, True]),
        ("ln(a - 1) > -1 or a < 2", False, [True, True, True]),
        ("greatest(ln(a - 1), 5) > 4", False, [True, True, True]),
    ],
)
def test_alarms(text: str, closed: bool, alarms: list[bool]) -> None:  # noqa: FBT001 - a table
    condition = Condition.parse(text)
    assert condition.includes_equality is closed
    assert condition.alarms({"a": [1, 2, 3]}).tolist() == alarms
    assert Condition.parse(condition.sql) == condition


@settings(max_examples=30)
@given(CONDITIONS, st.lists(st.floats(-5, 5), min_size=3, max_size=3))
def test_the_margin_equals_its_expression_where_that_is_defined(tree: Call, values: list[float]) -> None:
    columns = {name: np.array([value]) for name, value in zip("xyz", values, strict=True)}
    with np.errstate(all="ignore"):
        assume(len(_include_equality(tree)) == 1 and everywhere_defined(tree, columns))
        condition = Condition(tree)
        whole = np.broadcast_to(evaluate(condition.expression, columns), 1)
    assert np.array_equal(np.broadcast_to(condition.margin(columns), 1), whole)


def everywhere_defined(tree: Node, columns: dict[str, Array]) -> bool:
    if not isinstance(tree, Call):
        return True
    parts = all(everywhere_defined(part, columns) for part in tree.arguments)
    return parts and (is_condition(tree) or bool(np.isfinite(evaluate(tree, columns)).all()))


def test_missing_values_raise_no_alarm_and_columns_are_broadcast() -> None:
    condition = Condition.parse("a - b > 0 or c > 9")
    table = condition.alarms({"a": np.array([[1.0], [np.nan]]), "b": [0, 2], "c": 1})
    assert table.tolist() == [[True, False], [False, False]]
    assert condition.alarms({"a": np.nan, "b": 0, "c": 10}).all()
    assert not Condition.parse("a - b > 0 and c > 9").alarms({"a": np.nan, "b": 0, "c": 10}).any()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [1]}, "no column 'b'; the columns are: a"),
        ({"a": [1], "b": ["x"]}, "column 'b' is of type <U1; give numbers"),
        ({"a": [1], "b": [True]}, "column 'b' is of type bool"),
        ({"a": [1], "b": [None]}, "column 'b' is of type object"),
    ],
)
def test_invalid_columns_are_refused(columns: dict[str, list[object]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Condition.parse("a > b").margin(columns)  # type: ignore[arg-type]


def test_strict_and_non_strict_comparisons_do_not_mix() -> None:
    with pytest.raises(InputError, match="mixes strict and non-strict comparisons"):
        Condition.parse("a > 1 and b <= 2")
