"""What cannot be used is refused in words that name the value and the remedy; what is only empty is fine."""

import re
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.engine.cases import STEPS
from tidegate import Band, Budget, InputError, Last
from tidegate.engine import Join
from tidegate.policies import find
from tidegate.types import Condition, StepSize, Window

NAN, INF = float("nan"), float("inf")
ROW: dict[str, Any] = {"key": [1], "time": [0]}


def refusal(left: object = ROW, right: object = ROW, **settings: Any) -> str:  # noqa: ANN401 - of simulate
    with pytest.raises(InputError) as caught:
        tg.simulate(left, right, **({"window": (5, 5)} | settings))
    return str(caught.value)


@pytest.mark.parametrize(
    ("setting", "value", "named", "remedy"),
    [
        ("window", (10, -20), "(10, -20)", "left + right must be at least 0"),
        ("window", (-1, -1), "(-1, -1)", "at least 0"),
        ("window", (NAN, 0), "nan", "give a finite number, or None"),
        ("window", (0, NAN), "right is nan", "give a finite number, or None"),
        ("window", (INF, 0), "inf", "None for no end"),
        ("window", (2**61, 0), str(2**61), "use None for no end"),
        ("window", (True, 0), "True", "give a number, a timedelta"),
        ("window", ("5 minutes", 0), "'5 minutes'", "give a number, a timedelta"),
        ("window", 5, "5", "write window=(left, right)"),
        ("window", (1, 2, 3), "(1, 2, 3)", "write window=(left, right)"),
        ("window", (Last(3), -1), "-1", "use 0 or more beside Last"),
        ("budget", 0, "budget of 0 rows", "give at least 1, or None"),
        ("budget", -3, "budget of -3 rows", "give at least 1, or None"),
        ("budget", "0 MB", "budget of 0 bytes", "give at least 1, or None"),
        ("budget", 2.5, "2.5", "give rows as an int"),
        ("budget", NAN, "nan", "give rows as an int"),
        ("budget", True, "True", "give rows as an int"),
        ("budget", "64 parsecs", "'64 parsecs'", "write it like '64 MB'"),
        ("budget", "-1 MB", "'-1 MB'", "write it like '64 MB'"),
        ("budget", "2.5 rows", "'2.5 rows'", "a whole number of rows"),
        ("budget", "0 rows", "budget of 0 rows", "give at least 1, or None"),
        ("budget", "", "''", "write it like '64 MB'"),
        ("policy", "fifi", "'fifi'", "did you mean 'fifo'?"),
        ("order", "probe", "'probe'", "use one of 'probe-first', 'shed-first'"),
        ("combine", "median", "'median'", "use one of 'min', 'max', 'sum', 'product', 'mean'"),
        ("condition", "==", "'=='", "use one of '=', '<', '<=', '!=', '>', '>='"),
        ("condition", None, "None", "use one of"),
        ("condition", (0, 1), "(0, 1)", "use one of"),
        ("step", 0, "0", "use 1, a larger number of rows, or 'instant'"),
        ("step", -1, "-1", "use 1"),
        ("step", 1.5, "1.5", "use 1"),
        ("step", "instants", "'instants'", "'instant'"),
        ("warmup", -1, "-1", "give a finite number, at least 0"),
        ("warmup", NAN, "nan", "give a finite number, at least 0"),
        ("lateness", -1, "-1", "give a finite number, at least 0"),
        ("lateness", INF, "inf", "give a finite number, at least 0"),
        ("on", [], "no key column", "write on='key'"),
        ("on", "id", "'id'", "on="),
        ("time", "ts", "'ts'", "time="),
    ],
)
def test_settings(setting: str, value: object, named: str, remedy: str) -> None:
    message = refusal(**{setting: value})
    assert named in message
    assert remedy in message


@pytest.mark.parametrize("policy", ["prob", "life", "age", "heeb", "size"])
def test_shed_first_needs_memory_on_both_sides(policy: str) -> None:
    for split in ("shared", "optimal"):
        if split == "optimal" and not find(policy).predicts:
            continue
        message = refusal(policy=policy, split=split, order="shed-first", budget=4)
        assert (
            f"split={split!r} lets policy {find(policy).label()!r} fill the memory with the rows of one side"
            in message
        )
        assert "use split='even', two numbers (left, right), or order='probe-first'" in message
        assert tg.simulate(ROW, ROW, window=(5, 5), policy=policy, order="shed-first").results == 1
    settings: dict[str, Any] = {"policy": policy, "order": "shed-first", "budget": 4}
    assert tg.simulate(ROW, ROW, window=(5, 5), split="even", **settings).results == 1
    assert tg.simulate(ROW, ROW, window=(5, 5), split=(3, 1), **settings).results == 1


def test_one_pool_with_shed_first_suits_policies_that_do_not_compare_expected_results() -> None:
    for policy in ("fifo", "random", "until_expiry", "ijoin"):
        Join(Window(5, 5), Budget(rows=4), policy, "shared", "shed-first")


def test_shed_first_with_even_memory_is_above_random() -> None:
    rng = np.random.default_rng(0)
    left, right = ({"key": rng.zipf(1.5, 400), "time": np.arange(400)} for _ in range(2))
    settings: dict[str, Any] = {"window": (100, 100), "budget": 20, "split": "even", "order": "shed-first"}
    prob, random = (
        tg.simulate(left, right, policy=policy, **settings).results for policy in ("prob", "random")
    )
    assert prob > 1.5 * random


@pytest.mark.parametrize(
    ("split", "named", "remedy"),
    [
        ("odd", "'odd'", "use 'shared', 'even', 'optimal' or"),
        ((1, 2, 3), "(1, 2, 3)", "two whole numbers"),
        ((-1, 2), "(-1, 2)", "two whole numbers"),
        ((1.5, 1), "(1.5, 1)", "two whole numbers"),
        ((3, 3), "(3, 3) adds up to 6", "budget of 4 rows"),
    ],
)
def test_split(split: object, named: str, remedy: str) -> None:
    message = refusal(budget=4, split=split)
    assert named in message
    assert remedy in message


def test_split_is_checked_without_a_budget_too() -> None:
    assert "'odd'" in refusal(split="odd")


def test_a_budget_too_small_to_divide() -> None:
    message = refusal(budget=1, split="even")
    assert "budget of 1 rows cannot be divided among 2" in message
    assert "give at least 2" in message


def test_last_and_lateness() -> None:
    message = refusal(window=(Last(2), 1), lateness=3)
    assert "lateness=3" in message
    assert re.search(r"use (lateness=)?None", message)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("fifo_", "fifo"),
        ("Fifo", "fifo"),
        ("AGE", "age"),
        ("rand", "random"),
        ("until-expire", "until_expiry"),
        ("expiry", "until_expiry"),
        ("xyz", None),
        ("", None),
    ],
)
def test_an_unknown_policy_lists_the_names_and_the_one_that_may_be_meant(
    name: str, meant: str | None
) -> None:
    message = refusal(policy=name)
    assert message.startswith(f"policy {name!r} is not known; use one of {', '.join(tg.policies.names())}")
    assert message.endswith(f"; did you mean {meant!r}?") == (meant is not None)
    assert ("did you mean" in message) == (meant is not None)


@pytest.mark.parametrize("policy", [5, None, ["fifo"]])
def test_what_is_no_policy(policy: object) -> None:
    assert "is not known; use one of" in refusal(policy=policy)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"policy": tg.policies.Age}, "policy is the class Age; call it: Age()"),
        ({"importance": tg.importance.Source}, "importance is the class Source; call it: Source(...)"),
        ({"window": tg.Window}, "window is the class Window; call it: Window(...)"),
        ({"budget": tg.Budget}, "budget is the class Budget; call it: Budget(...)"),
    ],
)
def test_a_class_given_for_an_object_is_refused(settings: dict[str, Any], message: str) -> None:
    assert message in refusal(**settings)


@pytest.mark.parametrize(
    ("left", "named", "remedy"),
    [
        ({"time": [0]}, "left has no column 'key' (its columns: time)", "on="),
        ({"key": [1]}, "left has no column 'time' (its columns: key)", "time="),
        ({}, "its columns: none", "on="),
        ({"key": [1, 2], "time": [0]}, "key 2, time 1", "one value per row"),
        ({"key": [1], "time": [0], "importance": []}, "importance 0", "one value per row"),
        ({"key": [1, 2], "time": [0.0, NAN]}, "left.time", "row 1"),
        ({"key": [1, 2], "time": np.array([0.0, NAN])}, "left.time", "row 1"),
        ({"key": [1, 2], "time": pa.array([0.0, NAN])}, "nan at row 1", "finite time"),
        ({"key": [1, 2], "time": [0, None]}, "None at row 1", "finite time"),
        ({"key": [1, 2], "time": [0.0, INF]}, "inf at row 1", "finite time"),
        ({"key": [1, 2], "time": [-INF, 0.0]}, "-inf at row 0", "finite time"),
        ({"key": [1, 2], "time": [0, 2**61]}, f"{2**61} at row 1", "2**61"),
        ({"key": [1, 2], "time": [0, -(2**61)]}, f"-{2**61} at row 1", "2**61"),
        ({"key": [1, 2], "time": [0.0, 1e300]}, "1e+300 at row 1", "2**61"),
        ({"key": [1], "time": ["noon"]}, "left.time is of type string", "give numbers or timestamps"),
        ({"key": [1], "time": [True]}, "left.time is of type bool", "give numbers or timestamps"),
        ({"key": [1], "time": np.array([2**63], np.uint64)}, "left.time", str(2**63)),
        ({"key": [1], "time": pa.array([1], pa.timestamp("ns"))}, "left.time", ";"),
        ({"key": [1], "time": [0], "importance": ["high"]}, "left.importance is of type string", "numbers"),
        ({"key": [1], "time": [0], "importance": [NAN]}, "left.importance has", "a finite number"),
        ({"key": [1], "time": [0], "importance": [INF]}, "inf", "row 0; give a finite number"),
        ({"key": [1], "time": [0], "value": ["x"]}, "left.value is of type string", "numbers"),
        ({"key": [1, "a"], "time": [0, 1]}, "left.key cannot be read as a column", "one type"),
        ({"key": np.ones((2, 2)), "time": [0, 1]}, "left.key cannot be read as a column", "one flat array"),
        ({"key": 1, "time": [0]}, "left.key cannot be read as a column", "one flat array"),
        ([1, 2], "left is a list", "give a dict of arrays"),
        (None, "left is a NoneType", "give a dict of arrays"),
        ("trace.csv", "left is a str", "give a dict of arrays"),
    ],
)
def test_streams(left: object, named: str, remedy: str) -> None:
    message = refusal(left)
    assert named in message
    assert remedy in message


def test_the_right_is_named_when_it_is_wrong() -> None:
    assert "right has no column 'key'" in refusal(ROW, {"time": [0]})
    assert "right.time" in refusal(ROW, {"key": [1], "time": [INF]})


@pytest.mark.parametrize(
    ("keys", "named", "remedy"),
    [
        (["a"], "the right one of type int64", "cast one"),
        ([1.0], "the left key is of type double", "cast one"),
        (np.array([2**63], np.uint64), "64 bits", "cast the key columns to strings"),
    ],
)
def test_keys_that_do_not_compare(keys: object, named: str, remedy: str) -> None:
    message = refusal({"key": keys, "time": [0]})
    assert named in message
    assert remedy in message


def test_as_many_keys_on_both_sides() -> None:
    traces = [tg.streams.Trace.of({"a": [1], "b": [1], "time": [0]}, on=on) for on in ("a", ["a", "b"])]
    assert "left has 1 key columns, the right 2" in refusal(*traces)


@pytest.mark.parametrize("condition", ["<", Band(0, 1)])
def test_an_order_needs_one_number(condition: Condition) -> None:
    text = {"key": ["a"], "time": [0]}
    assert "string; use '='" in refusal(text, text, condition=condition)
    two = {"a": [1], "b": [1], "time": [0]}
    assert "compares one key, got 2" in refusal(two, two, condition=condition, on=["a", "b"])


def test_a_band_that_overflows() -> None:
    far = {"key": [2**63 - 1], "time": [0]}
    message = refusal(far, far, condition=Band(0, 5))
    assert "keys below 2**61" in message
    assert "subtract a constant" in message


@pytest.mark.parametrize("ends", [(2, 1), (NAN, 1), (0, INF)])
def test_a_band_that_is_none(ends: tuple[float, float]) -> None:
    with pytest.raises(InputError, match=re.escape(f"Band({ends[0]!r}, {ends[1]!r})")):
        Band(*ends)


NOTHING: dict[str, Any] = {"key": [], "time": []}
NULLS: dict[str, Any] = {"key": [None, None], "time": [0, 1]}


@pytest.mark.parametrize("warmup", [0, 3])
@pytest.mark.parametrize("budget", [None, 1, Budget(bytes=100)], ids=str)
@pytest.mark.parametrize("condition", ["=", "!=", "<", Band(0, 1)], ids=str)
@pytest.mark.parametrize("step", STEPS)
def test_little_or_nothing_is_fine(
    step: StepSize, condition: Condition, budget: int | Budget | None, warmup: int
) -> None:
    settings: dict[str, Any] = {
        "window": (5, 5),
        "step": step,
        "condition": condition,
        "budget": budget,
        "warmup": warmup,
        "collect": True,
    }
    for left, right in (
        (NOTHING, NOTHING),
        (ROW, NOTHING),
        (NOTHING, ROW),
        (NULLS, NULLS),
        (NULLS, ROW),
        (NOTHING, NULLS),
    ):
        report = tg.simulate(left, right, **settings)
        assert (report.results, report.exact, report.recall) == (0, 0, 1.0)
        assert report.null_keys == sum(side is NULLS for side in (left, right)) * 2
        assert (report.rows_left, report.rows_right) == (len(left["key"]), len(right["key"]))
        assert report.fairness == 1.0
        assert report.pairs is not None
        assert len(report.pairs.left) == len(report.pairs.right) == 0
    matching = {"key": [2], "time": [0]} if condition in {"!=", "<"} else ROW
    assert tg.simulate(ROW, matching, **settings).results == (0 if warmup else 1)


@pytest.mark.parametrize("step", STEPS)
def test_one_row_and_a_budget_of_one(step: StepSize) -> None:
    row = ROW | {"importance": [2]}
    for policy in tg.policies.names():
        report = tg.simulate(row, row, window=(0, 0), budget=1, step=step, policy=policy)
        assert report.results <= report.exact == 1


def test_a_budget_of_fewer_bytes_than_a_row_holds_nothing() -> None:
    stream = {"key": [1] * 5, "time": list(range(5))}
    report = tg.simulate(stream, stream, window=(5, 5), budget=Budget(bytes=8))
    assert (report.results, report.peak_rows) == (0, 0)


def test_numbers_of_numpy_are_numbers() -> None:
    settings: dict[str, Any] = {
        "window": (np.int64(5), np.float32(0.5)),
        "budget": np.int64(3),
        "step": np.int64(2),
        "warmup": np.float64(0),
        "lateness": np.int64(1),
    }
    assert tg.simulate(ROW, ROW, **settings).results == 1


def test_timedeltas_are_microseconds() -> None:
    join = Join(Window.of((timedelta(seconds=2), timedelta(milliseconds=-1))))
    assert (join.window.left, join.window.right) == (2_000_000, -1000)
