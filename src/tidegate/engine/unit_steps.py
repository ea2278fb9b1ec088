"""Steps of one row, in one compiled loop.

A step of one row through the general operator costs some tens of microseconds, nearly all of it the calls around the
work. Where a policy's scores are fixed when a row arrives (or drawn at random), nothing needs to be asked of it
between rows, and the whole run is a single loop with its own index: a hash chain a key, a heap a pool of memory, and a list
a side in order of arrival. It gives what the general operator gives, row for row; a test holds it to that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tidegate.engine.compiled import kernel
from tidegate.engine.index import COMBINES, combined
from tidegate.engine.tally import Measured, Tally
from tidegate.policies import Random, find
from tidegate.policies.random import mix
from tidegate.types import Last, Pairs, Setting

if TYPE_CHECKING:
    from tidegate.engine.arrivals import Arrivals
    from tidegate.engine.operator import Join
    from tidegate.types import Array, StepSize, Time

_END: Final = -1
_EVICTED, _EXPIRED, _PEAK = range(3)
_LIVES, _LIFE_SUM, _LIFE_SQUARES = range(3)
_NO_SCORES: Final = np.empty(0, np.float64)
_NO_SALTS: Final = np.empty(0, np.int64)


def applies(join: Join, step: StepSize, arrivals: Arrivals) -> bool:
    """Whether this run can be one loop: unit steps, in order, on equal keys, within rows, with fixed or drawn scores."""
    policy = find(join.policy)
    plain = join.condition == "=" and join.order == "probe-first" and not arrivals.lateness
    in_rows = join.budget is None or join.budget.unit == "rows"
    return step == 1 and plain and in_rows and (policy.ranking == "fixed" or isinstance(policy, Random))


def run(
    arrivals: Arrivals, join: Join, checks: Array, start: Time | None, *, collect: bool = False
) -> Measured:
    """Run both streams row by row; the arguments are those of `simulate.run`."""
    left, right = arrivals.left, arrivals.right
    n = len(arrivals)
    on_right = np.ones(n, np.int8)
    on_right[left.id] = 0

    def merged(of_left: Array, of_right: Array) -> Array:
        column = np.empty(n, of_left.dtype)
        column[left.id], column[right.id] = of_left, of_right
        return column

    time = merged(left.time, right.time)
    axis_left = time if left.lefts is None or right.lefts is None else merged(left.lefts, right.lefts)
    axis_right = time if left.rights is None or right.rights is None else merged(left.rights, right.rights)
    floor = axis_right.copy()
    if not isinstance(join.window.right, Last):
        # Left comes before right at equal times: after a right row no left row of that time is due.
        after = floor[on_right == 1]
        floor[on_right == 1] = after + 1 if floor.dtype.kind == "i" else np.nextafter(after, np.inf)
    policy = find(join.policy).start(Setting(join.window, join.seed, join.partition))
    drawn = isinstance(policy, Random)
    scores = _NO_SCORES if drawn else merged(policy.scores(left, 0), policy.scores(right, 0))
    salts = policy.salts(time) if isinstance(policy, Random) else _NO_SALTS
    weighed = left.importance is not None and right.importance is not None
    worth = merged(left.importance, right.importance) if weighed else _NO_SCORES  # type: ignore[arg-type]
    number = time.dtype.type
    first = 0 if start is None else sum(arrivals.before(start))
    limits = [
        n if share is None and join.budget is None else 0 if share is None else share.limit
        for share in join.shares()
    ]
    caps = np.minimum(np.array(limits), n)
    found, importance, counts, lives, pairs_left, pairs_right = _run(
        on_right, merged(left.key, right.key), time, axis_left, axis_right, floor,
        number(join.window.length("left")), number(join.window.length("right")),
        isinstance(join.window.left, Last), isinstance(join.window.right, Last),
        scores, salts, worth, COMBINES[join.combine], caps, first, collect,
    )  # fmt: skip
    tally = Tally(
        from_left=int(found[first:][on_right[first:] == 1].sum()),
        from_right=int(found[first:][on_right[first:] == 0].sum()),
        importance=float(importance),
        evicted=int(counts[_EVICTED]),
        expired=int(counts[_EXPIRED]),
        peak_rows=int(counts[_PEAK]),
        peak_bytes=int(counts[_PEAK]) * left.row_bytes,
        lives=int(lives[_LIVES]),
        life_sum=float(lives[_LIFE_SUM]),
        life_squares=float(lives[_LIFE_SQUARES]),
    )
    ends = checks.sum(axis=1) - 1
    curve = np.cumsum(found)[ends]
    curve[ends >= first] -= found[:first].sum()
    return Measured(tally, time[ends], curve, Pairs(pairs_left, pairs_right) if collect else None)


@kernel
def _less(scores: Array, rows: Array, a: int, b: int) -> bool:
    """Whether slot `a` leaves before slot `b`: by score, then by arrival."""
    first, second = scores[rows[a]], scores[rows[b]]
    return first < second or (first == second and rows[a] < rows[b])


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


@kernel
def _drop(heap: Array, place: Array, at: int, size: int, fixed: bool, scores: Array, rows: Array) -> None:
    """Take the slot at this place out of a heap (or, for draws, a plain pool) of this size."""
    last = heap[size - 1]
    if at < size - 1:
        heap[at] = last
        place[last] = at
        if fixed:
            _sift_up(heap, place, at, scores, rows)
            _sift_down(heap, place, place[last], size - 1, scores, rows)


@kernel
def _lowest_draw(pool: Array, size: int, rows: Array, salt: Any) -> int:
    worst = 0
    least = mix(np.uint64(rows[pool[0]] ^ salt)) >> np.uint64(11)
    for at in range(1, size):
        draw = mix(np.uint64(rows[pool[at]] ^ salt)) >> np.uint64(11)
        if draw < least or (draw == least and rows[pool[at]] < rows[pool[worst]]):
            worst, least = at, draw
    return worst


@kernel
def _live(lives: Array, lifetime: float) -> None:
    lived = max(lifetime, 0.0)
    lives[_LIVES] += 1.0
    lives[_LIFE_SUM] += lived
    lives[_LIFE_SQUARES] += lived * lived


@kernel
def _run(
    on_right: Array, key: Array, time: Array, axis_left: Array, axis_right: Array, floor: Array,
    reach_left: Any, reach_right: Any, left_counted: bool, right_counted: bool,
    scores: Array, salts: Array, worth: Array, combine: int, caps: Array, first: int, collect: bool,
) -> tuple[Array, float, Array, Array, Array, Array]:  # fmt: skip
    n = len(key)
    fixed = len(scores) > 0 or len(salts) == 0
    capacity = min(caps.sum(), n) + 1
    bits = np.int64(np.ceil(np.log2(capacity + 1))) + 1
    shift = np.uint64(64 - bits)
    heads = np.full((2, np.int64(1) << bits), _END, np.int32)
    rows = np.empty(capacity, np.int64)
    after, before = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
    younger, older = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
    oldest, youngest = np.full(2, _END, np.int32), np.full(2, _END, np.int32)
    free = np.arange(capacity).astype(np.int32)
    n_free = capacity
    pools = np.empty((len(caps), capacity), np.int32)
    place = np.empty(capacity, np.int32)
    sizes = np.zeros(len(caps), np.int64)
    found = np.zeros(n, np.int64)
    counts = np.zeros(3, np.int64)
    lives = np.zeros(3, np.float64)
    importance = 0.0
    out_left = np.empty(1024 if collect else 0, np.int64)
    out_right = np.empty_like(out_left)
    n_out = 0
    held = 0

    for i in range(n + 1):
        if i == first:
            counts[:] = 0
            lives[:] = 0.0
            importance = 0.0
            n_out = 0
        if i == n:
            break
        mine = on_right[i]
        bucket = np.int64((np.uint64(key[i]) * np.uint64(0x9E3779B97F4A7C15)) >> shift)

        # Probe the other side: a left partner by the left window, a right one by the right window.
        slot = heads[1 - mine, bucket]
        while slot != _END:
            j = rows[slot]
            if key[j] == key[i]:
                if mine == 1:
                    joins = (
                        axis_left[i] - axis_left[j] <= reach_left
                        and axis_right[j] - axis_right[i] <= reach_right
                    )
                else:
                    joins = (
                        axis_right[i] - axis_right[j] <= reach_right
                        and axis_left[j] - axis_left[i] <= reach_left
                    )
                if joins:
                    found[i] += 1
                    if len(worth) > 0:
                        importance += combined(combine, worth[j], worth[i])
                    if collect:
                        if n_out == len(out_left):
                            more = np.empty(2 * n_out, np.int64)
                            more[:n_out] = out_left
                            out_left = more
                            more = np.empty(2 * n_out, np.int64)
                            more[:n_out] = out_right
                            out_right = more
                        out_left[n_out], out_right[n_out] = (j, i) if mine == 1 else (i, j)
                        n_out += 1
            slot = after[slot]

        # Admit the arrival.
        pool = mine if len(caps) > 1 else 0
        n_free -= 1
        slot = free[n_free]
        rows[slot] = i
        head = heads[mine, bucket]
        after[slot], before[slot] = head, _END
        if head != _END:
            before[head] = slot
        heads[mine, bucket] = slot
        older[slot], younger[slot] = youngest[mine], _END
        if youngest[mine] != _END:
            younger[youngest[mine]] = slot
        else:
            oldest[mine] = slot
        youngest[mine] = slot
        pools[pool, sizes[pool]] = slot
        place[slot] = sizes[pool]
        sizes[pool] += 1
        if fixed:
            _sift_up(pools[pool], place, sizes[pool] - 1, scores, rows)
        held += 1

        # Let go of what has expired on either side, oldest first, then of the worst that does not fit.
        for turn in range(3):
            while True:
                if turn < 2:
                    slot = oldest[turn]
                    if slot == _END:
                        break
                    j = rows[slot]
                    if turn == 0:
                        dead = axis_left[i] - axis_left[j] > reach_left
                        lifetime = time[i] - time[j] if left_counted else min(time[i] - time[j], reach_left)
                    else:
                        dead = floor[i] - axis_right[j] > reach_right
                        lifetime = time[i] - time[j] if right_counted else min(time[i] - time[j], reach_right)
                    if not dead:
                        break
                    counts[_EXPIRED] += 1
                else:
                    full = -1
                    for p in range(len(caps)):
                        if sizes[p] > caps[p]:
                            full = p
                    if full < 0:
                        break
                    at = 0 if fixed else _lowest_draw(pools[full], sizes[full], rows, salts[i])
                    slot = pools[full, at]
                    j = rows[slot]
                    lifetime = time[i] - time[j]
                    counts[_EVICTED] += 1
                _live(lives, np.float64(lifetime))
                owner = on_right[j]
                pool = owner if len(caps) > 1 else 0
                _drop(pools[pool], place, place[slot], sizes[pool], fixed, scores, rows)
                sizes[pool] -= 1
                if before[slot] != _END:
                    after[before[slot]] = after[slot]
                else:
                    chain = np.int64((np.uint64(key[j]) * np.uint64(0x9E3779B97F4A7C15)) >> shift)
                    heads[owner, chain] = after[slot]
                if after[slot] != _END:
                    before[after[slot]] = before[slot]
                if older[slot] != _END:
                    younger[older[slot]] = younger[slot]
                else:
                    oldest[owner] = younger[slot]
                if younger[slot] != _END:
                    older[younger[slot]] = older[slot]
                else:
                    youngest[owner] = older[slot]
                free[n_free] = slot
                n_free += 1
                held -= 1
        counts[_PEAK] = max(counts[_PEAK], held)

    return found, importance, counts, lives, out_left[:n_out].copy(), out_right[:n_out].copy()
