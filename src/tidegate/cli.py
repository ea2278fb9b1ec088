"""The command line: `tidegate --help` lists the commands.

Each command imports what it needs when it runs, so that `tidegate run` loads neither experiments nor the demo.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import tidegate
from tidegate.types import InputError, Time

Shape = Literal["quasiconvex", "increasing", "decreasing", "any"]
LineFormat = Literal["csv", "json"]

_MAX_LINE_BYTES: Final = 1 << 20

app = typer.Typer(
    help="Join streams within a hard memory budget.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
console = Console()


def _examples(*lines: str) -> str:
    """Examples for the end of a help text, as a Markdown list."""
    return "Examples:\n\n" + "\n\n".join(f"- {line}" for line in lines)


def _show_version(value: bool) -> None:
    if value:
        console.print(f"tidegate {tidegate.__version__}", highlight=False)
        raise typer.Exit


@app.callback(
    epilog=_examples("tidegate demo", "tidegate run auctions.toml --check", "tidegate run --help"),
)
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Join streams within a hard memory budget."""


@app.command("policies", epilog=_examples("tidegate policies"))
def list_policies() -> None:
    """List the policies and when to use each.

    A policy chooses the rows that stay in memory when the budget is full. Give its name as `policy` to
    tidegate.join, to tidegate.simulate, or under [join] in a pipeline file.
    """
    from tidegate import policies  # noqa: PLC0415 - see the module's docstring

    table = Table("policy", "when to use it", box=None, pad_edge=False)
    for name, use_when in policies.describe().items():
        table.add_row(name, use_when)
    console.print(table)


@app.command(epilog=_examples("tidegate demo", "tidegate demo --folder /tmp/demo"))
def demo(
    folder: Annotated[
        Path,
        typer.Option(help="Folder for inputs, results and the page. Replaces an earlier demo."),
    ] = Path("tidegate-demo"),
) -> None:
    """Join two streams on local Spark with a tenth of the memory, and write a page with charts.

    It compares Spark's own join, Tidegate without a limit, and policies that choose a tenth of the rows.
    """
    part = _on_spark("demo")
    try:
        part.run_demo(folder, console)
    except part.QueryFailedError as error:
        _print_error(error)
        raise typer.Exit(1) from error


@app.command(
    "run",
    epilog=_examples("tidegate run auctions.toml --check", "tidegate run auctions.toml --log spark.log"),
)
def run_pipeline(
    file: Annotated[Path, typer.Argument(help="Pipeline file (TOML).")],
    check: Annotated[
        bool, typer.Option("--check", help="Check the file and exit. Does not start Spark.")
    ] = False,
    log: Annotated[Path | None, typer.Option(help="File for Spark's log.")] = None,
) -> None:
    """Run a pipeline file: two sources, a join and a sink.

    A stream runs until Ctrl-C or SIGTERM. When it is run again, it continues from its checkpoint.
    """
    pipeline = _on_spark("pipeline")
    if check:
        console.print(f"{file}: {pipeline.check(file)}", markup=False, highlight=False, soft_wrap=True)
        return
    try:
        pipeline.run(file, log=log)
    except pipeline.QueryFailedError as error:
        _print_error(error)
        raise typer.Exit(1) from error


@app.command(
    epilog=_examples(
        "tidegate rescale /checkpoints/bids --buckets 8",
        "tidegate rescale /checkpoints/bids --buckets 8 --to /checkpoints/bids-8",
    )
)
def rescale(
    checkpoint: Annotated[str, typer.Argument(help="The checkpointLocation of a query that is stopped.")],
    buckets: Annotated[int, typer.Option(help="The new number of buckets.")],
    to: Annotated[
        str | None, typer.Option(help="Path of the new checkpoint; by default CHECKPOINT-N-buckets.")
    ] = None,
) -> None:
    """Write a new checkpoint of a stopped join, with another number of buckets. The old one is not changed.

    Start the query again with the new checkpoint and `tidegate.join(..., buckets=N)`. Policies start without anything
    learned.
    """
    target = to or f"{checkpoint.rstrip('/')}-{buckets}-buckets"
    module, local = _on_spark("inspect.rescale"), _on_spark("session.local")
    spark = local.local_session("tidegate rescale")
    try:
        module.rescale(checkpoint, buckets, target, spark=spark)
    finally:
        spark.stop()
    console.print(
        f"written to {target}; start the query with this checkpointLocation and buckets={buckets}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


@app.command(
    epilog=_examples(
        "sensor | tidegate edge --bracket 10 | send",
        "sensor | tidegate edge --bracket 2.5 --shape increasing --key machine --format json | send",
    )
)
def edge(
    bracket: Annotated[
        float,
        typer.Option(help="Length of a bracket, in the unit of the time column (seconds for timestamps)."),
    ],
    shape: Annotated[Shape, typer.Option(help="Shape of the alarm condition by reading.")] = "quasiconvex",
    time: Annotated[str, typer.Option(help="Name of the time column.")] = "time",
    value: Annotated[str, typer.Option(help="Name of the column with the readings.")] = "value",
    key: Annotated[
        str | None,
        typer.Option(help="Name of the key column: each key is a separate stream. Default: one stream."),
    ] = None,
    line_format: Annotated[
        LineFormat, typer.Option("--format", help="Input and output format. CSV has a header line.")
    ] = "csv",
    disorder: Annotated[
        float, typer.Option(help="Maximum time by which a reading may be older than the newest one.")
    ] = 0.0,
    hold: Annotated[
        float | None,
        typer.Option(
            help="Maximum time to hold a reading back, in the unit of the time column. Default: the bracket."
        ),
    ] = None,
    low: Annotated[float, typer.Option(help="Send readings below this value immediately.")] = -math.inf,
    high: Annotated[float, typer.Option(help="Send readings above this value immediately.")] = math.inf,
    max_wait: Annotated[
        float | None,
        typer.Option(
            help="Maximum wall-clock time to hold a reading back, in seconds. Default for timestamps: as --hold."
        ),
    ] = None,
    max_line: Annotated[
        int, typer.Option(help="Maximum length of a line in bytes. A longer line is an error.")
    ] = _MAX_LINE_BYTES,
) -> None:
    """Read sensor readings from stdin, and write those that can decide an alarm to stdout.

    A reading is held back until it is known whether it is needed, for at most a bracket plus the disorder. Ctrl-C or
    SIGTERM ends the input, and readings that are held back are written first. A summary is written to stderr.
    """
    from tidegate.alerts.edge import Edge  # noqa: PLC0415 - see the module's docstring

    config = Edge(
        omega=_as_integer_if_whole(bracket),
        shape=shape,
        time=time,
        value=value,
        key=key,
        format=line_format,
        disorder=_as_integer_if_whole(disorder),
        hold=None if hold is None else _as_integer_if_whole(hold),
        low=low,
        high=high,
        max_wait=max_wait,
        max_line=max_line,
    )
    with _input_ended_by_signals() as signals:
        report = config.run(sys.stdin.buffer, sys.stdout.buffer, cut_short=lambda: bool(signals))
    lateness = config.required_lateness
    hint = f"; a join of them needs a lateness of at least {lateness:g}" if lateness else ""
    Console(stderr=True).print(report.summary() + hint, highlight=False, soft_wrap=True)


@contextlib.contextmanager
def _input_ended_by_signals() -> Iterator[list[int]]:
    """Treat a signal as the end of the input, so that no line is truncated; yield the signals received so far.

    A second signal ends the process.
    """
    received: list[int] = []

    def end(number: int, _: object) -> None:
        received.append(number)
        signal.signal(number, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _as_integer_if_whole(duration: float) -> Time:
    return int(duration) if duration.is_integer() else duration


def _on_spark(module: str) -> Any:  # noqa: ANN401 - a module
    """Import a module that needs Spark; the error names the package to install."""
    try:
        return importlib.import_module(f"tidegate.spark.{module}")
    except ModuleNotFoundError as error:
        raise InputError(
            f"this command needs {error.name}; run: pip install 'tidegate[spark,pictures]'"
        ) from error


def _print_error(error: Exception) -> None:
    Console(stderr=True).print(f"[bold red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)


@app.command(
    epilog=_examples(
        "tidegate reproduce",
        "tidegate reproduce fig2 --paper ijoin",
        "tidegate reproduce --all --quick --out results",
    )
)
def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Names of experiments, such as 'ijoin/figure2' or 'fig2'."),
    ] = None,
    paper: Annotated[
        str | None, typer.Option(help="Name or author of a paper: run its experiments only.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Run all experiments of all papers.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Use fewer runs and rows: minutes instead of hours.")
    ] = False,
    max_runs: Annotated[
        int | None, typer.Option("--runs", min=1, help="Maximum number of runs of each configuration.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder of recorded streams, for experiments that need them.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Output folder for results, charts and pages.")] = Path(
        "tidegate-reproduced"
    ),
    master: Annotated[
        str | None,
        typer.Option(help="Spark master. Default: all cores of this machine. 'none' runs without Spark."),
    ] = None,
    conf: Annotated[
        list[str] | None, typer.Option(help="Spark setting as name=value. Can be repeated.")
    ] = None,
    docs: Annotated[
        Path | None, typer.Option(help="Markdown file to write, with a folder of charts next to it.")
    ] = None,
    finished: Annotated[
        bool, typer.Option("--finished", help="Report the finished cells without running any.")
    ] = False,
) -> None:
    """Run the experiments of the papers, and check the papers' claims.

    Without a name, --paper or --all, the experiments are listed. Each experiment is a grid of cells that run on
    Spark. Finished cells are stored in the output folder, so a run that was stopped continues where it stopped.
    """
    from tidegate.experiments import reproduce as command  # noqa: PLC0415 - see the module's docstring

    if not names and not everything and paper is None:
        command.list_experiments(console)
        return
    request = command.Request(
        names or (),
        paper,
        quick,
        max_runs,
        data,
        out,
        master,
        command.parse_settings(conf or ()),
        docs,
        finished,
    )
    try:
        failed, count = command.reproduce(request, console)
    except KeyboardInterrupt as stop:
        console.print(f"stopped; run the same command again to continue from {out}", markup=False)
        raise typer.Exit(130) from stop
    if failed:
        _print_error(RuntimeError(f"{len(failed)} of {count} cells failed"))
        for result in failed:
            _print_error(RuntimeError(f"{result.cell.description}: {result.error}"))
        raise typer.Exit(1)


@app.command(epilog=_examples("tidegate bench", "tidegate bench policies"))
def bench(
    what: Annotated[
        str, typer.Argument(help="Name of the benchmark: a module in the folder `benchmarks`.")
    ] = "core",
) -> None:
    """Run a benchmark and compare with other libraries. Needs a clone of the project."""
    root = Path(__file__).parents[2]
    known = sorted(path.stem for path in (root / "benchmarks").glob("[a-z]*.py"))
    if what not in known:
        listed = ", ".join(known) or "none: run this command from a clone of the project"
        raise typer.BadParameter(f"{what!r} is not a benchmark; use one of: {listed}")
    sys.path.insert(0, str(root))
    importlib.import_module(f"benchmarks.{what}").main()


def run() -> None:
    """Run the command line; an `InputError` is shown as one line, without a traceback."""
    try:
        app()
    except InputError as error:
        _print_error(error)
        sys.exit(2)
