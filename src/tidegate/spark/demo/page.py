"""The page that a demo leaves: what was found, plotted; one file that works without a network."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from string import Template
from typing import Any, Final

import plotly.graph_objects as go

_COLOURS: Final = {"age": "#6d4fb3", "until_expiry": "#0f766e", "random": "#7c86a2", "fifo": "#c2622d"}
_MORE_COLOURS: Final = ("#2f8fa8", "#b3396b", "#4f7a28", "#2b6cb0")
_INK: Final = "#1f2933"
_QUIET: Final = "#7b8794"
_LINE: Final = "#e4e7eb"
_NONE: Final = "rgba(0,0,0,0)"
_WHY: Final = {
    "age": "It learned, while the query ran, at which age an auction meets its bids, and kept those that are due.",
    "until_expiry": "Bids crowd towards the end of an auction, and a row that stays until then meets them.",
    "fifo": "Partners came soon after a row, so the newest rows are the ones to keep.",
}
_FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


@dataclass(frozen=True)
class Reading:
    """How far a query had come after a micro-batch."""

    minute: float
    rows_in: int
    results: int
    exact: int


@dataclass
class Track:
    """What one policy did.

    Parameters
    ----------
    policy
        Its name.
    budget
        How many rows it may buffer.
    readings
        One a micro-batch.
    memory
        Minute of the stream and rows buffered, now and then.
    peak_rows
        The most that it ever buffered, once that was read.
    """

    policy: str
    budget: int
    readings: list[Reading] = field(default_factory=list)
    memory: list[tuple[float, int]] = field(default_factory=list)
    peak_rows: int | None = None

    @property
    def rows_in(self) -> int:
        """How many rows arrived."""
        return self.readings[-1].rows_in if self.readings else 0

    @property
    def results(self) -> int:
        """How many results it found."""
        return self.readings[-1].results if self.readings else 0

    @property
    def exact(self) -> int:
        """How many an exact join would have found in the same rows."""
        return self.readings[-1].exact if self.readings else 0

    @property
    def recall(self) -> float:
        """The share of the exact results that it found."""
        return self.results / self.exact if self.exact else 0.0

    def cells(self) -> list[str]:
        """Its line in a table: rows in, results, exact, recall, peak rows, budget."""
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
class Outcome:
    """A finished demo.

    Parameters
    ----------
    tracks
        One a policy.
    budget
        How many rows each might buffer.
    needed
        Minute of the stream and how many auctions were open: what an exact join must hold.
    window
        How many minutes an auction is open.
    seconds
        How long it took, the start of Spark aside.
    interrupted
        Whether it was stopped early.
    page
        Where the page is.
    """

    tracks: list[Track]
    budget: int
    needed: list[tuple[int, int]]
    window: int
    seconds: float
    interrupted: bool
    page: Path


def colour(policy: str) -> str:
    """The colour of a policy, the same everywhere."""
    return _COLOURS.get(policy) or _MORE_COLOURS[sum(policy.encode()) % len(_MORE_COLOURS)]


def findings(outcome: Outcome) -> list[str]:
    """What was seen, in sentences."""
    ranked = sorted((t for t in outcome.tracks if t.exact), key=lambda track: -track.recall)
    if not ranked:
        return ["No micro-batch was finished, so there is nothing to compare."]
    best, last = ranked[0], ranked[-1]
    need = max(rows for _, rows in outcome.needed)
    first = (
        f"Within {outcome.budget:,} rows, where an exact join holds {need:,}, {best.policy} found "
        f"{best.recall:.1%} of all results"
    )
    if best is not last and last.results:
        first += f": {best.recall / last.recall:.1f} times as many as {last.policy}"
    sentences = [first + "."]
    if best is not last and best.policy in _WHY:
        sentences.append(_WHY[best.policy])
    if all(track.peak_rows is not None and track.peak_rows <= outcome.budget for track in outcome.tracks):
        sentences.append("No query ever buffered more than its budget.")
    return sentences


def write_page(outcome: Outcome, path: Path) -> None:
    """Write the page; the plots' JavaScript is in it."""
    figures = [_recall(outcome), _memory(outcome)]
    # Plotly's own script goes in once, with the first figure.
    recall, memory = (_html(figure, script=not i) for i, figure in enumerate(figures))
    rows = "".join(_row(track) for track in outcome.tracks)
    policies = " ".join(track.policy for track in outcome.tracks)
    text = _PAGE.substitute(
        font=_FONT,
        ink=_INK,
        quiet=_QUIET,
        line=_LINE,
        findings=" ".join(map(escape, findings(outcome))),
        note="It was stopped early; this is what was found until then. " if outcome.interrupted else "",
        minutes=len(outcome.needed) - 1,
        seconds=f"{outcome.seconds:.0f}",
        window=outcome.window,
        rows=rows,
        recall=recall,
        memory=memory,
        budget=outcome.budget,
        best=escape(max(outcome.tracks, key=lambda t: t.recall).policy if outcome.tracks else "fifo"),
        policies=escape(policies),
    )
    path.write_text(text, encoding="utf-8")


def _row(track: Track) -> str:
    name = f'<td><i style="background:{colour(track.policy)}"></i>{escape(track.policy)}</td>'
    return f"<tr>{name}{''.join(f'<td>{cell}</td>' for cell in track.cells())}</tr>"


def _recall(outcome: Outcome) -> go.Figure:
    top = min(1.0, 3 * max((track.recall for track in outcome.tracks), default=1.0)) or 1.0
    figure = _figure("recall so far", len(outcome.needed) - 1, 1.02 * top)
    for track in outcome.tracks:
        seen = [reading for reading in track.readings if reading.exact]
        figure.add_scatter(
            x=[reading.minute for reading in seen],
            y=[reading.results / reading.exact for reading in seen],
            name=track.policy,
            mode="lines",
            line={"color": colour(track.policy), "width": 2.5},
            hovertemplate="%{y:.1%}",
        )
    ends = [(t.recall, f"{t.policy} {t.recall:.1%}", colour(t.policy)) for t in outcome.tracks if t.exact]
    _label(figure, ends, 0.07 * top)
    figure.update_yaxes(tickformat=".0%")
    return figure


def _memory(outcome: Outcome) -> go.Figure:
    minutes, rows = zip(*outcome.needed, strict=True)
    top = max(*rows, outcome.budget)
    figure = _figure("rows buffered", minutes[-1], 1.04 * top)
    figure.add_scatter(
        x=minutes,
        y=rows,
        name="exact join",
        mode="lines",
        line={"color": "#b8c2cc", "width": 1},
        fill="tozeroy",
        fillcolor="#f0f3f6",
        hovertemplate="%{y:,}",
    )
    figure.add_hline(y=outcome.budget, line={"color": _INK, "width": 1, "dash": "dot"})
    # All are at the budget nearly always, so lines would hide one another; readings were taken in turn.
    for track in outcome.tracks:
        figure.add_scatter(
            x=[minute for minute, _ in track.memory],
            y=[held for _, held in track.memory],
            name=track.policy,
            mode="markers",
            marker={"color": colour(track.policy), "size": 10, "line": {"color": "#fff", "width": 1.5}},
            hovertemplate="%{y:,}",
            cliponaxis=False,
        )
    ends = [(rows[-1], "an exact join", _QUIET), (outcome.budget, f"budget {outcome.budget:,}", _INK)]
    _label(figure, ends, 0.07 * top)
    figure.update_yaxes(tickformat=",")
    return figure


def _label(figure: go.Figure, ends: list[tuple[float, str, str]], gap: float) -> None:
    """Name lines at their ends, where the eye is, instead of in a legend; at least `gap` apart."""
    lowest = -gap
    for y, text, shade in sorted(ends):
        lowest = max(y, lowest + gap)
        figure.add_annotation(
            x=1,
            xref="paper",
            y=lowest,
            text=text,
            showarrow=False,
            xanchor="left",
            xshift=8,
            font={"color": shade, "size": 13},
        )


def _figure(y: str, right: float, top: float) -> go.Figure:
    axis = {"gridcolor": _LINE, "zeroline": False, "ticks": "outside", "ticklen": 6, "tickcolor": _NONE}
    name = {"font": {"size": 13}, "standoff": 12}
    return go.Figure(
        layout={
            "template": "none",
            "height": 340,
            "margin": {"l": 72, "r": 160, "t": 12, "b": 48},
            "font": {"family": _FONT, "size": 13, "color": _QUIET},
            "paper_bgcolor": _NONE,
            "plot_bgcolor": _NONE,
            "showlegend": False,
            "hovermode": "x unified",
            "xaxis": {
                **axis,
                "title": {"text": "minute of the stream", **name},
                "range": [0, max(right, 1)],
                "showgrid": False,
            },
            "yaxis": {**axis, "title": {"text": y, **name}, "range": [0, top]},
        }
    )


def _html(figure: go.Figure, *, script: bool) -> str:
    config: dict[str, Any] = {"displayModeBar": False, "responsive": True}
    html: str = figure.to_html(full_html=False, include_plotlyjs=script, config=config)
    return html


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
code { font-family: ui-monospace, 'SF Mono', Menlo, 'DejaVu Sans Mono', monospace; font-size: 0.93em; }
</style>
</head>
<body>
<h1>Auctions and bids, joined in a tenth of the memory</h1>
<p class="lead">$findings</p>
<p class="quiet">${note}A streaming join on Spark over $minutes minutes of the stream,
each auction open for $window minutes; one query a policy, side by side, in $seconds s.</p>
<table>
<thead><tr><th>policy</th><th>rows in</th><th>results</th><th>exact</th><th>recall</th>
<th>peak rows</th><th>budget</th></tr></thead>
<tbody>$rows</tbody>
</table>
<h2>Recall</h2>
<p class="quiet">Results found so far, as a share of those that an exact join has found.
All begin at 100 %, until the budget is full.</p>
$recall
<h2>Memory</h2>
<p class="quiet">Rows buffered, read from each query's checkpoint, against the budget and against
what an exact join must hold.</p>
$memory
<h2>To go on</h2>
<p>The results are beside this page, in <code>results/</code>; inputs and checkpoints too.
Join your own streams the same way:</p>
<pre><code>import tidegate as tg

joined = tg.join(auctions, bids, on="auction", time=("opened_at", "placed_at"),
                 window=("$window minutes", "0 seconds"), lateness="10 seconds",
                 budget=tg.Budget(rows=$budget), policy="$best",
                 split=($budget, 0))  # bids join what opened before them: none need stay</code></pre>
<p><code>tidegate policies</code> lists the policies and says when to use each;
<code>tg.simulate(left, right, ...)</code> tries one on recorded data, without Spark.</p>
</body>
</html>
""")
