"""`selftime run`: an unmodified program, a few of its steady steps recorded, its own end."""

import atexit
import os
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Any, NoReturn

from selftime.capture.program.after_import import forget
from selftime.capture.program.command import Command, is_command
from selftime.capture.program.job import Job
from selftime.capture.program.outcome import RunResult
from selftime.capture.program.program import Program
from selftime.capture.program.recorded_process import RecordedProcess, how_it_ended
from selftime.capture.recorder.run_options import RunOptions

__all__ = ["RunOptions", "RunResult", "run_program"]


def run_program(
    target: str, args: Sequence[str], *, module: bool, options: RunOptions | None = None
) -> RunResult:
    """Run a script, a module as `python -m` does, or a command, and record a few of its steps.

    What is recorded is this process and every Python process that the program starts, if it makes
    steps. The program's output and exit status are its own. Its arguments must be all that follow
    it on the command line. What is wrong with `target` itself is a UsageError.
    """
    options = options or RunOptions()
    # The program may change the folder that it works in.
    options = replace(options, folder=options.folder.absolute())
    program = _program(target, args, module=module)
    outer, job = _leave_outer_run(), _begun(options)
    root, began = os.getpid(), time.monotonic()
    process = RecordedProcess(options, job, lambda: program.own_code, told=True)
    process.watch()
    with job or nullcontext():
        status = program.run(lambda error: process.finish(how_it_ended(error)))
        if os.getpid() != root:
            _end_child(process, status)
        _wait_for_children()
        own, others = process.report(), [] if job is None else job.reports()
    if outer is not None:
        for report in others if own is None else [own, *others]:
            if report.source is not None:
                outer.report(report)
    return RunResult.of(status, time.monotonic() - began, own, others)


def _program(target: str, args: Sequence[str], *, module: bool) -> Program | Command:
    if not module and is_command(target):
        return Command(target, args)
    return Program(target, args, module=module)


def _begun(options: RunOptions) -> Job | None:
    try:
        return Job.begun(options)
    except OSError as error:
        if options.notify is not None:
            options.notify(
                f"only this process is recorded, and none that it starts: {error.strerror}: "
                f"`{error.filename}`; set TMPDIR to another place"
            )
        return None


def _leave_outer_run() -> Job | None:
    """The run that this one is part of, which from now on records nothing in this process."""
    forget("torch")
    startup: Any = sys.modules.get("selftime_startup")
    if startup is not None:
        startup.leave()
    return Job.of_environment()


def _end_child(process: RecordedProcess, status: int) -> NoReturn:
    """End a child that the program forked; the answer is its parent's."""
    if not process.abandoned:
        raise SystemExit(status)
    # The recorder's threads did not come along, and its last act would be to wait for them.
    atexit._run_exitfuncs()  # noqa: SLF001 - they would not run otherwise
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _wait_for_children() -> None:
    """Wait for what Python would wait for at its end: their traces belong to the answer."""
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None:
        with suppress(KeyboardInterrupt):
            for child in processes.active_children():
                if not child.daemon:
                    child.join()
