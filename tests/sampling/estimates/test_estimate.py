"""Estimates for groups, windows and nulls; a sample of everything gives exact values; invalid input is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.sampling import estimate
from tidegate.types import Array, InputError

NAN = float("nan")


def sample(rows: int = 200, seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    owner = rng.integers(0, 40, rows)
    return {
        "city": rng.choice(["Oslo", "Rome"], rows),
        "price": rng.lognormal(3, 1, rows),
        "owner": owner,
        "time": rng.integers(0, 100, rows),
        "probability": rng.uniform(0.1, 1, 40)[owner],
    }


@pytest.mark.parametrize("method", ["uniform", "eq_cluster", "counted"])
def test_a_sample_of_everything_gives_exact_values(method: Any) -> None:  # noqa: ANN401
    given = sample() | {"probability": np.ones(200)}
    exactly: dict[str, Callable[[Array], float]] = {
        "count(*)": len,
        "sum(price)": np.sum,
        "avg(price)": np.mean,
        "median(price)": np.median,
        "quantile(price, 0.9)": lambda price: float(np.quantile(price, 0.9)),
    }
    for what, exact in exactly.items():
        for row in estimate(given, what, by="city", method=method).to_pylist():
            truth = exact(given["price"][given["city"] == row["city"]])
            assert [row["estimate"], row["low"], row["high"]] == pytest.approx([truth] * 3)


def test_nulls_are_skipped_as_in_sql() -> None:
    given = {
        "k": ["a", "a", "b", None],
        "x": [1.0, None, None, 4.0],
        "probability": [0.5, 0.5, 0.5, 0.5],
    }

    def answers(what: str) -> list[tuple[Any, ...]]:
        found = estimate(given, what, by="k").to_pylist()
        return [(row["k"], row["estimate"], row["rows"]) for row in found]

    assert answers("count(*)") == [("a", 4, 2), ("b", 2, 1), (None, 2, 1)]
    assert answers("count(x)") == [("a", 2, 1), ("b", 0, 0), (None, 2, 1)]
    assert answers("sum(x)") == [("a", 2, 1), ("b", None, 0), (None, 8, 1)]
    assert answers("avg(x)") == [("a", 1, 1), ("b", None, 0), (None, 4, 1)]
    assert answers("median(x)") == [("a", 1, 1), ("b", None, 0), (None, 4, 1)]
    nothing = estimate({"x": [None, None], "probability": [1, 1]}, "sum(x)").to_pylist()
    assert nothing == [{"estimate": None, "low": None, "high": None, "rows": 0}]


@given(
    st.lists(st.integers(-30, 30), min_size=1, max_size=40),
    st.integers(1, 15),
    st.one_of(st.none(), st.integers(1, 20)),
    st.sampled_from([np.int64, np.float64]),
)
def test_windows_have_the_right_rows(times: list[int], length: int, every: int | None, kind: type) -> None:
    clock: Array = np.array(times, kind)
    rng = np.random.default_rng(len(times))
    given = sample(len(times)) | {"time": clock, "probability": np.full(len(times), 0.5)}
    interval = every or length
    expected = {}
    for number in range(-60 // interval - 1, 60 // interval + 2):
        inside = (clock >= number * interval - length) & (clock < number * interval)
        if inside.any():
            part = {name: column[inside] for name, column in given.items()}
            [row] = estimate(part, "avg(price)").to_pylist()
            expected[number * interval] = row
    order = rng.permutation(len(times))
    shuffled = {name: column[order] for name, column in given.items()}
    found = estimate(shuffled, "avg(price)", window=length, every=every).to_pylist()
    assert [row.pop("window_end") for row in found] == list(expected)
    for row, other in zip(found, expected.values(), strict=True):
        assert list(row.values()) == pytest.approx(list(other.values()), nan_ok=True)


def test_many_windows_are_processed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"by": "city", "window": 30, "every": 1}
    whole = estimate(sample(), "sum(price)", **options)
    monkeypatch.setattr("tidegate.sampling.estimates.time_windows._PAIRS_PER_PART", 100)
    parts = estimate(sample(), "sum(price)", **options)
    assert parts.select(["city", "window_end", "rows"]).equals(whole.select(["city", "window_end", "rows"]))
    # Sums may differ in the last digit, as rows of one cluster are not in the same order.
    for name in ("estimate", "low", "high"):
        assert np.allclose(parts[name], whole[name])
    assert len(whole) > 200


def test_samples_of_every_columnar_type_are_accepted() -> None:
    stamps = [datetime(2026, 1, 1, 0, minute, tzinfo=UTC) for minute in (1, 2, 14)]
    columns = {"at": stamps, "x": [1, 2, 3], "probability": [0.5, 0.25, 1.0], "owner": [1, 2, 3]}
    table = pa.table(columns)
    frame = pd.DataFrame(columns)
    answers = [
        estimate(given, "sum(x)", window=600_000_000, time="at").to_pylist()
        for given in (columns, table, frame)
    ]
    assert answers[0] == answers[1] == answers[2]
    assert [(row["window_end"].minute, row["estimate"]) for row in answers[0]] == [(10, 10), (20, 3)]
    assert estimate(table.slice(0, 0), "avg(x)", by="owner", window=5, time="at").num_rows == 0


def test_owners_form_clusters_unless_results_were_drawn_independently() -> None:
    given = {"x": [1.0] * 4, "owner": [1, 1, 1, None], "probability": [0.5] * 4}

    def width(**options: Any) -> float:  # noqa: ANN401
        [row] = estimate(given, "sum(x)", **options).to_pylist()
        assert row["estimate"] == 8
        return float(row["high"] - row["low"])

    assert width() == width(method="pps_cluster") > width(method="uniform")
    without = {name: column for name, column in given.items() if name != "owner"}
    [row] = estimate(without, "sum(x)").to_pylist()
    assert row["high"] - row["low"] == width(method="uniform")


def test_a_group_of_one_cluster_with_probability_one_has_an_exact_average() -> None:
    [row] = estimate({"x": [1, 2], "owner": [1, 1], "probability": [1.0, 1.0]}, "avg(x)").to_pylist()
    assert (row["estimate"], row["low"], row["high"]) == (1.5, 1.5, 1.5)


@pytest.mark.parametrize("mine", [[True] * 200, [3] * 200])
@pytest.mark.parametrize("method", [None, "eq_cluster", "reservoir"])
def test_a_user_column_named_shown_is_ignored(method: Any, mine: list[int]) -> None:  # noqa: ANN401
    plain = estimate(sample(), "avg(price)", method=method)
    assert estimate(sample() | {"shown": mine}, "avg(price)", method=method).equals(plain)


def test_the_lower_end_of_a_count_is_at_least_the_sampled_rows() -> None:
    given = {"probability": [0.9, 0.9]}
    [row] = estimate(given, "count(*)", level=0.999).to_pylist()
    assert row["low"] == 2


def test_an_interval_beyond_the_sample_has_no_upper_end() -> None:
    given = {"x": np.arange(20.0), "probability": np.full(20, 0.1)}
    [row] = estimate(given, "quantile(x, 0.99)").to_pylist()
    assert row["high"] is None
    assert row["low"] is not None


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (
            {"probability": [0.5, None]},
            {},
            "'probability' must have inclusion probabilities .* got None at row 1",
        ),
        ({"probability": [0.5, 0.0]}, {}, r"got 0\.0 at row 1"),
        ({"probability": [1.5, 0.5]}, {}, r"got 1\.5 at row 0"),
        ({"probability": [NAN, 0.5]}, {}, "got None at row 0"),
        ({"probability": [None, None]}, {}, "got None at row 0"),
        ({"probability": ["a", "b"]}, {}, "must have numbers .* of type string"),
        ({}, {"probability": "weight"}, "no column 'weight'.*probability="),
        ({}, {"what": "avg(prise)"}, "no column 'prise'"),
        ({"x": ["a", "b"]}, {}, "avg needs numbers, but 'x' is of type string"),
        ({}, {"by": "town"}, "no column 'town'.*by="),
        ({}, {"window": 5}, "no column 'time'"),
        ({"time": [1, 2]}, {"window": 0}, "window must be a positive length of time; got 0"),
        ({"time": [1, 2]}, {"window": 5, "every": -1}, "every must be a positive length of time; got -1"),
        ({"time": [1, None]}, {"window": 5}, "has None at row 1"),
        ({}, {"every": 5}, "needs a window"),
        ({}, {"level": 90}, r"level must be a number between 0 and 1.*got 90"),
        ({}, {"level": "0.9"}, r"level must be a number .* got '0\.9'"),
        ({}, {"method": "guess"}, "method 'guess' is not known"),
        ({}, {"method": "eq_cluster"}, "no column 'owner'"),
        ({}, {"stratum": "x"}, "needs method='counted'"),
        ({"probability": [0.5, 0.25]}, {"method": "counted"}, r"0\.25 and 0\.5.*stratum="),
        ({"probability": [0.5]}, {}, "differ in length"),
    ],
)
def test_invalid_input_is_refused(columns: dict[str, Any], options: dict[str, Any], message: str) -> None:
    given = {"x": [1.0, 2.0], "probability": [0.5, 0.5]} | columns
    with pytest.raises(InputError, match=message):
        estimate(given, **({"what": "avg(x)"} | options))
