"""A whole run in one compiled loop, for steps of few rows where the ranking of rows is known beforehand.

A step of few rows through the general operator costs some tens of microseconds, nearly all of it for calls. If the
ranking depends on the arrivals alone (`tidegate.policies.ranking`), the whole run is one loop with its own index.
A test checks that it gives what the general operator gives, row for row.

Both share the score of each policy, the rules of expiry, the order of eviction, lifetimes, and the times that later
rows may have. They differ in how rows are matched and selected: the operator indexes the arrivals of a step and
selects all rows that leave at once. This loop keeps an index of all buffered rows, and a heap if scores are fixed,
because it removes about one row a step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tidegate.compiled import inlined, kernel
from tidegate.engine.arrivals import floors_after, step_ends
from tidegate.engine.combining import COMBINES, combined
from tidegate.engine.index import hashed, in_window
from tidegate.engine.join_state import is_expired, lifetime
from tidegate.engine.loop_scores import LoopRanking, changing_scores
from tidegate.engine.tally import Measured, Tally
from tidegate.policies.abilities import learned_by
from tidegate.policies.prob import KeyShares, count_row, expected_results_number, no_shares
from tidegate.policies.ranking import RecordedRun, ranking_of
from tidegate.policies.selection import leaves_first
from tidegate.types import FOREVER, Last, Pairs

if TYPE_CHECKING:
    from tidegate.engine.join import Join
    from tidegate.engine.replay import Recording
    from tidegate.types import Array, Future

_END: Final = -1
_EVICTED, _EXPIRED, _PEAK = range(3)
_LIVES, _LIFE_SUM, _LIFE_SQUARES = range(3)
_FEW: Final = 16
"""The mean number of rows in a step up to which the loop is faster."""
_MAX_ROWS_A_STEP: Final = 1 << 10
"""The maximum number of rows in a step up to which it is faster: each row that leaves may cost a scan of all."""

_is_expired = inlined(is_expired)
_lifetime = inlined(lifetime)


def run(
    recording: Recording, join: Join, *, collect: bool = False, future: Future | None = None
) -> Measured | None:
    """Run both streams step by step; the arguments are those of `simulate.run`.

    None if it takes the general operator: if rows are out of order, one side is ahead, keys match other than by
    equality, rows are evicted before matching, the budget is in bytes, steps are large, or the ranking is not known
    beforehand.
    """
    plain = join.condition == "=" and join.order == "probe-first" and join.split != "optimal"
    in_rows = join.budget is None or join.budget.unit == "rows"
    arrivals, cuts = recording.arrivals, recording.cuts
    n = len(arrivals)
    if not (plain and in_rows) or arrivals.lateness or any(arrivals.behind) or not 0 < n <= _FEW * len(cuts):
        return None
    left, right = arrivals.left, arrivals.right
    ends = step_ends(cuts)
    widths = np.diff(ends, prepend=0)
    if widths.max() > _MAX_ROWS_A_STEP:
        return None
    steps = np.repeat(np.arange(len(ends)), widths)
    on_right = np.ones(n, np.int8)
    on_right[left.id] = 0
    recorded = RecordedRun(left, right, steps, np.empty(0))
    merged = recorded.merged
    time = merged(left.time, right.time)
    nows = time[ends - 1]
    policy = join.start(future)
    ranking = ranking_of(policy, recorded._replace(nows=nows))
    if ranking is None:
        return None
    axis_left = time if left.lefts is None or right.lefts is None else merged(left.lefts, right.lefts)
    axis_right = time if left.rights is None or right.rights is None else merged(left.rights, right.rights)
    given = left.importance, right.importance
    importances = np.empty(0) if given[0] is None or given[1] is None else merged(given[0], given[1])
    number = time.dtype.type
    first = sum(recording.begin)
    limits = [0 if share is None else share.limit for share in join.shares()]
    due = floors_after(nows, on_right[ends - 1] == 1, whole_instants=recording.whole_instants)
    counted = isinstance(join.window.left, Last), isinstance(join.window.right, Last)
    # A left row expires by the times of later right rows, and a right row by those of left rows.
    floors = [
        axis[ends - 1] if counts else floor
        for axis, counts, floor in zip((axis_left, axis_right), counted, (due.right, due.left), strict=True)
    ]
    lengths = number(join.window.reach("left")), number(join.window.reach("right"))
    longest = tuple(
        number(FOREVER) if counts else length for counts, length in zip(counted, lengths, strict=True)
    )
    found, in_step, importance, counts, lives, pairs_left, pairs_right = _run(
        on_right, merged(left.key, right.key), time, axis_left, axis_right, ends, floors[0], floors[1],
        lengths, longest,
        LoopRanking.of(ranking), importances, COMBINES[join.combine], np.minimum(np.array(limits), n), first, collect,
    )  # fmt: skip
    found, in_step, on_right = found[first:], in_step[first:], on_right[first:]
    tally = Tally(
        from_left=int((found - in_step)[on_right == 1].sum()),
        from_right=int((found - in_step)[on_right == 0].sum()),
        from_step=int(in_step.sum()),
        importance=float(importance),
        evicted=int(counts[_EVICTED]),
        expired=int(counts[_EXPIRED]),
        peak_rows=int(counts[_PEAK]),
        peak_bytes=int(counts[_PEAK]) * left.row_bytes,
        lives=int(lives[_LIVES]),
        life_sum=float(lives[_LIFE_SUM]),
        life_squares=float(lives[_LIFE_SQUARES]),
    )
    read = recording.checks.sum(axis=1)
    curve = np.concatenate(([0], np.cumsum(found)))[np.maximum(read - first, 0)]
    pairs = Pairs(pairs_left, pairs_right) if collect else None
    return Measured(tally, time[read - 1], curve, pairs, tuple(learned_by(policy)))


class _Slots(NamedTuple):
    """The memory of a run: a slot for each buffered row.

    `rows` are the row numbers. `heads`, `after` and `before` chain the slots of a side by hash bucket; `oldest`,
    `youngest`, `older` and `younger` list them by arrival; `pools` contains the slots that share a budget (a
    heap by score if scores are fixed), `place` their positions there, and `sizes` their number.
    """

    rows: Array
    heads: Array
    after: Array
    before: Array
    oldest: Array
    youngest: Array
    older: Array
    younger: Array
    pools: Array
    place: Array
    sizes: Array


@kernel
def _empty(capacity: int, bits: Any, pools: int) -> _Slots:
    return _Slots(
        np.empty(capacity, np.int64),
        np.full((2, np.int64(1) << bits), _END, np.int32),
        np.empty(capacity, np.int32),
        np.empty(capacity, np.int32),
        np.full(2, _END, np.int32),
        np.full(2, _END, np.int32),
        np.empty(capacity, np.int32),
        np.empty(capacity, np.int32),
        np.empty((pools, capacity), np.int32),
        np.empty(capacity, np.int32),
        np.zeros(pools, np.int64),
    )


@kernel
def _less(scores: Array, rows: Array, a: int, b: int) -> Any:
    """Whether slot `a` is evicted before slot `b`."""
    return leaves_first(scores[rows[a]], rows[a], scores[rows[b]], rows[b])


@kernel
def _sift_up(heap: Array, place: Array, at: int, scores: Array, rows: Array) -> None:
    slot = heap[at]
    while at > 0:
        parent = (at - 1) >> 1
        if not _less(scores, rows, slot, heap[parent]):
            break
        heap[at] = heap[parent]
        place[heap[at]] = at
        at = parent
    heap[at] = slot
    place[slot] = at


@kernel
def _sift_down(heap: Array, place: Array, at: int, size: int, scores: Array, rows: Array) -> None:
    slot = heap[at]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and _less(scores, rows, heap[child + 1], heap[child]):
            child += 1
        if not _less(scores, rows, heap[child], slot):
            break
        heap[at] = heap[child]
        place[heap[at]] = at
        at = child
    heap[at] = slot
    place[slot] = at


@inlined
def _admit(slots: _Slots, slot: int, row: int, side: Any, bucket: Any, pool: Any, scores: Array) -> None:
    slots.rows[slot] = row
    head = slots.heads[side, bucket]
    slots.after[slot], slots.before[slot] = head, _END
    if head != _END:
        slots.before[head] = slot
    slots.heads[side, bucket] = slot
    last = slots.youngest[side]
    slots.older[slot], slots.younger[slot] = last, _END
    if last != _END:
        slots.younger[last] = slot
    else:
        slots.oldest[side] = slot
    slots.youngest[side] = slot
    at = slots.sizes[pool]
    slots.pools[pool, at] = slot
    slots.place[slot] = at
    slots.sizes[pool] = at + 1
    if len(scores) > 0:
        _sift_up(slots.pools[pool], slots.place, at, scores, slots.rows)


@inlined
def _release(slots: _Slots, slot: int, side: Any, bucket: Any, pool: Any, scores: Array) -> None:
    after, before = slots.after[slot], slots.before[slot]
    if before != _END:
        slots.after[before] = after
    else:
        slots.heads[side, bucket] = after
    if after != _END:
        slots.before[after] = before
    older, younger = slots.older[slot], slots.younger[slot]
    if older != _END:
        slots.younger[older] = younger
    else:
        slots.oldest[side] = younger
    if younger != _END:
        slots.older[younger] = older
    else:
        slots.youngest[side] = older
    at, heap = slots.place[slot], slots.pools[pool]
    size = slots.sizes[pool] - 1
    slots.sizes[pool] = size
    if at < size:
        last = heap[size]
        heap[at] = last
        slots.place[last] = at
        if len(scores) > 0:
            _sift_up(heap, slots.place, at, scores, slots.rows)
            _sift_down(heap, slots.place, slots.place[last], size, scores, slots.rows)


@kernel
def _worst(
    slots: _Slots,
    pool: int,
    ranking: LoopRanking,
    counted: KeyShares,
    on_right: Array,
    step: int,
    time: Array,
    last: int,
) -> Any:
    """The slot of a pool to evict, after the step whose last row this is, if scores are not fixed."""
    members = slots.pools[pool, : slots.sizes[pool]]
    rows = slots.rows[members]
    scores = changing_scores(ranking, counted, rows, on_right, step, time[last], time)
    worst = 0
    for at in range(1, len(rows)):
        if leaves_first(scores[at], rows[at], scores[worst], rows[worst]):
            worst = at
    return members[worst]


@kernel
def _worst_of_both_heaps(slots: _Slots, scores: Array, rates: Array) -> Any:
    """The lower of the first slots of both sides' heaps, each score multiplied by the other side's rate."""
    left, right = slots.pools[0, 0], slots.pools[1, 0]
    if slots.sizes[0] == 0:
        return right
    if slots.sizes[1] == 0:
        return left
    of_left = expected_results_number(scores[slots.rows[left]], rates[1], 1.0)
    of_right = expected_results_number(scores[slots.rows[right]], rates[0], 1.0)
    if leaves_first(of_left, slots.rows[left], of_right, slots.rows[right]):
        return left
    return right


@kernel
def _doubled(values: Array) -> Array:
    more = np.empty(2 * len(values), values.dtype)
    more[: len(values)] = values
    return more


@inlined
def _record(counts: Array, lives: Array, what: int, lived: float) -> None:
    counts[what] += 1
    lives[_LIVES] += 1.0
    lives[_LIFE_SUM] += lived
    lives[_LIFE_SQUARES] += lived * lived


@kernel
def _run(
    on_right: Array, key: Array, time: Array, axis_left: Array, axis_right: Array, ends: Array,
    floor_left: Array, floor_right: Array, lengths: Any, longest: Any, ranking: LoopRanking,
    importances: Array, combine: int, caps: Array, first: int, collect: bool,
) -> tuple[Array, Array, float, Array, Array, Array, Array]:  # fmt: skip
    """Run all rows in order of arrival; rows before `first`, which begins a step, are not counted.

    `lengths` are the window's lengths on their own axes, and `longest` the longest lifetimes of expired rows.
    """
    n = len(key)
    widest = ends[0]
    for step in range(1, len(ends)):
        widest = max(widest, ends[step] - ends[step - 1])
    capacity = min(caps.sum() + widest, n)
    bits = np.int64(np.ceil(np.log2(capacity + 1))) + 1
    shift = np.uint64(64 - bits)
    counted = no_shares(ranking.shares)
    scores, codes, horizon = ranking.fixed.scores, ranking.shares.codes, ranking.shares.horizon
    # Rates change the order of both sides' rows, but never that of one side's: each has a heap of its own.
    rated = len(caps) == 1 and len(scores) > 0 and len(ranking.fixed.rates) > 0
    heaps = 2 if rated else len(caps)
    slots = _empty(capacity, bits, heaps)
    free = np.arange(capacity)
    held = 0
    found, in_step = np.zeros(n, np.int64), np.zeros(n, np.int64)
    counts, lives, importance = np.zeros(3, np.int64), np.zeros(3, np.float64), 0.0
    out_left, out_right, n_out = np.empty(1024, np.int64), np.empty(1024, np.int64), 0

    begin = 0
    for step in range(len(ends)):
        end = ends[step]
        if begin == first:
            counts[:], lives[:], importance, n_out = 0, 0.0, 0.0, 0
        for i in range(begin, end):
            mine = np.int64(on_right[i])
            bucket = np.int64(hashed(key[i], shift))
            slot = slots.heads[1 - mine, bucket]
            while slot != _END:
                j = slots.rows[slot]
                left, right = (i, j) if mine == 0 else (j, i)
                if key[j] == key[i] and in_window(
                    axis_left[left],
                    axis_right[left],
                    axis_left[right],
                    axis_right[right],
                    lengths[0],
                    lengths[1],
                ):
                    found[i] += 1
                    in_step[i] += j >= begin
                    if len(importances) > 0:
                        importance += combined(combine, importances[left], importances[right])
                    if collect:
                        if n_out == len(out_left):
                            out_left, out_right = _doubled(out_left), _doubled(out_right)
                        out_left[n_out], out_right[n_out] = left, right
                        n_out += 1
                slot = slots.after[slot]
            _admit(slots, free[held], i, mine, bucket, mine if heaps > 1 else 0, scores)
            held += 1
            if len(codes) > 0:
                count_row(counted, codes[i], int(mine), np.float64(time[end - 1]), horizon)

        # Expired left rows leave first, then expired right rows, oldest first; then the lowest of each full pool.
        now = time[end - 1]
        for turn in range(2 + len(caps)):
            while True:
                if turn < len(lengths):
                    slot = slots.oldest[turn]
                    if slot == _END:
                        break
                    j = slots.rows[slot]
                    floor = floor_left[step] if turn == 0 else floor_right[step]
                    axis = axis_left[j] if turn == 0 else axis_right[j]
                    if not _is_expired(axis, floor, lengths[turn]):
                        break
                    _record(counts, lives, _EXPIRED, np.float64(_lifetime(time[j], now, longest[turn])))
                else:
                    pool = turn - 2
                    if (slots.sizes.sum() if rated else slots.sizes[pool]) <= caps[pool]:
                        break
                    if rated:
                        slot = _worst_of_both_heaps(slots, scores, ranking.fixed.rates[step])
                    elif len(scores) > 0:
                        slot = slots.pools[pool, 0]
                    else:
                        slot = _worst(slots, pool, ranking, counted, on_right, step, time, end - 1)
                    j = slots.rows[slot]
                    _record(counts, lives, _EVICTED, np.float64(_lifetime(time[j], now, FOREVER)))
                owner = np.int64(on_right[j])
                chain = np.int64(hashed(key[j], shift))
                _release(slots, slot, owner, chain, owner if heaps > 1 else 0, scores)
                held -= 1
                free[held] = slot
        counts[_PEAK] = max(counts[_PEAK], held)
        begin = end
    if first >= n:
        counts[:], lives[:], importance, n_out = 0, 0.0, 0.0, 0

    return found, in_step, importance, counts, lives, out_left[:n_out].copy(), out_right[:n_out].copy()
