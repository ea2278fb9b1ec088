"""How the rows of a step are matched: the part that a join and a sampled join have in common.

A `Matcher` knows the window, the condition and how importance is combined; it holds no rows. It builds indexes over
arrivals, counts results, or forms them as pairs in bounded chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from tidegate.compiled import kernel
from tidegate.engine import nested_loop
from tidegate.engine.ages import Ages, Origin, Watch, note_ages
from tidegate.engine.combining import COMBINES, importances
from tidegate.engine.index import NO_IMPORTANCE, Axes, Index
from tidegate.types import Pairs, Rows, Window, other_side

if TYPE_CHECKING:
    from tidegate.engine.removals import Places, StepRemovals
    from tidegate.engine.tally import Tally
    from tidegate.types import Array, Combine, Condition, Side

Residual: TypeAlias = Callable[[Pairs], "Array"]
"""A further condition on pairs of candidates: returns a mask of those that are results."""

_ALL: Final = slice(None)
_ORIGINS: Final[tuple[Origin, ...]] = ("from_right", "from_step", "from_left")


@kernel
def _add_hits(left: Array, right: Array, hits_left: Array, hits_right: Array) -> None:
    for i in range(len(left)):
        hits_left[left[i]] += 1
        hits_right[right[i]] += 1


class Matcher:
    """Finds the results of a step.

    Parameters
    ----------
    window
        How long rows of each side stay joinable.
    condition
        How keys match: a comparison `l.key ? r.key`, or a `Band`.
    combine
        How the importance of a result follows from that of its two rows.
    """

    def __init__(self, window: Window, condition: Condition = "=", combine: Combine = "min") -> None:
        self.condition = condition
        self.combine = combine
        self.lengths = window.reach("left"), window.reach("right")

    def index(self, side: Side, arrivals: Axes) -> Index:
        """Index arrivals of one side, in order of time, for rows of the other."""
        return Index(side, arrivals, self.condition, *self.lengths)

    def match(
        self,
        rows: dict[Side, Rows],
        removals: StepRemovals,
        fresh: dict[Side, int],
        hits: dict[Side, Array],
        step_hits: dict[Side, Array],
        ages: Ages,
        tally: Tally,
        *,
        chunk: int = 0,
        residual: Residual | None = None,
    ) -> Generator[Pairs, None, None]:
        """Find the results of a step: of arrivals with buffered rows, and with each other.

        Parameters
        ----------
        rows
            The candidates of each side: buffered rows, then arrivals, which begin at `fresh`.
        removals
            Rows that left before matching take no part.
        hits, step_hits, ages, tally
            Where results are counted: by row, by row only those with arrivals of the same step, by age of the older
            row, and by origin.
        chunk
            Yield results as pairs, at most this number at a time; 0 only counts them.
        residual
            A further condition. It needs pairs, so `chunk` must be positive.
        """
        whole = removals.keeps_all("left") and removals.keeps_all("right")
        if not chunk and self.condition == "=" and whole:
            sizes, olds = [len(some) for some in rows.values()], list(fresh.values())
            if sizes[0] * sizes[1] - olds[0] * olds[1] <= nested_loop.MAX_COMPARISONS:
                self._count_few(rows, fresh, hits, step_hits, ages, tally)
                return
        places = {side: removals.split_staying(side, start) for side, start in fresh.items()}
        (old_left, new_left), (old_right, new_right) = places["left"], places["right"]
        encounters: tuple[tuple[Origin, Side, Places, Places], ...] = (
            ("from_right", "left", new_left, old_right),
            ("from_step", "left", new_left, new_right),
            ("from_left", "right", new_right, old_left),
        )
        indexes: dict[Side, Index] = {}
        for origin, side, indexed, probing in encounters:
            other = other_side(side)
            axes, arrivals = axes_of(rows[other], probing), axes_of(rows[side], indexed)
            if not len(axes.key) or not len(arrivals.key):
                continue
            if side not in indexes:
                indexes[side] = self.index(side, arrivals)
            at, watch = {side: indexed, other: probing}, ages.watch(origin)
            counted = step_hits if origin == "from_step" else hits
            if chunk:
                formed = indexes[side].pairs(axes, chunk)
                found, importance = yield from self._form(formed, rows, at, counted, watch, residual)
            else:
                found, importance = self._count(indexes[side], axes, rows, at, counted, watch)
            ages.add(origin, watch)
            tally.add(origin, found, importance)
        for each, start in fresh.items():
            hits[each][start:] += step_hits[each][start:]

    def _count(
        self,
        index: Index,
        axes: Axes,
        rows: dict[Side, Rows],
        places: dict[Side, Places],
        hits: dict[Side, Array],
        watch: Watch,
    ) -> tuple[int, float]:
        (indexed, at_indexed), (probing, at_probing) = places.items()
        counts = hits[indexed][at_indexed], hits[probing][at_probing]
        both = rows[indexed].importance, rows[probing].importance
        of_rows = None
        if both[0] is not None and both[1] is not None:
            of_rows = both[0][at_indexed], both[1][at_probing]
        total, importance = index.count(axes, counts, of_rows, self.combine, watch)
        for side, count in zip(places, counts, strict=True):
            # A slice was counted in place; other positions were copied and are written back.
            if not isinstance(places[side], slice):
                hits[side][places[side]] = count
        return total, importance

    def _count_few(
        self,
        rows: dict[Side, Rows],
        fresh: dict[Side, int],
        hits: dict[Side, Array],
        step_hits: dict[Side, Array],
        ages: Ages,
        tally: Tally,
    ) -> None:
        """Count the results of a step of few rows, all at once."""
        left, right = rows.values()
        of_rows = NO_IMPORTANCE, NO_IMPORTANCE
        if left.importance is not None and right.importance is not None:
            of_rows = left.importance, right.importance
        number = left.time.dtype.type
        watches = ages.watch("from_right"), ages.watch("from_step"), ages.watch("from_left")
        counts, sums = nested_loop.nested_loop_count(
            axes_of(left, _ALL),
            axes_of(right, _ALL),
            (fresh["left"], fresh["right"]),
            (number(self.lengths[0]), number(self.lengths[1])),
            (hits["left"], hits["right"]),
            (step_hits["left"], step_hits["right"]),
            of_rows,
            COMBINES[self.combine],
            watches,
        )
        for origin, found, importance, watch in zip(_ORIGINS, counts, sums, watches, strict=True):
            ages.add(origin, watch)
            tally.add(origin, found, importance)

    def _form(
        self,
        formed: Iterator[Pairs],
        rows: dict[Side, Rows],
        places: dict[Side, Places],
        hits: dict[Side, Array],
        watch: Watch,
        residual: Residual | None,
    ) -> Generator[Pairs, None, tuple[int, float]]:
        total, importance = 0, 0.0
        indexed, probing = places
        left, right = rows["left"].importance, rows["right"].importance
        for local in formed:
            chunk = Pairs(placed(places["left"], local.left), placed(places["right"], local.right))
            if residual is not None:
                holds = residual(chunk)
                chunk = Pairs(chunk.left[holds], chunk.right[holds])
            if not len(chunk.left):
                continue
            _add_hits(chunk.left, chunk.right, hits["left"], hits["right"])
            at = {"left": chunk.left, "right": chunk.right}
            note_ages(watch, rows[probing].time, rows[indexed].time, at[probing], at[indexed])
            total += len(chunk.left)
            if left is not None and right is not None:
                gains = importances(COMBINES[self.combine], left, right, chunk.left, chunk.right)
                importance += float(gains.sum())
            yield chunk
        return total, importance


def window_axis(rows: Rows, side: Side) -> Array:
    """The axis on which the window of `side` is measured: time, or rows of that side."""
    counts = rows.lefts if side == "left" else rows.rights
    return rows.time if counts is None else counts


def axes_of(rows: Rows, places: Places) -> Axes:
    """The columns that a condition and a window read, of the rows at these places."""
    left, right = window_axis(rows, "left"), window_axis(rows, "right")
    on_left = left[places]
    return Axes(rows.key[places], on_left, on_left if right is left else right[places])


def placed(places: Places, local: Array) -> Array:
    """Positions among all candidates, from positions among the rows at some places."""
    return local.astype(np.int64) + places.start if isinstance(places, slice) else places[local]
