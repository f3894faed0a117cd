"""Finds the steps of a program from calls of optimizers, modules, DataLoaders and from loops."""

import functools
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from selftime.capture.attribute_patches import AttributePatches
from selftime.capture.steps.backward import BackwardStepFinder
from selftime.capture.steps.batches import BatchStepFinder
from selftime.capture.steps.default_dtype import DefaultDtypeNotes
from selftime.capture.steps.detection_state import StepDetectionState, StepSource
from selftime.capture.steps.environment_steps import EvaluationStacks
from selftime.capture.steps.evaluation_graphs import EvaluationGraphs
from selftime.capture.steps.loops import LoopStepFinder
from selftime.capture.steps.modules import ModuleStepFinder
from selftime.capture.steps.optimizers import OptimizerStepFinder
from selftime.capture.steps.pauses import PauseObserver
from selftime.capture.steps.profiler_changes import may_change_profiler
from selftime.capture.steps.recorder_work import RecorderWork
from selftime.capture.steps.torch_compile import skip_wrapper_frames_in_compile
from selftime.capture.steps.unrepeated_work import UnrepeatedWork

if TYPE_CHECKING:
    from selftime.capture.ledger.ledger import Ledger


class StepDetector:
    """Calls `on_boundary` at the end of each step, and `on_progress` at some calls within steps.

    `on_unusual_step` is called right before a boundary that ends a step with events that most steps
    do not have: an evaluation, a new pass over the data, a prompt among tokens. While
    `is_recording()` is false, another thread may take over with a better source. `recorder_work` is
    shared with the recorder, so that all work is in one range.
    """

    def __init__(
        self,
        on_boundary: Callable[[StepSource], None],
        on_progress: Callable[[], None],
        on_unusual_step: Callable[[], None] | None = None,
        is_recording: Callable[[], bool] | None = None,
        recorder_work: RecorderWork | None = None,
        ledger: "Ledger | None" = None,
    ) -> None:
        self._state = StepDetectionState(
            on_boundary, on_progress, on_unusual_step, is_recording, recorder_work, ledger
        )
        self._patches = AttributePatches()
        self._optimizers = OptimizerStepFinder(self._state, self._patches)
        self._backward = BackwardStepFinder(self._state, self._patches, self._optimizers)
        self._batches = BatchStepFinder(
            self._state, self._patches, self._optimizers, self._backward
        )
        self._modules = ModuleStepFinder(self._state, self._optimizers, self._backward)
        self._loops = LoopStepFinder(self._state)
        self._pauses = PauseObserver(self._state, self._modules)
        self._unrepeated_work = UnrepeatedWork(self._state, self._loops)
        self._evaluation_stacks = EvaluationStacks()

    @property
    def is_off(self) -> bool:
        """Returns whether step detection is off: wrappers only call the original functions."""
        return self._state.is_off

    @is_off.setter
    def is_off(self, is_off: bool) -> None:
        self._state.is_off = is_off

    def attach(self) -> None:
        """Replaces the torch functions that mark steps by wrappers that count their calls."""
        self._optimizers.attach()
        self._backward.attach()
        self._modules.attach()
        self._attach_for_ledger()

    def attach_for_told_steps(self) -> None:
        """Replaces only what the ledger needs of a program that reports its steps itself.

        Its steps are those of the thread that calls this.
        """
        self._state.best_source, self._state.thread = StepSource.TOLD, threading.get_ident()
        self._attach_for_ledger()

    def _attach_for_ledger(self) -> None:
        self._batches.attach()
        self._patches.wrap_attribute(
            torch.nn.Module, "train", skip_wrapper_frames_in_compile(self._wrap_train)
        )
        DefaultDtypeNotes(self._state, self._patches).attach()

    def detach(self) -> None:
        """Removes all wrappers from torch; a wrapper that cannot be removed does nothing more."""
        self.is_off = True
        self._loops.stop_tracing()
        self._state.module_calls.remove_wrapper()
        self._patches.restore_all()

    def call_after_recording(self, on_step: Callable[[StepSource, bool], bool]) -> None:
        """Calls `on_step` instead of the slower `on_boundary` at the end of each further step.

        It is called with the source and whether the step is unusual. A better source is handed to
        `on_boundary` as before.
        """
        self._state.on_step_after_recording = on_step

    def call_for_other_work(
        self,
        on_fallback: Callable[[StepSource], bool],
        on_step_not_recorded: Callable[[StepSource, bool], bool],
    ) -> None:
        """Finds steps of other work when the best kind of event has stopped, such as training.

        `on_fallback` is called with the kind of event that ends them, and returns whether they are
        to be recorded. If not, `on_step_not_recorded` is called at the end of each, with the kind
        of event and whether the step is unusual.
        """
        work = self._state.other_work
        work.on_fallback, work.on_step = on_fallback, on_step_not_recorded

    def observe_stack(self, innermost_frame: FrameType | None) -> bool:
        """Searches the main thread's stack for the loop that makes steps; runs in another thread.

        Returns whether it needs to see the next stack soon.
        """
        self._unrepeated_work.observe()
        self._pauses.observe_stack(innermost_frame)
        return self._loops.observe_stack(innermost_frame)

    def observe_evaluation_stack(self, innermost_frame: FrameType | None) -> None:
        """Looks for an environment on a stack in evaluation mode; runs in another thread."""
        stacks, ledger = self._evaluation_stacks, self._state.ledger
        had_shown = stacks.show_evaluations
        stacks.observe_stack(innermost_frame, self._state.batch_requests)
        if stacks.show_evaluations and not had_shown and ledger is not None:
            ledger.add_line({"evaluates": ledger.segment})

    def call_after_long_work_without_steps(self, call: Callable[[], None]) -> None:
        """Has `call` called once, in the main thread, if the program works for long without steps.

        The stacks of its main thread must be observed for that.
        """
        self._unrepeated_work.on_long_work = call

    def call_before_new_steps(self, call: Callable[[], None]) -> None:
        """Has `call` called before a step that is of another loop than those before it."""
        self._state.other_work.on_new_steps = call

    def call_in_recorded_gap(self, call: Callable[[], object]) -> None:
        """Has `call` called in a recording when the program has left its loop of steps for long."""
        self._loops.on_gap = call

    def has_torch_worked(self) -> bool:
        """Returns whether the program is known to have run operators of torch."""
        return self._unrepeated_work.has_torch_worked

    def may_interrupt(self) -> bool:
        """Returns whether a profiler may start or stop now, in the midst of a step."""
        return not self._state.in_backward and may_change_profiler()

    def stop_loop_search(self) -> None:
        """Stops the search for a loop whose iterations are steps, since another profiler starts."""
        self._loops.stop_tracing()

    def expect_no_recording(self) -> None:
        """Makes the tracing of loops cheaper from now on, since no recording will follow."""
        self._loops.expect_no_profiler()

    def expect_no_profiler(self) -> None:
        """Keeps module calls wrapped between steps from now on, since no profiler will run."""
        self._state.module_calls.expect_no_profiler()

    def unwrap_modules(self) -> None:
        """Restores `nn.Module.__call__`, since module calls are no longer needed to find steps."""
        if not self._optimizers.rollouts.is_learning:
            self._state.module_calls.remove_wrapper()

    def _wrap_train(self, original: Any) -> Any:
        graphs, stacks = EvaluationGraphs(), self._evaluation_stacks

        @functools.wraps(original)
        def train(self_: Any, mode: bool = True) -> Any:
            state = self._state
            is_acting = state.rollouts.acts_in_environment
            if not (state.is_off or is_acting or self_.training == mode) and state.is_step_thread:
                with state.recorder_work:
                    if not mode:
                        state.step_kinds.add_event("an evaluation")
                        graphs.begin(
                            state.differentiations, self._optimizers.differentiations_at_step
                        )
                        if state.ledger is not None and not state.ledger.is_evaluating:
                            stacks.begin(state.batch_requests)
                    else:
                        state.has_evaluated = True
                        graphs.end(state.differentiations, state.ledger)
                    if state.ledger is not None:
                        state.ledger.set_evaluating(not mode)
                        if mode and stacks.show_acting(state.ledger.steps):
                            state.begin_acting()
            return original(self_, mode)

        return train
