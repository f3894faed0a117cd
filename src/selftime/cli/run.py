"""`selftime run`: run an unchanged program, record a few steps, and print advice.

The program keeps its stdout, stdin and exit status; selftime prints to stderr.
"""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
import os
import sys
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NoReturn, TextIO

import typer

from selftime import LOAD_START_NS
from selftime.capture.program.triggers import parse_trigger
from selftime.capture.recorder.rank_list import checked_rank_list
from selftime.capture.recorder.run_options import RunOptions
from selftime.capture.temporary_folders import delete_folders_of_child
from selftime.cli.advice_process import folder_of_links, print_advice
from selftime.cli.error_reporting import print_notice
from selftime.cli.shared_options import ProgramCommand
from selftime.errors import UsageError

if TYPE_CHECKING:
    from selftime.capture.program.guarded_process import GuardedProcess
    from selftime.capture.program.run import Command, RunResult

_DEFAULT_RUN_OPTIONS: Final = RunOptions()

_ScriptArgument = Annotated[
    str | None, typer.Argument(metavar="SCRIPT", help="A script, or any command.")
]
_ProgramArguments = Annotated[
    list[str] | None, typer.Argument(metavar="ARGS", help="The program's arguments.")
]
_StepsOption = Annotated[int, typer.Option(min=1, metavar="N", help="Steps to record.")]
_WarmupOption = Annotated[
    int | None,
    typer.Option(min=0, metavar="N", help="Steps to skip first; default: until steady."),
]
_ModuleOption = Annotated[
    str | None,
    typer.Option("--module", "-m", metavar="MODULE", help="Run a module, as `python -m`."),
]
_MemoryOption = Annotated[bool, typer.Option("--memory/--no-memory", help="Record allocations.")]
_WorkersOption = Annotated[
    bool, typer.Option("--workers", help="Also record inside DataLoader workers.")
]
_LightOption = Annotated[
    bool, typer.Option("--light", help="Only log what the run spends its time on; record no trace.")
]
_MaxBytesOption = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="BYTES",
        help="Largest trace, before compression; default: "
        f"{_DEFAULT_RUN_OPTIONS.max_bytes >> 20} MiB.",
        show_default=False,
    ),
]
_HoldOption = Annotated[
    float,
    typer.Option(
        min=0, metavar="S", help="Longest time that writing the recording may stop the program."
    ),
]
_TriggerOption = Annotated[
    str | None,
    typer.Option(
        metavar="KIND",
        help="Record on demand: `file[:PATH]`, `signal[:NAME]` or `http[:PORT]`.",
    ),
]
_RanksOption = Annotated[
    str | None,
    typer.Option(metavar="LIST", callback=checked_rank_list, help="Ranks to record: `0,7-9`."),
]
_ResultsOption = Annotated[
    bool, typer.Option("--results", help="Also keep first losses and outputs, for `verify`.")
]
_SeedOption = Annotated[
    int | None, typer.Option(min=0, metavar="N", help="Seed the random generators first.")
]
_OutputFolderOption = Annotated[
    Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for traces.")
]
_QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print no advice.")]


def add_command(app: typer.Typer) -> None:
    app.command(
        "run",
        cls=ProgramCommand,
        context_settings={"allow_interspersed_args": False},
        short_help="Run a program, record a few steps, say what to change.",
        epilog="Example: selftime run train.py --epochs 1",
    )(run)


def run(  # noqa: PLR0913, PLR0917 - a command's options are its arguments
    script: _ScriptArgument = None,
    args: _ProgramArguments = None,
    module: _ModuleOption = None,
    steps: _StepsOption = _DEFAULT_RUN_OPTIONS.active,
    warmup: _WarmupOption = _DEFAULT_RUN_OPTIONS.warmup,
    seconds: Annotated[
        float, typer.Option(min=0, metavar="S", help="Longest time to record.")
    ] = _DEFAULT_RUN_OPTIONS.seconds,
    max_bytes: _MaxBytesOption = _DEFAULT_RUN_OPTIONS.max_bytes,
    hold: _HoldOption = _DEFAULT_RUN_OPTIONS.hold,
    stack: Annotated[
        bool, typer.Option("--stack/--no-stack", help="Record source lines.")
    ] = _DEFAULT_RUN_OPTIONS.with_stack,
    shapes: Annotated[
        bool, typer.Option("--shapes/--no-shapes", help="Record input shapes.")
    ] = _DEFAULT_RUN_OPTIONS.record_shapes,
    memory: _MemoryOption = _DEFAULT_RUN_OPTIONS.profile_memory,
    workers: _WorkersOption = _DEFAULT_RUN_OPTIONS.workers,
    light: _LightOption = _DEFAULT_RUN_OPTIONS.is_light,
    trigger: _TriggerOption = _DEFAULT_RUN_OPTIONS.trigger,
    ranks: _RanksOption = _DEFAULT_RUN_OPTIONS.ranks,
    results: _ResultsOption = _DEFAULT_RUN_OPTIONS.keeps_results,
    seed: _SeedOption = _DEFAULT_RUN_OPTIONS.seed,
    output: _OutputFolderOption = _DEFAULT_RUN_OPTIONS.folder,
    quiet: _QuietOption = False,
) -> None:
    """Run an unchanged program, record a few steps in its steady state, say what to change.

    Everything after SCRIPT, or after `-m MODULE`, goes to the program unchanged. The exit status
    is the program's.
    """
    scripts = [] if script is None else [script]
    target, given = _program_and_arguments(scripts, args or [], module)
    if trigger is not None:
        parse_trigger(trigger, output)  # report an unknown trigger before anything runs
    caller = _StateBeforeProgram()
    folder, notify = output.absolute(), None if quiet else caller.print_sentence
    limits = (warmup, steps, seconds, max_bytes, hold)
    details = stack, shapes, memory
    options = RunOptions(
        *limits, *details, folder, notify, workers, light, True, results, seed, trigger, ranks
    )
    program = _program_to_run(target, given, module is not None, options)
    _run_and_end(program, caller, quiet=quiet)


def _run_and_end(program: "_Program", caller: "_StateBeforeProgram", *, quiet: bool) -> NoReturn:
    """Runs a program, prints the answer, and ends this process as the program ended."""
    guard = None if program.is_command else _guarded_process(program)
    if guard is None or guard.fork():
        result = _run_program(program, guard)
        caller.restore_stderr()
        if caller.is_first_rank:
            with suppress(BrokenPipeError):  # nobody reads on; the status stays the program's
                _report_run_result(result, caller, quiet=quiet, light=program.options.is_light)
        if result.signal is not None and guard is not None:
            guard.end_as_interrupted()
        elif result.signal is not None and program.is_command:
            _die_by_signal(result.signal)
        raise typer.Exit(result.status)
    status = guard.wait()
    if not guard.has_returned:
        with suppress(BrokenPipeError):  # as above
            _report_ended_program(program, guard, status, caller, quiet=quiet)
    elif os.WIFSIGNALED(status) and not quiet and program.options.folder.is_dir():
        folder = caller.path_relative_to_start_folder(program.options.folder)
        caller.print_sentence(
            f"a signal ended the answer; to see it whole: selftime advise {folder}"
        )
    if program.command.channel is not None:
        program.command.channel.remove_folder()
    delete_folders_of_child(guard.process)
    guard.end_alike(status)


@dataclass(slots=True)
class _Program:
    """A program to run, and how."""

    target: str
    args: list[str]
    is_module: bool
    is_command: bool
    """Whether it is run without Python, in a process that this one starts."""
    options: RunOptions
    command: "Command"
    """What the program's process is told of this one."""


def _program_to_run(target: str, args: list[str], is_module: bool, options: RunOptions) -> _Program:
    from selftime.capture.program.run import Command, is_command

    runs_command = not is_module and is_command(target)
    return _Program(target, args, is_module, runs_command, options, Command(LOAD_START_NS))


def _guarded_process(program: _Program) -> "GuardedProcess | None":
    """Returns the process to run a Python program in, to be forked; None to run it in this one."""
    from selftime.capture.ledger.process_start import process_start_ns
    from selftime.capture.program.early_log import stop_early_log
    from selftime.capture.program.run import create_channel

    if sys.platform != "linux":
        return None
    from selftime.capture.program.guarded_process import GuardedProcess

    channel = program.command.channel = create_channel(program.options)
    if channel is None:
        return None
    stop_early_log()  # its thread would take signals that are to be passed on
    channel.is_guarded = True
    program.command.process_start_ns = process_start_ns()
    return GuardedProcess()


def _run_program(program: _Program, guard: "GuardedProcess | None") -> "RunResult":
    from selftime.capture.program.run import run_program

    if program.command.channel is not None:
        program.command.channel.root_pid = os.getpid()
    with guard.until_program_returns() if guard is not None else nullcontext():
        return run_program(
            program.target,
            program.args,
            module=program.is_module,
            options=program.options,
            command=program.command,
        )


def _die_by_signal(number: int) -> None:
    """Ends this process by the signal that ended the command, where there are such signals."""
    if sys.platform != "win32":
        from selftime.capture.program.guarded_process import die_by_signal

        die_by_signal(number)


def _report_ended_program(
    program: _Program,
    guard: "GuardedProcess",
    status: int,
    caller: "_StateBeforeProgram",
    *,
    quiet: bool,
) -> None:
    """Prints the answer on a program whose process ended before it could do so itself."""
    from selftime.capture.program.ended_program import (
        measure_cpu_after_end,
        result_of_ended_program,
    )

    assert program.command.channel is not None  # noqa: S101 - a guarded program has one
    result, how = result_of_ended_program(
        program.command.channel, guard.process, status, others_end=guard.is_group_signalled
    )
    if not caller.is_first_rank:
        return
    if how is not None and not quiet:
        caller.print_sentence(f"the program was {how}")
    if result.goes_on:
        _report_run_that_goes_on(result, caller, quiet=quiet)
        return
    if not quiet and not result.is_job:  # its messages are told with those of the others
        for sentence in result.messages_of_root:
            caller.print_sentence(sentence)
    if not quiet:
        guard.forget_signals()
        measure_cpu_after_end(result, status, caller.environment, lambda: guard.is_signalled)
    _report_run_result(result, caller, quiet=quiet, light=program.options.is_light)


def _program_and_arguments(
    script: list[str], args: list[str], module: str | None
) -> tuple[str, list[str]]:
    if module is not None:
        return module, [*script, *args]
    if not script:
        raise UsageError("there is no program to run; name a script, or a module with `-m`")
    return script[0], args


@dataclass(slots=True)
class _StateBeforeProgram:
    """Working folder, environment and stderr as they were before the user's program ran."""

    folder: Path = field(default_factory=Path.cwd)
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    stderr: TextIO = field(default_factory=lambda: sys.stderr)

    @property
    def is_first_rank(self) -> bool:
        return self.environment.get("RANK", "0") == "0"

    def print_sentence(self, sentence: str) -> None:
        theirs = getattr(sys, "stderr", None)
        sys.stderr = self.stderr
        if _has_progress_bar() and self.stderr.isatty():
            typer.echo(err=True)  # the bar's line has no end
        print_notice(f"selftime: {sentence}")
        sys.stderr = theirs

    def restore_stderr(self) -> None:
        """Flushes the program's stdout, and restores the stderr of before the program ran."""
        stdout = getattr(sys, "stdout", None)
        if stdout is not None and not stdout.closed:
            with suppress(OSError):  # the pipe's reader is gone; Python reports it at exit
                stdout.flush()
        sys.stderr = self.stderr

    def path_relative_to_start_folder(self, path: Path) -> str:
        return str(path.relative_to(self.folder) if path.is_relative_to(self.folder) else path)


def _has_progress_bar() -> bool:
    """Returns whether the program is showing a progress bar of tqdm."""
    tqdm = getattr(sys.modules.get("tqdm.std"), "tqdm", None)
    return bool(getattr(tqdm, "_instances", ()))


def _report_run_result(
    result: "RunResult", caller: _StateBeforeProgram, *, quiet: bool, light: bool
) -> None:
    if not result.traces:
        if not light:
            caller.print_sentence(_no_recording_sentence(result))
        if result.ledger is not None and not quiet:
            _print_advice(caller.path_relative_to_start_folder(result.ledger), caller=caller)
        return
    if quiet:
        return
    if result.is_job:
        for sentence in result.sentences(caller.path_relative_to_start_folder):
            caller.print_sentence(sentence)
    trace = caller.path_relative_to_start_folder(result.answer or result.traces[-1])
    typer.echo(err=True)
    ranks = result.traces_of_ranks
    if len(ranks) > 1:
        with folder_of_links(ranks) as folder:
            _print_advice(folder, "--unless-job", trace, caller=caller)
    else:
        _print_advice(trace, caller=caller)
    typer.echo(err=True)
    if len(ranks) > 1:
        caller.print_sentence(f"this answer is for {len(ranks)} ranks; for one: {trace}")
    else:
        told = "this answer is for" if len(result.traces) > 1 else "trace saved to"
        caller.print_sentence(f"{told} {trace}")
    caller.print_sentence(f"list its operators: selftime view operators {trace}")


def _report_run_that_goes_on(
    result: "RunResult", caller: _StateBeforeProgram, *, quiet: bool
) -> None:
    """Says what there is of a program whose other processes still run, and need the cores."""
    if quiet:
        return
    for sentence in result.sentences(caller.path_relative_to_start_folder):
        caller.print_sentence(sentence)
    if result.answer is not None:
        trace = caller.path_relative_to_start_folder(result.answer)
        caller.print_sentence(f"for the answer so far: selftime advise {trace}")


def _no_recording_sentence(result: "RunResult") -> str:
    reason = str(result.reason)
    if result.ledger is None:
        return f"nothing was recorded: {reason}"
    return reason if reason.startswith("no step was") else f"no step was recorded: {reason}"


def _print_advice(*arguments: str, caller: _StateBeforeProgram) -> None:
    print_advice(*arguments, folder=caller.folder, environment=caller.environment, to_stderr=True)
