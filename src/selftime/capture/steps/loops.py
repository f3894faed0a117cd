"""Finds steps from iterations of a loop, in a program without optimizers, modules or batches.

Such a program uses neither optimizers, modules, backward passes nor DataLoaders: a simulation,
k-means, decoding by hand. Its loop is found in four stages:

1. The Python stack of the main thread is read from time to time (`observe_stack`, in the thread
   that watches the run): the loops that are on most of the stacks are candidates.
2. A profiler without stacks runs until the next reading: it tells whether the program runs
   operators of torch at all.
3. A trace function (`sys.settrace`) counts the iterations of the candidates, until `loop_choice`
   can tell which one makes the steps.
4. From then on the trace function reports each iteration of that loop as a step.

Stages 2 to 4 run in the main thread. The trace function is not set in a program that has one, such
as under a debugger or coverage, and is removed when a better source of steps shows up.
"""

import os
import sys
from collections import deque
from time import perf_counter_ns
from types import CodeType, FrameType
from typing import Any, Final

from torch._C._autograd import (
    _disable_profiler_legacy,
    _enable_profiler_legacy,
    _profiler_enabled,
)
from torch._C._profiler import ProfilerConfig, ProfilerState, _ExperimentalConfig

from selftime.capture.code_loops import CodeLoop, loops_at
from selftime.capture.main_thread_calls import CallRequest, MainThreadCalls
from selftime.capture.steps.detection_state import StepDetectionState, StepSource
from selftime.capture.steps.loop_choice import IteratedLoop, choose_step_loop
from selftime.capture.steps.loop_trace import (
    LoopCounterTrace,
    TraceEventCounter,
    trace_function_for_steps,
)
from selftime.capture.steps.torch_compile import never_torch_compile

STACKS_BEFORE_CHOICE: Final = 8
"""Number of stack samples (about 0.1 s) in which loops are searched that may make the steps."""

MIN_SHARE_OF_STACKS: Final = 0.8
"""Smallest fraction (0 to 1) of the stack samples that must show a loop."""

MAX_STACKS_BETWEEN_PROBES: Final = 200
"""Largest number of stack samples between two checks whether the program runs torch operators."""

PROBE_MARKS: Final = 2
"""Number of events in a profiler's result if no operator ran: its start and its stop."""

MIN_STEPS_TO_COUNT: Final = 50
"""Number of steps after which the trace function is removed if it costs too much."""

TRACED_EVENT_COST_NS: Final = 170
"""Measured cost of the trace function in ns for each executed line and call."""

MAX_TRACE_COST_NS: Final = 20_000
MAX_TRACE_COST_SHARE: Final = 0.005
"""Largest allowed cost of the trace function per step after the recording, as a fraction of the
step, unless `MAX_TRACE_COST_NS` allows more."""

_OUTSIDE_LOOP_EVENT: Final = "code outside of the loop"


class LoopStepFinder:
    """Finds the loop whose iterations are the steps, and reports the end of each iteration."""

    def __init__(self, state: StepDetectionState) -> None:
        self.state = state
        self.step_loop: CodeLoop | None = None
        """The loop whose iterations are the steps; None while it is unknown."""
        self.is_exact = True
        """Whether steps end exactly between two iterations, which is needed only while a
        profiler may start there."""
        self.steps = 0
        self._durations_ns: deque[int] = deque(maxlen=STACKS_BEFORE_CHOICE)
        self._last_end_ns = 0
        self._event_counter: TraceEventCounter | None = None
        """Counts the lines and calls of the current step; None except in the one step that is
        counted."""
        self._is_cost_known = False
        state.stop_loop_search = self.stop_tracing
        self._process = os.getpid()
        self._calls = MainThreadCalls(self.fail)
        self._step_ends = MainThreadCalls(self.fail)
        self._stacks: deque[tuple[CodeLoop, ...]] = deque(maxlen=STACKS_BEFORE_CHOICE)
        """The loops that run in each of the last stack samples, the outermost first."""
        self._first_seen_ns: dict[int, int] = {}
        """Maps `id(loop)` to the time in ns since which each stack sample has shown the loop."""
        self._torch_events_seen = 0
        self._stacks_until_probe = STACKS_BEFORE_CHOICE
        self._stacks_between_probes = STACKS_BEFORE_CHOICE
        self._is_probing = False
        self.has_seen_operators = False
        """Whether a probe saw the program run an operator of torch."""
        self._candidates: list[IteratedLoop] = []
        self._counting_start_ns = 0
        self._is_frame_in_loop = False
        """Whether a frame is in the loop that makes steps; recursive calls of its function then
        make no steps."""

    # In the thread that reads stacks.

    def observe_stack(self, innermost_frame: FrameType | None) -> bool:
        """Stores which loops run on the main thread's stack, and checks for steps if it is time.

        Returns whether it needs to see the next stack soon.
        """
        state = self.state
        if state.is_off or state.best_source is not None or self._candidates:
            return False
        if self._is_probing:
            self._calls.schedule(self._finish_probe)
            return True
        if self._shows_torch_events():
            self._torch_events_seen = state.torch_events
            self._stacks.clear()
            return False
        loops = _loops_on_stack(innermost_frame)
        self._stacks.append(loops)
        seen, now = self._first_seen_ns, perf_counter_ns()
        self._first_seen_ns = {id(loop): seen.get(id(loop), now) for loop in loops}
        self._stacks_until_probe -= 1
        if self._stacks_until_probe <= 0 and len(self._stacks) == STACKS_BEFORE_CHOICE:
            if self._frequent_loops():
                self._calls.schedule(self._start_probe)
            self._stacks_until_probe = self._stacks_between_probes
        return self._stacks_between_probes == STACKS_BEFORE_CHOICE and bool(loops)

    def _frequent_loops(self) -> list[CodeLoop]:
        """Returns the loops that most of the last stack samples show, the outermost first."""
        stacks = list(self._stacks)
        last = stacks[-1] if stacks else ()
        needed = MIN_SHARE_OF_STACKS * len(stacks)
        return [loop for loop in last if sum(loop in stack for stack in stacks) >= needed]

    @property
    def is_choosing(self) -> bool:
        """Returns whether iterations of loops are being counted, to choose one of the loops."""
        return bool(self._candidates) and self.step_loop is None

    # In the main thread.

    @never_torch_compile
    def _start_probe(self) -> None:
        if self._may_not_trace() or self._shows_torch_events() or _profiler_enabled():
            return
        flags = (False, False, False, False, False)
        config = ProfilerConfig(ProfilerState.CPU, *flags, _ExperimentalConfig())
        with self.state.recorder_work:
            _enable_profiler_legacy(config)
        self._is_probing = True

    @never_torch_compile
    def _finish_probe(self) -> None:
        has_operators = self._stop_probe() > PROBE_MARKS
        self.has_seen_operators = self.has_seen_operators or has_operators
        if has_operators and not self._shows_torch_events():
            self._start_counting()
        else:
            longer = 2 * self._stacks_between_probes
            self._stacks_between_probes = min(longer, MAX_STACKS_BETWEEN_PROBES)

    def _stop_probe(self) -> int:
        """Stops the profiler that checks for operators; returns its number of events, else 0."""
        if not self._is_probing:
            return 0
        self._is_probing = False
        with self.state.recorder_work:
            return sum(len(of_thread) for of_thread in _disable_profiler_legacy())
        return 0

    def _shows_torch_events(self) -> bool:
        """Returns whether an optimizer, module, backward pass or DataLoader was just used."""
        state = self.state
        return state.is_in_torch_event or state.torch_events != self._torch_events_seen

    def _may_not_trace(self) -> bool:
        state = self.state
        return state.is_off or state.best_source is not None or sys.gettrace() is not None

    def _start_counting(self) -> None:
        loops = self._frequent_loops()
        if not loops or self._may_not_trace():
            return
        self._candidates = [IteratedLoop(loop) for loop in loops]
        self._counting_start_ns = perf_counter_ns()
        codes = {id(loop.code) for loop in loops}
        frame: FrameType | None = sys._getframe()  # noqa: SLF001 - the only way to the frames
        while frame is not None:
            if id(frame.f_code) in codes:
                frame.f_trace = LoopCounterTrace(self, frame).trace_line
            frame = frame.f_back
        sys.settrace(self._trace_call)

    @never_torch_compile
    def _trace_call(self, frame: FrameType, event: str, argument: object) -> Any:
        """Trace function for `sys.settrace`: returns a trace function for frames to examine."""
        del event, argument
        try:
            return self._trace_of_frame(frame)
        except Exception as error:  # noqa: BLE001 - the program's own call goes on
            self.fail(error)
        return None

    def _trace_of_frame(self, frame: FrameType) -> Any:
        code: CodeType = frame.f_code
        if self.step_loop is not None:
            if self._is_frame_in_loop:
                counter = self._event_counter
                return None if counter is None else counter.trace(frame, "call", None)
            return trace_function_for_steps(self, self.step_loop, frame)
        if any(counted.loop.code is code for counted in self._candidates):
            return LoopCounterTrace(self, frame).trace_line
        return None

    def stop_tracing(self) -> None:
        """Removes the trace function; from then on, loop iterations end no more steps."""
        self._stop_probe()
        if sys.gettrace() == self._trace_call:
            sys.settrace(None)
        if self.state.ledger is not None:
            self.state.ledger.step_loop_line = None

    def fail(self, error: Exception) -> None:
        """Ends the search after a failure of selftime's own code; the program goes on."""
        self.stop_tracing()
        self.state.recorder_work.fail(error)

    def count_iteration(self, loop: CodeLoop) -> None:
        """Counts a loop's iteration; chooses the loop that makes steps if enough are counted."""
        now = perf_counter_ns()
        for counted in self._candidates:
            if counted.loop is loop:
                counted.count_iteration(now)
        chosen = choose_step_loop(self._candidates, self._counting_start_ns, now)
        self.step_loop = None if chosen is None else chosen.loop

    def end_step_on_deletion(self) -> CallRequest:
        """Returns an object whose deletion ends a step, after an iteration of the loop."""
        self._is_frame_in_loop = True
        return self._step_ends.schedule_on_deletion(self._end_step)

    def end_last_step_on_deletion(self) -> CallRequest:
        """Returns an object whose deletion ends the last step, after the loop has ended."""
        self._is_frame_in_loop = False
        return self._step_ends.schedule_on_deletion(self._end_last_step)

    @never_torch_compile
    def _end_last_step(self) -> None:
        self._end_step()
        self.state.step_kinds.add_event(_OUTSIDE_LOOP_EVENT)

    @never_torch_compile
    def _end_step(self) -> None:
        state = self.state
        source = state.best_source
        is_replaced = source is not None and source > StepSource.LOOP
        if state.is_off or is_replaced or os.getpid() != self._process:
            self.stop_tracing()
            return
        with state.recorder_work:
            self._begin_first_step()
            state.end_step(StepSource.LOOP)
            self.steps += 1
            now = perf_counter_ns()
            self._durations_ns.append(now - self._last_end_ns)
            self._last_end_ns = now
            if not self.is_exact:
                self._stop_tracing_if_costly()

    def _begin_first_step(self) -> None:
        """Tells the ledger that uncounted steps began when the loop was first seen."""
        ledger, loop = self.state.ledger, self.step_loop
        if self.steps or ledger is None or loop is None:
            return
        ledger.step_loop_line = loop.code.co_filename, loop.line
        ledger.begin_first_step(self._first_seen_ns.get(id(loop), self._counting_start_ns))
        ledger.begin_uncounted_steps()

    def expect_no_profiler(self) -> None:
        """Makes the tracing of steps cheaper from now on, since no profiler will start."""
        self.is_exact = False

    def end_counted_step(self) -> None:
        """Ends a step from within the trace function, after the next iteration has begun."""
        self._is_frame_in_loop = True
        self._end_step()

    def _stop_tracing_if_costly(self) -> None:
        """Counts the lines and calls of one step, and stops tracing if tracing costs too much."""
        if self._event_counter is not None:
            cost = self._event_counter.events * TRACED_EVENT_COST_NS
            self._event_counter = None
            usual = sorted(self._durations_ns)[len(self._durations_ns) // 2]
            if cost > max(MAX_TRACE_COST_NS, MAX_TRACE_COST_SHARE * usual):
                self.stop_tracing()
                if self.state.ledger is not None:
                    self.state.ledger.begin_uncounted_steps()
        elif self.steps >= MIN_STEPS_TO_COUNT and not self._is_cost_known:
            self._is_cost_known = True
            self._event_counter = TraceEventCounter()


def _loops_on_stack(innermost_frame: FrameType | None) -> tuple[CodeLoop, ...]:
    """Returns all loops that the frames of a stack are executing, the outermost first."""
    loops: list[CodeLoop] = []
    frame = innermost_frame
    while frame is not None:
        loops[:0] = loops_at(frame.f_code, frame.f_lasti)
        frame = frame.f_back
    return tuple(loops)
