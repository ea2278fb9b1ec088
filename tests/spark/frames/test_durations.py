"""Durations as users write them."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.spark.frames.durations import microseconds, parse_window
from tidegate.types import InputError, Window


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10 minutes", 600_000_000),
        ("0 seconds", 0),
        ("1 hour 30 minutes", 5_400_000_000),
        ("1h30m", 5_400_000_000),
        ("1.5 s", 1_500_000),
        ("250 ms", 250_000),
        ("7 us", 7),
        ("-5 seconds", -5_000_000),
        ("2 DAYS", 172_800_000_000),
        ("1 week", 604_800_000_000),
        ("INTERVAL 10 MINUTES", 600_000_000),
        ("INTERVAL '90' SECOND", 90_000_000),
        ("interval '-5' second", -5_000_000),
        ("  3   milliseconds ", 3_000),
        (timedelta(minutes=1, microseconds=1), 60_000_001),
        (timedelta(seconds=-1), -1_000_000),
        (timedelta.max, 86_399_999_999_999_999_999),
    ],
)
def test_durations_are_parsed(text: str | timedelta, expected: int) -> None:
    assert microseconds(text, "window") == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "10",
        "minutes",
        "ten minutes",
        "1 month",
        "2 years",
        "10 minutes or so",
        "1 fortnight",
        "5 %",
        "1:30",
    ],
)
def test_invalid_durations_are_refused_with_the_remedy(text: str) -> None:
    with pytest.raises(InputError, match="write it like '10 minutes'") as caught:
        microseconds(text, "window")
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("number", [10, 2.5, True])
def test_a_number_has_no_unit(number: object) -> None:
    with pytest.raises(InputError, match=f"lateness {number} has no unit; write it like '10 minutes'"):
        microseconds(number, "lateness")  # type: ignore[arg-type]


@given(st.timedeltas(min_value=timedelta(days=-10_000), max_value=timedelta(days=10_000)))
def test_a_timedelta_is_exact(span: timedelta) -> None:
    assert timedelta(microseconds=microseconds(span, "window")) == span


@given(
    st.integers(-(10**6), 10**6),
    st.sampled_from([("second", 10**6), ("min", 6 * 10**7), ("ms", 1000), ("d", 864 * 10**8)]),
)
def test_a_number_and_a_unit(number: int, unit: tuple[str, int]) -> None:
    assert microseconds(f"{number} {unit[0]}", "window") == number * unit[1]


def test_a_window_is_a_pair() -> None:
    assert parse_window(("10 seconds", None)) == Window(10_000_000, None)
    assert parse_window((timedelta(seconds=10), "-5 seconds")) == Window(10_000_000, -5_000_000)


@pytest.mark.parametrize(
    ("window", "words"),
    [
        (("10 seconds", "-20 seconds"), "'10 seconds', '-20 seconds'"),
        ("10 seconds", "window '10 seconds' is not a pair; write window=\\('10 minutes', '0 seconds'\\)"),
        (("1 second", "1 second", "1 second"), "is not a pair"),
        (Window(5, 5), "has no unit; on Spark write window="),
        ((5, 5), "window 5 has no unit"),
        (("30000000 days", "0 s"), "window '30000000 days' is longer than .*; use None for no end"),
        (None, "window None is not a pair"),
    ],
)
def test_other_windows_are_refused(window: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        parse_window(window)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["forever", "Infinite", " unbounded ", "inf"])
def test_a_window_without_end_is_none(text: str) -> None:
    with pytest.raises(InputError, match=r"a window without end is None: window=\(None, '0 seconds'\)"):
        parse_window((text, "0 seconds"))
