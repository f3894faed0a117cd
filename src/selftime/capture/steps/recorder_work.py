"""Measures the time that selftime itself takes in the program's thread, to exclude it from steps.

Between steps the recorder handles events, starts and stops the profiler and frees its data. During
a recording this work would be recorded as the program's. So it gets a profiler range of its own: a
step ends where the range after it begins, and the next step begins where that range ends (see
`trace_corrections`, which trims the annotations of steps).
"""

import threading
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from torch._C._autograd import _record_function_with_args_enter, _record_function_with_args_exit

from selftime import names
from selftime.capture.steps.torch_compile import never_torch_compile


class RecorderWork(threading.local):
    """Context manager that marks its `with` block as selftime's own work, not the program's.

    A recorder and its step detector share one. Each thread has its own state; a recording starts
    and stops in the thread that makes the steps. An exception that the block raises is not the
    program's: it is handed to `on_failure`, and the program goes on after the block.
    """

    def __init__(self, on_failure: Callable[[Exception], None] | None = None) -> None:
        """Makes a mark; `on_failure` None lets exceptions pass."""
        self._on_failure = on_failure
        self.start_ns = 0
        """Start of selftime's current or last work, in ns of `time.perf_counter_ns`."""
        self._step_start_ns = 0
        self._work_in_step_ns = 0
        """Time in ns of selftime's own work since the current step began."""
        self.ends_step = False
        """Whether a step ends at the start of the current work, so that the next one begins after
        it."""
        self._nesting = 0
        self.is_recorded = False
        """Whether a profiler records the program, and so whatever of selftime is not marked."""
        self._profiler_range: Any = None
        """Handle of the open profiler range around selftime's work; None if no range is open."""

    @never_torch_compile
    def __enter__(self) -> None:
        self._nesting += 1
        if self._nesting == 1:
            self.start_ns = perf_counter_ns()
            if self.is_recorded:
                self._profiler_range = _record_function_with_args_enter(names.SELFTIME_WORK_SLICE)

    @never_torch_compile
    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        is_handled = error is not None and self._nesting == 1 and self._handle(error)
        self._nesting -= 1
        if self._nesting:
            return False
        self._exit_profiler_range()
        now = perf_counter_ns()
        if self.ends_step:
            self.ends_step, self._step_start_ns, self._work_in_step_ns = False, now, 0
        else:
            self._work_in_step_ns += now - self.start_ns
        return is_handled

    def _handle(self, error: BaseException) -> bool:
        if self._on_failure is None or not isinstance(error, Exception):
            return False
        self._on_failure(error)
        return True

    def fail(self, error: Exception) -> None:
        """Hands over an exception of selftime's own code that was caught elsewhere."""
        if self._on_failure is None:
            raise error
        self._on_failure(error)

    @property
    def step_ns(self) -> int:
        """Returns the duration in ns of the current step until the start of the current work.

        The recorder's own work within the step is left out.
        """
        return self.start_ns - self._step_start_ns - self._work_in_step_ns

    def end_step(self) -> int:
        """Ends a step at the start of the current work; returns its duration, as `step_ns` does."""
        self.ends_step = True
        return self.step_ns

    def begin_step(self, at: int) -> None:
        """Begins a step at an instant in ns, with no work of selftime in it so far."""
        self._step_start_ns, self._work_in_step_ns = at, 0

    def on_recording_start(self) -> None:
        """Begins to record selftime's own work as ranges in the profiler's trace."""
        self.is_recorded = True
        if self._nesting:
            self._profiler_range = _record_function_with_args_enter(names.SELFTIME_WORK_SLICE)

    def on_recording_stop(self) -> None:
        """Closes the open profiler range of selftime's work before the profiler stops."""
        self.is_recorded = False
        self._exit_profiler_range()

    def _exit_profiler_range(self) -> None:
        profiler_range, self._profiler_range = self._profiler_range, None
        if profiler_range is not None:
            _record_function_with_args_exit(profiler_range)
