"""`selftime run`: a program as it is, a few of its steps recorded, then the answer.

The program keeps stdout, stdin and its exit status; everything of ours goes to stderr.
"""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TextIO

import typer

from selftime.capture.program.triggers import made
from selftime.capture.recorder.run_options import RunOptions
from selftime.cli.arguments import EndsAtTheProgram
from selftime.cli.boundary import say
from selftime.errors import UsageError

if TYPE_CHECKING:
    from selftime.capture.program.run import RunResult

_DEFAULT: Final = RunOptions()
_ANSWER: Final = (
    "import sys; sys.path = [p for p in sys.path if p]; from selftime.cli import main; main()"
)
"""The command line in a new process, which finds no module in the working folder by accident."""


_Script = Annotated[str | None, typer.Argument(metavar="SCRIPT", help="A script, or any command.")]
_Args = Annotated[
    list[str] | None, typer.Argument(metavar="ARGS", help="What the program is given.")
]
_ModuleName = Annotated[
    str | None,
    typer.Option("--module", "-m", metavar="MODULE", help="Run a module, as `python -m`."),
]
_Memory = Annotated[bool, typer.Option("--memory/--no-memory", help="Record allocations.")]
_Workers = Annotated[
    bool, typer.Option("--workers", help="Record inside the workers of DataLoaders, too.")
]
_Trigger = Annotated[
    str | None,
    typer.Option(
        metavar="WAY",
        help="Record when asked: `file[:PATH]`, `signal[:NAME]` or `http[:PORT]`.",
    ),
]
_Output = Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Where traces go.")]
_Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no advice.")]


def join(app: typer.Typer) -> None:
    app.command(
        "run",
        cls=EndsAtTheProgram,
        context_settings={"allow_interspersed_args": False},
        short_help="Run a program, record a few steps, say what to change.",
        epilog="Example: selftime run train.py --epochs 1",
    )(run)


def run(  # noqa: PLR0913, PLR0917 - a command's options are its arguments
    script: _Script = None,
    args: _Args = None,
    module: _ModuleName = None,
    steps: Annotated[
        int, typer.Option(min=1, metavar="N", help="Steps to record.")
    ] = _DEFAULT.active,
    warmup: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Steps to skip first; default: until steady."),
    ] = _DEFAULT.warmup,
    seconds: Annotated[
        float, typer.Option(min=0, metavar="S", help="Longest time to record.")
    ] = _DEFAULT.seconds,
    max_bytes: Annotated[
        int, typer.Option(min=1, metavar="BYTES", help="Largest trace, before compression.")
    ] = _DEFAULT.max_bytes,
    hold: Annotated[
        float, typer.Option(min=0, metavar="S", help="Longest pause of the program at the end.")
    ] = _DEFAULT.hold,
    stack: Annotated[
        bool, typer.Option("--stack/--no-stack", help="Record source lines.")
    ] = _DEFAULT.with_stack,
    shapes: Annotated[
        bool, typer.Option("--shapes/--no-shapes", help="Record input shapes.")
    ] = _DEFAULT.record_shapes,
    memory: _Memory = _DEFAULT.profile_memory,
    workers: _Workers = _DEFAULT.workers,
    trigger: _Trigger = _DEFAULT.trigger,
    output: _Output = _DEFAULT.folder,
    quiet: _Quiet = False,
) -> None:
    """Run a program as it is, record a few steps in its steady state, say what to change.

    Everything after SCRIPT, or after `-m MODULE`, goes to the program untouched. The exit status
    is the program's own.
    """
    target, given = _target([script] if script is not None else [], args or [], module)
    if trigger is not None:
        made(trigger, output)  # a way that there is not is told before anything runs
    place = _Place()
    folder, notify = output.absolute(), None if quiet else place.tell
    limits = (warmup, steps, seconds, max_bytes, hold)
    options = RunOptions(*limits, stack, shapes, memory, folder, notify, workers, trigger)
    result = _recorded(target, given, module is not None, options)
    place.restore()
    if place.is_first_rank:
        _tell(result, place, quiet=quiet)
    raise typer.Exit(result.status)


def _recorded(target: str, args: list[str], is_module: bool, options: RunOptions) -> "RunResult":
    from selftime.capture.program.run import run_program

    return run_program(target, args, module=is_module, options=options)


def _target(script: list[str], args: list[str], module: str | None) -> tuple[str, list[str]]:
    if module is not None:
        return module, [*script, *args]
    if not script:
        raise UsageError("there is no program to run; name a script, or a module with `-m`")
    return script[0], args


@dataclass(slots=True)
class _Place:
    """Where we were called: the program may leave it, or close the door behind it."""

    folder: Path = field(default_factory=Path.cwd)
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    stderr: TextIO = field(default_factory=lambda: sys.stderr)

    @property
    def is_first_rank(self) -> bool:
        return self.environment.get("RANK", "0") == "0"

    def tell(self, sentence: str) -> None:
        theirs = getattr(sys, "stderr", None)
        sys.stderr = self.stderr
        say(f"selftime: {sentence}")
        sys.stderr = theirs

    def restore(self) -> None:
        """What the program wrote comes before what we write."""
        stdout = getattr(sys, "stdout", None)
        if stdout is not None and not stdout.closed:
            with suppress(OSError):  # nobody reads it any more; Python says so at the end
                stdout.flush()
        sys.stderr = self.stderr

    def seen(self, path: Path) -> str:
        return str(path.relative_to(self.folder) if path.is_relative_to(self.folder) else path)


def _tell(result: "RunResult", place: _Place, *, quiet: bool) -> None:
    if not result.traces:
        place.tell(f"nothing was recorded: {result.reason}")
        return
    if quiet:
        return
    if result.is_job:
        for sentence in result.sentences(place.seen):
            place.tell(sentence)
    trace = place.seen(result.answer or result.traces[-1])
    typer.echo(err=True)
    _advise(trace, place)
    typer.echo(err=True)
    place.tell(f"{'this answer is for' if len(result.traces) > 1 else 'trace saved to'} {trace}")
    place.tell(f"list its operators: selftime view operators {trace}")


def _advise(trace: str, place: _Place) -> None:
    """The answer, in a process that the program has not changed: its `__main__` stays its own."""
    subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-c", _ANSWER, "advise", trace],
        cwd=place.folder,
        env=place.environment,
        stdin=subprocess.DEVNULL,
        stdout=2,
        check=False,  # what is wrong is told by then, and the status is the program's
    )
