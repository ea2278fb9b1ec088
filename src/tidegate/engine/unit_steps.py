"""Steps of one row, in one compiled loop.

A step of one row through the general operator costs some tens of microseconds, nearly all of it the calls
around the work. Where a policy's scores are fixed when a row arrives, drawn at random, or read off a given
age curve, nothing needs to be asked of it between rows, and the whole run is a single loop with its own index.
It gives what the general operator gives, row for row; a test holds it to that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tidegate.compiled import inlined, kernel
from tidegate.draws import mix
from tidegate.engine.combining import COMBINES, combined
from tidegate.engine.index import hashed
from tidegate.engine.tally import Measured, Tally
from tidegate.models.age_curve import Tables, priorities
from tidegate.policies import Age, Random, find
from tidegate.types import SIDES, Last, Pairs

if TYPE_CHECKING:
    from tidegate.engine.arrivals import Arrivals
    from tidegate.engine.operator import Join
    from tidegate.types import Array, Future, StepSize, Time

_END: Final = -1
_EVICTED, _EXPIRED, _PEAK = range(3)
_LIVES, _LIFE_SUM, _LIFE_SQUARES = range(3)
_NO_SCORES: Final = np.empty(0, np.float64)
_NO_SALTS: Final = np.empty(0, np.int64)
_NO_PROMISE: Final = Tables(np.zeros(2), np.zeros(2), np.zeros(1), np.ones(2, np.int64), 0.0)
_NO_CURVE: Final = Tables(_NO_SCORES, _NO_SCORES, _NO_SCORES, _NO_SALTS, 0.0)


def applies(join: Join, step: StepSize, arrivals: Arrivals) -> bool:
    """Whether this run can be one loop: in order, on equal keys, within rows, scores fixed, drawn or by a curve."""
    policy = find(join.policy)
    plain = join.condition == "=" and join.order == "probe-first" and not arrivals.lateness
    plain = plain and join.split != "optimal"
    in_rows = join.budget is None or join.budget.unit == "rows"
    known = (
        policy.is_fixed()
        or (type(policy) is Random and policy.left is None)
        or (type(policy) is Age and policy.curve is not None)
    )
    return step == 1 and plain and in_rows and known


def run(
    arrivals: Arrivals,
    join: Join,
    checks: Array,
    start: Time | None,
    *,
    collect: bool = False,
    future: Future | None = None,
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
    config = find(join.policy)
    policy = join.start(future)
    scores, curves = _NO_SCORES, (_NO_CURVE, _NO_CURVE)
    if isinstance(config, Age) and config.curve is not None:
        spans = (max(join.window.length(side), 0) for side in SIDES)
        given = [config.given(side, span) for side, span in zip(SIDES, spans, strict=True)]
        curves = given[0].tables if given[0] else _NO_PROMISE, given[1].tables if given[1] else _NO_PROMISE
    elif not isinstance(policy, Random):
        scores = merged(policy.scores(left, 0), policy.scores(right, 0))
    salts = policy.salts(time) if isinstance(policy, Random) else _NO_SALTS
    worths = left.importance, right.importance
    worth = _NO_SCORES if worths[0] is None or worths[1] is None else merged(worths[0], worths[1])
    number = time.dtype.type
    first = 0 if start is None else sum(arrivals.before(start))
    limits = [0 if share is None else share.limit for share in join.shares()]
    caps = np.minimum(np.array(limits), n)
    found, importance, counts, lives, pairs_left, pairs_right = _run(
        on_right, merged(left.key, right.key), time, axis_left, axis_right, floor,
        (number(join.window.length("left")), number(join.window.length("right"))),
        (isinstance(join.window.left, Last), isinstance(join.window.right, Last)),
        scores, salts, *curves, worth, COMBINES[join.combine], caps, first, collect,
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
    curve = np.where(ends < first, 0, curve - found[:first].sum())
    return Measured(tally, time[ends], curve, Pairs(pairs_left, pairs_right) if collect else None)


class _Slots(NamedTuple):
    """The memory of a run: a slot a buffered row.

    `rows` is who sits where. `heads`, `after` and `before` chain the slots of a side by key; `oldest`,
    `youngest`, `older` and `younger` list them by arrival; `pools` holds the slots that share a budget (a
    heap by score, or in no order where scores are drawn), `place` their positions there, and `sizes` how
    many there are.
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


@inlined
def _worst(slots: _Slots, pool: int, scores: Array, salt: Any) -> Any:
    """The slot that makes room in a pool."""
    members = slots.pools[pool]
    if len(scores) > 0:
        return members[0]
    worst = members[0]
    least = mix(np.uint64(slots.rows[worst] ^ salt)) >> np.uint64(11)
    for at in range(1, slots.sizes[pool]):
        slot = members[at]
        draw = mix(np.uint64(slots.rows[slot] ^ salt)) >> np.uint64(11)
        if draw < least or (draw == least and slots.rows[slot] < slots.rows[worst]):
            worst, least = slot, draw
    return worst


@kernel
def _least_promising(
    slots: _Slots, pool: int, time: Array, now: int, on_right: Array, left: Tables, right: Tables
) -> Any:
    """The slot that makes room in a pool when ages decide."""
    members = slots.pools[pool, : slots.sizes[pool]]
    rows = slots.rows[members]
    ages = time[now] - time[rows]
    scores = priorities(ages, left)
    if on_right[rows].any():
        of_right = priorities(ages, right)
        for at in range(len(rows)):
            if on_right[rows[at]]:
                scores[at] = of_right[at]
    worst = 0
    for at in range(1, len(rows)):
        if scores[at] < scores[worst] or (scores[at] == scores[worst] and rows[at] < rows[worst]):
            worst = at
    return members[worst]


@kernel
def _doubled(values: Array) -> Array:
    more = np.empty(2 * len(values), values.dtype)
    more[: len(values)] = values
    return more


@inlined
def _record(counts: Array, lives: Array, what: int, lifetime: Any) -> None:
    lived = max(np.float64(lifetime), 0.0)
    counts[what] += 1
    lives[_LIVES] += 1.0
    lives[_LIFE_SUM] += lived
    lives[_LIFE_SQUARES] += lived * lived


@kernel
def _run(
    on_right: Array, key: Array, time: Array, axis_left: Array, axis_right: Array, floor: Array,
    reaches: Any, counted: Any, scores: Array, salts: Array, curve_left: Tables, curve_right: Tables,
    worth: Array, combine: int,
    caps: Array, first: int, collect: bool,
) -> tuple[Array, float, Array, Array, Array, Array]:  # fmt: skip
    """Run all rows in order of arrival; whatever came before the row `first` is not counted."""
    n = len(key)
    capacity = min(caps.sum(), n) + 1
    bits = np.int64(np.ceil(np.log2(capacity + 1))) + 1
    shift = np.uint64(64 - bits)
    slots = _empty(capacity, bits, len(caps))
    free = np.arange(capacity)
    held = 0
    found = np.zeros(n, np.int64)
    counts, lives, importance = np.zeros(3, np.int64), np.zeros(3, np.float64), 0.0
    out_left, out_right, n_out = np.empty(1024, np.int64), np.empty(1024, np.int64), 0

    for i in range(n + 1):
        if i == first:
            counts[:], lives[:], importance, n_out = 0, 0.0, 0.0, 0
        if i == n:
            break
        mine = np.int64(on_right[i])
        bucket = np.int64(hashed(key[i], shift))

        slot = slots.heads[1 - mine, bucket]
        while slot != _END:
            j = slots.rows[slot]
            left, right = (i, j) if mine == 0 else (j, i)
            if (
                key[j] == key[i]
                and axis_left[right] - axis_left[left] <= reaches[0]
                and axis_right[left] - axis_right[right] <= reaches[1]
            ):
                found[i] += 1
                if len(worth) > 0:
                    importance += combined(combine, worth[left], worth[right])
                if collect:
                    if n_out == len(out_left):
                        out_left, out_right = _doubled(out_left), _doubled(out_right)
                    out_left[n_out], out_right[n_out] = left, right
                    n_out += 1
            slot = slots.after[slot]

        _admit(slots, free[held], i, mine, bucket, mine if len(caps) > 1 else 0, scores)
        held += 1

        # Expired left rows go first, then expired right rows, oldest first; then the worst of each full pool.
        for turn in range(2 + len(caps)):
            while True:
                if turn < len(reaches):
                    slot = slots.oldest[turn]
                    if slot == _END:
                        break
                    j = slots.rows[slot]
                    age = axis_left[i] - axis_left[j] if turn == 0 else floor[i] - axis_right[j]
                    if age <= reaches[turn]:
                        break
                    lifetime = time[i] - time[j]
                    _record(
                        counts, lives, _EXPIRED, lifetime if counted[turn] else min(lifetime, reaches[turn])
                    )
                else:
                    pool = turn - 2
                    if slots.sizes[pool] <= caps[pool]:
                        break
                    if len(curve_left.edges) > 0:
                        slot = _least_promising(slots, pool, time, i, on_right, curve_left, curve_right)
                    else:
                        slot = _worst(slots, pool, scores, salts[i] if len(salts) > 0 else 0)
                    j = slots.rows[slot]
                    _record(counts, lives, _EVICTED, time[i] - time[j])
                owner = np.int64(on_right[j])
                chain = np.int64(hashed(key[j], shift))
                _release(slots, slot, owner, chain, owner if len(caps) > 1 else 0, scores)
                held -= 1
                free[held] = slot
        counts[_PEAK] = max(counts[_PEAK], held)

    return found, importance, counts, lives, out_left[:n_out].copy(), out_right[:n_out].copy()
