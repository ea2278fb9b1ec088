"""Clocks of both sides, from the rows that arrive."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidegate.engine.clocks import SideClocks
from tidegate.types import SIDES, Clocks, Side, Time

batches = st.lists(
    st.dictionaries(st.sampled_from(SIDES), st.integers(0, 10**6), max_size=2), min_size=1, max_size=30
)


@given(batches=batches)
def test_a_clock_reaches_every_row_and_never_goes_back(batches: list[dict[Side, int]]) -> None:
    clocks, seen, before = SideClocks(), dict[Side, Time](), dict[Side, Time]()
    for newest in batches:
        found = clocks.advance(newest)
        for side, time in newest.items():
            seen[side] = max(seen.get(side, time), time)
        for side in SIDES:
            if side in seen:
                assert max(seen.values()) >= found.of(side) >= seen[side]
                assert found.of(side) >= before.get(side, found.of(side))
                before[side] = found.of(side)
            elif seen:
                assert found.of(side) == max(seen.values())


@given(batches=batches, cut=st.integers(0, 30))
def test_a_saved_clock_goes_on(batches: list[dict[Side, int]], cut: int) -> None:
    through, again = SideClocks(), SideClocks()
    for number, newest in enumerate(batches):
        if number == cut:
            again = SideClocks.from_dict(again.to_dict())
        assert through.advance(newest) == again.advance(newest)


def test_a_slow_side_that_is_not_behind_keeps_up_with_the_other() -> None:
    clocks = SideClocks()
    for time in range(1000):
        newest: dict[Side, int] = {"left": time}
        found = clocks.advance(newest | ({"right": time} if time % 20 == 0 else {}))
        if time > 40:
            assert found == Clocks.both(time)


def test_a_side_that_stopped_keeps_its_time() -> None:
    clocks = SideClocks()
    for time in range(100):
        clocks.advance({"left": time, "right": time})
    for time in range(100, 2000):
        found = clocks.advance({"left": time})
    assert found.left == 1999
    assert found.right <= 99 + 4


def test_a_state_without_clocks_of_sides_has_one_for_both() -> None:
    clocks = SideClocks.starting_at(70)
    assert clocks.now == Clocks.both(70)
    assert clocks.advance({"left": 90, "right": 75}) == Clocks(90, 75)
