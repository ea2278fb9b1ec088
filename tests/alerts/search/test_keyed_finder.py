"""Many keys in one search raise the alarms that each key raises alone."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.alerts.brute_force import Joined, best_of_arrivals
from tests.alerts.search.test_alarm_finder import SMALL_TRACES, all_values, close_in_time, in_one_window
from tests.alerts.search.test_alarm_finder import TOPOLOGIES as SMALL
from tidegate import InputError
from tidegate.alerts import AlarmFinder, KeyedAlarmFinder, KeyedRows, Shape, Topology, certify

Arrival = tuple[int, str, int, float]

TOPOLOGIES: dict[str, Topology] = {
    "pair": Topology.clique("ab", 5),
    "clique": Topology.clique("abc", 5),
    "chain": Topology.chain("abc", 3),
    "star": Topology.star("a", "bc", 3),
}
SUMS = {2: "a + b > 5", 3: "a + b - c > 4"}


def keyed_rows(rows: list[Arrival], name: str) -> KeyedRows:
    own = [row for row in rows if row[1] == name]
    return KeyedRows(
        np.array([row[0] for row in own], np.int64),
        np.array([row[2] for row in own], np.int64),
        np.array([row[3] for row in own], np.float64),
    )


def raised_alarms(
    finder: KeyedAlarmFinder,
    steps: list[list[Arrival]],
    **settings: Any,  # noqa: ANN401 - those of `step`
) -> list[tuple[Any, ...]]:
    """Key, stream, time, value and margin of each arrival that raised an alarm."""
    names, found = finder.topology.streams, []
    for rows in steps:
        alarms = finder.step({name: keyed_rows(rows, name) for name in names}, **settings)
        for i in range(len(alarms)):
            own = names[alarms.stream[i]]
            found.append(
                (int(alarms.key[i]), own, int(alarms.time[own][i]), alarms.value[own][i], alarms.level[i])
            )
    return sorted(found)


def expected_alarms(
    finder: KeyedAlarmFinder, steps: list[list[Arrival]], joined: Joined
) -> list[tuple[Any, ...]]:
    """The same without omission, for each key separately."""
    names, condition = finder.topology.streams, finder.certificate.condition

    def margin(*values: float) -> float:
        return float(condition.margin(dict(zip(names, values, strict=True))))

    found = []
    for key in {row[0] for rows in steps for row in rows}:
        arrivals = [
            (row[1], row[2], row[3])
            for rows in steps
            for row in sorted(rows, key=lambda row: (row[2], names.index(row[1]), row[3]))
            if row[0] == key
        ]
        best = best_of_arrivals(arrivals, names, joined, margin)
        found += [
            (key, *arrival, level)
            for arrival, level in zip(arrivals, best, strict=True)
            if level is not None and level > condition.threshold
        ]
    return sorted(found)


def random_steps(names: str, lowest: int = 0) -> st.SearchStrategy[list[list[Arrival]]]:
    row = st.tuples(
        st.sampled_from([-7, 0, 1, 2**40]),
        st.sampled_from(names),
        st.one_of(st.integers(-20, 20), st.integers(10**15, 10**15 + 20), st.just(4 * 10**17)),
        st.integers(lowest, 6).map(float),
    )
    return st.lists(st.lists(row, max_size=14), max_size=4)


@pytest.mark.parametrize("kind", TOPOLOGIES)
@settings(max_examples=50)
@given(data=st.data())
def test_each_key_raises_its_own_alarms(kind: str, data: st.DataObject) -> None:
    topology = TOPOLOGIES[kind]
    steps = data.draw(random_steps("".join(topology.streams)))
    finder = KeyedAlarmFinder(certify(SUMS[len(topology.streams)]), topology)
    assert raised_alarms(finder, steps) == expected_alarms(finder, steps, close_in_time(topology))


@pytest.mark.parametrize("kind", SMALL_TRACES)
@pytest.mark.parametrize("shape", ["quasiconvex", "increasing"])
def test_every_small_trace_raises_the_alarms_of_the_full_join(kind: str, shape: Shape) -> None:
    """All traces of a few rows with a few values, one per key; one row per step, in a random order."""
    topology = SMALL[kind](within=2)
    names = topology.streams
    spread = [f"abs({one} - {other})" for one, other in combinations(names, 2)]
    text = " + ".join(spread if shape == "quasiconvex" else names) + " > -1"
    certificate = certify(text, dict.fromkeys(names, (0, 2)))
    assert set(certificate.shapes().values()) == {shape}
    rows = [(name, time) for name, times in zip(names, SMALL_TRACES[kind], strict=True) for time in times]
    values, joined = all_values(kind), close_in_time(topology)
    key = np.arange(values.shape[1])
    finder = KeyedAlarmFinder(certificate, topology)
    arrived: dict[str, list[int]] = {name: [] for name in names}
    for at in np.random.default_rng(len(rows)).permutation(len(rows)).tolist():
        own, time = rows[at]
        alarms = finder.step({own: KeyedRows(key, np.full(len(key), time), values[at])})
        levels = [
            certificate.condition.margin({rows[place][0]: values[place] for place in places})
            for places in product(*([at] if name == own else arrived[name] for name in names))
            if joined({rows[place][0]: rows[place][1] for place in places})
        ]
        order = np.argsort(alarms.key)
        assert alarms.key[order].tolist() == (key.tolist() if levels else [])
        assert not levels or (alarms.level[order] == np.max(levels, axis=0)).all()
        arrived[own].append(at)
    longest = max(names, key=lambda name: len(arrived[name]))
    assert finder.counts[longest]["omitted"] > 0


@pytest.mark.parametrize(("within", "hop"), [(6, 2), (5, 3), (2, 5)])
@settings(max_examples=50)
@given(data=st.data())
def test_windows_do_not_depend_on_other_keys(within: int, hop: int, data: st.DataObject) -> None:
    times = st.one_of(st.integers(-5, 8), st.integers(95, 108))
    row = st.tuples(st.integers(0, 1), st.sampled_from("ab"), times, st.integers(2, 6).map(float))
    steps = data.draw(st.lists(st.lists(row, max_size=14), max_size=4))
    finder = KeyedAlarmFinder(certify(SUMS[2]), Topology.clique("ab", within), hop=hop, closed="left")
    assert raised_alarms(finder, steps) == expected_alarms(finder, steps, in_one_window(within, hop, "left"))


@pytest.mark.parametrize("kind", ["pair", "clique", "chain"])
@settings(max_examples=50)
@given(data=st.data())
def test_values_outside_of_the_domain_hide_no_alarms(kind: str, data: st.DataObject) -> None:
    topology = TOPOLOGIES[kind]
    names = topology.streams
    # The margin increases up to 4 and decreases beyond: it is certified only up to 4.
    text = " + ".join(f"(4 - abs({name} - 4))" for name in names) + f" > {3 * len(names) - 1}"
    certificate = certify(text, dict.fromkeys(names, (-10, 4)))
    assert set(certificate.shapes().values()) == {"increasing"}
    steps = data.draw(random_steps("".join(names)))
    finder = KeyedAlarmFinder(certificate, topology)
    assert raised_alarms(finder, steps) == expected_alarms(finder, steps, close_in_time(topology))
    outside = sum(row[3] > 4 for rows in steps for row in rows)
    assert sum(counts["outside"] for counts in finder.counts.values()) == outside


DAY = 86_400_000_000
"""In microseconds."""


@pytest.mark.parametrize(("days", "keys"), [(1, 40_000), (360, 20_000), (36_000, 500)])
@pytest.mark.parametrize("outside", [False, True])
def test_times_are_exact_for_many_keys_and_long_ranges(days: int, keys: int, *, outside: bool) -> None:
    within = days * DAY
    domain = {"a": (0.0, 5.0), "b": (0.0, 5.0)} if outside else None
    finder = KeyedAlarmFinder(certify(SUMS[2], domain), Topology.clique("ab", within))
    number = np.arange(keys)
    begin = 10**15 + number * 7919 % within
    finder.step({"a": KeyedRows(number, begin, np.where(number % 3, 3.0, 9.0))})
    # Every 100th key gets a row: at the limit, or a microsecond beyond it.
    some = number[::100]
    apart = np.arange(len(some)) % 2
    alarms = finder.step({"b": KeyedRows(some, begin[some] + within + apart, np.full(len(some), 3.0))})
    assert sorted(alarms.key.tolist()) == some[apart == 0].tolist()
    assert (alarms.time["b"] - alarms.time["a"] == within).all()
    assert finder.rows["a"].key.tolist() == number.tolist()


def test_segments_of_the_time_axis_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments are so short that every key and every long gap begins one."""
    rng = np.random.default_rng(5)
    steps = [
        [
            (int(key), name, int(time), float(value))
            for key, name, time, value in zip(
                rng.integers(0, 5, 60),
                rng.choice(list("ab"), 60).tolist(),
                rng.integers(0, 400, 60) + 100 * step,
                rng.integers(0, 7, 60),
                strict=True,
            )
        ]
        for step in range(6)
    ]
    for settings_of in ({}, {"hop": 3, "closed": "left"}):
        wide, narrow = (
            KeyedAlarmFinder(certify(SUMS[2], {"a": (0, 5), "b": (0, 5)}), TOPOLOGIES["pair"], **settings_of)  # type: ignore[arg-type]
            for _ in range(2)
        )
        expected = raised_alarms(wide, steps)
        monkeypatch.setattr("tidegate.alerts.search.keyed_finder._MAX_SEGMENT", 20.0)
        assert raised_alarms(narrow, steps) == expected
        monkeypatch.undo()
        assert len(expected) > 30
        assert narrow.counts == wide.counts
        for name in "ab":
            assert all((a == b).all() for a, b in zip(narrow.rows[name], wide.rows[name], strict=True))


def test_a_stream_that_shares_a_term_with_a_value_outside_omits_nothing() -> None:
    finder = KeyedAlarmFinder(certify("a * b > -5", {"a": (0, 9), "b": (0, 9)}), Topology.clique("ab", 5))
    assert set(finder.topology.shapes.values()) == {"increasing"}
    steps: list[list[Arrival]] = [
        [(0, "a", 0, -1.0)],
        [(0, "b", 1, 9.0), (0, "b", 2, 1.0), (0, "b", 3, 9.0)],
        [(0, "a", 4, -1.0)],
    ]
    assert raised_alarms(finder, steps) == [(0, "a", 4, -1.0, 4.0), (0, "b", 2, 1.0, 4.0)]


def test_rows_within_reach_of_later_rows_are_kept() -> None:
    finder = KeyedAlarmFinder(certify(SUMS[3]), TOPOLOGIES["chain"])
    first: list[Arrival] = [(0, "a", 10, 5.0), (0, "a", 5, 5.0)]
    assert raised_alarms(finder, [first], watermark=12) == []
    assert finder.rows["a"].time.tolist() == [10]
    assert raised_alarms(finder, [[(0, "b", 13, 0.0), (0, "c", 16, 0.0)]]) == [(0, "c", 16, 0.0, 1.0)]


@settings(max_examples=50)
@given(steps=random_steps("abc"), at=st.integers(0, 3))
def test_a_snapshot_continues_unchanged(steps: list[list[Arrival]], at: int) -> None:
    def new() -> KeyedAlarmFinder:
        return KeyedAlarmFinder(certify(SUMS[3]), TOPOLOGIES["clique"])

    whole, first = new(), new()
    expected = raised_alarms(whole, steps)
    found = raised_alarms(first, steps[:at])
    second = new().restore(first.snapshot())
    assert sorted(found + raised_alarms(second, steps[at:])) == expected
    assert second.counts == whole.counts
    assert all((a == b).all() for a, b in zip(second.rows["a"], whole.rows["a"], strict=True))


def test_every_row_is_counted_and_old_rows_expire() -> None:
    rng = np.random.default_rng(3)
    finder = KeyedAlarmFinder(certify(SUMS[2]), TOPOLOGIES["pair"])
    arrived = 0
    for step in range(20):
        rows = {
            name: KeyedRows(
                rng.integers(0, 9, 200), rng.integers(20 * step, 20 * step + 20, 200), rng.normal(size=200)
            )
            for name in "ab"
        }
        rows["a"].value[::50] = np.nan
        arrived += 200
        finder.step(rows, watermark=20 * step + 19)
        for name in "ab":
            counted = finder.counts[name]
            removed = sum(counted[part] for part in ("nan", "omitted", "expired"))
            assert removed + len(finder.rows[name].key) == arrived
            assert finder.rows[name].time.min(initial=10**6) >= 20 * step + 14
    assert finder.counts["a"]["nan"] == 80
    assert finder.counts["a"]["omitted"] > arrived // 4


@pytest.mark.parametrize("budget", [None, 40])
def test_positions_let_carried_columns_follow_rows(budget: int | None) -> None:
    rng = np.random.default_rng(8)
    finder = KeyedAlarmFinder(certify("a - b > 2.5"), TOPOLOGIES["pair"], budget=budget)
    carried = dict.fromkeys("ab", np.empty((0, 3)))
    for step in range(12):
        rows = {
            name: KeyedRows(
                rng.integers(0, 9, 60), rng.integers(20 * step, 20 * step + 20, 60), rng.normal(size=60)
            )
            for name in "ab"
        }
        rows["a"].value[::7] = np.nan
        alarms = finder.step(rows, watermark=20 * step)
        for name in "ab":
            pool = np.concatenate((carried[name], np.stack(rows[name], axis=1)))
            raised = np.stack((alarms.key, alarms.time[name], alarms.value[name]), axis=1)
            assert (pool[alarms.position[name]] == raised).all()
            carried[name] = pool[finder.previous_positions[name]]
            assert (carried[name] == np.stack(finder.rows[name], axis=1)).all()
        assert len(alarms)
        finder = KeyedAlarmFinder(finder.certificate, TOPOLOGIES["pair"], budget=budget).restore(
            finder.snapshot()
        )


def test_the_keys_share_a_budget() -> None:
    rng = np.random.default_rng(3)
    finder = KeyedAlarmFinder(certify(SUMS[2]), TOPOLOGIES["pair"], budget=10)
    rows = KeyedRows(rng.integers(0, 9, 500), rng.integers(0, 100, 500), rng.normal(size=500))
    finder.step({"a": rows})
    assert len(finder.rows["a"].key) == 10
    assert finder.counts["a"]["evicted"] + finder.counts["a"]["omitted"] == 490


def test_the_miss_probability_with_brackets() -> None:
    rng = np.random.default_rng(3)
    pair = Topology.clique("ab", 10)
    finder = KeyedAlarmFinder(certify(SUMS[2]), pair, budget=20)
    one = AlarmFinder(finder.topology, finder.certificate.condition.margin, threshold=5, budget=20)
    time, value = np.arange(1000), rng.random(1000)
    finder.step({"a": KeyedRows(np.zeros(1000, np.int64), time, value)})
    one.step({"a": (time, value)})
    assert finder.miss_probability == pytest.approx(one.miss_probability)
    assert 0 < finder.miss_probability < 1
    # Intervals of all keys count equally; intervals without loss lower the probability.
    many, enough = (
        KeyedAlarmFinder(certify(SUMS[2]), pair, budget=20),
        KeyedAlarmFinder(certify(SUMS[2]), pair, budget=2000),
    )
    key = np.repeat(np.arange(10), 100)
    many.step({"a": KeyedRows(key, time, value)})
    enough.step({"a": KeyedRows(key, time, value)})
    assert enough.miss_probability == 0 < many.miss_probability
    before = finder.miss_probability
    for step in range(1, 20):
        finder.step(
            {"a": KeyedRows(np.array([0]), np.array([1000 + 20 * step]), np.array([0.5]))}, 1000 + 20 * step
        )
    again = KeyedAlarmFinder(certify(SUMS[2]), pair, budget=20).restore(finder.snapshot())
    assert 0 < again.miss_probability == finder.miss_probability < before
    old = {name: column for name, column in finder.snapshot().items() if name != "moved"}
    assert KeyedAlarmFinder(certify(SUMS[2]), pair, budget=20).restore(old).miss_probability == 0


def test_the_miss_probability_if_all_rows_are_kept() -> None:
    rng = np.random.default_rng(3)
    domain = {"a": (-2.0, 2.0), "b": (-2.0, 2.0)}
    certificate = certify("pow(a, 3) - a > b", domain)
    finder = KeyedAlarmFinder(certificate, Topology.clique("ab", 10), budget=200)
    one = AlarmFinder(finder.topology, certificate.condition.margin, budget=200)
    assert one.stores["a"].shape == "any"
    time, value = np.arange(1000), rng.random(1000)
    for some in np.split(np.arange(1000), 5):
        finder.step({"a": KeyedRows(np.zeros(200, np.int64), time[some], value[some])})
        one.step({"a": (time[some], value[some])})
    assert finder.counts["a"]["evicted"] == one.stores["a"].evicted == 800
    assert one.miss_probability == 0.8
    assert finder.miss_probability == pytest.approx(0.8, abs=0.05)


def test_the_budget_holds_if_keys_are_searched_separately() -> None:
    finder = KeyedAlarmFinder(certify(SUMS[2], {"a": (0, 1), "b": (0, 1)}), TOPOLOGIES["pair"], budget=1)
    finder.step({"a": KeyedRows(np.array([1, 2]), np.array([5, 6]), np.array([0.5, 7.0]))})
    assert len(finder.rows["a"].key) == 1
    assert finder.counts["a"]["evicted"] == 1
    # 10 of a total time of 15 are lost, for the highest and for the lowest row.
    assert finder.miss_probability == pytest.approx(1 - (1 - 10 / 15) ** 2)


def test_streams_and_inputs_must_be_the_same() -> None:
    with pytest.raises(InputError, match="uses a, b, but the streams are a, b, c; give exactly one stream"):
        KeyedAlarmFinder(certify(SUMS[2]), TOPOLOGIES["clique"])
