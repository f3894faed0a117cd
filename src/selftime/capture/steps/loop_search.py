"""Searches for a loop that may make steps, in the stacks of the main thread.

A loop is found in three stages:

1. The Python stack of the main thread is read from time to time (`observe_stack`, in the thread
   that watches the run): the loops that are on most of the stacks are candidates.
2. A profiler without stacks runs until the next reading: it tells whether the program runs
   operators of torch at all.
3. A trace function (`sys.settrace`) counts the iterations of the candidates, until `loop_choice`
   can tell which one makes the steps.

Stages 2 and 3 run in the main thread.
"""

import sys
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace
from time import perf_counter_ns
from types import FrameType
from typing import Final

from torch._C._autograd import (
    _disable_profiler_legacy,
    _enable_profiler_legacy,
    _profiler_enabled,
)
from torch._C._profiler import ProfilerConfig, ProfilerState, _ExperimentalConfig

from selftime.capture.code_loops import CodeLoop, loops_on_stack
from selftime.capture.main_thread_calls import MainThreadCalls
from selftime.capture.steps.detection_state import StepDetectionState
from selftime.capture.steps.loop_choice import IteratedLoop, choose_step_loop
from selftime.capture.steps.loop_lengths import known_iterations
from selftime.capture.steps.loop_place import loops_that_may_step
from selftime.capture.steps.profiler_changes import may_change_profiler
from selftime.capture.steps.torch_compile import never_torch_compile
from selftime.capture.steps.training_code import calls_backward

STACKS_BEFORE_CHOICE: Final = 8
"""Number of stack samples (about 0.1 s) in which loops are searched that may make the steps."""

MIN_SHARE_OF_STACKS: Final = 0.8
"""Smallest fraction (0 to 1) of the stack samples that must show a loop."""

MIN_SHARE_OF_INNER_LOOPS: Final = 0.5
"""The same for a loop within such a loop: an epoch may spend time in other loops, too."""

MAX_STACKS_BETWEEN_PROBES: Final = 200
"""Largest number of stack samples between two checks whether the program runs torch operators."""

MAX_FREQUENT_PROBES: Final = 3
"""Number of probes in vain after which they become rarer: no operator of a program with long ones
may begin while a probe goes on."""

PROBE_MARKS: Final = 2
"""Number of events in a profiler's result if no operator ran: its start and its stop."""

MAX_WAIT_FOR_TRAINING_NS: Final = 10_000_000_000
"""Time in ns after which a loop may make the steps of a program whose code trains, although it has
not begun to train."""

MAX_WAIT_WITH_OPTIMIZER_NS: Final = 60_000_000_000
"""The same in a program that has made an optimizer."""

MAX_COUNTED_LOOPS: Final = 1_000
"""Largest number of loops of which is remembered how often they repeat."""


class LoopSearch:
    """Searches for a loop that may make steps while `is_on`, and hands it to `on_choice`."""

    def __init__(
        self,
        state: StepDetectionState,
        on_failure: Callable[[Exception], None],
        start_tracing: Callable[[set[int], FrameType], None],
        on_choice: Callable[[IteratedLoop, bool], None],
    ) -> None:
        """Makes a search.

        Args:
            state: What all step finders share.
            on_failure: Called with what a function in the main thread raises.
            start_tracing: Called to have the iterations of all loops of some functions counted. It
                is given the `id` of their code, and the innermost running frame.
            on_choice: Called with the loop that makes steps, and whether it is still running.
        """
        self._state = state
        self._start_tracing = start_tracing
        self._on_choice = on_choice
        self._calls = MainThreadCalls(on_failure)
        self.may_trace: Callable[[], bool] = bool
        """Function that returns whether loops may be searched and traced now."""
        self.candidates: list[IteratedLoop] = []
        """The loops whose iterations are being counted, the outermost first."""
        self.has_seen_operators = False
        """Whether a probe saw the program run an operator of torch."""
        self._counted_before: dict[int, IteratedLoop] = {}
        """By `id(loop)`, the loops whose iterations were counted before."""
        self._excluded: dict[int, CodeLoop] = {}
        """By `id(loop)`, the loops that are no candidates: those that were chosen, and the loops
        around them."""
        self._chosen: set[int] = set()
        """The `id` of each loop that was chosen: loops within it are parts of its steps."""
        self._stacks: deque[tuple[CodeLoop, ...]] = deque(maxlen=STACKS_BEFORE_CHOICE)
        """The loops that run in each of the last stack samples, the outermost first."""
        self._began_ns: dict[int, int] = {}
        """Maps `id(loop)` to the time in ns of the last stack sample that did not show the loop
        while each one since then has."""
        self._segment = 0
        """Start in ns of the ledger's segment to which the times of `_began_ns` belong."""
        self._torch_events_seen = 0
        self._stacks_until_probe = STACKS_BEFORE_CHOICE
        self._stacks_between_probes = STACKS_BEFORE_CHOICE
        self._vain_probes = 0
        """Number of probes since the last choice after which no iteration was counted."""
        self._is_probing = False
        self._counting_start_ns = 0

    # In the thread that reads stacks.

    def observe_stack(self, innermost_frame: FrameType | None) -> bool:
        """Stores which loops run on the main thread's stack, and checks for steps if it is time.

        Returns whether it needs to see the next stack soon.
        """
        candidates = self.candidates
        if candidates:
            if candidates[0].loop not in loops_on_stack(innermost_frame):
                self._calls.schedule(self._end_unseen_counting)
            return False
        if self._is_probing:
            self._calls.schedule(self._finish_probe)
            return True
        if self._shows_torch_events():
            self._torch_events_seen = self._state.torch_events
            self._stacks.clear()
            return False
        loops = self._possible(loops_that_may_step(innermost_frame))
        self._stacks.append(loops)
        self._note_beginnings(loops)
        self._stacks_until_probe -= 1
        is_due = self._stacks_until_probe <= 0 and len(self._stacks) == STACKS_BEFORE_CHOICE
        if is_due and self._frequent_loops():
            self._calls.schedule(self._start_probe)
            self._stacks_until_probe = self._stacks_between_probes
        return self._stacks_between_probes == STACKS_BEFORE_CHOICE and bool(loops)

    def _possible(self, loops: tuple[CodeLoop, ...]) -> tuple[CodeLoop, ...]:
        """Returns those of a stack's loops that may be chosen, the outermost first."""
        possible: list[CodeLoop] = []
        for loop in loops:
            if id(loop) in self._chosen:
                break
            if id(loop) not in self._excluded:
                possible.append(loop)
        return tuple(possible)

    def _note_beginnings(self, loops: tuple[CodeLoop, ...]) -> None:
        ledger, seen = self._state.ledger, self._began_ns
        earliest = perf_counter_ns()
        if ledger is not None:
            if ledger.segment != self._segment:
                self._segment, seen = ledger.segment, {}
            earliest = max(ledger.last_reading_ns, ledger.activities.last_end, ledger.segment)
        self._began_ns = {id(loop): seen.get(id(loop), earliest) for loop in loops}

    def _frequent_loops(self) -> list[CodeLoop]:
        """Returns the loops that most of the last stack samples show, the outermost first.

        Loops within them are among these if at least every other sample shows them.
        """
        stacks = list(self._stacks)
        last = stacks[-1] if stacks else ()
        seen = Counter(loop for stack in stacks for loop in set(stack))
        loops = [loop for loop in last if seen[loop] >= MIN_SHARE_OF_STACKS * len(stacks)]
        if not loops:
            return []
        inner = {
            loop: stack.index(loop)
            for stack in stacks
            for loop in stack
            if loop not in loops and seen[loop] >= MIN_SHARE_OF_INNER_LOOPS * len(stacks)
        }
        return loops + sorted(inner, key=inner.__getitem__)

    # In the main thread.

    @never_torch_compile
    def _start_probe(self) -> None:
        if not self.may_trace() or self._shows_torch_events() or _profiler_enabled():
            return
        if not may_change_profiler():
            return
        flags = (False, False, False, False, False)
        config = ProfilerConfig(ProfilerState.CPU, *flags, _ExperimentalConfig())
        with self._state.recorder_work:
            _enable_profiler_legacy(config)
        self._is_probing = True

    @never_torch_compile
    def _finish_probe(self) -> None:
        if not may_change_profiler():  # the next reading of the stack asks for it again
            return
        has_operators = self.stop_probe() > PROBE_MARKS
        self.has_seen_operators = self.has_seen_operators or has_operators
        if has_operators and not self._shows_torch_events() and self._start_counting():
            return
        self._vain_probes += 1
        if self._vain_probes > MAX_FREQUENT_PROBES:
            longer = 2 * self._stacks_between_probes
            self._stacks_between_probes = min(longer, MAX_STACKS_BETWEEN_PROBES)

    def end_probe_soon(self) -> None:
        """Has a probe that is running stopped in the main thread; may be called in any thread."""
        if self._is_probing:
            self._calls.schedule(self._end_vain_probe)

    @never_torch_compile
    def _end_vain_probe(self) -> None:
        if may_change_profiler():
            self.stop_probe()

    def stop_probe(self) -> int:
        """Stops the profiler that checks for operators; returns its number of events, else 0."""
        if not self._is_probing:
            return 0
        self._is_probing = False
        with self._state.recorder_work:
            return sum(len(of_thread) for of_thread in _disable_profiler_legacy())
        return 0

    def _shows_torch_events(self) -> bool:
        """Returns whether an optimizer, module, backward pass or DataLoader was just used."""
        state = self._state
        return state.is_in_torch_event or state.torch_events != self._torch_events_seen

    def _start_counting(self) -> bool:
        """Begins to count the iterations of the loops on most stacks; returns whether it did."""
        frame = sys._getframe()  # noqa: SLF001 - the only way to it
        running, loops = loops_on_stack(frame), self._frequent_loops()
        while loops and loops[0] not in running:  # it has ended since the last stack was read
            del loops[0]
        if not loops or not self.may_trace() or self._may_train_later(loops[0], frame):
            return False
        with self._state.recorder_work:
            self._counting_start_ns = perf_counter_ns()
            candidates = {id(loop): self._candidate(loop) for loop in loops}
            outer: FrameType | None = frame
            while outer is not None:
                for loop in loops:
                    if loop.code is outer.f_code:
                        candidates[id(loop)].known_iterations = known_iterations(loop, outer)
                outer = outer.f_back
            self.candidates = list(candidates.values())
        self._start_tracing({id(loop.code) for loop in loops}, frame)
        return True

    def _candidate(self, loop: CodeLoop) -> IteratedLoop:
        began = self._began_ns.get(id(loop), self._counting_start_ns)
        earlier = self._counted_before.get(id(loop))
        if earlier is None:
            return IteratedLoop(loop, began_ns=began)
        return replace(
            earlier, began_ns=began, iterations=0, first_ns=0, last_ns=0, iterations_before=0
        )

    def _may_train_later(self, outermost: CodeLoop, frame: FrameType) -> bool:
        """Returns whether a loop comes before the training that the program's code contains."""
        state = self._state
        if state.best_source is not None or state.backward_passes:
            return False
        waited = perf_counter_ns() - self._began_ns.get(id(outermost), 0)
        if waited <= MAX_WAIT_WITH_OPTIMIZER_NS and state.has_live_optimizer():
            return True
        if state.ledger is None or waited > MAX_WAIT_FOR_TRAINING_NS:
            return False
        with state.recorder_work:
            return calls_backward(frame, state.ledger.kinds.is_user_file)
        return False

    def count_iteration(self, loop: CodeLoop) -> None:
        """Counts a loop's iteration; chooses the loop that makes steps if enough are counted."""
        now = perf_counter_ns()
        for counted in self.candidates:
            if counted.loop is loop:
                counted.count_iteration(now)
        self._choose(now, running=len(self.candidates))

    def end_entry(self, loop: CodeLoop) -> None:
        """Notes that a loop has ended; the search begins anew if the outermost one has."""
        for running, counted in enumerate(self.candidates):
            if counted.loop is loop:
                counted.end_entry()
                self._choose(perf_counter_ns(), running=running)
                if not running and self.candidates:
                    self._end_counting()
                return

    def _choose(self, now: int, *, running: int) -> None:
        """Chooses a loop if it is time, of candidates of which the first ones are running."""
        chosen = choose_step_loop(self.candidates, self._counting_start_ns, now)
        if chosen is None:
            return
        number = next(n for n, counted in enumerate(self.candidates) if counted is chosen)
        outer = self.candidates[: number + 1]
        self._excluded |= {id(counted.loop): counted.loop for counted in outer}
        self._chosen.add(id(chosen.loop))
        self._stacks_between_probes, self._vain_probes = STACKS_BEFORE_CHOICE, 0
        self._end_counting()
        self._on_choice(chosen, number < running)

    @never_torch_compile
    def _end_unseen_counting(self) -> None:
        """Ends the count if the loops have ended in a way that the trace function does not see."""
        running = loops_on_stack(sys._getframe())  # noqa: SLF001 - the only way to the frames
        if self.candidates and self.candidates[0].loop not in running:
            self._end_counting()

    def _end_counting(self) -> None:
        if len(self._counted_before) > MAX_COUNTED_LOOPS:
            self._counted_before.clear()
        self._counted_before |= {id(counted.loop): counted for counted in self.candidates}
        self.candidates = []
        self._stacks.clear()
        self._stacks_until_probe = self._stacks_between_probes
