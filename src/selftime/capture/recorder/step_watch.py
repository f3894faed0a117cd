"""Records a few steps, once they are steady, of a program that reports its steps itself.

All framework integrations use it. One recorder can run per process: a watch that begins while
another one or a profiler of torch runs says so once and does nothing. Under `selftime run` the
watch reports its steps to that recorder, and writes no trace of its own.

There is no communication between processes: each process of a job writes its own file.
"""

import atexit
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol

from torch._C._autograd import _profiler_enabled

from selftime.capture.program.process_end import SigtermHandler
from selftime.capture.recorder.other_profilers import watch_other_profilers
from selftime.capture.recorder.recorder import Recorder
from selftime.capture.recorder.run_options import RunOptions
from selftime.capture.recorder.watched_ledger import WatchedLedger
from selftime.capture.steps import StepSource

_ALREADY_RECORDING_MESSAGE: Final = (
    "{who} is recording already, and one recorder can run at a time: `{what}` records nothing"
)


class _ProcessRecorder(Protocol):
    """Interface of recorders, of which at most one runs in a process at a time."""

    name: str
    running: bool
    may_be_replaced: bool

    def end(self, reason: str | None = None) -> None: ...

    def abandon_in_forked_child(self) -> None: ...


class _StepListener(Protocol):
    """Interface of the object that receives steps under `selftime run` or `selftime bench`."""

    def on_step_boundary(self, source: StepSource) -> None: ...


class StepWatch:
    """Records a few of the steps that a program reports between `begin` and `end`, into a file.

    After `end` it may begin again, which writes another file. Errors are reported in a message and
    end the recording, never the program.
    """

    def __init__(
        self,
        options: RunOptions | None = None,
        *,
        name: str = "StepWatch",
        keeps_ledger: bool = True,
    ) -> None:
        options = options or RunOptions()
        # The program may change the working folder.
        self.options = replace(options, folder=options.folder.absolute())
        self.name = name
        """Name that the user's code uses for this object, shown in messages."""
        self.steps_recorded = 0
        """Number of complete steps in the last trace; 0 without a trace."""
        self.traces: tuple[Path, ...] = ()
        """Path of the last trace as a tuple; empty if none was written."""
        self.ledger: Path | None = None
        """Path of the ledger beside the last trace; None if there is none."""
        self.partial: str | None = None
        """Why the last trace has fewer steps than requested; None if it has all."""
        self.reason: str | None = None
        """Why there is no trace; None if there is one."""
        self.running = False
        """Whether `begin` has been called, `end` has not, and no other recorder runs."""
        self.may_be_replaced = False
        """Whether a new recorder may end this one: True between two loops that are recorded as
        one."""
        self.on_done: Callable[[StepWatch], None] = _do_nothing
        """Function called when nothing more will be recorded, although the loop may still run."""
        self._recorder: Recorder | None = None
        self._keeps_ledger = keeps_ledger
        self._ledger: WatchedLedger | None = None
        self._on_boundary: Callable[[StepSource], None] | None = None
        self._thread = 0
        self._stop_watching_profilers: Callable[[], None] = _do_nothing
        self._sigterm_handler = SigtermHandler(self._finish_recorder, self._postpone)

    @property
    def done(self) -> bool:
        """Returns whether no further steps will be recorded."""
        has_ended = self._recorder is not None and self._recorder.has_ended
        return self._on_boundary is None or has_ended

    @property
    def reports_to_run(self) -> bool:
        """Returns whether `selftime run` or `selftime bench` receives the steps of this program."""
        return self.running and ACTIVE_RECORDER.step_listener is not None

    def begin(self) -> None:
        """Begins the first step; first ends an earlier recording of this object that still runs."""
        if self.running:
            self.end("begun anew")
        self.traces, self.steps_recorded, self.partial, self.reason = (), 0, None, None
        self.ledger = None
        profiler = ACTIVE_RECORDER.claim_process(self)
        if profiler is not None:
            self.reason = _ALREADY_RECORDING_MESSAGE.format(who=profiler, what=self.name)
            ACTIVE_RECORDER.notify_once(self.reason, self.options)
            return
        self.running, self._thread = True, threading.get_ident()
        if ACTIVE_RECORDER.step_listener is not None:
            self.reason = "`selftime run` records this program"
            self._on_boundary = ACTIVE_RECORDER.step_listener.on_step_boundary
        else:
            self._recorder = recorder = Recorder(
                replace(self.options, notify=self._notify_without_path)
            )
            recorder.on_recording_start = self._sigterm_handler.install
            recorder.on_done = self._on_recorder_done
            self._stop_watching_profilers = watch_other_profilers(recorder.yield_to_profiler)
            self._on_boundary = recorder.on_step_boundary
            if self._keeps_ledger:
                self._ledger = WatchedLedger(recorder)
                self._ledger.begin()
            atexit.register(self._end_watch_at_exit)

    def step(self) -> None:
        """Ends a step and begins the next."""
        if self._on_boundary is not None and threading.get_ident() == self._thread:
            self._call_safely(self._on_boundary, StepSource.TOLD)

    def end(self, reason: str | None = None) -> None:
        """Ends the last step and writes the trace; `reason` says why early, None if complete."""
        if self.running:
            self.running = self.may_be_replaced = False
            self._finish_recorder(reason)
            ACTIVE_RECORDER.release_process(self)
            atexit.unregister(self._end_watch_at_exit)

    def abandon_in_forked_child(self) -> None:
        """Drops the recording in a forked child, since it belongs to the parent."""
        if self._recorder is not None:
            self._recorder.abandon_in_forked_child()
        if self._ledger is not None:
            self._ledger.abandon_in_forked_child()
        self._recorder = self._ledger = self._on_boundary = None

    def _notify_without_path(self, sentence: str) -> None:
        """Shows a message to the user unless it contains the trace's path.

        `on_done` may delete the trace.
        """
        traces = self._recorder.traces if self._recorder is not None else []
        if self.options.notify is not None and not any(str(path) in sentence for path in traces):
            self.options.notify(sentence)

    def _on_recorder_done(self) -> None:
        self._on_boundary = None if self._ledger is None else self._ledger.end_step
        self._stop_watching_profilers()
        self._sigterm_handler.remove()
        if self._recorder is not None:
            self._copy_recorder_results(self._recorder)
            self._recorder.messages.show()
            self.on_done(self)

    def _postpone(self, call: Callable[[], None]) -> bool:
        return self._recorder is not None and self._recorder.own_work.postpone(call)

    def _finish_recorder(self, reason: str | None) -> None:
        if self._recorder is not None:
            self._call_safely(self._recorder.finish, reason)
            self._recorder.messages.show()
            self._stop_watching_profilers()
            self._copy_recorder_results(self._recorder)
        if self._ledger is not None:
            self._ledger.end(reason, is_kept=bool(self.traces))
        self._recorder = self._ledger = self._on_boundary = None

    def _copy_recorder_results(self, recorder: Recorder) -> None:
        self.traces = tuple(recorder.traces)
        self.ledger = self._ledger.path if self._ledger is not None and self.traces else None
        self.steps_recorded = recorder.steps_recorded if recorder.traces else 0
        self.partial = recorder.partial
        self.reason = self.reason or recorder.reason

    def _end_watch_at_exit(self) -> None:
        self.end("the program ended within the loop")

    def _call_safely(self, call: Callable[[Any], None], argument: Any) -> None:
        try:
            call(argument)
        except Exception as error:  # noqa: BLE001 - training must go on
            self._on_boundary = None
            self.reason = f"the recording failed: {type(error).__name__}: {error}"
            ACTIVE_RECORDER.notify_once(
                f"{self.reason}; the program goes on without it", self.options
            )


class _ActiveRecorder:
    """Stores which recorder runs in this process, and which messages were already shown."""

    def __init__(self) -> None:
        self.step_listener: _StepListener | None = None
        """The object that receives steps under `selftime run` or `selftime bench`; None
        otherwise."""
        self._recorder: _ProcessRecorder | None = None
        self._sent: set[str] = set()

    def claim_process(
        self, recorder: _ProcessRecorder, *, is_independent: bool = False
    ) -> str | None:
        """Registers a recorder and returns None, or the name of one that already runs.

        One that `is_independent` does not report steps to `selftime run`.
        """
        if self._recorder is not None and self._recorder.may_be_replaced:
            self._recorder.end("another recording began")
        if self._recorder is not None and self._recorder.running:
            return f"`{self._recorder.name}`"
        if is_independent and self.step_listener is not None:
            return "`selftime run`"
        if self.step_listener is None and _profiler_enabled():
            return "another profiler"
        self._recorder = recorder
        return None

    def release_process(self, recorder: _ProcessRecorder) -> None:
        if self._recorder is recorder:
            self._recorder = None

    def notify_once(self, sentence: str, options: RunOptions) -> None:
        if options.notify is not None and sentence not in self._sent:
            self._sent.add(sentence)
            options.notify(sentence)

    def reset_in_forked_child(self) -> None:
        """Removes the parent process's recorder in a forked child."""
        if self._recorder is not None:
            self._recorder.abandon_in_forked_child()
        self._recorder = self.step_listener = None


ACTIVE_RECORDER: Final = _ActiveRecorder()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=ACTIVE_RECORDER.reset_in_forked_child)


def _do_nothing(*_: Any) -> None:
    pass


def send_steps_to(step_listener: _StepListener) -> None:
    """Makes this process report its steps to `selftime run` or `selftime bench`."""
    ACTIVE_RECORDER.step_listener = step_listener
