"""The page of the demo: its results and charts in one file that works without a network."""

from __future__ import annotations

from html import escape
from string import Template
from typing import Final

from tidegate.spark.demo.charts import CSS_FONTS, GREY, INK, LINE, colour, memory_chart, recall_chart
from tidegate.spark.demo.result import DemoResult, QueryRecord, findings, megabytes, percent


def write_page(result: DemoResult) -> None:
    """Write the page. The charts are part of it, so it needs no network."""
    lead, *more = findings(result)
    rows = "".join(_row(result, record) for record in result.records)
    if result.optimum is not None:
        rows += _optimum_row(result)
    workers = ""
    if result.worker_bytes is not None:
        workers = (
            f" Beside the state, a Python worker of Spark took up to {megabytes(result.worker_bytes)} MB here, "
            "most of it for libraries, whatever the size of the state."
        )
    text = _PAGE.substitute(
        font=CSS_FONTS,
        ink=INK,
        quiet=GREY,
        line=LINE,
        lead=escape(lead),
        more=" ".join(map(escape, more)),
        note="It was stopped early; these are the results until then. " if result.interrupted else "",
        minutes=max(len(record.batches) for record in result.records),
        seconds=f"{result.seconds:.0f}",
        window=result.minutes,
        rows=rows,
        recall=recall_chart(result),
        memory=memory_chart(result),
        workers=escape(workers),
        budget=f"{result.budget:,}",
        needed=f"{result.needed:,}",
    )
    result.page.write_text(text, encoding="utf-8")


def _row(result: DemoResult, record: QueryRecord) -> str:
    name = record.name if record.policy is None else f"a tenth, {record.name}"
    cells = "".join(f"<td>{cell}</td>" for cell in result.cells(record))
    return f'<tr><td><i style="background:{colour(record.name)}"></i>{escape(name)}</td>{cells}</tr>'


def _optimum_row(result: DemoResult) -> str:
    assert result.optimum is not None  # noqa: S101 - as the caller has checked
    return (
        f'<tr><td><i style="background:{colour("offline")}"></i>a tenth, best possible</td>'
        f"<td>{percent(result.optimum)}</td><td></td><td></td><td>{result.budget:,}</td><td></td></tr>"
    )


_PAGE: Final = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tidegate: a streaming join with a tenth of the memory</title>
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
.scroll { overflow-x: auto; }
td, th { white-space: nowrap; }
@media (max-width: 640px) {
  body { padding: 24px 16px 40px; }
  .wide { display: none; }
  .narrow { display: block; }
}
code { font-family: ui-monospace, 'SF Mono', Menlo, 'DejaVu Sans Mono', monospace; font-size: 0.93em; }
</style>
</head>
<body>
<h1>A streaming join with a tenth of the memory</h1>
<p class="lead">$lead</p>
<p>$more</p>
<p class="quiet">${note}Which clicks preceded each purchase of the same account by at most $window minutes?
$minutes minutes of both streams, joined on Spark in $seconds s. A few accounts click and buy far more often than the
others. An exact join buffers $needed clicks.</p>
<div class="scroll"><table>
<thead><tr><th>join</th><th>recall</th><th>state</th><th>rows/s</th><th>rows buffered</th>
<th>results</th></tr></thead>
<tbody>$rows</tbody>
</table></div>
<h2>Recall</h2>
<p class="quiet">Results found so far, as a share of those of Spark's own join, with at most $budget rows buffered.
Every policy finds everything until these rows are full. The dashed line is the recall of the best choice of rows, for
which the future must be known.</p>
$recall
<h2>Memory</h2>
<p class="quiet">MB of state after each micro-batch, as Spark reports it: memory and files of the state store.
RocksDB empties its write buffers from time to time, and then the lines fall. Spark's own join uses RocksDB
with its newest state format.$workers</p>
$memory
<h2>Try it on your own data</h2>
<p>Without Spark, on recorded rows: how much would a tenth of the memory find?</p>
<pre><code>import tidegate as tg
from tidegate.streams import Trace

clicks = Trace.from_parquet("clicks.parquet", on="account", time="clicked_at")
purchases = Trace.from_parquet("purchases.parquet", on="account", time="bought_at")
for policy in ("fifo", "random", "prob", "age", "offline"):
    report = tg.simulate(clicks, purchases, window=("10 minutes", "0 seconds"),
                         budget=24_000, policy=policy, step=1_000)
    print(policy, report.recall)</code></pre>
<p>On Spark, with your streams:</p>
<pre><code>tg.configure(spark)
joined = tg.join(clicks, purchases, on="account", time=("clicked_at", "bought_at"),
                 window=("10 minutes", "0 seconds"), lateness="10 seconds",
                 budget="512 MB", policy="prob")  # without budget: all results
joined.writeStream.format("parquet")...</code></pre>
<p><code>tidegate policies</code> lists the policies and when to use each. The inputs, results and checkpoints of
this demo are next to this page.</p>
</body>
</html>
""")
