"""Runs an unchanged program and records a few of its steady steps."""

import atexit
import os
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from selftime.capture.ledger.run_ledger import RunLedger
from selftime.capture.program.after_import import cancel_after_import
from selftime.capture.program.command import ProgramCommand, is_command
from selftime.capture.program.early_log import stop_early_log
from selftime.capture.program.printed_tracebacks import hide_own_frames_in_printed_tracebacks
from selftime.capture.program.python_program import PythonProgram
from selftime.capture.program.recorded_process import RecordedProcess
from selftime.capture.program.run_channel import ProcessReport, RunChannel
from selftime.capture.program.run_result import RunResult
from selftime.capture.recorder.run_options import RunOptions
from selftime.capture.temporary_folders import delete_folders_of_killed_processes

__all__ = ["Command", "RunOptions", "RunResult", "create_channel", "is_command", "run_program"]


@dataclass(slots=True)
class Command:
    """What the command that runs a program knows; instants are in ns of `time.perf_counter_ns`."""

    load_start_ns: int | None = None
    """When selftime began to load; None if the program is not run by a command."""
    process_start_ns: int | None = None
    """When the command's process began; None if that is this process, or if it is unknown."""
    channel: RunChannel | None = None
    """Where processes leave their reports; None to make a new channel."""


def run_program(
    target: str,
    args: Sequence[str],
    *,
    module: bool,
    options: RunOptions | None = None,
    command: Command | None = None,
) -> RunResult:
    """Runs a script, module or command to its end, and records a few of its steps.

    Records this process and every Python process that the program starts, if it makes steps. Output
    and exit status are the program's own. The command line of this process must end with `args`.

    Raises:
        UsageError: `target` cannot be run.
    """
    options, command = options or RunOptions(), command or Command()
    options = replace(options, folder=options.folder.absolute())  # the program may go elsewhere
    program = _create_program(target, args, module=module)
    delete_folders_of_killed_processes()
    outer_channel, channel = _leave_outer_run(), command.channel or create_channel(options)
    root_pid, start_s = os.getpid(), time.monotonic()
    words = ["-m", target, *args] if module else [target, *args]
    starts_ns = command.load_start_ns, command.process_start_ns
    run = RunLedger(options.folder, lambda: program.user_packages, words, *starts_ns)
    process = RecordedProcess(
        options, channel, lambda: program.user_packages, is_root=True, ledger=run
    )
    if isinstance(program, PythonProgram):
        run.keep_results(options)
        run.start()
        run.write_while_running()
    process.watch()
    hide_own_frames_in_printed_tracebacks()
    with channel or nullcontext():
        status = program.run(process.finish_program)
        if os.getpid() != root_pid:
            _end_forked_child(process, status)
        process.show_messages()
        _wait_for_child_processes()
        own_report = process.process_report()
        reports = [] if channel is None else channel.read_reports()
        other_reports = [report for report in reports if report.process != root_pid]
    if outer_channel is not None:
        _pass_reports_on([own_report, *other_reports], outer_channel)
    seconds = time.monotonic() - start_s
    result = RunResult.from_reports(
        status, seconds, own_report, other_reports, early_end=program.early_end
    )
    return replace(result, signal=program.signal)


def _create_program(
    target: str, args: Sequence[str], *, module: bool
) -> PythonProgram | ProgramCommand:
    if not module and is_command(target):
        return ProgramCommand(target, args)
    return PythonProgram(target, args, module=module)


def create_channel(options: RunOptions) -> RunChannel | None:
    """Returns a channel between the processes of a run; None if there is no temporary folder."""
    try:
        return RunChannel.create(options)
    except OSError as error:
        if options.notify is not None:
            options.notify(
                f"only this process is recorded, and none that it starts: {error.strerror}: "
                f"`{error.filename}`; set TMPDIR to another place"
            )
        return None


def _leave_outer_run() -> RunChannel | None:
    """Keeps an outer `selftime run` from recording this process; returns its channel, or None."""
    cancel_after_import("torch")
    stop_early_log()
    startup: Any = sys.modules.get("selftime_startup")
    if startup is not None:
        startup.stop_import_watch()
    return RunChannel.from_environment()


def _pass_reports_on(reports: Iterable[ProcessReport | None], channel: RunChannel) -> None:
    """Writes the reports of processes with steps for the outer run of selftime."""
    for report in reports:
        if report is not None and report.source is not None:
            channel.write_report(report)


def _end_forked_child(process: RecordedProcess, status: int) -> NoReturn:
    """Ends a forked child that reached the program's end, so that only the parent continues."""
    if not process.abandoned:
        raise SystemExit(status)
    # The profiler's destructors would wait for threads that do not exist in the child.
    atexit._run_exitfuncs()  # noqa: SLF001 - `os._exit` skips them
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _wait_for_child_processes() -> None:
    """Waits for child processes to end, since their traces are part of the result."""
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None:
        with suppress(KeyboardInterrupt):
            for child in processes.active_children():
                if not child.daemon:
                    child.join()
