"""The reservoir of one bucket: which results it holds, and their columns beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.reservoir_join import settled
from tidegate.sampling.progressive_join import RunningProgressiveJoin
from tidegate.sampling.ranks import RankedReservoir
from tidegate.spark.packing import from_bytes, to_bytes
from tidegate.types import Budget, as_part, parts_of

if TYPE_CHECKING:
    from tidegate.engine.sampling_operator import SamplingOperator
    from tidegate.sampling import Taken
    from tidegate.types import Array

PROBABILITY: Final = "probability"
WEIGHT: Final = "weight"
OWNER: Final = "owner"
RANK: Final = "rank"
BOUND: Final = "bound"
BATCH: Final = "batch"

_PART: Final = "reservoir"
_ROWS: Final = "reservoir rows"


@dataclass
class HeldSample:
    """Results in slots, as the reservoir says who comes to which."""

    reservoir: RankedReservoir
    rows: pa.Table | None = field(default=None)

    def offer(self, results: pa.RecordBatch, probability: Array, numbers: Array) -> None:
        """Show results, with the probability of each and a number that no other has."""
        taken = self.reservoir.offer(probability, numbers)
        held = self._kept(taken) or results.schema.empty_table()
        count = max(held.num_rows, 1 + int(taken.slots.max(initial=-1)))
        source = np.arange(count)
        source[taken.slots] = held.num_rows + np.arange(len(taken.slots))
        arrived = pa.Table.from_batches([results.take(pa.array(taken.rows))])
        self.rows = pa.concat_tables([held, arrived]).take(pa.array(source)).combine_chunks()

    def settle(self, operator: SamplingOperator) -> None:
        """After a step: hold no rank below which results may stay hidden from now on, nor have more shown."""
        for taken in settled(self.reservoir, operator):
            self.rows = self._kept(taken)

    def leave(self, operator: SamplingOperator) -> None:
        """Let the join have what a reservoir that grows leaves of their budget."""
        if isinstance(self.reservoir, RunningProgressiveJoin):
            operator.limit(Budget(rows=self.reservoir.wants().rows))

    def _kept(self, taken: Taken) -> pa.Table | None:
        return self.rows if taken.kept is None or self.rows is None else self.rows.take(pa.array(taken.kept))

    def told(self, batch: int) -> Iterator[pa.RecordBatch]:
        """The results that are held, each with the chance that it had to be, and its rank."""
        if self.rows is None or not self.rows.num_rows:
            return
        ranks = self.reservoir.ranks
        chance = pa.array(np.full(len(ranks), self.reservoir.chance))
        owner = self.rows.column(OWNER)
        told = {
            PROBABILITY: chance,
            WEIGHT: pc.divide(1.0, chance),
            OWNER: owner,
            RANK: pa.array(ranks),
            BOUND: pa.array(np.full(len(ranks), self.reservoir.fraction)),
            BATCH: pa.array(np.full(len(ranks), batch)),
        }
        results = self.rows.drop_columns([name for name in told if name in self.rows.column_names])
        for name, column in told.items():
            results = results.append_column(name, column)
        yield from results.combine_chunks().to_batches()

    def snapshot(self) -> dict[str, Array]:
        """All of it, as plain arrays."""
        state = as_part(_PART, self.reservoir.snapshot())
        if self.rows is not None:
            state[_ROWS] = np.frombuffer(to_bytes(self.rows), np.uint8)
        return state

    def restore(self, state: Mapping[str, Array]) -> Self:
        """Take up what `snapshot` gave."""
        self.reservoir.restore(parts_of(state)[_PART])
        if _ROWS in state:
            self.rows = from_bytes(state[_ROWS].tobytes())
        return self

    @classmethod
    def of(cls, state: Mapping[str, Array]) -> Self | None:
        """What a saved state holds, to look at; None if it has no reservoir."""
        return cls(RankedReservoir(1, 2, 0)).restore(state) if _PART in parts_of(state) else None
