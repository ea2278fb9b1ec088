"""The command line: `tidegate demo | run | edge | reproduce | policies | bench`."""

from __future__ import annotations

import importlib
import inspect
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tidegate import experiments, policies
from tidegate.alerts.bracket_store import Shape
from tidegate.alerts.edge import Edge, Form
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
    _on_spark("demo").run_demo(folder, console, seconds=seconds)


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
) -> None:
    """Pass on of the readings on stdin only those that can decide an alarm; tell on stderr what that saves.

    A reading is held back until it is known to be needed: for omega and the disorder at most, or for as long as
    --hold says, in its own time.
    """
    spans = (_whole(span) for span in (omega, disorder))
    held = None if hold is None else _whole(hold)
    wanted = Edge(next(spans), cast("Shape", shape), time, value, key, cast("Form", form), next(spans), held)
    savings = wanted.run(sys.stdin.buffer, sys.stdout.buffer)
    Console(stderr=True).print(savings.told(), highlight=False, soft_wrap=True)


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
    names: Annotated[list[str] | None, typer.Argument(help="Which; all by default.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="The folder of recorded streams, for what uses them.")
    ] = None,
    pictures: Annotated[
        Path | None, typer.Option(help="A folder for the pictures, as SVG, of what has one.")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="As long as in the papers, which may take hours.")
    ] = False,
) -> None:
    """Make tables of the papers again, with this code, and judge what the papers say of them."""
    known = experiments.ALL | experiments.FULL if full else dict(experiments.ALL)
    if data is not None:
        known |= {name: partial(make, data) for name, make in experiments.RECORDED.items()}
    for name in names or known:
        if name in experiments.RECORDED and data is None:
            raise InputError(f"{name} needs recorded streams; give the folder that holds them by --data")
        if name not in known:
            raise InputError(f"{name!r} cannot be reproduced yet; there is {', '.join(known)}")
        made = known[name]()
        table = Table(*made.header, title=f"{made.title} ({name})", title_justify="left")
        for row in made.rows:
            table.add_row(*row, end_section=row[1] == "total")
        console.print(table)
        for claim in made.claims:
            console.print(f"[bold]{claim.verdict}:[/] {escape(claim.text)} [dim]({escape(claim.numbers)})[/]")
        if made.picture is not None and pictures is not None:
            _draw(made.picture, pictures / f"{name.replace('/', '-')}.svg")


def _draw(picture: str, path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(picture, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{path} cannot be written ({error}); give a folder that can be by --pictures"
        ) from error
    console.print(f"drawn: {path}", markup=False)


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
