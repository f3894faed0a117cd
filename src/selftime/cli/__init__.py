"""Defines the command line; each command is a module, imported only when the command runs."""

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
    hang,
    ledger,
    mcp,
    preflight,
    query_process,
    redact,
    repair,
    report,
    resource_limits,
    run,
    serve,
    sql,
    verify,
    view,
    views,
    watch,
    what_if,
)
from selftime.cli.error_reporting import ErrorReportingGroup

__all__ = ["app", "main"]

app = typer.Typer(
    name="selftime",
    cls=ErrorReportingGroup,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: selftime run train.py --epochs 1",
)
run.add_command(app)
preflight.add_command(app)
advise.add_command(app)
what_if.add_command(app)
ledger.add_command(app)
watch.add_command(app)
hang.add_command(app)
view.add_command(app)
views.add_command(app)
sql.add_command(app)
explain.add_command(app)
verify.add_command(app)
compare.add_command(app)
check.add_command(app)
bench.add_command(app)
serve.add_command(app)
mcp.add_command(app)
report.add_command(app)
repair.add_command(app)
cut.add_command(app)
redact.add_command(app)
export.add_command(app)
doctor.add_command(app)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"selftime {__version__}")
        raise typer.Exit


@app.callback()
def _root_command(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version."
        ),
    ] = False,
) -> None:
    """Find out where a PyTorch program spends its time, what to change, and what it saves."""


def main() -> None:
    """Runs the command `selftime` with the arguments of the process."""
    limits = resource_limits.tight_resource_limits(sys.argv[1:])
    if limits:
        sys.exit(resource_limits.run_under_tight_limits(app, limits))
    query_process.continue_in_child_process(sys.argv[1:])
    app()
