"""Warns about uses of torch's profiler that lose data silently or crash.

Each message says what to do instead. What torch reports itself is not repeated. There are no
warnings for a recording that the program did not start itself
(`ProfilerPitfalls.started_by_program`).
"""

import atexit
import gc
import inspect
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from torch._C._autograd import _disable_profiler, _profiler_enabled
from torch.autograd import profiler as autograd_profiler
from torch.profiler import ProfilerAction

from selftime.capture.facts.settings import torch_compile_facts
from selftime.capture.profiler.profiler_stderr import hide_usdt_lines
from selftime.capture.profiler.user_warnings import (
    take_warnings,
    user_warning_location,
    warn_at_user_line,
)
from selftime.errors import RecordingError

_RECORDINGS_UNTIL_ENDLESS_WARNING: Final = 10
"""Number of recordings after which a schedule that repeats forever causes a warning."""


class AlreadyRecording(RecordingError):  # noqa: N818 - named as the other errors
    """Raised if another recording is running, since torch supports one at a time."""


@dataclass(eq=False)
class ProfilerPitfalls:
    """Checks how the program uses one profiler object, and shows warnings."""

    started_by_program: bool = True
    """Whether the program started the profiler; False if selftime did, so that no warnings are
    shown."""
    _warned: set[str] = field(default_factory=set)
    thread: int | None = None
    """Id of the thread that started the recording; None after the recording has stopped."""
    _callback_count: int = 0
    """Number of calls of `on_trace_ready` so far."""
    _within_callback: bool = False
    callback_error: BaseException | None = None
    """The exception that `on_trace_ready` raised; None if it raised none."""
    _recording_by_file: dict[str, int] = field(default_factory=dict)
    """Maps each file that `on_trace_ready` wrote to the number of the recording in it."""
    pending: dict[str, str | Warning] = field(default_factory=dict)
    """Warnings by key, to be shown when torch has finished its own work."""
    _graphs_at_start: int = 0
    _start_location: tuple[str, int] = ("sys", 0)
    """File and line of the program at which the recording was started."""

    def warn_once(self, key: str, text: str | Warning) -> None:
        """Shows a warning, but only the first time for each `key` of this profiler."""
        if self.started_by_program and key not in self._warned:
            self._warned.add(key)
            warn_at_user_line(text)

    def check_no_other_recording(self) -> None:
        """Raises an error if another recording is running, since torch would drop its data.

        Raises:
            AlreadyRecording: Another profiler records.
        """
        if _is_other_profiler_recording(self):
            gc.collect()  # the other may be unreachable: torch's profiler has a reference cycle
        if _is_other_profiler_recording(self):
            raise AlreadyRecording(
                "another selftime.profile is recording; only one can run at a time, so stop it "
                "first"
            )
        is_ours = _current_recording is not None and _current_recording[1] == os.getpid()
        if not is_ours and _is_torch_profiling() and self.started_by_program:
            raise AlreadyRecording(
                "another profiler of torch is recording; torch runs one at a time, so stop it first"
            )

    @contextmanager
    def deferred_torch_warnings(self) -> Iterator[None]:
        """Collects torch's warnings within a `with` block, to show them later.

        A warning that raises would leave torch half prepared, and stopping it would crash.
        """
        with take_warnings() as caught:
            yield
        for warning in caught:
            # Warnings of other classes are meant for developers of torch.
            if issubclass(warning.category, UserWarning | FutureWarning):
                self.pending[str(warning.message)] = warning.message

    def register_recording(self) -> None:
        """Registers this recording as the one that runs in the process."""
        global _current_recording  # noqa: PLW0603 - one recording per process
        _current_recording = (weakref.ref(self), os.getpid())
        self._start_location = user_warning_location()[:2]

    def remember_compiled_graph_count(self) -> None:
        self._graphs_at_start = _compiled_graph_count()

    def remember_recording_thread(self) -> None:
        """Stores the id of the recording thread, or None if torch records all threads together."""
        self.thread = threading.get_ident() if _profiler_enabled() else None

    def is_torch_still_recording(self) -> bool:
        """Returns whether a profiler of torch is running."""
        return _is_torch_profiling()

    def stop_recording(self, stop: Callable[[], None]) -> None:
        """Calls `stop`, and unregisters the recording even if `stop` raises an error."""
        global _current_recording  # noqa: PLW0603 - one recording per process
        try:
            stop()
        finally:
            self.thread = _current_recording = None

    def check_finished_recording(self, profile: Any, *, was_ours: bool) -> None:
        """Prepares a warning if the recording is empty or torch compiled graphs during it."""
        if not was_ours and not profile.profiler.kineto_results.events():
            self.pending["taken"] = (
                "the recording is empty: another profiler started during it; torch runs one at a "
                "time, so leave one of them out"
            )
        compiled = _compiled_graph_count() - self._graphs_at_start
        if compiled > 0:
            what = "a graph" if compiled == 1 else f"{compiled} graphs"
            self.pending["compiled"] = (
                f"torch.compile compiled {what} while it was recorded, which is most of that time; "
                "let it compile before: run a few steps first, or raise `wait` of the schedule"
            )

    def check_recording_thread(self, called_method: str) -> None:
        """Raises an error if the calling thread is not the one that records.

        Raises:
            RecordingError: The thread differs.
        """
        if self.thread not in {None, threading.get_ident()}:
            raise RecordingError(
                f"prof.{called_method}() is called in another thread than the one that started "
                "the recording; call start(), step() and stop() in the same thread"
            )

    def warn_still_recording_at_exit(self) -> bool:
        """Warns that the program ended while recording; returns whether this thread may stop."""
        if self.started_by_program:
            warnings.warn_explicit(
                "the profiler was still running when the program ended, and what it recorded is "
                "lost; call prof.stop(), or use it in a `with` block",
                UserWarning,
                *self._start_location,
            )
        return self.thread == threading.get_ident()

    @contextmanager
    def trace_ready_callback(self, schedule: Any) -> Iterator[None]:
        """Stores an exception of `on_trace_ready`, raised in the block, until torch has finished.

        Otherwise torch continues with a profiler that was not prepared, and crashes.
        """
        self._callback_count += 1
        if (
            self._callback_count == _RECORDINGS_UNTIL_ENDLESS_WARNING
            and _arguments_of_torch_schedule(schedule).get("repeat") == 0
        ):
            self.warn_once(
                "endless",
                f"on_trace_ready is called for the {self._callback_count}th time, and the schedule "
                "has no end; pass repeat=1 to record once",
            )
        self._within_callback = True
        try:
            yield
        except BaseException as error:  # noqa: BLE001 - raised later by `raise_callback_error`
            self.callback_error = error
        finally:
            self._within_callback = False

    @contextmanager
    def deferred_callback_errors(self) -> Iterator[None]:
        """After a block, raises the exception of `on_trace_ready`, or shows waiting warnings."""
        try:
            yield
        finally:
            self.raise_callback_error()
        self.show_pending_warnings()

    def raise_callback_error(self) -> None:
        """Raises the exception that `on_trace_ready` raised, if any."""
        callback_error, self.callback_error = self.callback_error, None
        if callback_error is not None:
            raise callback_error

    def show_pending_warnings(self) -> None:
        """Shows the warnings that were collected while torch was running."""
        while self.pending:
            self.warn_once(*self.pending.popitem())

    def warn_if_overwritten(self, path: str | os.PathLike[str], recording: int) -> None:
        """Warns if `on_trace_ready` writes two recordings to the same file."""
        if not self._within_callback:
            return
        name = os.path.abspath(path)  # noqa: PTH100 - keeps links, which are names of their own
        if self._recording_by_file.setdefault(name, recording) != recording:
            self.warn_once(
                "overwritten",
                f"`{os.fspath(path)}` is written over by a later recording; put prof.step_num in "
                "its name, or pass repeat=1 to the schedule",
            )

    def no_results_error(self, profile: Any) -> RecordingError:
        """Returns the error that says why there are no results yet."""
        if profile.running and profile.current_action != ProfilerAction.NONE:
            return RecordingError(
                "the recording has not ended; read from it after the `with` block or prof.stop(), "
                "or in on_trace_ready"
            )
        return RecordingError(
            "nothing has been recorded; start the profiler, and stop it before you read from it"
        )

    def warn_never_recorded(self, profile: Any) -> None:
        """Warns that the program ended before the schedule began to record."""
        steps = "prof.step() was never called; call it at the end of each step"
        if profile.step_num:
            calls = "1 call" if profile.step_num == 1 else f"{profile.step_num} calls"
            first = _steps_before_recording(profile.schedule)
            begins = "" if first is None else f", and begins to record after {first}"
            steps = (
                f"the schedule was still waiting after {calls} of prof.step(){begins}; shorten its "
                "wait, warmup or skip_first"
            )
        self.warn_once("never", f"nothing was recorded: {steps}")

    def warn_recording_cut_short(self, profile: Any, recorded_steps: int) -> None:
        """Warns that the recording was stopped early, unless the schedule repeats endlessly."""
        arguments = _arguments_of_torch_schedule(profile.schedule)
        asked = arguments.get("active")
        if (
            asked is None
            or recorded_steps >= asked
            or (not arguments.get("repeat") and self._callback_count > 1)
        ):
            return
        self.warn_once(
            "cut",
            f"the recording was stopped after {recorded_steps} of its {asked} steps; call "
            "prof.step() at the end of each step, the last one too, or shorten the schedule",
        )


_current_recording: tuple[weakref.ref[ProfilerPitfalls], int] | None = None
"""The profiler that is recording and its process id; None if none records. A forked child has a
different id.

The owner may be gone without having stopped; the next recording then takes its place.
"""


def _is_other_profiler_recording(pitfalls: ProfilerPitfalls) -> bool:
    """Returns whether another profiler in this process is recording."""
    if _current_recording is None or _current_recording[1] != os.getpid():
        return False
    owner = _current_recording[0]()
    return owner is not None and owner is not pitfalls and owner.started_by_program


def _stop_profiler_at_exit() -> None:
    """Stops a recording that still runs at exit, since torch would crash otherwise."""
    if (
        _current_recording is None
        or _current_recording[1] != os.getpid()
        or not _is_torch_profiling()
    ):
        return
    owner = _current_recording[0]()
    if owner is None or owner.warn_still_recording_at_exit():
        _disable_profiler()


atexit.register(_stop_profiler_at_exit)


def stop_leftover_recording() -> None:
    """Stops a profiler of selftime that could not be stopped as usual; drops what it recorded."""
    global _current_recording  # noqa: PLW0603 - one recording per process
    _current_recording = None
    if _profiler_enabled():
        with hide_usdt_lines():
            _disable_profiler()
    autograd_profiler._run_on_profiler_stop()  # type: ignore[no-untyped-call]  # noqa: SLF001 - torch has no public function


def _is_torch_profiling() -> bool:
    """Returns whether any of torch's profilers is running."""
    return bool(autograd_profiler._is_profiler_enabled)  # noqa: SLF001 - torch has no public function


def _compiled_graph_count() -> int:
    facts = torch_compile_facts()
    return 0 if facts is None else int(facts["graphs"])


def _arguments_of_torch_schedule(schedule: Any) -> dict[str, int]:
    """Returns the arguments of torch's `schedule(...)`; empty if `schedule` is another function."""
    if getattr(schedule, "__qualname__", "") != "schedule.<locals>.schedule_fn":
        return {}
    return dict(inspect.getclosurevars(schedule).nonlocals)


def _steps_before_recording(schedule: Any) -> int | None:
    """Returns the number of `step()` calls before a recording begins; None if unknown."""
    arguments = _arguments_of_torch_schedule(schedule)
    if not arguments:
        return None
    waits = 0 if arguments.get("skip_first_wait") else arguments["wait"]
    return arguments["skip_first"] + waits + arguments["warmup"]
