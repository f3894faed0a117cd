"""Tells when a program has worked with torch for some time without a step.

A single step of minutes, or a program whose parts are all different, never reaches the end of a
step. A part of it is then recorded as it is.
"""

from collections.abc import Callable
from time import perf_counter_ns
from typing import Final

from selftime.capture.main_thread_calls import MainThreadCalls
from selftime.capture.steps.detection_state import StepDetectionState
from selftime.capture.steps.loop_choice import MAX_CHOICE_NS
from selftime.capture.steps.loops import LoopStepFinder
from selftime.capture.steps.torch_compile import never_torch_compile

MIN_WORK_NS: Final = 2_000_000_000
"""How long a program works with torch before a part of it is recorded, in ns: most first steps are
over by then."""


class UnrepeatedWork:
    """Calls a function in the main thread once a program has worked for long without a step."""

    def __init__(self, state: StepDetectionState, loops: LoopStepFinder) -> None:
        self.on_long_work: Callable[[], None] | None = None
        """Called once, in the main thread; None calls nothing."""
        self._state = state
        self._loops = loops
        self._calls = MainThreadCalls(state.recorder_work.fail)
        self._began_ns: int | None = None
        """When the program was first seen to work with torch, in ns."""

    @property
    def has_torch_worked(self) -> bool:
        """Returns whether the program is known to have run operators of torch."""
        is_working = self._state.is_in_torch_event  # as in the one step of an optimizer's closure
        return bool(self._state.torch_events) or is_working or self._loops.has_seen_operators

    def observe(self) -> None:
        """Takes note that the program's own code is running; called in another thread."""
        state = self._state
        if self.on_long_work is None or state.is_off or state.best_source is not None:
            return
        if not self.has_torch_worked:
            return
        now = perf_counter_ns()
        if self._began_ns is None:
            self._began_ns = now
        needed = MIN_WORK_NS + (MAX_CHOICE_NS if self._loops.is_choosing else 0)
        if now - self._began_ns >= needed:
            self._calls.schedule(self._call)

    @never_torch_compile
    def _call(self) -> None:
        call, state = self.on_long_work, self._state
        if call is None or state.best_source is not None or state.in_backward:
            return
        self.on_long_work = None
        call()
