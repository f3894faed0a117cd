"""`selftime preflight`: the lines that would make the host wait for a GPU, found without one."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from selftime.cli import writing
from selftime.cli.arguments import EndsAtTheProgram
from selftime.cli.boundary import say
from selftime.cli.options import FORMAT, OutputFile
from selftime.errors import UsageError

if TYPE_CHECKING:
    from selftime.capture.preflight.program import Preflight

_STEPS: Final = 3
"""Enough to tell what is in every step from what is in some; a laptop is slow."""


class Format(str, Enum):
    """How the answer is written."""

    text = "text"
    json = "json"


def join(app: typer.Typer) -> None:
    app.command(
        "preflight",
        cls=EndsAtTheProgram,
        context_settings={"allow_interspersed_args": False},
        short_help="Without a GPU, find the lines that would make it wait.",
        epilog="Example: selftime preflight train.py --batch-size 4",
    )(preflight)


def preflight(  # noqa: PLR0913, PLR0917 - a command's options are its arguments
    script: Annotated[str | None, typer.Argument(metavar="SCRIPT", help="The program.")] = None,
    args: Annotated[
        list[str] | None, typer.Argument(metavar="ARGS", help="What the program is given.")
    ] = None,
    module: Annotated[
        str | None,
        typer.Option("--module", "-m", metavar="MODULE", help="Run a module, as `python -m`."),
    ] = None,
    steps: Annotated[
        int, typer.Option(min=1, metavar="N", help="Steps to count after the first, then end.")
    ] = _STEPS,
    to_the_end: Annotated[
        bool, typer.Option("--to-the-end", help="Let the program run to its own end.")
    ] = False,
    form: Annotated[Format | None, FORMAT] = None,
    fail_on_sync: Annotated[
        bool, typer.Option("--fail-on-sync", help="Exit with 1 if any line makes the host wait.")
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="On a machine with a GPU: compare with what it does.")
    ] = False,
    output: OutputFile = None,
) -> None:
    """Run a program on a CUDA device that is pretended; name each line where the host would wait.

    Everything after SCRIPT, or after `-m MODULE`, goes to the program untouched. `"cuda"` in it
    means the pretended device, whose results are computed on the CPU. After N steps the program is
    ended. The exit status is the program's own, and 0 where it was ended.
    """
    target, given = _target([script] if script is not None else [], args or [], module)
    form = form or writing.format_of(output, Format.text)
    root, limit = str(Path.cwd()), None if to_the_end else steps
    if verify:
        _verify(target, given, module=module is not None, steps=limit)
        return
    output = None if output is None else output.absolute()
    # JSON on stdout is for a program to read: what the user's prints goes to stderr then.
    with _own_stdout(form is Format.json and output is None):
        flight = _flown(target, given, module=module is not None, steps=limit)
    if not flight.imported_torch:
        say("selftime: the program never imported torch: there was nothing to look at")
    _write(flight, form, output, program=target, root=root)
    failed = fail_on_sync and bool(flight.found.sites)
    raise typer.Exit(flight.status or int(failed))


def _flown(target: str, args: list[str], *, module: bool, steps: int | None) -> "Preflight":
    from selftime.capture.preflight.program import run_preflight

    return run_preflight(target, args, module=module, steps=steps)


def _target(script: list[str], args: list[str], module: str | None) -> tuple[str, list[str]]:
    if module is not None:
        return module, [*script, *args]
    if not script:
        raise UsageError("there is no program to run; name a script, or a module with `-m`")
    return script[0], args


@contextmanager
def _own_stdout(reserved: bool) -> Iterator[None]:
    """Give the program stderr for its stdout if ours is reserved, and take both back after it."""
    streams = sys.stdout, sys.stderr
    kept = None
    if reserved:
        sys.stdout.flush()
        kept = os.dup(1)
        os.dup2(2, 1)
    try:
        yield
    finally:
        theirs = getattr(sys, "stdout", None)
        sys.stdout, sys.stderr = streams
        for stream in (theirs, sys.stdout):
            if stream is not None and not stream.closed:
                with suppress(OSError):  # nobody reads it any more; Python says so at the end
                    stream.flush()
        if kept is not None:
            os.dup2(kept, 1)
            os.close(kept)


def _write(
    flight: "Preflight", form: Format, output: Path | None, *, program: str, root: str
) -> None:
    from selftime.reports import preflight as report

    if form is Format.json:
        writing.write(report.as_json(flight, program=program, root=root), to=output)
        return
    width = 80 if output is not None else writing.terminal_width()
    colour = output is None and writing.is_colourful()
    page = report.as_text(flight, program=program, root=root, width=width, colour=colour)
    writing.write(page if output is not None else f"\n{page}", to=output)


def _verify(target: str, args: list[str], *, module: bool, steps: int | None) -> None:
    from selftime.capture.preflight.verify import compare
    from selftime.reports.preflight import compared

    result = compare(target, args, module=module, steps=steps)
    writing.write(compared(result, root=str(Path.cwd()), width=writing.terminal_width()))
