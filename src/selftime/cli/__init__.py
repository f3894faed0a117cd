"""The command line: one file for each command, and nothing heavy loaded before one runs."""

import sys
from typing import Annotated

import typer

from selftime._version import __version__
from selftime.cli import (
    advise,
    bench,
    check,
    compare,
    cut,
    doctor,
    explain,
    export,
    limited,
    mcp,
    preflight,
    redact,
    repair,
    report,
    run,
    serve,
    sql,
    verify,
    view,
    views,
)
from selftime.cli.boundary import OneSentence

__all__ = ["app", "main"]

app = typer.Typer(
    name="selftime",
    cls=OneSentence,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: selftime run train.py --epochs 1",
)
run.join(app)
preflight.join(app)
advise.join(app)
view.join(app)
views.join(app)
sql.join(app)
explain.join(app)
verify.join(app)
compare.join(app)
check.join(app)
bench.join(app)
serve.join(app)
mcp.join(app)
report.join(app)
repair.join(app)
cut.join(app)
redact.join(app)
export.join(app)
doctor.join(app)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"selftime {__version__}")
        raise typer.Exit


@app.callback()
def _selftime(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version."
        ),
    ] = False,
) -> None:
    """Find out where a PyTorch program spends its time, what to change, and what it saves."""


def main() -> None:
    """The command `selftime`."""
    known = limited.limits(sys.argv[1:])
    if known:
        sys.exit(limited.supervised(app, known))
    app()
