"""The page of the demo: its results and charts in one file that works without a network."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from string import Template
from typing import Final

from tidegate.spark.demo.charts import CSS_FONTS, GREY, INK, LINE, colour, memory_chart, recall_chart

_REASONS: Final = {
    "age": "It learned at which age an auction gets its bids, and kept the auctions of that age.",
    "until_expiry": "Most bids arrive near the end of an auction, and it keeps the auctions that end next.",
    "fifo": "Most bids arrive soon after an auction opens, and it keeps the newest auctions.",
}


@dataclass(frozen=True)
class BatchReading:
    """The counts of a query after a micro-batch."""

    minute: float
    rows_in: int
    results: int
    exact: int


@dataclass
class PolicyRecord:
    """The results and the memory of one policy.

    Parameters
    ----------
    policy
        Its name.
    budget
        The maximum number of buffered rows.
    readings
        The counts after each micro-batch.
    memory
        Minute of the stream and rows buffered, read every few seconds.
    peak_rows
        The largest number of buffered rows; None until it is read.
    """

    policy: str
    budget: int
    readings: list[BatchReading] = field(default_factory=list)
    memory: list[tuple[float, int]] = field(default_factory=list)
    peak_rows: int | None = None

    @property
    def rows_in(self) -> int:
        """The number of rows that arrived."""
        return self.readings[-1].rows_in if self.readings else 0

    @property
    def results(self) -> int:
        """The number of results that it found."""
        return self.readings[-1].results if self.readings else 0

    @property
    def exact(self) -> int:
        """The number of results of an exact join of the same rows."""
        return self.readings[-1].exact if self.readings else 0

    @property
    def recall(self) -> float:
        """The share of the exact results that it found."""
        return self.results / self.exact if self.exact else 0.0

    def cells(self) -> list[str]:
        """Its row of a table: rows in, results, exact, recall, peak rows, budget."""
        peak = "-" if self.peak_rows is None else f"{self.peak_rows:,}"
        return [
            f"{self.rows_in:,}",
            f"{self.results:,}",
            f"{self.exact:,}",
            f"{self.recall:.1%}" if self.exact else "-",
            peak,
            f"{self.budget:,}",
        ]


@dataclass(frozen=True)
class DemoResult:
    """A finished demo.

    Parameters
    ----------
    records
        One for each policy.
    budget
        The maximum number of buffered rows of each policy.
    needed
        Minute of the stream and number of open auctions: what an exact join must hold.
    window
        The number of minutes that an auction is open.
    seconds
        Its duration, without the start of Spark.
    interrupted
        Whether it was stopped early.
    page
        The path of the page.
    """

    records: list[PolicyRecord]
    budget: int
    needed: list[tuple[int, int]]
    window: int
    seconds: float
    interrupted: bool
    page: Path


def findings(result: DemoResult) -> list[str]:
    """The findings, as sentences."""
    ranked = sorted((record for record in result.records if record.exact), key=lambda record: -record.recall)
    if not ranked:
        return ["No micro-batch was finished, so there are no results to compare."]
    best, last = ranked[0], ranked[-1]
    need = max(rows for _, rows in result.needed)
    first = (
        f"Within {result.budget:,} rows, where an exact join holds {need:,}, {best.policy} found "
        f"{best.recall:.1%} of all results"
    )
    if best is not last and last.results:
        first += f": {best.recall / last.recall:.1f} times as many as {last.policy}"
    sentences = [first + "."]
    if best is not last and best.policy in _REASONS:
        sentences.append(_REASONS[best.policy])
    if all(record.peak_rows is not None and record.peak_rows <= result.budget for record in result.records):
        sentences.append("No query buffered more than its budget at any time.")
    return sentences


def write_page(result: DemoResult, path: Path) -> None:
    """Write the page. The charts are part of it, so it needs no network."""
    rows = "".join(_row(record) for record in result.records)
    policies = " ".join(record.policy for record in result.records)
    text = _PAGE.substitute(
        font=CSS_FONTS,
        ink=INK,
        quiet=GREY,
        line=LINE,
        findings=" ".join(map(escape, findings(result))),
        note="It was stopped early; these are the results until then. " if result.interrupted else "",
        minutes=len(result.needed) - 1,
        seconds=f"{result.seconds:.0f}",
        window=result.window,
        rows=rows,
        recall=recall_chart(result),
        memory=memory_chart(result),
        budget=result.budget,
        best=escape(
            max(result.records, key=lambda record: record.recall).policy if result.records else "fifo"
        ),
        policies=escape(policies),
    )
    path.write_text(text, encoding="utf-8")


def _row(record: PolicyRecord) -> str:
    name = f'<td><i style="background:{colour(record.policy)}"></i>{escape(record.policy)}</td>'
    return f"<tr>{name}{''.join(f'<td>{cell}</td>' for cell in record.cells())}</tr>"


_PAGE: Final = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tidegate: auctions and bids in a tenth of the memory</title>
<style>
body { font: 16px/1.55 $font; color: $ink; background: #fff; margin: 0 auto;
  padding: 48px 32px 64px; max-width: 940px; }
h1 { font-size: 28px; line-height: 1.2; margin: 0 0 12px; letter-spacing: -0.01em; }
h2 { font-size: 17px; margin: 44px 0 2px; }
p { margin: 0 0 8px; }
.lead { font-size: 18px; }
.quiet { color: $quiet; font-size: 14px; }
table { border-collapse: collapse; width: 100%; margin: 28px 0 0; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 8px 0 8px 20px; border-bottom: 1px solid $line; }
th { font-weight: 500; font-size: 13px; color: $quiet; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
td i { display: inline-block; width: 10px; height: 10px; border-radius: 50%; margin-right: 10px; }
pre { background: #f5f7fa; border-radius: 6px; padding: 16px 18px; font-size: 13.5px; line-height: 1.5;
  overflow-x: auto; }
svg { display: block; width: 100%; height: auto; margin: 8px 0; }
.narrow { display: none; }
@media (max-width: 640px) {
  body { padding: 24px 16px 40px; }
  table { display: block; overflow-x: auto; }
  .wide { display: none; }
  .narrow { display: block; }
}
code { font-family: ui-monospace, 'SF Mono', Menlo, 'DejaVu Sans Mono', monospace; font-size: 0.93em; }
</style>
</head>
<body>
<h1>Auctions and bids, joined in a tenth of the memory</h1>
<p class="lead">$findings</p>
<p class="quiet">${note}A streaming join on Spark over $minutes minutes of the stream,
each auction open for $window minutes; one query for each policy, side by side, in $seconds s.</p>
<table>
<thead><tr><th>policy</th><th>rows in</th><th>results</th><th>exact</th><th>recall</th>
<th>peak rows</th><th>budget</th></tr></thead>
<tbody>$rows</tbody>
</table>
<h2>Recall</h2>
<p class="quiet">Results found so far, as a share of the results of an exact join.
Every policy starts at 100 %, until the budget is full.</p>
$recall
<h2>Memory</h2>
<p class="quiet">Rows buffered, read from each query's checkpoint, compared with the budget and with
the rows that an exact join must hold.</p>
$memory
<h2>Next steps</h2>
<p>The results are next to this page, in <code>results/</code>; inputs and checkpoints too.
Join your own streams the same way:</p>
<pre><code>import tidegate as tg

joined = tg.join(auctions, bids, on="auction", time=("opened_at", "placed_at"),
                 window=("$window minutes", "0 seconds"), lateness="10 seconds",
                 budget=tg.Budget(rows=$budget), policy="$best",
                 split=($budget, 0))  # a bid joins only auctions that opened before it</code></pre>
<p><code>tidegate policies</code> lists the policies and when to use each;
<code>tg.simulate(left, right, ...)</code> tries one on recorded data, without Spark.</p>
</body>
</html>
""")
