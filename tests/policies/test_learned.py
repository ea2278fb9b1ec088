"""What policies tell people of what they have learned."""

from __future__ import annotations

import numpy as np
import pytest

import tidegate as tg
from tidegate.engine.encode import encode
from tidegate.engine.join import Join
from tidegate.engine.operator import Operator, collected
from tidegate.policies import Policy
from tidegate.policies.abilities import learned_by
from tidegate.streams import Trace
from tidegate.types import SIDES, Budget, Pairs, Setting, Window

WINDOW = Window(20, 20)


def run(policy: Policy | str, keys: int = 300, limits: tuple[int, ...] = (40,)) -> Operator[Pairs]:
    """Run two streams of three rows a unit of time, and a key that is in every second row; take turns of limits."""
    rng = np.random.default_rng(1)
    times = np.sort(rng.integers(0, 400, 1200))
    sides = [
        Trace.of({"key": np.where(rng.random(1200) < 0.5, 0, rng.integers(1, keys, 1200)), "time": times})
        for _ in SIDES
    ]
    arrivals = encode(sides[0], sides[1], WINDOW, "=", None).arrivals
    operator = Operator(Join(WINDOW, Budget(rows=40), policy))
    for number, step in enumerate(arrivals.steps(arrivals.cuts(50), whole_instants=False)):
        limit = limits[number % len(limits)]
        operator.limit(Budget(rows=limit))
        collected(operator.step(*step))
        assert operator.rows <= limit
    return operator


@pytest.mark.parametrize("name", ["prob", "life"])
def test_prob_and_life_tell_rates_and_the_most_frequent_keys(name: str) -> None:
    learned = run(name).retention.learned()
    assert [round(row.value) for row in learned if row.model == "rate"] == [3, 3]
    for side in SIDES:
        total, *keys = [row for row in learned if row.model == "share" and row.side == side]
        assert (total.key, total.value) == (None, 1.0)
        assert len(keys) == 100
        assert keys[0].value == pytest.approx(0.5, abs=0.05)
        assert [row.value for row in keys] == sorted((row.value for row in keys), reverse=True)
        assert total.sample
        assert keys[0].sample == pytest.approx(keys[0].value * total.sample)


def test_age_tells_what_a_row_of_each_age_may_expect() -> None:
    learned = run("age", keys=3).retention.learned()
    for side in SIDES:
        ages = [row for row in learned if row.model == "age" and row.side == side]
        assert ages[0].begin == 0
        assert ages[-1].end == 21
        assert all(row.sample is not None and row.value > 0 for row in ages)


def test_heeb_histogram_tells_where_streams_are_and_what_rows_may_expect_by_place() -> None:
    rng, times = np.random.default_rng(1), np.arange(2_000)
    left, right = ({"time": times, "key": times + rng.integers(-8, 9, 2_000)} for _ in range(2))
    report = tg.simulate(
        left, right, policy="heeb_histogram", window=(None, None), budget=16, step="instant", seed=0
    )
    learned = report.learned
    # The mean lags, and noise of a deviation of 4.9 is smoothed over 16 rows: within five deviations of that.
    assert [row.value for row in learned if row.model == "offset"] == pytest.approx([1985, 1985], abs=10)
    for side in SIDES:
        buckets = [row for row in learned if (row.model, row.side) == ("benefit", side)]
        assert 1 < len(buckets) <= 30
        assert buckets[0].begin is None
        assert buckets[-1].end is None
        assert [row.end for row in buckets[:-1]] == [row.begin for row in buckets[1:]]
        assert all(row.sample for row in buckets)
        benefits = {row.end: row.value for row in buckets}
        assert max(benefits.values()) > 4 * benefits[min(end for end in benefits if end is not None)]


def test_what_was_given_rests_on_no_sample() -> None:
    shares = {0: 0.5, 7: 0.2, 8: 0.3}
    learned = run(tg.policies.Prob(tg.models.Frequency(shares, shares))).retention.learned()
    keys = [
        (row.key, row.value, row.sample) for row in learned if row.model == "share" and row.side == "left"
    ]
    assert keys == [(None, 1.0, None), (0, 0.5, None), (8, 0.3, None), (7, 0.2, None)]
    curve = tg.models.AgeCurve([0, 1, 20], [2, 1])
    ages = [row for row in run(tg.policies.Age(curve)).retention.learned() if row.model == "age"]
    assert [(row.side, row.value, row.sample) for row in ages] == [
        (side, value, None) for side in SIDES for value in (2.0, 1.0)
    ]


@pytest.mark.parametrize("name", [n for n in tg.policies.names() if n != "offline"])
def test_before_the_first_row_little_is_learned(name: str) -> None:
    policy = tg.policies.find(name).start(Setting(WINDOW))
    assert all(row.value in (0.0, 1.0) for row in learned_by(policy))


@pytest.mark.parametrize("name", ["fifo", "prob", "age"])
def test_a_limit_holds_from_the_next_step_on(name: str) -> None:
    run(name, limits=(40, 5, 2, 60))
