"""Records a block of code: a few steady steps, or the whole block if it has no steps.

Whether the block makes steps is unknown at first. So it is recorded as a whole until the first
boundary between steps; that recording is kept in case there are too few steps.
"""

import ctypes
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from selftime.capture.facts.free_memory import free_memory_bytes
from selftime.capture.profiler.profile import Profile
from selftime.capture.profiler.profiler_options import profiler_config_with_all_events
from selftime.capture.profiler.profiler_stderr import hide_usdt_lines
from selftime.capture.recorder.other_profilers import watch_other_profilers
from selftime.capture.recorder.recorder import Recorder
from selftime.capture.recorder.recording_guard import RecordingGuard
from selftime.capture.recorder.recording_plan import limit_of_block
from selftime.capture.recorder.run_options import RunOptions
from selftime.capture.recorder.running_profiler import end_in_forked_child
from selftime.capture.recorder.step_watch import ACTIVE_RECORDER
from selftime.capture.recorder.trace_writer import TraceWriter
from selftime.capture.steps import StepDetector, StepSource
from selftime.errors import RecordingError


class BlockRecording:
    """Records the block of code between `begin` and `end`."""

    def __init__(self, options: RunOptions, *, name: str) -> None:
        self.options = replace(options, folder=options.folder.absolute())
        self.name = name
        """Name that the user's code uses for this recording, shown in messages."""
        self.running = self.may_be_replaced = False
        self.trace: Path | None = None
        self.steps_recorded = 0
        """Number of complete steps in the trace; 0 if the block was recorded as a whole."""
        self.partial: str | None = None
        """Why the trace has fewer steps than requested; None if it has all."""
        self._recorder = Recorder(self.options)
        self._steps = StepDetector(
            self._on_step_boundary,
            self._recorder.check_limits,
            recorder_work=self._recorder.recorder_work,
        )
        self._block_profile: Profile | None = None
        self._guard = RecordingGuard(
            self._on_event_limit, self._recorder.fail, max_times_imports_seen=0
        )
        self._timer = MainThreadTimer(options.seconds, self._on_time_limit)
        self._cleanups: list[Callable[[], None]] = []

    def begin(self) -> None:
        """Starts the recording of the block.

        Raises:
            RecordingError: Another recorder is running, or the profiler cannot start.
        """
        profiler = ACTIVE_RECORDER.claim_process(self, is_independent=True)
        if profiler is not None:
            raise RecordingError(
                f"{profiler} is recording already, and one recorder can run at a time"
            )
        self.running = True
        self._steps.attach()
        self._cleanups = [self._timer.cancel, self._steps.detach]
        try:
            self._guard.prepare(limit_of_block(self.options, free_memory_bytes()))
            self._block_profile = self._start_block_profile()
            self._guard.begin()
        except RuntimeError as error:
            self._clean_up()
            raise RecordingError(f"the recorder could not start: {error}") from error
        self._cleanups.append(watch_other_profilers(self._yield_to_profiler))
        self._timer.begin()

    def end(self, reason: str | None = None) -> None:
        """Ends the recording and writes the trace; `reason` says why the block ended early."""
        self._clean_up()
        self._stop_block_profile()
        self._recorder.finish(reason)
        if self._recorder.traces:
            self.trace = self._recorder.traces[-1]
            self.steps_recorded = self._recorder.steps_recorded
            self.partial = self._recorder.partial
        elif self._block_profile is not None:
            self._write_block_trace(self._block_profile, reason)
        if self._block_profile is not None:
            self._block_profile.forget()
            self._block_profile = None

    def _clean_up(self) -> None:
        """Removes all wrappers from torch, so that another recorder can start."""
        for undo in self._cleanups:
            undo()
        self._cleanups = []
        self.running = False
        ACTIVE_RECORDER.release_process(self)

    def _write_block_trace(self, profile: Profile, reason: str | None) -> None:
        self.partial = profile.partial = profile.partial or reason
        written = TraceWriter(self.options.folder).write_now(profile, _do_nothing)
        if isinstance(written, RecordingError):
            raise written
        self.trace = written

    def abandon_in_forked_child(self) -> None:
        """Drops the recording in a forked child, since it belongs to the parent."""
        self._steps.is_off = True
        self._recorder.abandon_in_forked_child()
        if self._block_profile is not None and self._block_profile.running:
            end_in_forked_child()
        self._block_profile = None

    def _start_block_profile(self) -> Profile:
        options = self.options
        profile = Profile(
            record_shapes=options.record_shapes,
            profile_memory=options.profile_memory,
            with_stack=options.with_stack,
            experimental_config=profiler_config_with_all_events(frames=options.with_stack),
        )
        profile.pitfalls.started_by_program = False
        with hide_usdt_lines():
            profile.start()
        return profile

    def _on_step_boundary(self, source: StepSource) -> None:
        self._stop_block_profile()
        self._recorder.on_step_boundary(source)

    def _stop_block_profile(self) -> None:
        self._timer.cancel()
        self._guard.end()
        if self._block_profile is not None and self._block_profile.running:
            with hide_usdt_lines():
                self._block_profile.stop()

    def _on_time_limit(self) -> None:
        if self._block_profile is not None and self._block_profile.running:
            self._stop_block_profile()
            self._block_profile.partial = f"the limit of {self.options.seconds:g} s was reached"

    def _on_event_limit(self) -> None:
        excess = self._guard.excess
        if self._block_profile is not None and self._block_profile.running:
            self._stop_block_profile()
            self._block_profile.partial = excess

    def _yield_to_profiler(self, profiler: str) -> None:
        if self._block_profile is not None and self._block_profile.running:
            self._stop_block_profile()
            self._block_profile.partial = f"{profiler} began to record"
        self._recorder.yield_to_profiler(profiler)


_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class MainThreadTimer:
    """Calls a function in the main thread after a number of seconds, unless cancelled.

    Only the thread that started a recording can stop it. Signals would also reach the main thread,
    but belong to the program. Nothing is called if Python has no `Py_AddPendingCall`, or if `begin`
    runs in another thread.
    """

    def __init__(self, seconds: float, action: Callable[[], None]) -> None:
        self._action = action
        self._timer = threading.Timer(seconds, self._schedule_call)
        self._timer.daemon = True
        self._callback = _Callback(self._call_action)
        """C callback of the timer, stored so that it is not freed while the interpreter has its
        address."""

    def begin(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self._timer.start()

    def cancel(self) -> None:
        self._timer.cancel()
        self._action = _do_nothing

    def _schedule_call(self) -> None:
        add: Any = getattr(ctypes.pythonapi, "Py_AddPendingCall", None)
        if add is not None:
            add(self._callback, None)

    def _call_action(self, _: Any) -> int:
        action, self._action = self._action, _do_nothing
        action()
        return 0


def _do_nothing() -> None:
    pass
