"""The importance-aware policies, against a plain reading of the paper's algorithms, row by row."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidegate as tg
from tests.running_policy import policy_of
from tidegate import InputError, Window
from tidegate.checks import LAWS, Law
from tidegate.engine.encode import encode
from tidegate.engine.join import Join
from tidegate.engine.operator import Operator, collected
from tidegate.experiments.ijoin.greedy import Greedy
from tidegate.experiments.ijoin.lazy_ijoin import LazyIJoin, Recompute
from tidegate.models import LinearTrend, Noise
from tidegate.policies import Age, FlowExpect, Heeb, IJoin, Policy, Prob, Random, RunningPolicy
from tidegate.streams import Trace
from tidegate.types import SIDES, Array, Budget, Comparison, Setting, Side

TREND = LinearTrend(speed=1, offset=0, noise=Noise(bound=100))

VARIANTS = [
    IJoin(),
    IJoin(fairness=0),
    IJoin(fairness=1, immature="priority"),
    IJoin(maturity=3, unproductive=4.0, immature="importance"),
    LazyIJoin(recompute="k-successive", every=3),
    LazyIJoin(recompute="adaptive", epsilon=0.2),
    IJoin(maturity=3, unproductive=4.0, immature="arrival", penalty_rate=0.25),
    IJoin(expects=Prob()),
    IJoin(expects=Age()),
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("policy", VARIANTS, ids=repr)
def test_every_variant_keeps_every_law(policy: IJoin, law: Law) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        law(policy)


@dataclass
class Row:
    """One row with the metadata of section 4.2."""

    key: int
    arrived: int
    importance: float
    matches: list[int] = field(default_factory=list)
    """When it matched, once for each match."""

    def priority(self, now: int, unproductive: float, decay: float, fine: float) -> float:
        """Equations 5 to 8."""
        age = now - self.arrived
        recent = sum(math.exp(-(now - when) / decay) for when in self.matches)
        idle = now - max(self.matches, default=self.arrived)
        found = self.importance * recent / age if age > 0 else self.importance
        return found - fine * idle if idle >= unproductive else found


def by_hand(streams: dict[Side, list[tuple[int, float]]], window: int, room: int, policy: IJoin) -> float:
    """The total importance of Algorithms 1 and 2, with a row a side at each instant."""
    held: dict[Side, list[Row]] = {"left": [], "right": []}
    unproductive = policy.unproductive or 0.12 * window
    half_life = tg.models.decay.REMEMBERED_WINDOWS * window
    seen = worth = total = 0.0
    for now in range(len(streams["left"])):
        mean = worth / seen if seen else 0.0
        fine = policy.penalty * mean / unproductive**2 if policy.penalty_rate is None else policy.penalty_rate
        arrivals = {
            side: Row(key, now, worth) for side, rows in streams.items() for key, worth in [rows[now]]
        }
        for side in SIDES:
            held[side] = [row for row in held[side] if now - row.arrived <= window]
            held[side].append(arrivals[side])
            if len(held[side]) > room:
                mature = [row for row in held[side] if now - row.arrived > (policy.maturity or 0)]
                if mature:
                    victim = min(
                        mature,
                        key=lambda row: (
                            row.priority(now, unproductive, policy.decay or unproductive, fine),
                            row.arrived,
                        ),
                    )
                else:
                    victim = held[side][-1 if policy.immature == "arrival" else 0]
                held[side].remove(victim)
        for left in held["left"]:
            for right in held["right"]:
                if left.key == right.key and now in {left.arrived, right.arrived}:
                    total += min(left.importance, right.importance)
                    left.matches.append(now)
                    right.matches.append(now)
        faded = 2 ** (-(1 if now else 0) / half_life)
        seen, worth = seen * faded + 2, worth * faded + sum(row.importance for row in arrivals.values())
    return total


rows = st.tuples(st.integers(0, 3), st.sampled_from([1.0, 2.0, 5.0, 7.0]))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(rows, rows), min_size=5, max_size=40),
    st.integers(1, 4),
    st.sampled_from([
        IJoin(maturity=0, unproductive=2.0),
        IJoin(maturity=2, unproductive=3.0, penalty=0.3),
        IJoin(maturity=1, unproductive=4.0, decay=2.0, penalty=0.0),
        IJoin(maturity=6, unproductive=7.0, decay=math.inf),
        IJoin(maturity=2, unproductive=3.0, immature="arrival"),
        IJoin(maturity=5, unproductive=5.0, immature="arrival", penalty_rate=0.0),
        IJoin(maturity=1, unproductive=2.0, penalty_rate=1.5),
    ]),
)  # fmt: skip
def test_the_total_is_that_of_the_algorithms_row_by_row(
    both: list[tuple[tuple[int, float], tuple[int, float]]], room: int, policy: IJoin
) -> None:
    streams: dict[Side, list[tuple[int, float]]] = {
        "left": [pair[0] for pair in both],
        "right": [pair[1] for pair in both],
    }
    columns = [
        {"key": [row[0] for row in some], "time": range(len(some)), "importance": [row[1] for row in some]}
        for some in streams.values()
    ]
    report = tg.simulate(
        *columns, window=(8, 8), budget=2 * room, policy=policy, split="even", order="shed-first", step="instant"
    )  # fmt: skip
    assert report.importance == pytest.approx(by_hand(streams, 8, room, policy), rel=1e-9)


def skewed(count: int = 700) -> tuple[dict[str, Array], dict[str, Array]]:
    rng = np.random.default_rng(3)

    def stream() -> dict[str, Array]:
        key = np.minimum(rng.zipf(1.5, count), 100)
        return {"key": key, "time": np.arange(count), "importance": rng.integers(1, 101, count).astype(float)}

    return stream(), stream()


SETTINGS: dict[str, Any] = {
    "window": (100, 100), "budget": 20, "split": "even", "order": "shed-first", "step": "instant",
}  # fmt: skip


def counted(report: tg.Report) -> tuple[float, float | None]:
    return next(
        (estimate.value, estimate.sample) for estimate in report.learned if estimate.model == "recomputations"
    )


def test_recomputations_are_reported() -> None:
    left, right = skewed()
    done = {
        scheme: counted(tg.simulate(left, right, policy=LazyIJoin(recompute=scheme), **SETTINGS))
        for scheme in ("successive", "k-successive", "adaptive")
    }
    assert done["successive"] == (690, 690)
    assert done["k-successive"] == (69, 690)
    assert 69 < done["adaptive"][0] < 690


def test_the_smaller_epsilon_the_more_often() -> None:
    left, right = skewed()
    often = [
        counted(
            tg.simulate(left, right, policy=LazyIJoin(recompute="adaptive", epsilon=epsilon), **SETTINGS)
        )[0]
        for epsilon in (0.0, 0.1, 0.5, 2.0)
    ]
    assert often == sorted(often, reverse=True)
    assert often[0] > 2 * often[-1]


def test_fairness_trades_importance() -> None:
    left, right = skewed()
    reports = [
        tg.simulate(left, right, policy=IJoin(fairness=fairness), **SETTINGS)
        for fairness in (0, 0.25, 0.5, 0.75)
    ]
    fairness = [report.fairness for report in reports]
    importance = [report.importance for report in reports]
    assert fairness == sorted(fairness)
    assert importance == sorted(importance, reverse=True)
    fifo = tg.simulate(left, right, policy="fifo", **SETTINGS)
    fairest = tg.simulate(left, right, policy=IJoin(fairness=1), **SETTINGS)
    assert fairest.importance == pytest.approx(fifo.importance, rel=0.02)


def test_expected_importance_beats_what_others_expect() -> None:
    left, right = skewed()
    one = SETTINGS | {"order": "probe-first"}
    found = {
        repr(policy): tg.simulate(left, right, policy=policy, **one).importance
        for policy in (IJoin(expects="prob"), "prob", "importance", "fifo")
    }
    assert max(found, key=found.__getitem__).startswith("IJoin")


def test_what_is_worth_nothing_is_expected_to_bring_nothing() -> None:
    left, right = skewed(400)
    for stream in (left, right):
        stream["importance"][::3] = 0.0
    for expects in ("age", "prob"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            report = tg.simulate(left, right, policy=IJoin(expects=expects), **SETTINGS)
        assert report.importance > 0


def restarted(before: Policy, after: Policy) -> list[Array | None]:
    left, right = (Trace.of(columns) for columns in skewed(300))
    arrivals = encode(left, right, Window(100, 100), "=", None).arrivals
    operator = Operator(Join(Window(100, 100), Budget(rows=20), before))
    for number, step in enumerate(arrivals.steps(arrivals.cuts(20), whole_instants=False)):
        if number == 10:
            state = operator.snapshot()
            operator = Operator(Join(Window(100, 100), Budget(rows=20), after))
            operator.restore(state, learned=before.label() == after.label())
        collected(operator.step(*step))
        assert 0 < operator.rows <= 20
    return [buffer.rows.policy_columns.get("priority") for buffer in operator.buffers.values()]


def test_another_scheme_or_policy_goes_on_with_the_rows() -> None:
    lazy = LazyIJoin(recompute="k-successive")
    assert all(priority is None for priority in restarted(lazy, IJoin()))
    assert all(priority is not None for priority in restarted(IJoin(), lazy))
    assert all(priority is None for priority in restarted(lazy, tg.policies.Importance()))
    assert all(priority is not None for priority in restarted(tg.policies.Fifo(), lazy))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"fairness": 1.5}, "fairness is 1.5; give a number from 0 to 1"),
        ({"fairness": math.nan}, "fairness is nan"),
        ({"maturity": -1}, "maturity is -1; give a finite number, at least 0"),
        ({"unproductive": 0}, "unproductive is 0; give a finite number above 0"),
        ({"decay": 0}, "decay is 0; give a time above 0, or infinity"),
        ({"decay": -1.0}, "decay is -1.0; give a number from 0 to inf"),
        ({"fairness": "a"}, "fairness is 'a'; give a number from 0 to 1"),
        ({"penalty": None}, "penalty is None; give a finite number, at least 0"),
        ({"maturity": "2 seconds"}, "maturity is '2 seconds'; give a finite number"),
        ({"penalty": math.inf}, "penalty is inf"),
        ({"penalty_rate": math.inf}, "penalty_rate is inf"),
        ({"penalty_rate": -0.5}, "penalty_rate is -0.5; give a finite number, at least 0"),
        ({"penalty_rate": "1"}, "penalty_rate is '1'"),
        ({"immature": "newest"}, "immature"),
        ({"expects": "fifo"}, "does not score by expected results; use prob, life, age or heeb"),
    ],
)
def test_bad_input(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        IJoin(**given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"maturity": 101.0}, "maturity 101 is beyond the window 100: no row is ever mature"),
        (
            {"maturity": 50.0},
            "maturity 50 exceeds unproductive 12: rows get a penalty before they are mature",
        ),
        ({"unproductive": 101.0}, "unproductive 101 is beyond the window 100: no row ever gets a penalty"),
    ],
)
def test_times_that_make_no_sense_together(given: dict[str, Any], message: str) -> None:
    left, right = skewed(50)
    with pytest.warns(UserWarning, match=message):
        tg.simulate(left, right, policy=IJoin(**given), **SETTINGS)


def test_unused_parameters_are_reported() -> None:
    with pytest.warns(UserWarning, match="fairness is not used where maturity is given"):
        IJoin(maturity=2, fairness=0.5)
    with pytest.warns(UserWarning, match="maturity, decay is not used with expects="):
        IJoin(maturity=2, decay=3, expects="prob")
    with pytest.warns(UserWarning, match="penalty_rate is not used with expects="):
        IJoin(penalty_rate=2, expects="prob")
    with pytest.warns(UserWarning, match="penalty is not used where penalty_rate is given"):
        IJoin(penalty=2, penalty_rate=2)


def test_what_decides_on_sets_expects_nothing_of_a_row() -> None:
    left, right = skewed(50)
    with pytest.raises(InputError, match="does not score by expected results; use prob"):
        tg.simulate(left, right, policy=IJoin(expects="flow_expect"), **SETTINGS)


def test_expects_takes_the_name_of_a_policy() -> None:
    assert IJoin.from_parameters({"expects": "prob"}) == IJoin(expects=Prob())
    assert IJoin.from_parameters({"expects": {"policy": "prob", "capacity": 7}}) == IJoin(
        expects=Prob(capacity=7)
    )
    with pytest.raises(InputError, match=r"policy 'probe' is not known; .* did you mean 'prob'"):
        IJoin.from_parameters({"expects": {"policy": "probe"}})


@pytest.mark.parametrize("recompute", ["successive", "k-successive", "adaptive"])
def test_rows_that_are_redefined_are_worth_that_at_once(recompute: Recompute) -> None:
    left, right = (Trace.of(columns) for columns in skewed(300))
    arrivals = encode(left, right, Window(100, 100), "=", None).arrivals
    operator = Operator(Join(Window(100, 100), Budget(rows=20), LazyIJoin(fairness=0, recompute=recompute)))
    for step in arrivals.steps(arrivals.cuts(20), whole_instants=False):
        collected(operator.step(*step))
    for side in SIDES:
        before = operator.buffers[side].rows
        assert before.importance is not None
        operator.revalue(side, before.importance * 1e6)
        after = policy_of(operator).scores(operator.buffers[side].rows, operator.now)
        matched: Array = before.policy_columns["recent"] > 0
        assert matched.any()
        assert (after[matched] > 1e3 * policy_of(operator).scores(before, operator.now)[matched]).mean() > 0.5


@pytest.mark.parametrize("condition", ["<", ">="])
def test_expecting_by_keys_makes_sense_for_equal_keys_only(condition: Comparison) -> None:
    with pytest.raises(InputError, match="scores by how often keys arrive"):
        Join(Window(5, 5), Budget(rows=2), IJoin(expects="prob"), condition=condition)
    Join(Window(5, 5), Budget(rows=2), IJoin(expects="age"), condition=condition)


PAIRS = [
    (IJoin(), IJoin(expects="prob")),
    (IJoin(expects="prob"), IJoin(expects="heeb")),
    (Heeb(TREND, TREND), Heeb()),
    (FlowExpect(TREND, TREND), FlowExpect()),
    (Random(), Random(left=TREND, right=TREND)),
    (Prob(), Prob(left=TREND, right=TREND)),
]


@pytest.mark.parametrize(("one", "other"), PAIRS + [pair[::-1] for pair in PAIRS], ids=repr)
def test_a_restart_with_other_parameters_goes_on(one: Policy, other: Policy) -> None:
    restarted(one, other)


def test_a_window_without_end_needs_unproductive() -> None:
    left, right = skewed(50)
    with pytest.raises(InputError, match="ijoin needs unproductive= with the window"):
        tg.simulate(left, right, policy="ijoin", **SETTINGS | {"window": (None, None)})
    given = IJoin(unproductive=10.0)
    assert tg.simulate(left, right, policy=given, **SETTINGS | {"window": (None, None)}).results


def test_rows_of_one_time_stay_while_none_is_mature() -> None:
    """With room for two rows a side, all of one time: the first two stay, or the last two."""
    left = {"key": [1, 2, 3], "time": [0, 0, 0]}
    right = {"key": [1, 2, 3], "time": [1, 1, 1]}
    for immature, kept in (("arrival", [1, 2]), ("oldest", [2, 3])):
        policy = IJoin(maturity=5, unproductive=5.0, immature=immature)  # type: ignore[arg-type]
        report = tg.simulate(left, right, window=(5, 5), budget=2, split=(2, 0), policy=policy, collect=True)
        assert report.pairs is not None
        assert [left["key"][place] for place in report.pairs.left] == kept


@pytest.mark.parametrize(
    "policy",
    [
        "importance",
        Greedy(),
        "ijoin",
        IJoin(immature="importance"),
        LazyIJoin(recompute="adaptive"),
        IJoin(expects="prob"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("given", [(), ("left",)], ids=["neither", "left"])
def test_without_importance_every_row_has_one(policy: str | Policy, given: tuple[str, ...]) -> None:
    streams = dict(zip(SIDES, skewed(150), strict=True))
    ones = {side: columns | {"importance": np.ones(150)} for side, columns in streams.items()}
    bare = {
        side: {n: c for n, c in columns.items() if n != "importance"} for side, columns in streams.items()
    }
    some = {side: ones[side] if side in given else bare[side] for side in SIDES}
    for settings_ in (SETTINGS, SETTINGS | {"order": "probe-first", "split": "shared", "step": 1}):
        found, expected = (
            tg.simulate(*sides.values(), policy=policy, **settings_, collect=True) for sides in (some, ones)
        )
        assert found.pairs is not None
        assert expected.pairs is not None
        assert found.pairs.left.tolist() == expected.pairs.left.tolist()
        assert found.learned == expected.learned


def test_a_state_with_numbers_of_earlier_versions_opens() -> None:
    def running() -> RunningPolicy:
        return IJoin().start(Setting(Window(100, 100)))

    state = running().snapshot()
    earlier = state | {
        "numbers": np.append(state["numbers"], [1.5, 2.5]),
        "counts": np.append(state["counts"], [3, 4]),
    }
    opened = running().restore(earlier).snapshot()
    assert {name: array.tobytes() for name, array in opened.items()} == {
        name: array.tobytes() for name, array in state.items()
    }
