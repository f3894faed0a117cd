"""`selftime preflight`: without a GPU, find the lines that would make the host wait for one."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from selftime.cli import output_writing
from selftime.cli.error_reporting import print_notice
from selftime.cli.shared_options import FORMAT_OPTION, OutputFile, ProgramCommand
from selftime.errors import UsageError

if TYPE_CHECKING:
    from selftime.capture.preflight.program import PreflightResult

_DEFAULT_NUMBER_OF_STEPS: Final = 3
"""Default of `--steps`: enough to tell waits that occur in each step from rarer waits."""


_CANNOT_JUDGE: Final = 3
"""Exit status with `--fail-on-sync` of a program without anything to check, as of `check`."""


class OutputFormat(str, Enum):
    """Output formats of `selftime preflight`."""

    text = "text"
    json = "json"


_StepsOption: TypeAlias = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="N",
        help="Number of steps to check after the first; the program is then ended.",
    ),
]


def add_command(app: typer.Typer) -> None:
    app.command(
        "preflight",
        cls=ProgramCommand,
        context_settings={"allow_interspersed_args": False},
        short_help="Without a GPU, find the lines that would make the host wait for one.",
        epilog="Example: selftime preflight train.py --batch-size 4",
    )(preflight)


def preflight(  # noqa: PLR0913, PLR0917 - a command's options are its arguments
    script: Annotated[str | None, typer.Argument(metavar="SCRIPT", help="The program.")] = None,
    args: Annotated[
        list[str] | None, typer.Argument(metavar="ARGS", help="The program's arguments.")
    ] = None,
    module: Annotated[
        str | None,
        typer.Option("--module", "-m", metavar="MODULE", help="Run a module, as `python -m`."),
    ] = None,
    steps: _StepsOption = _DEFAULT_NUMBER_OF_STEPS,
    to_the_end: Annotated[
        bool, typer.Option("--to-the-end", help="Let the program run to its end.")
    ] = False,
    output_format: Annotated[OutputFormat | None, FORMAT_OPTION] = None,
    fail_on_sync: Annotated[
        bool, typer.Option("--fail-on-sync", help="Exit with 1 if any line makes the host wait.")
    ] = False,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="On a machine with a GPU: compare with the real device."),
    ] = False,
    output: OutputFile = None,
) -> None:
    """Run a program on a simulated CUDA device; name each line where the host would wait.

    Everything after SCRIPT, or after `-m MODULE`, goes to the program unchanged. `"cuda"` in it
    means the simulated device, whose results are computed on the CPU. The program is ended after N
    steps. The exit status is the program's, or 0 if it was ended.
    """
    target, given = _program_and_arguments(
        [script] if script is not None else [], args or [], module
    )
    output_format = output_format or output_writing.format_for_file(output, OutputFormat.text)
    root, limit = str(Path.cwd()), None if to_the_end else steps
    if verify:
        _verify_on_real_device(target, given, is_module=module is not None, steps=limit)
        return
    output = None if output is None else output.absolute()
    # Another program reads the JSON on stdout, so the user's program prints to stderr.
    with _redirected_stdout(output_format is OutputFormat.json and output is None):
        flight = _run_preflight(target, given, is_module=module is not None, steps=limit)
    if not flight.used_device:
        print_notice(f"selftime: {_nothing_to_check_sentence(flight)}")
    _write_preflight_report(flight, output_format, output, program=target, root=root)
    raise typer.Exit(flight.status or _status_of_check(flight) * fail_on_sync)


def _nothing_to_check_sentence(flight: "PreflightResult") -> str:
    if not flight.imported_torch:
        return "the program never imported torch: there was nothing to check"
    return (
        "the program put nothing on a CUDA device: there was nothing to check; give it the "
        "arguments with which it uses one"
    )


def _status_of_check(flight: "PreflightResult") -> int:
    """Returns 1 if a line makes the host wait, 3 if no line was checked, else 0."""
    if flight.found.sites:
        return 1
    return 0 if flight.used_device else _CANNOT_JUDGE


def _run_preflight(
    script_or_module: str, args: list[str], *, is_module: bool, steps: int | None
) -> "PreflightResult":
    from selftime.capture.preflight.program import run_preflight

    return run_preflight(script_or_module, args, module=is_module, steps=steps)


def _program_and_arguments(
    script: list[str], args: list[str], module: str | None
) -> tuple[str, list[str]]:
    if module is not None:
        return module, [*script, *args]
    if not script:
        raise UsageError("there is no program to run; name a script, or a module with `-m`")
    return script[0], args


@contextmanager
def _redirected_stdout(is_redirected: bool) -> Iterator[None]:
    """Sends stdout to stderr within a `with` block if `is_redirected`, else changes nothing."""
    streams = sys.stdout, sys.stderr
    kept = None
    if is_redirected:
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
                with suppress(OSError):  # the pipe's reader is gone; Python reports it at exit
                    stream.flush()
        if kept is not None:
            os.dup2(kept, 1)
            os.close(kept)


def _write_preflight_report(
    preflight_result: "PreflightResult",
    output_format: OutputFormat,
    output: Path | None,
    *,
    program: str,
    root: str,
) -> None:
    from selftime.reports import preflight as preflight_report

    if output_format is OutputFormat.json:
        output_writing.write_output(
            preflight_report.as_json(preflight_result, program=program, root=root), to=output
        )
        return
    width = 80 if output is not None else output_writing.terminal_width()
    colour = output is None and output_writing.uses_colour()
    page = preflight_report.as_text(
        preflight_result, program=program, root=root, width=width, colour=colour
    )
    output_writing.write_output(page if output is not None else f"\n{page}", to=output)


def _verify_on_real_device(
    script_or_module: str, args: list[str], *, is_module: bool, steps: int | None
) -> None:
    from selftime.capture.preflight.real_device import compare_waits_with_gpu
    from selftime.reports.preflight import comparison_text

    result = compare_waits_with_gpu(script_or_module, args, module=is_module, steps=steps)
    output_writing.write_output(
        comparison_text(result, root=str(Path.cwd()), width=output_writing.terminal_width())
    )
