"""Finds steps from backward passes, in a program that updates parameters without an optimizer.

The update follows the pass, so the step ends at the next event: a batch request or a module call.
If there is no event between two passes, the step ends with the pass.
"""

import functools
from threading import get_ident
from time import perf_counter_ns
from typing import Any

import torch
from torch._guards import TracingContext

from selftime.capture.attribute_patches import AttributePatches
from selftime.capture.steps.detection_state import StepDetectionState, StepSource
from selftime.capture.steps.loop_steps import begin_steps_of_loop
from selftime.capture.steps.optimizers import OptimizerStepFinder
from selftime.capture.steps.pass_rounds import MAX_COMPARED_FRAMES, PassRounds
from selftime.capture.steps.repetition import (
    EventRounds,
    RoundMember,
    call_path,
    call_path_hash,
)
from selftime.capture.steps.torch_compile import (
    never_torch_compile,
    skip_frame_in_compile,
    skip_wrapper_frames_in_compile,
)


class BackwardStepFinder:
    """Wraps the torch function that runs backward passes, to find where steps end."""

    def __init__(
        self, state: StepDetectionState, patches: AttributePatches, optimizers: OptimizerStepFinder
    ) -> None:
        self.state = state
        self.patches = patches
        self.optimizers = optimizers
        self._pass_by_call_path: dict[int, RoundMember] = {}
        self._rounds = EventRounds()
        self._batch_requests = RoundMember(count_when_added=0)
        """Occurrences of requests for a DataLoader's batches."""
        self._ends_at_next_event = False
        """Whether the step ends at the next batch request or module call."""
        self._saw_other_event = False
        """Whether a batch was requested or a module was called since the last step was found."""
        self.rounds = PassRounds(self._is_user_file)
        """Loops whose iterations hold several kinds of passes."""

    def attach(self) -> None:
        self.patches.wrap_attribute(
            torch.autograd,
            "_engine_run_backward",
            skip_wrapper_frames_in_compile(self._wrap_run_backward),
        )

    @never_torch_compile
    def on_batch_request_or_module_call(self, place: int | None = None) -> None:
        """Ends a step at the first batch request or module call after a backward pass.

        While the program requests batches, only a request ends a step: several passes may use one
        batch. Where the iterations of a loop are the steps, one ends with each.

        Args:
            place: Hash of the call stack of a module call; None for a batch request.
        """
        self._saw_other_event = True
        if place is not None and self.rounds.step_loop is not None:
            if self.rounds.needs_path(place):
                self.rounds.add_path(place, call_path(frames_above=4, most=MAX_COMPARED_FRAMES))
            if self._is_within_round(place):
                return
        if place is None:
            self._rounds.count_occurrence(self._batch_requests)
        elif self._rounds.expects_member_soon(self._batch_requests):
            return
        if self._ends_at_next_event:
            self._ends_at_next_event = False
            self.state.end_step(StepSource.BACKWARD)

    def _wrap_run_backward(self, original: Any) -> Any:
        state, run_in_optimizer = self.state, self._wrap_run_in_optimizer(original)
        keep_loss = self._keep_loss

        @functools.wraps(original)
        def run_backward(*args: Any, **kwargs: Any) -> Any:
            state.differentiations += 1
            if state.in_backward or state.in_module:
                return original(*args, **kwargs)
            if state.ledger is not None and state.ledger.results is not None:
                keep_loss(args)
            if state.in_optimizer:
                return run_in_optimizer(*args, **kwargs)
            if (
                state.is_off
                or (state.thread != get_ident() and state.ignores_this_thread(StepSource.BACKWARD))
                or TracingContext.try_get() is not None
            ):
                return original(*args, **kwargs)
            if state.ledger is not None and not state.ledger.has_begun:
                with state.recorder_work:
                    state.begin_first_step()
            on_training_event = state.pause_hooks.on_training_event
            if on_training_event is not None or self.optimizers.rollouts.is_learning:
                with state.recorder_work:
                    self._note_beginning_of_pass()
            self._ends_at_next_event = False
            state.stepped_in_backward = False
            state.backward_passes += 1
            pass_through = state.module_calls.pass_through
            state.module_calls.pass_through = state.in_backward = True
            began = perf_counter_ns()
            try:
                result = original(*args, **kwargs)
            finally:
                state.in_backward = False
                state.module_calls.pass_through = pass_through or state.module_calls.is_released
            if not state.recorder_work.is_recorded:
                state.phases.add_backward(began, perf_counter_ns(), in_optimizer=False)
            best_source = state.best_source
            if (
                state.stepped_in_backward
                or best_source is None
                or best_source <= StepSource.BACKWARD
            ):
                with state.recorder_work:
                    self._count_backward_pass()
            return result

        return run_backward

    @never_torch_compile
    def _keep_loss(self, arguments: tuple[Any, ...]) -> None:
        state = self.state
        results = None if state.ledger is None else state.ledger.results
        if results is None or not arguments or state.is_off or not state.is_step_thread:
            return
        if TracingContext.try_get() is None:
            with state.recorder_work:
                results.add_loss(arguments[0])

    @never_torch_compile
    def _note_beginning_of_pass(self) -> None:
        on_training_event = self.state.pause_hooks.on_training_event
        if on_training_event is not None:
            on_training_event()
        if not self.state.backward_passes:
            self.state.begin_first_pass()
        self.optimizers.rollouts.begin_backward_pass()

    def _wrap_run_in_optimizer(self, original: Any) -> Any:
        """Returns the function for a backward pass of a closure, which an optimizer calls."""
        state = self.state

        def run_in_optimizer(*args: Any, **kwargs: Any) -> Any:
            if state.recorder_work.is_recorded or not state.is_step_thread:
                return original(*args, **kwargs)
            began = perf_counter_ns()
            result = original(*args, **kwargs)
            state.phases.add_backward(began, perf_counter_ns(), in_optimizer=True)
            return result

        return skip_frame_in_compile(run_in_optimizer)

    @never_torch_compile
    def _count_backward_pass(self) -> None:
        if self.state.stepped_in_backward:
            self.optimizers.on_backward_pass_end()
            return
        self.optimizers.note_backward_pass()
        self.state.batches_without_better = 0
        self.state.torch_events += 1
        place = call_path_hash(frames_above=2)
        if self.rounds.needs_path(place):
            self.rounds.add_path(place, call_path(frames_above=2, most=MAX_COMPARED_FRAMES))
        if self._is_within_round(place):
            return
        if not self._rounds.expects_member_soon(self._batch_requests):
            began = self.rounds.add_pass(place, self.state.recorder_work.start_ns)
            if began and self.rounds.step_loop is not None:
                begin_steps_of_loop(self.state, StepSource.BACKWARD, self.rounds.step_loop)
                return
        this_pass = self._pass_by_call_path.setdefault(place, RoundMember(self._rounds.count))
        # The number of passes per step is unknown until one of them repeats.
        is_round_complete = self._rounds.completes_round(this_pass, more_expected=True)
        if not is_round_complete or self.optimizers.may_step_soon():
            return
        is_next_seen = not self.state.module_calls.is_released
        is_next_seen = is_next_seen or self._rounds.expects_member_soon(self._batch_requests)
        self._ends_at_next_event = self._saw_other_event and is_next_seen
        self._saw_other_event = False
        if not self._ends_at_next_event:
            self.state.end_step(StepSource.BACKWARD)

    def _is_within_round(self, place: int) -> bool:
        """Returns whether an event is within the loop that makes the steps, if there is one.

        If it begins the next iteration, a step ends.
        """
        if self.rounds.step_loop is None:
            return False
        ends_step = self.rounds.ends_step(place)
        if ends_step is None:
            return False
        self._ends_at_next_event = False
        if ends_step:
            self.state.end_step(StepSource.BACKWARD)
        return True

    def _is_user_file(self, file: str) -> bool:
        ledger = self.state.ledger
        return ledger is not None and ledger.kinds.is_user_file(file)
