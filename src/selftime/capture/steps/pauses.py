"""Observes what a program does while the events that end its steps stay away.

In a program with optimizers module calls are not wrapped, since a wrapper costs time in each call.
Where much more time passes after a step than a step takes, the thread that reads stacks wraps them
again, until the next step of training begins. Such a pause is

- an evaluation, if modules are called repeatedly without gradients, as after `model.eval()`, or
  with them outside of the loop that trains, and no backward pass follows;
- a rollout of reinforcement learning, if these calls have far smaller inputs than training has, as
  when a policy acts in one environment;
- work of another kind after the training, if the loops in which it stepped have ended. Its module
  calls are then steps of their own.

Calls before the wrapper was there are not seen: the time since the last step is theirs if the calls
were in progress when it came.
"""

import os
import sys
from collections.abc import Hashable
from threading import get_ident
from time import perf_counter_ns
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Final

import torch

from selftime.capture.code_loops import CodeLoop, loops_at
from selftime.capture.steps.detection_state import StepDetectionState, StepSource
from selftime.capture.steps.environment_steps import MIN_SIGHTINGS, is_in_environment_step
from selftime.capture.steps.modules import ModuleCall, ModuleStepFinder
from selftime.capture.steps.pause import MODULE_CALL_CODE, Pause
from selftime.capture.steps.rollouts import (
    MIN_CALLS_OF_KNOWN_ROLLOUT,
    MIN_CALLS_OF_ROLLOUT,
    MIN_INPUT_RATIO,
)
from selftime.capture.steps.torch_compile import never_torch_compile
from selftime.ledger_format import AFTER_LAST_STEP, ROLLOUT_KIND, UNCOUNTED_STEPS

if TYPE_CHECKING:
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

_RUNS_THE_PROGRAM: Final = os.path.join("capture", "program", "python_program.py")  # noqa: PTH118 - compared with texts
"""End of the path of the file that runs the program: loops around it are not the program's."""


class PauseObserver:
    """Wraps module calls in long pauses between steps, and says what these pauses are."""

    def __init__(self, state: StepDetectionState, modules: ModuleStepFinder) -> None:
        self._state = state
        self._modules = modules
        self._pause: Pause | None = None
        self._step_frames: tuple[tuple[CodeType, int], ...] = ()
        """Code and position of each frame where a step ended, the outermost first."""
        state.pause_hooks.on_step_end = self._observe_step_end

    # In the thread that reads stacks.

    def observe_stack(self, innermost_frame: FrameType | None) -> None:
        """Opens a pause if the last step ended long ago, and looks which loops run."""
        ledger, source = self._state.ledger, self._state.best_source
        if ledger is None:
            return
        if source is None or source <= StepSource.MODULE:
            acting = self._state.rollouts.first_acting
            if acting.sightings < MIN_SIGHTINGS and self._state.has_live_optimizer():
                acting.observe_stack(innermost_frame, ledger.kinds.is_user_file)
        elif self._may_be_paused(ledger):
            self._observe_pause(innermost_frame, ledger)

    def _observe_pause(self, innermost_frame: FrameType | None, ledger: "Ledger") -> None:
        frames = _frames_on_stack(innermost_frame)
        if not self._is_whole(frames):
            return
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
            is_in_call = any(code is MODULE_CALL_CODE for code, _ in frames)
            pause = self._open(ledger, is_in_call, has_left)
        pause.has_left_loops = has_left
        if not pause.saw_environment:
            pause.saw_environment = is_in_environment_step(innermost_frame)
        if line is not None:
            pause.loop_lines[line] += 1

    def _is_whole(self, frames: tuple[tuple[CodeType, int], ...]) -> bool:
        """Returns whether frames reach down to where the thread began.

        A generator that ends while its stack is read has no caller any more.
        """
        known = self._step_frames
        return bool(frames) and (not known or frames[0][0] is known[0][0])

    def _may_be_paused(self, ledger: "Ledger") -> bool:
        state = self._state
        if state.is_off:
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

    def _open(self, ledger: "Ledger", *seen: Any) -> Pause:
        state = self._state
        self._pause = pause = Pause(
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

    def _observe_call(self, call: ModuleCall, pause: Pause, ledger: "Ledger") -> None:
        state = self._state
        at = state.recorder_work.start_ns
        has_gradients = torch.is_grad_enabled()
        is_elsewhere = False
        if not pause.has_left_loops and self._ends_pause(pause, call, has_gradients=has_gradients):
            is_elsewhere = has_gradients and self._is_outside_of_steps(pause, call.key[1])
            if not is_elsewhere:
                if call.module.training or not ledger.is_evaluating:
                    self._end_before_training(pause, ledger, call.input_size())
                return
        pause.add_call(call.key, ledger.instant(at))
        if not has_gradients:
            pause.training = None
        elif not is_elsewhere:
            self._note_training(pause, call, ledger)
        if call.key == pause.repeated:
            pause.input_size, pause.has_gradients = call.input_size(), has_gradients
            if pause.has_left_loops or is_elsewhere or not has_gradients:
                self._note_repeated_call(pause, ledger, at, has_gradients=has_gradients)

    def _is_outside_of_steps(self, pause: Pause, path: int) -> bool:
        """Returns whether a call of a path is made outside of the innermost loop around a step."""
        around = _loops_of(self._step_frames)
        if path not in pause.loops_by_path:
            frames = _frames_on_stack(sys._getframe())  # noqa: SLF001 - the only way to the frames
            pause.loops_by_path[path] = frozenset(map(id, _loops_of(frames)))
        return bool(around) and id(around[-1]) not in pause.loops_by_path[path]

    def _ends_pause(self, pause: Pause, call: ModuleCall, *, has_gradients: bool) -> bool:
        """Returns whether the next step of training begins with a call, or has begun.

        A model that acts with gradients is called with a larger input when it is trained.
        """
        rollouts = self._modules.optimizers.rollouts
        if rollouts.has_rollout and pause.repeated is not None:
            is_same_module = call.key[0] == pause.repeated[0]
            has_acted = len(pause.calls) >= MIN_CALLS_OF_KNOWN_ROLLOUT
            if is_same_module and has_acted and _is_for_training(call.input_size(), pause):
                return True
        is_acting = rollouts.has_rollout and not pause.is_evaluation and not pause.was_evaluating
        return has_gradients and not is_acting

    def _note_training(self, pause: Pause, call: ModuleCall, ledger: "Ledger") -> None:
        if pause.training is None:
            pause.training = ledger.instant(self._state.recorder_work.start_ns)
            if call.module.training:
                ledger.set_evaluating(False)

    def _note_repeated_call(
        self, pause: Pause, ledger: "Ledger", at: int, *, has_gradients: bool
    ) -> None:
        loads = self._state.batch_requests > pause.batch_requests
        if not (loads or pause.has_left_loops) and self._acts_in_environment(pause):
            self._note_rollout(pause, ledger)
        elif not pause.has_left_loops or (loads and not has_gradients):
            self._note_evaluation(pause, ledger)
        elif self._is_other_work(pause, ledger, at):
            self._begin_other_work(pause, ledger)

    def _note_evaluation(self, pause: Pause, ledger: "Ledger") -> None:
        if pause.is_evaluation or len(pause.calls) < MIN_CALLS_OF_EVALUATION:
            return
        pause.is_evaluation = True
        began = (pause.segment, pause.segment, {}) if pause.was_in_progress else pause.calls[0]
        ledger.begin_evaluation_at(began)

    def _note_rollout(self, pause: Pause, ledger: "Ledger") -> None:
        """Tells a pause as a rollout also if the program ends within it."""
        if not pause.is_rollout:
            pause.is_rollout, pause.is_evaluation = True, False
            ledger.forget_evaluation()
            number = ledger.kinds.number(ROLLOUT_KIND)
            ledger.kinds.set_loop_line(ROLLOUT_KIND, number, pause.loop_line)
            ledger.begin_uncounted_steps(ROLLOUT_KIND)

    def _acts_in_environment(self, pause: Pause) -> bool:
        is_known = self._state.rollouts.acts_in_environment
        least = MIN_CALLS_OF_KNOWN_ROLLOUT if is_known else MIN_CALLS_OF_ROLLOUT
        return (is_known or pause.saw_environment) and len(pause.calls) >= least

    def _is_other_work(self, pause: Pause, ledger: "Ledger", at: int) -> bool:
        calls, waited = len(pause.calls), at - pause.segment
        if calls >= MANY_CALLS_OF_OTHER_WORK:
            return waited >= MIN_TIME_OF_MANY_CALLS_NS
        median = ledger.slow_step_limit.median_ns or 0
        return calls >= MIN_CALLS_OF_OTHER_WORK and waited >= max(
            MIN_OTHER_WORK_NS, MIN_OTHER_WORK_STEPS * median
        )

    def _begin_other_work(self, pause: Pause, ledger: "Ledger") -> None:
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
            if pause.is_evaluation and pause.has_gradients and self._is_of_this_step(pause):
                pause.is_evaluation = False
                ledger.forget_evaluation()
            self._end_before_training(pause, ledger, 0)
        else:
            self._close()

    def _is_of_this_step(self, pause: Pause) -> bool:
        """Returns whether the calls of a pause may lead to the backward pass that begins now.

        They do not if that pass is within a loop of its own.
        """
        loops = _loops_of(_frames_on_stack(sys._getframe()))  # noqa: SLF001 - as above
        known = () if pause.repeated is None else pause.loops_by_path.get(pause.repeated[1], ())
        return not loops or id(loops[-1]) in known

    def _end_before_training(self, pause: Pause, ledger: "Ledger", input_size: int) -> None:
        """Ends a pause where the next step of training begins, with an input of the given size."""
        self._close()
        self._state.pause_hooks.step_ends = 0  # the next may be in another loop
        is_rollout = self._is_rollout(pause, input_size)
        if is_rollout:
            ledger.forget_evaluation()
            if pause.saw_environment:
                self._state.begin_acting()
            if pause.repeated == self._modules.repeated_call:  # the first one, before any update
                ledger.kinds.name_superseded_as_phase(ROLLOUT_KIND)
            ledger.end_phase(self._state.recorder_work.start_ns, ROLLOUT_KIND, pause.loop_line)
        elif ledger.is_evaluating:
            ledger.set_evaluating(False)
            self._state.step_kinds.add_event("an evaluation")
        if pause.has_left_loops and pause.training is not None:
            ledger.end_segments_at([pause.training], [AFTER_LAST_STEP])

    def _is_rollout(self, pause: Pause, input_size: int) -> bool:
        """Returns whether the model acted in a pause, if it trains on so large inputs after it.

        Few calls are enough where rollouts were seen before the first update.
        """
        if self._state.batch_requests != pause.batch_requests:
            return False
        has_rollout = self._state.rollouts.has_rollout
        least = MIN_CALLS_OF_KNOWN_ROLLOUT if has_rollout else MIN_CALLS_OF_ROLLOUT
        return self._acts_in_environment(pause) or (
            not pause.was_evaluating
            and len(pause.calls) >= least
            and _is_for_training(input_size, pause)
        )

    def _close(self, *, keep_wrapper: bool = False) -> None:
        pause, self._pause = self._pause, None
        if pause is not None and pause.is_rollout and self._state.ledger is not None:
            self._state.ledger.begin_uncounted_steps(None)
        self._state.pause_hooks.on_training_event = None
        self._modules.on_call_in_pause = None
        if not keep_wrapper and (pause is None or not pause.had_wrapper):
            self._state.module_calls.remove_wrapper()


def _is_for_training(input_size: int, pause: Pause) -> bool:
    """Returns whether inputs are so much larger than those of a pause as those of training are."""
    return 0 < MIN_INPUT_RATIO * pause.input_size <= input_size


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
