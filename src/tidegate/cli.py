"""The command line: `tidegate demo | run | edge | reproduce | policies | bench`."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import math
import os
import signal
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tidegate import experiments, policies
from tidegate.alerts.bracket_store import Shape
from tidegate.alerts.edge import Edge, Form
from tidegate.alerts.lines import LONGEST_LINE
from tidegate.experiments import run as runs
from tidegate.experiments.document import write_document
from tidegate.experiments.experiment import Experiment
from tidegate.experiments.outcomes import Plan
from tidegate.experiments.pages import write_pages
from tidegate.experiments.reproduced import Reproduced, reproduced
from tidegate.types import InputError, Time

app = typer.Typer(
    help="Stream joins that never outgrow their memory.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
console = Console()


def _choices(kind: object) -> str:
    return ", ".join(get_args(kind))


@app.callback()
def main() -> None:
    """Stream joins that never outgrow their memory."""


@app.command("policies")
def list_policies() -> None:
    """List the policies, and when to use each."""
    table = Table("policy", "what stays", box=None, pad_edge=False)
    for name in policies.names():
        idea = inspect.cleandoc(type(policies.find(name)).__doc__ or "").split("\n\n")[0]
        table.add_row(name, idea.replace("\n", " "))
    console.print(table)


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where inputs, results and the page go.")] = Path(
        "tidegate-demo"
    ),
    seconds: Annotated[float, typer.Option(help="After this time nothing more is written.")] = 65.0,
) -> None:
    """See a bounded join at work: auctions and bids on local Spark, in a tenth of the memory."""
    part = _on_spark("demo")
    try:
        part.run_demo(folder, console, seconds=seconds)
    except part.QueryFailedError as error:
        _complain(error)
        raise typer.Exit(1) from error


@app.command("run")
def run_pipeline(
    file: Annotated[Path, typer.Argument(help="The pipeline, a TOML file.")],
    check: Annotated[bool, typer.Option("--check", help="Only check it; starts no Spark.")] = False,
    log: Annotated[Path | None, typer.Option(help="Where Spark's own words go.")] = None,
) -> None:
    """Run a pipeline: two sources, a join, a sink."""
    pipeline = _on_spark("pipeline")
    if check:
        console.print(f"{file}: {pipeline.check(file)}", markup=False, highlight=False, soft_wrap=True)
        return
    try:
        pipeline.run(file, log=log)
    except pipeline.QueryFailedError as error:
        _complain(error)
        raise typer.Exit(1) from error


@app.command()
def edge(
    omega: Annotated[float, typer.Option(help="The length of the brackets; seconds, for calendar times.")],
    shape: Annotated[
        str, typer.Option(help="How the alarm depends on the readings: " + _choices(Shape))
    ] = "quasiconvex",
    time: Annotated[str, typer.Option(help="The column of times.")] = "time",
    value: Annotated[str, typer.Option(help="The column of readings.")] = "value",
    key: Annotated[str | None, typer.Option(help="A column that tells streams apart.")] = None,
    form: Annotated[str, typer.Option(help="Of the lines: " + _choices(Form))] = "csv",
    disorder: Annotated[
        float, typer.Option(help="By how much a reading may be older than those before it.")
    ] = 0.0,
    hold: Annotated[
        float | None, typer.Option(help="How long a reading is held back at most, if not for omega.")
    ] = None,
    low: Annotated[float, typer.Option(help="The least reading for which the shape is known.")] = -math.inf,
    high: Annotated[float, typer.Option(help="The greatest one; those beyond are sent at once.")] = math.inf,
    patience: Annotated[
        float | None, typer.Option(help="Seconds by the clock after which a reading is sent in any case.")
    ] = None,
    max_line: Annotated[
        int, typer.Option(help="Bytes of a line at most; a longer one is an error.")
    ] = LONGEST_LINE,
) -> None:
    """Pass on of the readings on stdin only those that can decide an alarm; tell on stderr what that saves.

    A reading is held back until it is known to be needed: for omega and the disorder at most, or for as long as
    --hold says, in its own time; by the clock it is the same for calendar times, and --patience for others. Ctrl-C or
    a request to terminate ends the input, and what is held back is sent.
    """
    wanted = Edge(
        _whole(omega),
        cast("Shape", shape),
        time,
        value,
        key,
        cast("Form", form),
        _whole(disorder),
        None if hold is None else _whole(hold),
        low,
        high,
        patience,
        max_line,
    )
    with _ended_by_signals() as heard:
        savings = wanted.run(sys.stdin.buffer, sys.stdout.buffer, cut_short=lambda: bool(heard))
    hint = f"; a join of them needs a lateness of {wanted.behind:g} at least" if wanted.behind else ""
    Console(stderr=True).print(savings.told() + hint, highlight=False, soft_wrap=True)


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[list[int]]:
    """Let a signal be the end of the input, and tell of it: nothing is interrupted, so that no line is lost halfway.

    A second one ends the process.
    """
    heard: list[int] = []

    def end(number: int, _: object) -> None:
        heard.append(number)
        signal.signal(number, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield heard
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _whole(span: float) -> Time:
    return int(span) if span.is_integer() else span


def _on_spark(module: str) -> Any:  # noqa: ANN401 - a module
    """Load a part that needs Spark, only when it is asked for."""
    try:
        return importlib.import_module(f"tidegate.spark.{module}")
    except ModuleNotFoundError as error:
        raise InputError(
            f"this command needs {error.name}; run: pip install 'tidegate[spark,dashboard]'"
        ) from error


def _complain(error: Exception) -> None:
    Console(stderr=True).print(f"[bold red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)


@app.command()
def reproduce(
    names: Annotated[list[str] | None, typer.Argument(help="Which: 'ijoin/figure2', or 'fig2'.")] = None,
    paper: Annotated[str | None, typer.Option(help="Of which paper, by name or author.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All experiments of all papers.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer runs and rows: all in minutes.")] = False,
    most: Annotated[
        int | None, typer.Option("--runs", min=1, help="At most so many runs of each configuration.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="The folder of recorded streams, for what uses them.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where cells, numbers, pictures and pages go.")] = Path(
        "tidegate-reproduced"
    ),
    master: Annotated[
        str | None,
        typer.Option(help="Spark's master; all cores of this machine by default. 'none': no Spark."),
    ] = None,
    conf: Annotated[list[str] | None, typer.Option(help="A setting of Spark, as name=value.")] = None,
    docs: Annotated[Path | None, typer.Option(help="Also write a Markdown file, with its pictures.")] = None,
    finished: Annotated[
        bool, typer.Option("--finished", help="Run nothing; tell of the cells that are finished.")
    ] = False,
) -> None:
    """Run experiments of the papers again, with this code, on Spark, and judge what the papers say of them.

    Without a name they are listed. Cells that are finished are found in the output, so that a run that was stopped
    goes on where it was.
    """
    if not names and not everything and paper is None:
        _list_experiments()
        return
    chosen, skipped = _chosen(experiments.find(names or (), paper), data, named=bool(names))
    told = dict(_setting(one) for one in conf or ())
    plan = Plan.of(chosen, data)
    cells = {one.name: one.cells(quick=quick, most=most) for one in chosen}
    everyone = list(dict.fromkeys(cell for some in cells.values() for cell in some))
    runs.writable(out)
    try:
        if finished:
            outcomes, place = runs.finished(plan, everyone, out), "as far as it was finished"
        else:
            with (
                contextlib.nullcontext(runs.Here())
                if master == "none"
                else runs.on_spark(master, told) as where,
                runs.bar(console) as progress,
            ):
                place = "in one process" if master == "none" else f"on Spark, {where.cores} cores"
                outcomes = runs.run(plan, everyone, out, where, progress)
    except KeyboardInterrupt as stop:
        console.print(f"stopped; the same command goes on from what is in {out}", markup=False)
        raise typer.Exit(130) from stop
    told_of = {name: [cell for cell in some if cell in outcomes] for name, some in cells.items()}
    made = [reproduced(one, told_of[one.name], outcomes) for one in chosen if told_of[one.name]]
    skipped += [one.name for one in chosen if not told_of[one.name]]
    for one in made:
        _show(one)
    size = (
        "a quick run, with fewer rows and runs than in the papers"
        if quick
        else "with the papers' rows and runs"
        if most is None
        else f"with the papers' rows and at most {most} runs"
    )
    work = sum(one.seconds for one in outcomes.values()) / 3600
    effort = f"{len(outcomes):,} cells, {work:.1f} hours of processor time"
    run = f"tidegate {version('tidegate')}, {size}, {place}; {effort}"
    console.print(f"pages: {write_pages(made, out, run)}", markup=False, soft_wrap=True)
    if skipped:
        console.print(f"not run, or not without --data: {', '.join(skipped)}", markup=False)
    if docs is not None:
        write_document(made, docs, run, skipped)
    failed = list(dict.fromkeys(ended for one in made for ended in one.failed))
    if failed:
        _complain(RuntimeError(f"{len(failed)} of {len(everyone)} cells failed"))
        for ended in failed:
            _complain(RuntimeError(f"{ended.cell.told}: {ended.error}"))
        raise typer.Exit(1)


def _list_experiments() -> None:
    for name, paper in experiments.PAPERS.items():
        table = Table(
            title=f"{escape(paper.title)} ({escape(paper.authors)}): {name}",
            title_justify="left",
            title_style="bold",
            box=None,
            pad_edge=False,
            show_header=False,
        )
        for one in paper.experiments:
            needs = " [dim](needs --data)[/]" if one.recorded else ""
            table.add_row(one.name, f"{escape(one.title)}{needs}")
        console.print(table)
        console.print()
    console.print("Give a name, --paper or --all; --quick for fewer runs.")


def _chosen(found: list[Experiment], data: Path | None, *, named: bool) -> tuple[list[Experiment], list[str]]:
    """Those that can run, and the names of those that would need recorded streams."""
    if data is not None and not data.is_dir():
        raise InputError(f"there is no folder {data}; give the one that holds recorded streams by --data")
    needy = [one.name for one in found if one.recorded and data is None]
    if needy and named:
        raise InputError(
            f"{', '.join(needy)} needs recorded streams; give the folder that holds them by --data"
        )
    return [one for one in found if one.name not in needy], needy


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"--conf {text!r} is no setting; write name=value")
    return name, value


def _show(made: Reproduced) -> None:
    table = Table(
        *made.header,
        title=f"{made.figure}: {escape(made.experiment.title)} ({made.experiment.name})",
        title_justify="left",
    )
    for row in made.rows:
        table.add_row(*row, end_section="total" in row)
    console.print(table)
    for claim in made.claims:
        console.print(f"[bold]{claim.verdict}:[/] {escape(claim.text)} [dim]({escape(claim.numbers)})[/]")


@app.command()
def bench(
    what: Annotated[
        str, typer.Argument(help="What to measure: a module of the folder `benchmarks`.")
    ] = "core",
) -> None:
    """Measure, beside peers, in one run; from a checkout of the project."""
    root = Path(__file__).parents[2]
    known = sorted(path.stem for path in (root / "benchmarks").glob("[a-z]*.py"))
    if what not in known:
        listed = ", ".join(known) or "none: run this from a checkout of the project"
        raise typer.BadParameter(f"{what!r} is not a benchmark; use one of: {listed}")
    sys.path.insert(0, str(root))
    importlib.import_module(f"benchmarks.{what}").main()


def run() -> None:
    """Run the command line; what the user can mend is told in one line, without a traceback."""
    try:
        app()
    except InputError as error:
        _complain(error)
        sys.exit(2)
