"""Finds steps from iterations of loops, in a program without optimizers, modules or batches.

Such a program uses neither optimizers, modules, backward passes nor DataLoaders: a simulation,
k-means, decoding by hand. `loop_search` finds its loop. From then on a trace function
(`sys.settrace`) reports each iteration of that loop as a step.

When the loop has ended the search goes on. The iterations of a loop that comes later are steps of
a kind of their own, until the program has spent more time in it than in the first one: from then on
it is the main loop, and the recording begins anew. What came before it is then no more than the
setup.

The trace function is not set in a program that has one, such as under a debugger or coverage, and
is removed when a better source of steps shows up.
"""

import _thread
import os
import sys
import time
from collections.abc import Callable
from time import perf_counter_ns
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from selftime.capture.main_thread_calls import CallRequest, MainThreadCalls
from selftime.capture.steps.detection_state import StepDetectionState, StepSource
from selftime.capture.steps.loop_choice import IteratedLoop
from selftime.capture.steps.loop_search import LoopSearch
from selftime.capture.steps.loop_trace import (
    LoopCounterTrace,
    trace_function_for_steps,
)
from selftime.capture.steps.step_loop import StepLoop
from selftime.capture.steps.torch_compile import never_torch_compile
from selftime.capture.trace_function import trace_below_count
from selftime.ledger_format import LOOP_STEP_KIND, UNUSUAL_KIND_SUFFIX

if TYPE_CHECKING:
    from selftime.capture.ledger.ledger import Ledger

MIN_STEPS_TO_COUNT: Final = 50
"""Number of steps after which a loop is no longer followed if that costs too much."""

TRACED_CALL_COST_NS: Final = 600
"""Measured cost of the trace function in ns for each call of a Python function within a step."""

MAX_TRACE_COST_NS: Final = 20_000
MAX_TRACE_COST_SHARE: Final = 0.005
"""Largest allowed cost of the trace function per step after the recording, as a fraction of the
step, unless `MAX_TRACE_COST_NS` allows more."""

MAX_RECORDED_GAP_NS: Final = 100_000_000
MAX_RECORDED_GAP_STEPS: Final = 3
"""Longest time, in ns and in usual steps, that a recording goes on after the loop was left."""

MAX_GAPS: Final = 3
"""How often a recording is ended since the loop was left: after that, a recording goes on until it
has all steps, for each of them may be in another round of a loop around it."""

MAX_FOLLOWED_LOOPS: Final = 8
"""Largest number of loops whose iterations are steps."""

_OUTSIDE_LOOP_EVENT: Final = "code outside of the loop"
_MAIN_KINDS: Final = (LOOP_STEP_KIND, LOOP_STEP_KIND + UNUSUAL_KIND_SUFFIX, None)
"""The kinds of the main loop's steps, in the order of `StepLoop.kinds`; None for those that are
not counted one by one."""


class LoopStepFinder:
    """Finds the loops whose iterations are steps, and reports the end of each iteration."""

    def __init__(self, state: StepDetectionState) -> None:
        self.state = state
        self.search = LoopSearch(state, self.fail, self._start_tracing, self._follow)
        self.search.may_trace = self._may_trace
        self.main: StepLoop | None = None
        """The loop that makes the steps of the program; None while it is unknown."""
        self.is_exact = True
        """Whether steps end exactly between two iterations, which is needed only while a
        profiler may start there."""
        self._followed: list[StepLoop] = []
        """All loops whose iterations are or were steps."""
        self._loops: dict[int, list[StepLoop]] = {}
        """Maps `id(code)` to the loops of this code whose iterations are reported."""
        self._counted_codes: set[int] = set()
        """The `id` of each code whose loops are being counted."""
        self._running: StepLoop | None = None
        """The loop that a frame is in; what it calls makes no steps then."""
        self._ending: StepLoop | None = None
        """The loop of the last iteration that has ended."""
        self._last_loop: StepLoop | None = None
        """The loop of the last step that was reported."""
        self._is_outside = True
        """Whether the last loop of steps has ended, so that another one may be searched."""
        self._call_counter: int | None = None
        """Number of calls of Python functions in the current step; None except in the one step
        whose calls are counted."""
        state.stop_loop_search = self.stop_tracing
        self._process = os.getpid()
        self._step_ends = MainThreadCalls(self.fail)
        self._gap_ends = MainThreadCalls(self.fail)
        self._gaps = 0
        """How often a recording was ended since the loop was left."""
        self._is_gap_watched = False
        """Whether a thread waits for the loop to go on, since it has been left in a recording."""
        self.on_gap: Callable[[], object] = _nothing
        """Function called in a recording when the program has left the loop of steps for long."""

    @property
    def has_seen_operators(self) -> bool:
        """Returns whether the program is known to have run an operator of torch."""
        return self.search.has_seen_operators

    @property
    def is_choosing(self) -> bool:
        """Returns whether iterations of loops are being counted, to choose one of the loops."""
        return bool(self.search.candidates)

    # In the thread that reads stacks.

    def observe_stack(self, innermost_frame: FrameType | None) -> bool:
        """Searches a stack of the main thread for loops; returns whether to see the next soon."""
        if self.state.is_off:
            return False
        if not self._may_search():
            self.search.end_probe_soon()
            return False
        return self.search.observe_stack(innermost_frame)

    def _may_search(self) -> bool:
        ledger = self.state.ledger
        if ledger is not None and StepSource.TOLD.work in ledger.kinds.known:
            return False  # the program tells its steps itself
        if self.state.best_source not in (None, StepSource.LOOP):
            return False
        return self._is_outside and len(self._followed) < MAX_FOLLOWED_LOOPS

    # In the main thread.

    def _may_trace(self) -> bool:
        if self.state.is_off or not self._may_search():
            return False
        return trace_below_count() in (None, self._trace_call)

    def _start_tracing(self, codes: set[int], innermost_frame: FrameType) -> None:
        self._counted_codes = codes
        frame: FrameType | None = innermost_frame
        while frame is not None:
            if id(frame.f_code) in codes:
                frame.f_trace = LoopCounterTrace(self, frame).trace_line
            frame = frame.f_back
        # Python 3.12 calls for instructions only if a frame asked for it before.
        sys._getframe().f_trace_opcodes = True  # noqa: SLF001 - the only way to it
        sys.settrace(self._trace_call)

    @never_torch_compile
    def _trace_call(self, frame: FrameType, event: str, argument: object) -> Any:
        """Trace function for `sys.settrace`: returns a trace function for frames to examine."""
        if self._running is not None and self._call_counter is None:
            return None  # most calls
        del event, argument
        try:
            return self._trace_of_frame(frame)
        except Exception as error:  # noqa: BLE001 - the program's own call goes on
            self.fail(error)
        return None

    def _trace_of_frame(self, frame: FrameType) -> Any:
        if self._running is not None:
            self._call_counter = (self._call_counter or 0) + 1
            return None
        code = id(frame.f_code)
        if self.search.candidates and code in self._counted_codes:
            return LoopCounterTrace(self, frame).trace_line
        return self.trace_function_for_steps(frame) if code in self._loops else None

    def trace_function_for_steps(self, frame: FrameType) -> Any:
        """Returns a frame's trace function that ends steps; None if its loops make no steps."""
        loops = self._loops.get(id(frame.f_code))
        return trace_function_for_steps(self, loops, frame) if loops else None

    def stop_tracing(self) -> None:
        """Removes the trace function; from then on, loop iterations end no more steps."""
        self.search.stop_probe()
        if trace_below_count() == self._trace_call:
            sys.settrace(None)
        if self.state.ledger is not None and self.state.best_source is StepSource.LOOP:
            self.state.ledger.step_loop_line = None

    def fail(self, error: Exception) -> None:
        """Ends the search after a failure of selftime's own code; the program goes on."""
        self.stop_tracing()
        self.state.recorder_work.fail(error)

    def _follow(self, chosen: IteratedLoop, is_running: bool) -> None:
        """Makes the iterations of a loop steps from now on."""
        self._is_outside = not is_running
        loop = StepLoop(chosen.loop, chosen.began_ns)
        self._followed.append(loop)
        self._loops.setdefault(id(chosen.loop.code), []).append(loop)
        if self.main is None:
            self._replace_main(loop)
        elif not self.main.is_followed:
            self.main.unfollowed_ns += max(0, loop.began_ns - self.main.last_end_ns)

    def end_step_on_deletion(self, loop: StepLoop) -> CallRequest:
        """Returns an object whose deletion ends a step, after an iteration of a loop."""
        self._running = self._ending = loop
        return self._step_ends.schedule_on_deletion(self._end_exact_step)

    def end_last_step_on_deletion(self, loop: StepLoop) -> CallRequest:
        """Returns an object whose deletion ends the last step, after a loop has ended."""
        self._running, self._ending = None, loop
        return self._step_ends.schedule_on_deletion(self._end_last_step)

    def end_counted_step(self, loop: StepLoop) -> None:
        """Ends a step from within the trace function, after the next iteration has begun."""
        self._running = self._ending = loop
        self._end_step()

    @never_torch_compile
    def _end_exact_step(self) -> None:
        self._end_step(is_exact=True)

    @never_torch_compile
    def _end_last_step(self) -> None:
        self._end_step(is_exact=True)
        self.leave_loop()

    @never_torch_compile
    def leave_loop(self) -> None:
        """Notes that the loop has ended, after its last step."""
        self._running, self._is_outside = None, True
        if self._ending is self.main:
            self.state.step_kinds.add_event(_OUTSIDE_LOOP_EVENT)
        if self.state.ledger is not None:
            self.state.ledger.has_begun = False  # what follows is no step
        is_watched = self._is_gap_watched or self._gaps >= MAX_GAPS
        if self._ending is not None and not is_watched and self.state.is_recording():
            self._is_gap_watched = True
            longest_ns = max(MAX_RECORDED_GAP_NS, MAX_RECORDED_GAP_STEPS * self._ending.usual_ns)
            _thread.start_new_thread(self._wait_in_gap, (self._ending.steps, longest_ns / 1e9))

    def _wait_in_gap(self, steps: int, longest_s: float) -> None:
        """Has a recording end if the program has left the loop for long; in a thread of its own."""
        time.sleep(longest_s)
        self._is_gap_watched = False
        if self._is_outside and self._ending is not None and self._ending.steps == steps:
            self._gap_ends.schedule(self._end_recording_in_gap)

    @never_torch_compile
    def _end_recording_in_gap(self) -> None:
        if self._is_outside and self.state.is_recording():
            self._gaps += 1
            self.on_gap()

    @property
    def is_step_end_due(self) -> bool:
        """Returns whether a step that has ended is reported only at the next call."""
        return self._step_ends.is_waiting

    @never_torch_compile
    def _end_step(self, *, is_exact: bool = False) -> None:
        state, loop = self.state, self._ending
        source = state.best_source
        is_replaced = source is not None and source > StepSource.LOOP
        if state.is_off or is_replaced or loop is None or os.getpid() != self._process:
            self.stop_tracing()
            return
        with state.recorder_work:
            is_after_gap, self._is_outside = self._is_outside, False
            loop.end_iteration(
                state.recorder_work.start_ns,
                is_after_gap=is_after_gap,
                is_disturbed=self.is_exact,
            )
            if loop is not self.main and self._is_longer(loop):
                self.is_exact = True  # the recording begins anew between two iterations
                if is_exact:
                    self._replace_main(loop)
            if loop is not self._last_loop:
                self._begin_loop(loop)
            if loop is self.main:
                state.end_step(StepSource.LOOP)
            else:
                self._end_step_of_other_loop(loop, is_unusual=is_after_gap and loop.steps > 1)
            if not self.is_exact:
                self._stop_following_if_costly(loop)
            loop.resumed_ns = perf_counter_ns()

    def _is_longer(self, loop: StepLoop) -> bool:
        """Returns whether a loop takes the place of the main one, which each does once at most."""
        return self.main is None or (not loop.was_main and loop.time_ns > self.main.time_ns)

    def _replace_main(self, loop: StepLoop) -> None:
        """Makes a loop the main one: its iterations are the program's steps from now on."""
        earlier, self.main = self.main, loop
        loop.was_main = True
        if earlier is None:
            return
        if self.state.ledger is not None:
            self._rename_kinds(self.state.ledger, earlier, loop)
        self.state.begin_steps_anew()

    def _rename_kinds(self, ledger: "Ledger", earlier: StepLoop, main: StepLoop) -> None:
        """Names the kinds of steps anew: iterations before the main loop are part of the setup."""
        owners = {kind: loop for loop in self._followed for kind in loop.kinds}
        for kind in ledger.kinds.known:
            owner = owners.get(kind, earlier)
            if owner is main:
                name = _MAIN_KINDS[owner.kinds.index(kind)]
                if name is not None:
                    ledger.kinds.rename(kind, name)
            elif owner.last_end_ns <= main.began_ns:
                ledger.kinds.rename(kind, None)
            elif kind in _MAIN_KINDS:
                name = str(owner.kinds[_MAIN_KINDS.index(kind)])
                ledger.kinds.rename(kind, name, *owner.file_and_line)

    def _end_step_of_other_loop(self, loop: StepLoop, *, is_unusual: bool) -> None:
        ledger = self.state.ledger
        if ledger is not None:
            kind = loop.kinds[is_unusual]
            started = self.state.recorder_work.start_ns
            ledger.end_segment(started, kind, is_usual=not is_unusual)

    def _begin_loop(self, loop: StepLoop) -> None:
        """Tells the ledger which loop goes on; uncounted steps began when it was first seen."""
        self._last_loop, ledger = loop, self.state.ledger
        if ledger is None:
            return
        ledger.step_loop_line = loop.file_and_line
        if loop.steps == 1:
            if loop.began_ns > ledger.segment:
                ledger.begin_first_step(loop.began_ns)
            ledger.begin_uncounted_steps(loop.kinds[2])

    def expect_no_profiler(self) -> None:
        """Makes the tracing of steps cheaper from now on, since no profiler will start."""
        self.is_exact = False

    def _stop_following_if_costly(self, loop: StepLoop) -> None:
        """Counts the calls of one step, and stops tracing if tracing them costs too much."""
        if self._call_counter is not None:
            cost, self._call_counter = self._call_counter * TRACED_CALL_COST_NS, None
            if cost > max(MAX_TRACE_COST_NS, MAX_TRACE_COST_SHARE * loop.usual_ns):
                self._stop_following(loop)
        elif loop.steps >= MIN_STEPS_TO_COUNT and not loop.is_cost_known:
            loop.is_cost_known = True
            self._call_counter = 0

    def _stop_following(self, loop: StepLoop) -> None:
        """Counts no further iteration of a loop one by one; another loop may be searched."""
        loop.is_followed = False
        self._loops[id(loop.loop.code)].remove(loop)
        self._running, self._is_outside = None, True
        if not any(self._loops.values()):
            self.stop_tracing()
        if self.state.ledger is not None:
            self.state.ledger.begin_uncounted_steps(loop.kinds[2])
            self.state.ledger.has_begun = False  # what follows is no step


def _nothing() -> None:
    pass
