"""The vocabulary parses what users write, and refuses what it cannot parse."""

from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate import Band, Budget, InputError, Last, Window
from tidegate.engine.report import Report
from tidegate.types import FOREVER, Rows, WindowSpan


@pytest.mark.parametrize(
    ("given_as", "expected"),
    [
        ((500, 0), Window(500, 0)),
        ((10, -5), Window(10, -5)),
        ((-5, 10), Window(-5, 10)),
        ((5, -5), Window(5, -5)),
        ((None, -5), Window(None, -5)),
        ((np.int32(3), np.float64(0.5)), Window(3, 0.5)),
        ((timedelta(seconds=1), timedelta(0)), Window(1_000_000, 0)),
        ((Last(3), None), Window(Last(3), None)),
    ],
)
def test_windows(given_as: tuple[WindowSpan, WindowSpan], expected: Window) -> None:
    window = Window.of(given_as)
    assert window == expected
    assert Window.of(window) is window
    assert not isinstance(window.left, np.generic)


def test_lengths() -> None:
    window = Window(Last(3), None)
    assert window.reach("left") == 2
    assert window.reach("right") >= FOREVER
    assert (Window(7, -2).reach("left"), Window(7, -2).reach("right")) == (7, -2)
    assert [Window(*spans).counted for spans in ((1, 1), (Last(1), 1), (None, Last(2)))] == [
        False,
        True,
        True,
    ]


@given(st.integers(-50, 50), st.integers(0, 80))
def test_a_whole_window_holds_the_same_whole_differences(low: int, length: int) -> None:
    window = Window(low / 4, (length - low) / 4)
    try:
        whole = window.whole()
    except InputError:
        whole = None
    assert window.left is not None
    assert window.right is not None
    assert not isinstance(window.left, Last)
    assert not isinstance(window.right, Last)
    inside = [d for d in range(-60, 60) if -window.right <= d <= window.left]
    if whole is None:
        assert inside == []
    else:
        assert [d for d in range(-60, 60) if -whole.reach("right") <= d <= whole.reach("left")] == inside


@pytest.mark.parametrize("rows", [0, -1, 1.5, "3", None, True])
def test_last_needs_a_whole_number(rows: object) -> None:
    with pytest.raises(InputError, match="give a whole number of rows, at least 1"):
        Last(rows)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64 MB", 64_000_000),
        ("64mb", 64_000_000),
        ("1.5 GiB", 1_610_612_736),
        ("2 KiB", 2048),
        ("3kB", 3000),
        (" 4096 B ", 4096),
        ("1 GB", 10**9),
        ("1 MiB", 2**20),
    ],
)
def test_sizes(text: str, size: int) -> None:
    budget = Budget(bytes=text)
    assert (budget.bytes, budget.limit, budget.unit) == (size, size, "bytes")
    assert Budget.of(text) == budget


@pytest.mark.parametrize("text", ["1000", "1000 rows", " 1_000 Rows ", "1,000 rows", "1000row"])
def test_a_string_may_count_rows(text: str) -> None:
    assert Budget.of(text) == Budget(rows=1000)


@pytest.mark.parametrize("text", ["1000", "1000 rows", "B", "1.2.3 MB", "1,5 MB", "64 parsecs"])
def test_invalid_sizes_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="is not a size; write it like '64 MB'"):
        Budget(bytes=text)


def test_budgets() -> None:
    assert Budget.of(None) is None
    assert Budget.of(5) == Budget(rows=5)
    assert Budget.of(Budget(rows=5)) == Budget(rows=5)
    assert (Budget(rows=5).unit, Budget(rows=5).limit) == ("rows", 5)
    assert Budget(rows=np.int64(5)).limit == 5  # type: ignore[arg-type]


@pytest.mark.parametrize("both", [{}, {"rows": 1, "bytes": 1}])
def test_a_budget_is_in_one_unit(both: dict[str, int]) -> None:
    with pytest.raises(InputError, match="in rows or in bytes"):
        Budget(**both)


@given(st.integers(1, 10_000), st.integers(1, 50))
def test_a_divided_budget_adds_up(limit: int, parts: int) -> None:
    if limit < parts:
        with pytest.raises(InputError, match=f"budget of {limit} bytes cannot be divided among {parts}"):
            Budget(bytes=limit).divided(parts)
        return
    shares = [share.limit for share in Budget(bytes=limit).divided(parts)]
    assert sum(shares) == limit
    assert len(shares) == parts
    assert max(shares) - min(shares) <= 1


def test_a_band_may_be_a_point() -> None:
    assert Band(1, 1).low == 1


def test_rows() -> None:
    numbers = np.arange(4)
    rows = Rows("left", key=numbers, time=numbers * 1.0, id=numbers, matches=numbers)
    assert len(rows) == 4
    assert list(rows.columns()) == ["key", "time", "id", "matches"]
    assert rows.take(np.array([3, 1])).key.tolist() == [3, 1]
    assert rows.take(rows.key > 1).id.tolist() == [2, 3]
    assert (rows.row_bytes, rows.nbytes) == (32, 128)
    heavy = Rows("left", numbers, numbers, numbers, numbers, importance=numbers * 1.0, payload=numbers * 10)
    assert heavy.row_bytes == 48
    assert heavy.sizes().tolist() == [48, 58, 68, 78]
    assert heavy.nbytes == 252


def report(results: int, exact: int) -> Report:
    return Report(
        results=results,
        from_left=0,
        from_right=0,
        from_step=results,
        exact=exact,
        importance=0.0,
        exact_importance=0.0,
        fairness=1.0,
        peak_rows=0,
        peak_bytes=0,
        rows_left=0,
        rows_right=0,
        evicted=0,
        expired=0,
        late=0,
        null_keys=0,
        times=np.array([1, 2, 3]),
        results_over_time=np.array([0, 1, results]),
        exact_over_time=np.array([0, 2, exact]),
    )


def test_recall() -> None:
    assert report(3, 4).recall == 0.75
    assert report(0, 0).recall == 1.0
