"""One bucket of a join: what happens to a row from its arrival to its results.

| part | file | what it does |
|---|---|---|
| `Intake` | `intake.py` | drops late rows, separates rows with null keys, sorts and numbers the others |
| `BucketValuation` | `valuation.py` | computes the importance of rows |
| `Candidates` | `candidates.py` | has the columns of buffered rows and arrivals |
| `Operator` | the core | matches, buffers, evicts and expires |
| `ResultWriter` | `results.py` | builds the batches of results |
| `EvictedPartners` | `evicted_partners.py` | decides which unmatched rows of an outer or anti join are uncertain |
| `BucketReservoir` | `reservoir.py` | holds the results of a sample in a reservoir |
| `PayloadStore` | `state/payload.py` | the columns of buffered rows that only results need |
| `SavedBucket` | `saved.py` | the state between micro-batches |

The streaming processor and the batch job both run this.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Generator, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Self

import numpy as np
import pyarrow as pa

from tidegate.engine.arrivals import EarliestTimes, Moment
from tidegate.engine.buffer import Buffer
from tidegate.engine.clocks import SideClocks
from tidegate.engine.join_state import StepOutcome
from tidegate.engine.matching import Residual
from tidegate.engine.operator import Operator
from tidegate.policies import find
from tidegate.spark.bucket.join.candidates import Candidates
from tidegate.spark.bucket.join.evicted_partners import EvictedPartners
from tidegate.spark.bucket.join.intake import Intake
from tidegate.spark.bucket.join.plan import LEFT_ONLY, BucketPlan, SamplePlan
from tidegate.spark.bucket.join.results import ResultWriter, result_ids
from tidegate.spark.bucket.join.saved import OPERATOR, RESERVOIR, BucketProgress, SavedBucket
from tidegate.spark.bucket.join.settings import SavedSettings
from tidegate.spark.bucket.join.valuation import BucketValuation, WatchedFiles
from tidegate.spark.packing.columns import CHECK
from tidegate.spark.state.clock import Clock
from tidegate.spark.state.difference import ROWS
from tidegate.spark.state.payload import PayloadStore
from tidegate.types import SIDES, Clocks, Pairs, Rows, Sampled, other_side

if TYPE_CHECKING:
    from tidegate.sampling import RunningSampler
    from tidegate.spark.bucket.join.reservoir import BucketReservoir
    from tidegate.spark.pool.folder import PoolClient
    from tidegate.spark.pool.shares import Grant
    from tidegate.spark.state.log import StateLog
    from tidegate.types import Array, Side

_DEAD_BYTES: Final = 16 << 20
"""Bytes of payload of removed rows, beyond those of buffered rows, at which a step drops this payload."""


class BucketJoin:
    """A running bucket.

    Parameters
    ----------
    plan
        The configuration of the bucket.
    files
        The watched files of importance, shared by the buckets of a task.

    Attributes
    ----------
    payload
        By side, the columns of the buffered rows that the operator does not need, found by row id.
    clocks
        The event times that the sides have reached, in microseconds.
    timer
        When Spark next calls the bucket without arrivals, in milliseconds.
    grant
        How much the pool allows the bucket to buffer, if it is in a pool.
    """

    def __init__(self, plan: BucketPlan, files: WatchedFiles | None = None) -> None:
        self.plan = plan
        self.operator: Operator[Pairs] = Operator(plan.join)
        self.sampler: RunningSampler | None = None
        self.sample: BucketReservoir | None = None
        if plan.sampling:
            self._use_sampler(plan.sampling)
        self.payload = {side: PayloadStore() for side in SIDES}
        self.intake = Intake(plan)
        self.valuation = BucketValuation(plan.valuation, self.operator, self.payload, files)
        self.writer = ResultWriter(plan)
        self.evicted_partners = EvictedPartners(plan.join)
        self.clock = Clock()
        self.grant: Grant | None = None
        self.clocks = SideClocks()
        self.timer = 0

    def _use_sampler(self, sampling: SamplePlan) -> None:
        """Return a sample of the results, by way of a reservoir if the plan has one."""
        # Imported here: a join without a sample needs no samplers.
        from tidegate.engine.sampler_retention import SamplerRetention  # noqa: PLC0415
        from tidegate.spark.bucket.join.reservoir import BucketReservoir  # noqa: PLC0415

        join = self.plan.join
        retention = SamplerRetention(join, sampling.sampler)
        self.operator, self.sampler = Operator(join, retention), retention.sampling
        if sampling.reservoir:
            reservoir = sampling.reservoir.start(join.seed, join.partition)
            self.sample = BucketReservoir(reservoir, sampling.by)

    @classmethod
    def load(cls, plan: BucketPlan, saved: SavedBucket | None, files: WatchedFiles | None = None) -> Self:
        """A bucket that continues from a saved state with the columns of its plan, or a new one."""
        bucket = cls(plan, files)
        if saved is not None:
            bucket._restore(saved)
        return bucket

    def _restore(self, saved: SavedBucket) -> None:
        progress = saved.progress
        # Copies: a micro-batch that is run again starts from the same saved state.
        self.intake.counts, self.clock = replace(progress.counts), replace(progress.clock)
        self.clocks, self.timer = SideClocks.from_dict(progress.clocks.to_dict()), progress.timer
        self.grant = saved.grant
        self.payload |= {side: PayloadStore(store.segments) for side, store in saved.payload.items()}
        self.evicted_partners.restore(saved.arrays)
        # The plan has the settings. The saved ones are needed for the name of the policy that wrote the state.
        same_policy = saved.settings.policy == find(self.plan.join.policy).label()
        self.operator.restore(saved.operator_arrays, learned=same_policy)
        for side in SIDES:
            self._update_sizes(side)
        if self.sample:
            self.sample.restore(saved.arrays, saved.results).limit_join(self.operator)
        self.valuation.resume(saved.importance)

    def save(self, log: StateLog) -> None:
        """Save the state. It replaces the state that the bucket was loaded from."""
        for side in SIDES:
            self.payload[side].compact(np.sort(self.operator.buffers[side].rows.id))
        payload: dict[str, PayloadStore] = dict(self.payload.items())
        if self.sample:
            payload[RESERVOIR] = self.sample.payload()
        log.write(self._arrays(), payload, f"{self.clock.batch}")

    def request_grant(self, client: PoolClient) -> None:
        """At the start of a micro-batch, ask the pool how much this bucket may buffer after it."""
        from tidegate.spark.pool.shares import measured_payoff  # noqa: PLC0415 - in a pool only

        first = self.plan.join.budget
        if first is not None:
            number, payoff = self.plan.join.partition, measured_payoff(self.operator)
            self.grant = client.grant(number, self.clock.batch, self.grant, first.limit, payoff)
            self.operator.limit(replace(first, **{first.unit: self.grant.limit}))

    def step(self, tables: dict[Side, pa.Table], watermark: int | None) -> Iterator[pa.RecordBatch]:
        """Run a step; yields results in bounded chunks, and must be consumed to its end.

        Parameters
        ----------
        tables
            The arrivals, in any order; a side may be missing. The dict is emptied, to free their memory.
        watermark
            In microseconds: rows that can match only rows at or before it expire. None: steps are in order of time,
            each with all rows of a time, and no row is late.
        """
        arrivals = self.intake.accept(tables, None if watermark is None else self.clock.late_until)
        for side, nulls in arrivals.unmatchable.items():
            if self.plan.emits_unmatched(side):
                yield self.writer.unmatched(side, nulls, np.zeros(nulls.num_rows, bool))
        importance = self.valuation.of_arrivals(arrivals.joinable)
        rows = self.intake.rows(arrivals.joinable, sum(self.operator.state.arrived.values()), importance)
        candidates = {
            side: Candidates(
                self.payload[side], self.operator.buffers[side].rows.id, arrivals.joinable.get(side)
            )
            for side in SIDES
        }
        outcome = yield from self._match(rows, self._moment(rows, watermark), candidates)
        yield from self._emit_unmatched(outcome, candidates)
        self._warn_if_ahead(outcome)
        if self.sample and self.sampler:
            self.sample.settle(self.operator, self.sampler)
        for side in SIDES:
            self._store(side, rows[side].id, candidates[side].arrived)

    def end_batch(self) -> Iterator[pa.RecordBatch]:
        """End a micro-batch: yield the reservoir as it is now, and reload importance from watched files."""
        yield from self._emit_reservoir()
        self.valuation.reload_importance()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """End a batch query: yield the buffered rows that have no match."""
        yield from self._emit_reservoir()
        for side in SIDES:
            if self.plan.emits_unmatched(side) and len(self.operator.buffers[side]):
                rows = self.operator.buffers[side].rows
                waiting = np.flatnonzero(rows.matches == 0)
                uncertain = self.evicted_partners.possible(rows.take(waiting))
                yield self.writer.unmatched(side, self.payload[side].take(rows.id[waiting]), uncertain)

    def next_expiry(self) -> int | None:
        """The smallest last joinable time of the rows that would leave without a match."""
        ends = []
        for side in SIDES:
            span = self.plan.join.window.left if side == "left" else self.plan.join.window.right
            if self.plan.emits_unmatched(side) and len(self.operator.buffers[side]) and isinstance(span, int):
                ends.append(int(self.operator.buffers[side].rows.time.min()) + span)
        return min(ends, default=None)

    def _warn_if_ahead(self, outcome: StepOutcome) -> None:
        """Warn if rows are evicted while rows of one side wait for the other."""
        window, clocks = self.plan.join.window, self.clocks.now
        reach = sum(max(window.reach(side), 0) for side in SIDES)
        evicted = any(len(departed.rows) for departed in outcome.evicted.values())
        if not evicted or abs(clocks.lead("left")) <= reach / 2:
            return
        ahead: Side = "left" if clocks.lead("left") > 0 else "right"
        # Without numbers, so that a process prints it once.
        warnings.warn(
            f"the {ahead} side is ahead of the {other_side(ahead)} side in event time by more than half of the "
            "window: its rows wait in memory, and the budget evicts rows. Let both sides advance equally, for "
            "example with maxOffsetsPerTrigger (Kafka) or maxBytesPerTrigger (files) in proportion to their volumes",
            stacklevel=2,
        )

    def _arrays(self) -> dict[str, Array | bytes]:
        """The state without its payload; `saved.py` describes the parts."""
        progress = BucketProgress(self.intake.counts, self.clock, self.clocks, self.timer)
        state: dict[str, Array | bytes] = {
            "layout": json.dumps(self.plan.layout, sort_keys=True).encode(),
            "settings": SavedSettings.of(self.operator.join).to_json(),
            "progress": progress.to_json(),
        }
        for name, values in self.operator.arrays().items():
            state[(ROWS if name.partition(".")[0] in SIDES else OPERATOR) + name] = values
        if self.grant:
            state["grant"] = json.dumps(vars(self.grant)).encode()
        if self.plan.valuation:
            state["importance"] = self.valuation.to_json()
        described = self.operator.retention.describe() | (self.sample.model_values() if self.sample else {})
        if described:
            state["sampling"] = json.dumps(described).encode()
        if self.sample:
            state |= self.sample.snapshot()
        if self.plan.flags_uncertain:
            state |= self.evicted_partners.arrays()
        return state

    def _update_sizes(self, side: Side) -> None:
        """Set the sizes of restored rows if the budget counts bytes, and remove them otherwise."""
        rows, budget = self.operator.buffers[side].rows, self.plan.join.budget
        in_bytes = budget is not None and budget.unit == "bytes"
        if in_bytes and rows.payload is None:
            sizes = self.intake.sizes(self.payload[side].take(rows.id) if len(rows) else None)
            self.operator.buffers[side] = Buffer.of(replace(rows, payload=sizes))
        elif not in_bytes and rows.payload is not None:
            self.operator.buffers[side] = Buffer.of(replace(rows, payload=None))

    def _store(self, side: Side, arrived: Array, table: pa.Table | None) -> None:
        """Store the columns of admitted arrivals, and drop those of removed rows if they take too many bytes."""
        buffered_ids, payload = self.operator.buffers[side].rows.id, self.payload[side]
        if table is not None and len(arrived):
            admitted = np.sort(buffered_ids[buffered_ids >= arrived[0]])
            places = np.searchsorted(arrived, admitted)
            payload.append(admitted, table if len(admitted) == len(arrived) else table.take(pa.array(places)))
        if (payload.rows - 2 * len(buffered_ids)) * payload.row_bytes > _DEAD_BYTES:
            payload.compact(np.sort(buffered_ids))

    def _moment(self, rows: Mapping[Side, Rows], watermark: int | None) -> Moment:
        """The time of a step; without a watermark, steps are in order of time, each with all rows of a time."""
        arrived = {side: some.time for side, some in rows.items() if len(some)}
        clocks = self.clocks.advance({side: int(times[-1]) for side, times in arrived.items()})
        if watermark is not None:
            return Moment(clocks, EarliestTimes(watermark, watermark), EarliestTimes(watermark, watermark))
        now = clocks.now
        begin = min((int(times[0]) for times in arrived.values()), default=now)
        return Moment(Clocks.both(now), EarliestTimes(begin, begin), EarliestTimes(now + 1, now + 1))

    def _match(
        self, rows: Mapping[Side, Rows], moment: Moment, candidates: Mapping[Side, Candidates]
    ) -> Generator[pa.RecordBatch, None, StepOutcome]:
        """Run the operator and yield its results; returns the outcome of the step."""
        step = self._operator_step(rows, moment, candidates)
        while True:
            try:
                pairs = next(step)
            except StopIteration as stop:
                outcome: StepOutcome = stop.value
                break
            if self.plan.how in LEFT_ONLY:
                continue
            results = self.writer.pairs(pairs, candidates)
            if self.sample and isinstance(pairs, Sampled):
                self.sample.offer(results, pairs.probability, result_ids(pairs, self.operator))
            else:
                yield results
        if len(outcome.matched) and self.plan.how == "left_semi":
            yield self.writer.left_rows(candidates["left"].take(outcome.matched))
        return outcome

    def _operator_step(
        self, rows: Mapping[Side, Rows], moment: Moment, candidates: Mapping[Side, Candidates]
    ) -> Generator[Pairs, None, StepOutcome]:
        """The operator's step; pairs are positions among the candidates."""
        residual, chunk = self._residual(candidates), self.writer.chunk_rows(candidates)
        left_only = self.plan.how in LEFT_ONLY
        return self.operator.step(
            rows["left"],
            rows["right"],
            moment,
            pairs=not left_only,
            residual=residual,
            chunk=chunk,
            remove_matched=left_only,
        )

    def _residual(self, candidates: Mapping[Side, Candidates]) -> Residual | None:
        """The condition on pairs in addition to equal keys and the window."""
        if not self.plan.is_hashed and self.plan.where is None:
            return None

        def satisfies(pairs: Pairs) -> Array:
            mask = np.ones(len(pairs.left), bool)
            if self.plan.is_hashed:
                left, right = (candidates[s].column(CHECK, getattr(pairs, s)) for s in SIDES)
                mask &= left.to_numpy(zero_copy_only=False) == right.to_numpy(zero_copy_only=False)
            if self.plan.where is not None:
                mask &= self.plan.where.mask(
                    lambda side, name: candidates[side].column(name, getattr(pairs, side))
                )
            return mask

        return satisfies

    def _emit_unmatched(
        self, outcome: StepOutcome, candidates: Mapping[Side, Candidates]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of an outer or anti join that left without a match."""
        for side in SIDES:
            if self.plan.emits_unmatched(other_side(side)) and len(outcome.evicted[side].rows):
                self.evicted_partners.record(outcome.evicted[side].rows)
        for side in SIDES:
            if not self.plan.emits_unmatched(side):
                continue
            for departed, evicted in ((outcome.expired[side], False), (outcome.evicted[side], True)):
                waiting = departed.rows.matches == 0
                if waiting.any():
                    rows = departed.rows.take(waiting)
                    # An evicted row could have matched later.
                    uncertain = np.ones(len(rows), bool) if evicted else self.evicted_partners.possible(rows)
                    yield self.writer.unmatched(
                        side, candidates[side].take(departed.places[waiting]), uncertain
                    )

    def _emit_reservoir(self) -> Iterator[pa.RecordBatch]:
        if self.sample:
            yield self.sample.packed(self.clock.batch)
