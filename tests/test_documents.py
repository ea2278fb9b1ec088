"""Untrusted TOML: text that takes too long to parse or fails with an unclear error is refused."""

from __future__ import annotations

import tomllib

import pytest

from tidegate.documents import parse_toml
from tidegate.types import InputError

CHAIN = ".".join(["a"] * 50_000)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\na = " + "[" * 50_000 + "]" * 50_000, "line 2: nested more than 64 deep"),
        ("a = " + "{a=" * 50_000 + "1" + "}" * 50_000, "line 1: nested more than 64 deep"),
        ("a = " + "1" * 5_000, "line 1: a number or key of more than 1,000 characters"),
        (f"{CHAIN} = 1", "line 1: a key of more than 64 parts"),
        (f"[{CHAIN}]", "line 1: a key of more than 64 parts"),
        (" . ".join(["'a'", '"a"'] * 25_000) + " = 1", "a key of more than 64 parts"),
        (f'x = """a""""\n{CHAIN} = 1', "line 2: a key of more than 64 parts"),
        (f"x = '''a'''''\n{CHAIN} = 1", "line 2: a key of more than 64 parts"),
        (f'x = "\\""\n{CHAIN} = 1', "line 2: a key of more than 64 parts"),
        (f'x = "#"\n# "\n{CHAIN} = 1', "line 3: a key of more than 64 parts"),
        ("a = \0", "not TOML: Invalid value"),
        ("a = 1\na = 2", "not TOML: Cannot overwrite"),
        ("a = = 1", "not TOML: Invalid value"),
        ('a = "' + '\\"' * 100_000, "not TOML: Unterminated string"),
    ],
)
def test_hostile_text_is_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_toml(text)


@pytest.mark.parametrize(
    "text",
    [
        "a.b.c = 1.5\r\n[d.e]\r\nf = [[1, 2], [3]]\r\n",
        'a = """x.y.z"""\nb = "' + "a." * 1_000 + '" # ' + "." * 1_000,
        "a = '''" + "[{" * 1_000 + "'''",
        "a = [\n" + "  1.5,\n" * 1_000 + "]",
        "\n".join(f"[t{i}]\na.b = {{ c.d = 1 }}" for i in range(200)),
        ".".join(["a"] * 64) + " = 1",
    ],
)
def test_other_text_is_parsed_as_by_tomllib(text: str) -> None:
    assert parse_toml(text) == tomllib.loads(text)
    assert parse_toml("\ufeff" + text) == tomllib.loads(text)
