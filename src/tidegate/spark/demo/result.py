"""What the demo has measured, and the sentences that it draws from that."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

OWN: Final = "Spark's own join"
EXACT: Final = "Tidegate, no limit"
_FEW_BATCHES: Final = 3
_AS_FAST: Final = 0.95


@dataclass(frozen=True)
class BatchRecord:
    """A micro-batch: a minute of the stream.

    Parameters
    ----------
    rows
        The number of rows that arrived.
    seconds
        Its duration.
    results
        The number of its results.
    state_bytes
        The size of the query's state after it: memory and files of the state store, as Spark reports them.
    """

    rows: int
    seconds: float
    results: int
    state_bytes: int


@dataclass
class QueryRecord:
    """The micro-batches of one query.

    Parameters
    ----------
    name
        The name of the query on the page: that of its policy if it has a budget.
    policy
        Its policy; None for the exact joins.
    batches
        Its micro-batches, in order.
    peak_rows
        The largest number of buffered rows, where it is known.
    """

    name: str
    policy: str | None = None
    batches: list[BatchRecord] = field(default_factory=list)
    peak_rows: int | None = None

    @property
    def results(self) -> int:
        """The number of results."""
        return sum(batch.results for batch in self.batches)

    @property
    def peak_bytes(self) -> int:
        """The largest size of the state."""
        return max((batch.state_bytes for batch in self.batches), default=0)

    def rate(self, minutes: int) -> float | None:
        """Rows a second after the window of so many minutes is full: the median of the micro-batches."""
        steady = self.batches[minutes:] if len(self.batches) >= minutes + _FEW_BATCHES else self.batches[1:]
        rates = [batch.rows / batch.seconds for batch in steady if batch.seconds]
        return statistics.median(rates) if rates else None

    def recall_by_minute(self, exact: QueryRecord) -> list[float]:
        """The share of the exact results found by the end of each minute that both have finished."""
        found = expected = 0
        shares = []
        for own, other in zip(self.batches, exact.batches, strict=False):
            found += own.results
            expected += other.results
            shares.append(found / expected if expected else 1.0)
        return shares


@dataclass
class DemoResult:
    """The finished demo.

    Parameters
    ----------
    own, exact
        Spark's own join, and Tidegate's without a limit.
    bounded
        A query for each policy with a tenth of the memory, best first.
    minutes
        The length of the window.
    budget, needed
        The rows that the bounded queries may buffer, and those that an exact join buffers.
    page
        The path of the page.
    same_results
        Whether both exact joins returned the same rows equally often; None if that was not compared.
    optimum
        The recall of the best choice of rows that is possible; None if it was not computed.
    worker_bytes
        The memory of the largest Python worker; None if it is not known on this system.
    seconds
        The duration of the demo with the start of Spark.
    interrupted
        Whether it was stopped early.
    """

    own: QueryRecord
    exact: QueryRecord
    bounded: list[QueryRecord]
    minutes: int
    budget: int
    needed: int
    page: Path
    same_results: bool | None = None
    optimum: float | None = None
    worker_bytes: int | None = None
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def records(self) -> list[QueryRecord]:
        """All queries, in the order in which they are shown."""
        return [self.own, self.exact, *self.bounded]

    def recall(self, record: QueryRecord) -> float | None:
        """The share of the exact results that a query has found; None before its first micro-batch."""
        shares = record.recall_by_minute(self.own)
        return shares[-1] if shares else None

    def cells(self, record: QueryRecord) -> list[str]:
        """A query's row of the table: recall, state, rows a second, rows buffered, results."""
        rate, recall = record.rate(self.minutes), self.recall(record)
        held = self.needed if record.policy is None else record.peak_rows
        return [
            "-" if recall is None else percent(recall),
            f"{megabytes(record.peak_bytes)} MB" if record.batches else "-",
            "-" if rate is None else f"{rate:,.0f}",
            "-" if held is None else f"{held:,}",
            f"{record.results:,}",
        ]


def percent(share: float) -> str:
    """A share in percent: exactly 100 % only if nothing is missing."""
    if share >= 1:
        return "100 %"
    return f"{min(share, 0.999):.1%}".replace("%", " %")


def megabytes(size: float) -> str:
    """A size in megabytes with two digits."""
    value = size / 1e6
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"  # noqa: PLR2004 - two digits


def findings(result: DemoResult) -> list[str]:
    """The findings, as sentences; the first is the one to tell others."""
    best, *others = sorted(result.bounded, key=lambda record: -(result.recall(record) or 0.0))
    recall = result.recall(best)
    sentences = []
    if recall is not None:
        sentence = f"With a tenth of the memory, Tidegate found {recall:.0%} of the results".replace(
            "%", " %"
        )
        oldest = next((result.recall(record) for record in others if record.policy == "fifo"), None)
        if oldest is not None:
            sentence += f", where dropping the oldest rows finds {oldest:.0%}".replace("%", " %")
        if result.optimum is not None:
            sentence += f" and the best possible choice of rows {result.optimum:.0%}".replace("%", " %")
        sentences.append(f"{sentence}.")
    if result.same_results is not None:
        sentences.append(_compared(result))
    held = [record.peak_rows for record in result.bounded]
    if held and all(rows is not None and rows <= result.budget for rows in held):
        sentences.append(f"No bounded query buffered more than its {result.budget:,} rows at any time.")
    return sentences or [
        "No join with a tenth of the memory finished a micro-batch, so there is nothing to compare."
    ]


def _compared(result: DemoResult) -> str:
    if not result.same_results:
        return "Without a limit it returned OTHER ROWS than Spark's own join. This is an error: please report it."
    sentence = f"Without a limit it returned the same {result.exact.results:,} results as Spark's own join"
    own, ours = result.own.rate(result.minutes), result.exact.rate(result.minutes)
    if own and ours:
        faster = ours / own
        speed = f"{faster:.1f} times as fast" if faster >= _AS_FAST else f"at {faster:.2f} of its speed"
        sentence += f", {speed}"
    sizes = f"{megabytes(result.exact.peak_bytes)} MB of state instead of {megabytes(result.own.peak_bytes)}"
    return f"{sentence}, with {sizes}."
