"""What is learned of a join: each part once, and saved by name."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.models import Rates, StreamShares
from tidegate.policies import find
from tidegate.types import SIDES, Clocks, JoinModel, Rows, Setting, Side, Step, Window


def arrivals(side: Side, keys: list[int], now: int) -> Rows:
    count = len(keys)
    none = np.zeros(count, np.int64)
    return Rows(side, np.array(keys, np.int64), none + now, np.arange(count), none)


def step(now: int, left: list[int], right: list[int]) -> Step:
    rows = {side: arrivals(side, keys, now) for side, keys in zip(SIDES, (left, right), strict=True)}
    clocks, none = Clocks.both(now), {side: np.zeros(len(some), np.int64) for side, some in rows.items()}
    return Step(now, clocks, clocks, rows, dict.fromkeys(SIDES, 0), none)


def taught(model: JoinModel) -> JoinModel:
    for now in range(4):
        model.learn(step(now, [1, 2, 1], [2]))
    return model


def test_policies_of_one_setting_share_what_they_learn() -> None:
    setting = Setting(Window(9, 9))
    prob, heeb = (find(name).start(setting) for name in ("prob", "heeb"))
    taught(setting.model)
    for running in (prob, heeb):
        learned = {(some.model, some.side): some.value for some in running.learned()}  # type: ignore[attr-defined]
        assert learned["rate", "left"] == pytest.approx(3, rel=0.01)
        assert learned["rate", "right"] == pytest.approx(1, rel=0.01)
    assert {name.partition(".")[0] for name in setting.model.snapshot()} == {"rate", "share", "lifetime"}


def test_a_part_is_learned_once_and_others_by_their_own_options() -> None:
    model = JoinModel()
    first, again, other = (model.part(Rates, horizon) for horizon in (10.0, 10.0, 2.0))
    assert first is again
    assert first is not other
    taught(model)
    assert first.rate("left") == pytest.approx(3)
    assert sorted(model.snapshot()) == ["rate.rates", "rate2.rates"]


def test_a_restored_model_goes_on_and_returns_what_is_not_its_own() -> None:
    def started() -> tuple[JoinModel, Rates, StreamShares]:
        model = JoinModel()
        return model, model.part(Rates, 10.0), model.part(StreamShares, 100, 10.0, 0)

    saved = taught(started()[0]).snapshot()
    model, rates, shares = started()
    own = {"clock": np.ones(1), "rates": np.ones(2)}
    assert model.restore(saved | own).keys() == own.keys()
    assert rates.rate("left") == pytest.approx(3)
    assert shares.share("left", np.array([1]))[0] == pytest.approx(2 / 3)
    again = model.snapshot()
    assert all(np.array_equal(again[name], array, equal_nan=True) for name, array in saved.items())


def test_a_part_that_a_state_lacks_starts_to_learn() -> None:
    before = JoinModel()
    before.part(Rates, 10.0)
    model = JoinModel()
    rates, shares = model.part(Rates, 10.0), model.part(StreamShares, 100, 10.0, 0)
    assert not model.restore(taught(before).snapshot())
    assert rates.rate("left") == pytest.approx(3)
    assert shares.total("left") == 0
