"""`selftime run`: an unmodified program, a few of its steady steps recorded, its own end."""

import atexit
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from selftime.capture.after_import import after_import, forget
from selftime.capture.children import Children
from selftime.capture.program import Program
from selftime.capture.run_options import RunOptions
from selftime.capture.termination import Termination

if TYPE_CHECKING:
    from selftime.capture.recorder import Recorder
    from selftime.capture.steps import Steps

__all__ = ["RunOptions", "RunResult", "run_program"]


@dataclass(frozen=True, slots=True)
class RunResult:
    """How the program ended and what was recorded of it."""

    status: int
    """The program's own exit status."""
    traces: tuple[Path, ...]
    """The files that were written."""
    source: str | None
    """What told where steps end; None if no step was found."""
    steps_seen: int
    """Steps until the recording was done; nobody counts after that."""
    steps_recorded: int
    seconds: float
    """How long the program ran."""
    partial: str | None
    """Why the trace holds less than was asked for, if it does."""
    reason: str | None
    """Why there is no trace, if there is none."""


class _Recording:
    """What watches the program once it has imported torch."""

    def __init__(self, options: RunOptions, program: Program) -> None:
        self.options = options
        self.program = program
        self.recorder: Recorder | None = None
        self.steps: Steps | None = None
        self.children = Children()
        self.termination = Termination(lambda: self.finish("ended by SIGTERM"))

    def attach(self) -> None:
        from selftime.capture.recorder import Recorder  # noqa: PLC0415 - imports torch
        from selftime.capture.rivals import watch_rivals  # noqa: PLC0415 - likewise
        from selftime.capture.steps import Steps  # noqa: PLC0415 - likewise

        self.recorder = Recorder(self.options, lambda: self.program.own_code)
        self.recorder.on_start = self.termination.install
        self.recorder.on_done = self._done
        self.recorder.beside = self.children.beside
        self.steps = Steps(self.recorder.boundary, self.recorder.pulse)
        self.steps.attach()
        watch_rivals(self.recorder.leave_to)
        os.register_at_fork(after_in_child=self._leave)

    def _done(self) -> None:
        self.termination.remove()
        if self.steps is None or self.recorder is None:
            return
        if self.recorder.final:
            self.steps.detach()
        elif self.recorder.past_modules:
            self.steps.stop_watching_modules()

    def _leave(self) -> None:
        """In a forked child: record nothing, and stop what was left running by the fork."""
        if self.steps is not None:
            self.steps.idle = True
        if self.recorder is not None:
            self.recorder.abandon()

    def end_child(self, status: int) -> NoReturn:
        """End a child that the program forked; the answer is its parent's."""
        if self.recorder is None or not self.recorder.abandoned:
            raise SystemExit(status)
        # The recorder's threads did not come along, and its last act would be to wait for them.
        atexit._run_exitfuncs()  # noqa: SLF001 - they would not run otherwise
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)

    def finish(self, reason: str | None) -> None:
        if self.recorder is not None:
            self.recorder.finish(reason)
        if self.steps is not None:
            self.steps.detach()

    def ending(self, error: BaseException | None) -> None:
        forget("torch")
        self.finish(_how_it_ended(error))


def run_program(
    target: str, args: Sequence[str], *, module: bool, options: RunOptions | None = None
) -> RunResult:
    """Run a script, or a module as `python -m` does, and record a few of its steps.

    The program's output and exit status are its own. Its arguments must be all that follow it on
    the command line. What is wrong with `target` itself is a UsageError.
    """
    program = Program(target, args, module=module)
    options = options or RunOptions()
    # The program may change the folder that it works in.
    options = replace(options, folder=options.folder.absolute())
    recording = _Recording(options, program)
    process, began = os.getpid(), time.monotonic()
    recording.children.watch()
    after_import("torch", recording.attach)
    status = program.run(recording.ending)
    if os.getpid() != process:
        recording.end_child(status)
    recorder = recording.recorder
    if recorder is None:
        beside = recording.children.beside()
        reason = f"{'this process' if beside else 'the program'} never imported torch{beside}"
        return RunResult(status, (), None, 0, 0, time.monotonic() - began, None, reason)
    return RunResult(
        status=status,
        traces=tuple(recorder.traces),
        source=None if recorder.source is None else recorder.source.label,
        steps_seen=recorder.seen,
        steps_recorded=recorder.recorded,
        seconds=time.monotonic() - began,
        partial=recorder.partial,
        reason=recorder.reason,
    )


def _how_it_ended(error: BaseException | None) -> str | None:
    if error is None or (isinstance(error, SystemExit) and error.code in (None, 0)):
        return None
    return f"ended by {type(error).__name__}"
