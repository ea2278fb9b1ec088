"""Policies are found by name, and the baselines rank as they say."""

import json
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace

import numpy as np
import pytest

import tidegate as tg
from tidegate import InputError, Window
from tidegate.models import AgeCurve
from tidegate.policies import Fifo, Policy, Random, RunningPolicy, UntilExpiry, find, names, registered
from tidegate.policies.abilities import KeepsColumns
from tidegate.types import Array, Rows, Setting, Time

ROWS = Rows(
    "left",
    key=np.array([5, 6, 7]),
    time=np.array([30, 10, 20]),
    id=np.array([2, 0, 1]),
    matches=np.zeros(3, np.int64),
)


def test_names_are_read_from_the_classes() -> None:
    assert {"fifo", "random", "until_expiry"} <= set(names())
    assert names() == sorted(names())
    for name in names():
        policy = find(name)
        assert policy.name == name


def test_a_policy_of_ones_own_is_listed_once_it_has_a_name() -> None:
    before = names()

    class Nameless(Fifo):
        pass

    assert names() == before

    class Named(Nameless):
        name = "of_ones_own"

    assert "of_ones_own" in names()
    assert isinstance(find("of_ones_own"), Named)
    report = tg.simulate(
        {"key": [1], "time": [0]}, {"key": [1], "time": [0]}, window=(0, 0), policy="of_ones_own"
    )
    assert report.results == 1
    # Gone from the registry with its class, so that other tests do not meet it.
    del Named.name
    assert names() == before


def test_an_object_is_itself() -> None:
    policy = Random(seed=4)
    assert find(policy) is policy


@pytest.mark.parametrize("name", ["random", "fifo", "until_expiry"])
def test_configurations_are_frozen(name: str) -> None:
    policy = find(name)
    with pytest.raises(FrozenInstanceError):
        policy.seed = 3  # type: ignore[attr-defined]
    assert policy == find(name)
    assert hash(policy) == hash(find(name))


@dataclass(frozen=True)
class Weighted(Policy):
    """A policy of a user, with a model and with plain values of its own."""

    curve: AgeCurve | None = None
    weights: dict[str, float] = field(default_factory=dict)

    def scores(self, rows: Rows, clock: Time) -> Array:
        return np.zeros(len(rows))


def test_models_in_parameters_are_made_as_annotations_say() -> None:
    policy = Weighted(AgeCurve([0, 10], [2]), {"a": 1.0})
    assert Weighted.from_parameters(json.loads(json.dumps(policy.parameters()))) == policy


def test_plain_parameters_need_no_annotations_that_can_be_resolved() -> None:
    class Local:
        pass

    @dataclass(frozen=True)
    class Unresolved(Weighted):
        other: "Local | None" = None

    plain = Unresolved(weights={"a": 1.0})
    assert Unresolved.from_parameters(json.loads(json.dumps(plain.parameters()))) == plain


def test_a_policy_tells_what_makes_it_again() -> None:
    assert Random(seed=4).parameters() == {"seed": 4, "left": None, "right": None}
    assert Random.from_parameters({"seed": 4}) == Random(seed=4)
    assert (registered("random"), registered("rando")) == (Random, None)

    class Borrowed(Fifo):
        pass

    class Plain(Policy):
        def __init__(self, depth: int) -> None:
            self.depth = depth

        def scores(self, rows: Rows, now: Time) -> Array:
            return rows.id % self.depth

    assert (Fifo.label(), Borrowed.label(), Plain.label()) == ("fifo", "Borrowed", "Plain")
    assert Plain(3).parameters() is None


def test_fifo_keeps_the_newest() -> None:
    assert np.argsort(Fifo().scores(ROWS, 99)).tolist() == [1, 2, 0]


def test_until_expiry_keeps_the_first() -> None:
    assert np.argsort(UntilExpiry().scores(ROWS, 99)).tolist() == [0, 2, 1]


@pytest.mark.parametrize("policy", [Fifo(), UntilExpiry()])
def test_fixed_scores_do_not_depend_on_the_time(policy: Fifo | UntilExpiry) -> None:
    assert policy.is_fixed()
    assert policy.scores(ROWS, 30).tolist() == policy.scores(ROWS, 3000).tolist()


def test_random_draws_anew_at_each_time_and_the_same_again() -> None:
    policy = Random().start(Setting(Window(5, 5), seed=1))
    first, later, again = (policy.scores(ROWS, now).tolist() for now in (30, 31, 30))
    assert first == again != later
    assert len(set(first)) == 3
    swapped = policy.scores(ROWS.take(np.array([2, 0, 1])), 30).tolist()
    assert swapped == [first[2], first[0], first[1]]


def test_random_differs_by_seed_and_partition() -> None:
    settings = [Setting(Window(5, 5), seed, partition) for seed in (0, 1) for partition in (0, 1, 2)]
    drawn = {tuple(Random().start(setting).scores(ROWS, 30).tolist()) for setting in settings}
    assert len(drawn) == len(settings)


def test_draws_are_whole_numbers_below_2_to_the_53() -> None:
    many = np.arange(10_000)
    rows = Rows("left", key=many, time=many, id=many, matches=many)
    draws = Random(seed=1).scores(rows, 5)
    assert (draws == np.floor(draws)).all()
    assert draws.min() >= 0
    assert draws.max() < 2**53
    assert abs(draws.mean() / 2**52 - 1) < 0.02


@pytest.mark.parametrize("seed", [-5, 2**63, 2**64 + 5])
def test_any_whole_number_is_a_seed(seed: int) -> None:
    stream = {"key": [1] * 6, "time": list(range(6))}
    for policy, join_seed in ((Random(seed=seed), 0), (Random(), seed)):
        settings = {"budget": 2, "policy": policy, "seed": join_seed}
        reports = [tg.simulate(stream, stream, window=(9, 9), step=step, **settings) for step in (1, 1)]  # type: ignore[arg-type]
        assert reports[0].results == reports[1].results


def test_a_policy_without_state_refuses_one() -> None:
    assert Fifo().snapshot() == {}
    assert Fifo().restore({}) == Fifo()
    with pytest.raises(InputError, match=r"Fifo keeps no state but was given \['a'\]; restore"):
        Fifo().restore({"a": np.arange(2)})


def test_scores_change_nothing() -> None:
    for name in set(names()) - {"offline"}:
        policy = find(name).start(Setting(Window(5, 5)))
        before = {column.name: getattr(ROWS, column.name) for column in fields(ROWS)}
        notes = policy.policy_columns(ROWS) if isinstance(policy, KeepsColumns) else {}
        policy.scores(replace(ROWS, policy_columns=notes), 30)
        assert all(getattr(ROWS, name) is column for name, column in before.items())
        assert ROWS.time.tolist() == [30, 10, 20]


def test_a_policy_is_one_class_with_one_method() -> None:
    class ByKey(Policy):
        def scores(self, rows: Rows, now: Time) -> Array:
            return rows.key

    policy = ByKey()
    assert isinstance(policy, RunningPolicy)
    assert policy.start(Setting(Window(5, 5))) is policy
    # The row of key 3 stays until its partner arrives.
    left, right = {"key": [3], "time": [4]}, {"key": [3, 1, 2], "time": [0, 1, 2]}
    results = [tg.simulate(left, right, window=(0, 9), budget=1, policy=p).results for p in (policy, "fifo")]
    assert results == [1, 0]


def test_a_policy_that_cannot_start() -> None:
    class Empty(Policy):
        pass

    with pytest.raises(InputError, match="Empty defines neither scores nor start; define one"):
        Empty().start(Setting(Window(5, 5)))


@pytest.mark.parametrize(
    "name", ["age", "heeb", "heeb_histogram", "flow_expect", "ijoin", "offline", "prob", "size"]
)
def test_a_configuration_that_has_to_start_has_no_scores(name: str) -> None:
    assert not hasattr(find(name), "scores")
