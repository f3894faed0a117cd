"""Observes what a program does while the events that end its steps stay away.

In a program with optimizers module calls are not wrapped, since a wrapper costs time in each call.
Where much more time passes after a step than a step takes, the thread that reads stacks wraps them
again, until the next step of training begins. Such a pause is

- an evaluation, if modules are called repeatedly without gradients, as after `model.eval()`;
- a rollout of reinforcement learning, if these calls have far smaller inputs than training has, as
  when a policy acts in one environment;
- work of another kind after the training, if the loops in which it stepped have ended. Its module
  calls are then steps of their own.

Calls before the wrapper was there are not seen: the time since the last step is theirs if the calls
were in progress when it came.
"""

import os
import sys
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from threading import get_ident
from time import perf_counter_ns
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Final

import torch

from selftime.capture.code_loops import CodeLoop, loops_at
from selftime.capture.steps.detection_state import StepDetectionState, StepSource
from selftime.capture.steps.modules import ModuleCall, ModuleStepFinder
from selftime.capture.steps.rollouts import MIN_CALLS_OF_ROLLOUT, MIN_INPUT_RATIO
from selftime.capture.steps.torch_compile import never_torch_compile
from selftime.ledger_format import AFTER_LAST_STEP, ROLLOUT_KIND, UNCOUNTED_STEPS

if TYPE_CHECKING:
    from selftime.capture.ledger.instants import Instant
    from selftime.capture.ledger.ledger import Ledger

MIN_CALLS_OF_EVALUATION: Final = 4
"""Number of calls of one module without gradients, between two steps, that are an evaluation: a
teacher of the model is called a few times in each step."""

MIN_CALLS_OF_OTHER_WORK: Final = 10
"""Number of calls of one module after training that are steps of their own."""

MIN_OTHER_WORK_NS: Final = 250_000_000
"""Time in ns since the last step of training after which other calls may be steps."""

MIN_OTHER_WORK_STEPS: Final = 10
"""The same in usual steps of training."""

MANY_CALLS_OF_OTHER_WORK: Final = 50
MIN_TIME_OF_MANY_CALLS_NS: Final = 100_000_000
"""So many calls of one module are steps of their own after this shorter time, in ns, too."""

MAX_THREAD_SWITCH_NS: Final = 10_000_000
"""Time in ns that the program may wait for Python's lock after module calls have been wrapped."""

MAX_REMEMBERED_CALLS: Final = 10_000
"""Largest number of calls in a pause that are remembered until they are known to be steps."""

_MODULE_CALL_CODE: Final[CodeType] = torch.nn.Module.__call__.__code__
_RUNS_THE_PROGRAM: Final = os.path.join("capture", "program", "python_program.py")  # noqa: PTH118 - compared with texts
"""End of the path of the file that runs the program: loops around it are not the program's."""


@dataclass(slots=True)
class _Pause:
    """What has been seen of the program since its last step."""

    segment: int
    """Start of the pause, which is the end of the last step, in ns."""
    opened_ns: int
    """When module calls began to be observed, in ns."""
    batch_requests: int
    """Number of batch requests of the program when the pause was opened."""
    was_evaluating: bool
    """Whether the program had called `model.eval()` by then."""
    had_wrapper: bool
    """Whether module calls were wrapped before the pause, too."""
    is_in_module_call: bool
    """Whether a module call was running when the pause was opened."""
    has_left_loops: bool = False
    """Whether none of the loops runs in which the last step ended."""
    loop_lines: Counter[tuple[str, int]] = field(default_factory=Counter)
    """How often each loop of the user's code that began after the last step was the innermost, by
    file and line."""
    may_be_nested: bool = True
    """Whether calls may be within a module call that began before the wrapper was there."""
    has_marked_call: bool = False
    """Whether the frame of such a module call has been marked."""
    repeated: tuple[int, int] | None = None
    """The module call that repeats; None if none has."""
    calls: "list[Instant]" = field(default_factory=list)
    """When it was made."""
    once: "dict[tuple[int, int], Instant]" = field(default_factory=dict)
    """When each other call was made since."""
    input_size: int = 0
    """Number of elements of the input of the call that repeats."""
    training: "Instant | None" = None
    """First call with gradients since the last without, after the loops have ended: if a backward
    pass follows, another training begins there."""
    is_evaluation: bool = False
    """Whether the calls without gradients are counted as an evaluation."""

    def add_call(self, key: tuple[int, int], instant: "Instant") -> None:
        if key == self.repeated:
            self.once.clear()
            if len(self.calls) < MAX_REMEMBERED_CALLS:
                self.calls.append(instant)
        elif key in self.once:
            self.repeated, self.calls = key, [self.once[key], instant]
            self.once.clear()
        elif len(self.once) < MAX_REMEMBERED_CALLS:
            self.once[key] = instant

    def is_nested(self) -> bool:
        """Returns whether a call is made within a module call that began before the wrapper.

        That call's frame is marked by `f_trace_opcodes`, which does nothing while no trace function
        is set. One without the mark is a later call, by a method that was looked up before.
        """
        if not self.may_be_nested:
            return False
        frame = _outermost_module_call()
        if frame is None or (self.has_marked_call and not frame.f_trace_opcodes):
            self.may_be_nested = False
        else:
            frame.f_trace_opcodes = self.has_marked_call = True
        return self.may_be_nested

    @property
    def loop_line(self) -> tuple[str, int] | None:
        """Returns file and line of the loop that was seen most often; None if none was."""
        most = self.loop_lines.most_common(1)
        return most[0][0] if most else None

    @property
    def was_in_progress(self) -> bool:
        """Returns whether the calls had begun before they were observed."""
        (_, first, _), (_, second, _) = self.calls[:2]
        latest = self.opened_ns + 2 * (second - first) + MAX_THREAD_SWITCH_NS
        return self.is_in_module_call or first <= latest


class PauseObserver:
    """Wraps module calls in long pauses between steps, and says what these pauses are."""

    def __init__(self, state: StepDetectionState, modules: ModuleStepFinder) -> None:
        self._state = state
        self._modules = modules
        self._pause: _Pause | None = None
        self._step_frames: tuple[tuple[CodeType, int], ...] = ()
        """Code and position of each frame where a step ended, the outermost first."""
        state.pause_hooks.on_step_end = self._observe_step_end

    # In the thread that reads stacks.

    def observe_stack(self, innermost_frame: FrameType | None) -> None:
        """Opens a pause if the last step ended long ago, and looks which loops run."""
        ledger = self._state.ledger
        if ledger is None or not self._may_be_paused(ledger):
            return
        frames = _frames_on_stack(innermost_frame)
        known = {id(loop) for loop in _loops_of(self._step_frames)}
        loops = _loops_of(frames)
        has_left = bool(known) and not any(id(loop) in known for loop in loops)
        line = next(
            (
                (loop.code.co_filename, loop.line)
                for loop in reversed(loops)
                if id(loop) not in known and ledger.kinds.is_user_file(loop.code.co_filename)
            ),
            None,
        )
        pause = self._pause
        if pause is None or pause.segment != ledger.segment:
            is_in_call = any(code is _MODULE_CALL_CODE for code, _ in frames)
            pause = self._open(ledger, is_in_call, has_left)
        pause.has_left_loops = has_left
        if line is not None:
            pause.loop_lines[line] += 1

    def _may_be_paused(self, ledger: "Ledger") -> bool:
        state, source = self._state, self._state.best_source
        if state.is_off or source is None or source <= StepSource.MODULE:
            return False
        if (
            ledger.activities.running
            or state.in_optimizer
            or state.in_backward
            or state.thread != ledger.thread
        ):
            return False
        waited = perf_counter_ns() - ledger.segment
        return waited >= ledger.slow_step_limit.slow_after_ns

    def _open(self, ledger: "Ledger", *seen: Any) -> _Pause:
        state = self._state
        self._pause = pause = _Pause(
            ledger.segment,
            perf_counter_ns(),
            state.batch_requests,
            ledger.is_evaluating,
            not state.module_calls.is_released,
            *seen,
        )
        state.pause_hooks.on_training_event = self._on_training_event
        self._modules.on_call_in_pause = self._on_module_call
        state.module_calls.restore_wrapper()
        return pause

    # In the thread that makes steps.

    @never_torch_compile
    def _observe_step_end(self) -> None:
        self._step_frames = _frames_on_stack(sys._getframe())  # noqa: SLF001 - the only way

    @never_torch_compile
    def _on_module_call(self, call: ModuleCall) -> bool:
        """Handles an outermost module call; returns whether steps may end at it as well."""
        ledger, pause = self._state.ledger, self._pause
        if ledger is None or pause is None or pause.segment != ledger.segment:
            self._close()
        elif self._state.thread == get_ident() and not pause.is_nested():
            self._observe_call(call, pause, ledger)
        return pause is not None and pause.had_wrapper

    def _observe_call(self, call: ModuleCall, pause: _Pause, ledger: "Ledger") -> None:
        state = self._state
        at = state.recorder_work.start_ns
        has_gradients = torch.is_grad_enabled()
        if not pause.has_left_loops and self._ends_pause(pause, call, has_gradients=has_gradients):
            if call.module.training or not ledger.is_evaluating:
                self._end_before_training(pause, ledger, call.input_size())
            return
        pause.add_call(call.key, ledger.instant(at))
        if has_gradients:
            self._note_training(pause, call, ledger)
        else:
            pause.training = None
        if call.key == pause.repeated:
            pause.input_size = call.input_size()
            if pause.has_left_loops or not has_gradients:
                self._note_repeated_call(pause, ledger, at, has_gradients=has_gradients)

    def _ends_pause(self, pause: _Pause, call: ModuleCall, *, has_gradients: bool) -> bool:
        """Returns whether the next step of training begins with a call, or has begun.

        A model that acts with gradients is called with a larger input when it is trained.
        """
        rollouts = self._modules.optimizers.rollouts
        if rollouts.has_rollout and pause.repeated is not None:
            is_same_module = call.key[0] == pause.repeated[0]
            if is_same_module and self._is_rollout(pause, call.input_size()):
                return True
        is_acting = rollouts.has_rollout and not pause.is_evaluation and not pause.was_evaluating
        return has_gradients and not is_acting

    def _note_training(self, pause: _Pause, call: ModuleCall, ledger: "Ledger") -> None:
        if pause.training is None:
            pause.training = ledger.instant(self._state.recorder_work.start_ns)
            if call.module.training:
                ledger.set_evaluating(False)

    def _note_repeated_call(
        self, pause: _Pause, ledger: "Ledger", at: int, *, has_gradients: bool
    ) -> None:
        loads = self._state.batch_requests > pause.batch_requests
        if not pause.has_left_loops or (loads and not has_gradients):
            self._note_evaluation(pause, ledger)
        elif self._is_other_work(pause, ledger, at):
            self._begin_other_work(pause, ledger)

    def _note_evaluation(self, pause: _Pause, ledger: "Ledger") -> None:
        if pause.is_evaluation or len(pause.calls) < MIN_CALLS_OF_EVALUATION:
            return
        pause.is_evaluation = True
        began = (pause.segment, pause.segment, {}) if pause.was_in_progress else pause.calls[0]
        ledger.begin_evaluation_at(began)

    def _is_other_work(self, pause: _Pause, ledger: "Ledger", at: int) -> bool:
        calls, waited = len(pause.calls), at - pause.segment
        if calls >= MANY_CALLS_OF_OTHER_WORK:
            return waited >= MIN_TIME_OF_MANY_CALLS_NS
        median = ledger.slow_step_limit.median_ns or 0
        return calls >= MIN_CALLS_OF_OTHER_WORK and waited >= max(
            MIN_OTHER_WORK_NS, MIN_OTHER_WORK_STEPS * median
        )

    def _begin_other_work(self, pause: _Pause, ledger: "Ledger") -> None:
        """Counts the calls of the pause as steps of another kind of work, and goes on so."""
        self._close(keep_wrapper=True)
        before = UNCOUNTED_STEPS if pause.was_in_progress else AFTER_LAST_STEP
        ledger.forget_evaluation()
        calls = [
            (segment, at, {part: ns for part, ns in counted.items() if part != "evaluation"})
            for segment, at, counted in pause.calls
        ]
        kinds: list[Hashable] = [StepSource.MODULE.work] * len(calls)
        ledger.end_segments_at(calls, [before, *kinds[1:]])
        self._state.pause_hooks.step_ends = 0
        self._modules.continue_with(pause.repeated)
        self._modules.optimizers.expect_no_step()
        self._state.fall_back(StepSource.MODULE)

    @never_torch_compile
    def _on_training_event(self) -> None:
        pause, ledger = self._pause, self._state.ledger
        if pause is not None and ledger is not None and pause.segment == ledger.segment:
            self._end_before_training(pause, ledger, 0)
        else:
            self._close()

    def _end_before_training(self, pause: _Pause, ledger: "Ledger", input_size: int) -> None:
        """Ends a pause where the next step of training begins, with an input of the given size."""
        self._close()
        self._state.pause_hooks.step_ends = 0  # the next may be in another loop
        is_rollout = self._is_rollout(pause, input_size)
        if is_rollout:
            ledger.forget_evaluation()
            if pause.repeated == self._modules.repeated_call:  # the first one, before any update
                ledger.kinds.name_superseded_as_preparation(ROLLOUT_KIND)
            ledger.end_phase(self._state.recorder_work.start_ns, ROLLOUT_KIND, pause.loop_line)
        elif ledger.is_evaluating:
            ledger.set_evaluating(False)
            self._state.step_kinds.add_event("an evaluation")
        if pause.has_left_loops and pause.training is not None:
            ledger.end_segments_at([pause.training], [AFTER_LAST_STEP])

    def _is_rollout(self, pause: _Pause, input_size: int) -> bool:
        """Returns whether the model acted in a pause, if it trains on so large inputs after it.

        Few calls are enough where rollouts were seen before the first update.
        """
        is_known = self._modules.optimizers.rollouts.has_rollout
        return (
            not pause.was_evaluating
            and len(pause.calls) >= (2 if is_known else MIN_CALLS_OF_ROLLOUT)
            and self._state.batch_requests == pause.batch_requests
            and 0 < MIN_INPUT_RATIO * pause.input_size <= input_size
        )

    def _close(self, *, keep_wrapper: bool = False) -> None:
        pause, self._pause = self._pause, None
        self._state.pause_hooks.on_training_event = None
        self._modules.on_call_in_pause = None
        if not keep_wrapper and (pause is None or not pause.had_wrapper):
            self._state.module_calls.remove_wrapper()


def _frames_on_stack(innermost_frame: FrameType | None) -> tuple[tuple[CodeType, int], ...]:
    """Returns the code and position of each frame of the program, the outermost first."""
    frames: list[tuple[CodeType, int]] = []
    frame = innermost_frame
    while frame is not None and not frame.f_code.co_filename.endswith(_RUNS_THE_PROGRAM):
        frames.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(reversed(frames))


def _loops_of(frames: tuple[tuple[CodeType, int], ...]) -> list[CodeLoop]:
    """Returns the loops that frames are executing, the outermost first."""
    return [loop for code, position in frames for loop in loops_at(code, position)]


def _outermost_module_call() -> FrameType | None:
    """Returns the frame of the outermost module call that the wrapper did not see."""
    found, frame = None, sys._getframe()  # noqa: SLF001 - the only way to the frames
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code is _MODULE_CALL_CODE:
            found = frame
    return found
