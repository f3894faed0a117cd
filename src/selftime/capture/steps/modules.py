"""Finds steps from repeated calls of `torch.nn.Module` objects.

A step begins where a module is called again from the same position, outside of any other module. If
the outermost call happens only a few times but calls a module repeatedly within itself, as in
decoding within `forward`, the steps are the repeated nested calls.
"""

import sys
import weakref
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from itertools import chain
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final

import torch

from selftime.capture.steps.backward import BackwardStepFinder
from selftime.capture.steps.call_rounds import CallRounds
from selftime.capture.steps.detection_state import StepDetectionState, StepSource
from selftime.capture.steps.loop_steps import begin_steps_of_loop
from selftime.capture.steps.optimizers import OptimizerStepFinder
from selftime.capture.steps.repetition import (
    RepetitionStepMarker,
    StepMark,
    call_path,
    call_path_hash,
)
from selftime.capture.steps.torch_compile import never_torch_compile, skip_frame_in_compile

if TYPE_CHECKING:
    from selftime.capture.ledger.instants import Instant

MAX_REMEMBERED_MODULES: Final = 1000
"""Largest number of modules that are remembered, since a program may create a new one for each
call."""

MIN_NESTED_LOOP_ROUNDS: Final = 10
"""Number of repetitions after which nested calls count as a loop of steps; after more outermost
calls than this, these count as steps instead.

As many as a recording contains. A block that is applied a few times per batch repeats less often.
"""


@dataclass(frozen=True, slots=True)
class ModuleCall:
    """An outermost call of a module."""

    module: Any
    key: tuple[int, int]
    """The module's number and a hash of the path of calls, which repeat in a loop."""
    arguments: Iterable[Any]

    def input_size(self) -> int:
        """Returns the number of elements of the first tensor among the arguments; 0 without one."""
        return input_size(self.arguments)


def input_size(arguments: Iterable[Any]) -> int:
    """Returns the number of elements of the first tensor among arguments; 0 without one."""
    return next((a.numel() for a in arguments if isinstance(a, torch.Tensor)), 0)


class ModuleStepFinder:
    """Ends a step at repeated module calls, until a more reliable kind of event marks steps."""

    def __init__(
        self,
        state: StepDetectionState,
        optimizers: OptimizerStepFinder,
        backward: BackwardStepFinder,
    ) -> None:
        self.state = state
        self.optimizers = optimizers
        self.backward = backward
        self.nested = NestedLoopFinder(state)
        self._module_numbers: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._last_number = 0
        self._by_caller = RepetitionStepMarker()
        self._by_module = RepetitionStepMarker()
        self._rounds = CallRounds()
        self.repeated_call: Hashable = None
        """Key of the module call that ended steps last; None before the first."""
        self.on_call_in_pause: Callable[[ModuleCall], bool] | None = None
        """Function that gets the outermost module calls while the program is observed between two
        steps, and returns whether steps may end at them as well; else None."""

    def attach(self) -> None:
        self.state.module_calls.handle = self._call_module
        self.state.module_calls.install_wrapper()

    @skip_frame_in_compile
    def _call_module(self, original: Any, module: Any, args: Any, kwargs: Any) -> Any:
        state = self.state
        if state.is_off or (
            state.thread != get_ident() and state.ignores_this_thread(StepSource.MODULE)
        ):
            return original(module, *args, **kwargs)
        if self.nested.calls_so_far:
            return self.nested.call_nested_module(original, module, args, kwargs)
        watches_nested = False
        with state.recorder_work:
            self._on_call(module, call_path_hash(frames_above=2), chain(args, kwargs.values()))
            watches_nested = not torch.is_grad_enabled() and self.nested.should_watch_nested_calls()
        if watches_nested:
            return self._call_watching_nested(original, module, args, kwargs)
        pass_through = state.module_calls.pass_through
        state.module_calls.pass_through = state.in_module = True
        try:
            output = original(module, *args, **kwargs)
        finally:
            state.in_module = False
            state.module_calls.pass_through = pass_through or state.module_calls.is_released
        self._keep_output(output)
        return output

    @skip_frame_in_compile
    def _call_watching_nested(self, original: Any, module: Any, args: Any, kwargs: Any) -> Any:
        self.nested.begin_outermost_call()
        try:
            output = original(module, *args, **kwargs)
        finally:
            self.nested.end_outermost_call()
        self._keep_output(output)
        return output

    @never_torch_compile
    def _keep_output(self, output: Any) -> None:
        ledger = self.state.ledger
        if ledger is not None and ledger.results is not None:
            with self.state.recorder_work:
                ledger.results.add_output(output)

    @never_torch_compile
    def _on_call(self, module: Any, path: int, arguments: Iterable[Any]) -> None:
        number = self._module_number(module)
        if self.on_call_in_pause is not None:
            arguments = list(arguments)
            if not self.on_call_in_pause(ModuleCall(module, (number, path), arguments)):
                return
        self.state.begin_first_step()
        self.state.torch_events += 1
        if self.optimizers.rollouts.is_learning and module.training:
            arguments = list(arguments)
            self.optimizers.rollouts.add_call(number, input_size(arguments))
        self.state.batches_without_better = 0
        self.backward.on_batch_request_or_module_call(path)
        mark = self._by_caller.mark_of_step((number, path), self._instant)
        is_same_module = self._by_module.is_step_mark(number)
        last_path = self._rounds.last_place
        if self._rounds.needs_path(path):
            self._rounds.add_path(path, call_path(frames_above=3))
        begins_rounds = self._rounds.call(path, self.state.recorder_work.start_ns)
        if self.nested.suppresses_outer_calls():
            return
        if torch.is_grad_enabled() and self.optimizers.may_step_soon():
            self._add_event_of_call(module, number, path, arguments)
            return
        ends_round = self._rounds.ends_step(last_path, path)
        if begins_rounds:
            self._begin_rounds()
        elif ends_round or (ends_round is None and mark is not None):
            self._end_step_at_call((number, path), None if ends_round else mark)
        elif ends_round is None and is_same_module:
            self._end_step(StepSource.MODULE_OTHER_CALLER)
        self._add_event_of_call(module, number, path, arguments)

    def _add_event_of_call(
        self, module: Any, number: int, path: int, arguments: Iterable[Any]
    ) -> None:
        if self.state.accepts_source(StepSource.MODULE):
            mode = (module.training, torch.is_grad_enabled(), _first_tensor_shape(arguments))
            self.state.step_kinds.add_event((number, path, mode))

    def _instant(self) -> "Instant | None":
        ledger = self.state.ledger
        return None if ledger is None else ledger.instant(self.state.recorder_work.start_ns)

    def _end_last_step_of_other_loop(self, mark: StepMark) -> None:
        """Ends the last step of a loop where the first of the next loop began."""
        ledger, first = self.state.ledger, mark.first_of_new_item
        if first is not None and ledger is not None and self.state.best_source is StepSource.MODULE:
            ledger.end_segments_at([first], [None])

    def continue_with(self, call: Hashable) -> None:
        """Ends steps at a module call that is known to repeat, from its next occurrence on."""
        self._by_caller.continue_with(call)

    def _end_step_at_call(self, call: Hashable, mark: StepMark | None) -> None:
        if self.state.accepts_source(StepSource.MODULE):
            self.repeated_call = call
        if mark is not None:
            self._end_last_step_of_other_loop(mark)
        self._end_step(StepSource.MODULE)

    def _end_step(self, source: StepSource) -> None:
        if self.state.accepts_source(source):
            self._rounds.add_step(self.state.recorder_work.start_ns)
            self.state.end_step(source)

    def _begin_rounds(self) -> None:
        """Makes the iterations of a loop the steps, and not the calls that were steps until now."""
        loop = self._rounds.step_loop
        if loop is not None and self.state.accepts_source(StepSource.MODULE):
            begin_steps_of_loop(self.state, StepSource.MODULE, loop)

    def _module_number(self, module: Any) -> int:
        """Returns a module's number, which unlike `id` no later module gets again."""
        known = self._module_numbers.get(id(module))
        if known is not None and known[0]() is module:
            return known[1]
        if len(self._module_numbers) >= MAX_REMEMBERED_MODULES:
            self._module_numbers.clear()
        self._last_number += 1
        self._module_numbers[id(module)] = weakref.ref(module), self._last_number
        return self._last_number


def _first_tensor_shape(arguments: Iterable[Any]) -> tuple[int, ...] | None:
    """Returns the shape of the first tensor among a call's arguments; None without a tensor."""
    return next(
        (tuple(value.shape) for value in arguments if isinstance(value, torch.Tensor)), None
    )


class NestedLoopFinder:
    """Finds a loop of module calls inside a single outermost module call, as in decoding."""

    def __init__(self, state: StepDetectionState) -> None:
        self.state = state
        self.calls_so_far: list[set[Hashable]] = []
        """For each running module call, the outermost first: the set of calls that it has made
        so far."""
        self._loop: tuple[int, Hashable] | None = None
        """Nesting depth of the loop, and the call that repeats in it; None if no call has
        repeated."""
        self._loop_rounds = 0
        self._outer_calls = 0

    def suppresses_outer_calls(self) -> bool:
        """Returns whether steps are iterations inside the outermost module call."""
        return (
            self._loop_rounds >= MIN_NESTED_LOOP_ROUNDS
            and self._outer_calls <= MIN_NESTED_LOOP_ROUNDS
        )

    @never_torch_compile
    def should_watch_nested_calls(self) -> bool:
        """Returns whether nested module calls may be steps: nothing more reliable is known."""
        return self.state.accepts_source(StepSource.NESTED_MODULE)

    @never_torch_compile
    def begin_outermost_call(self) -> None:
        """Begins to search an outermost module call for repeated nested calls."""
        self.calls_so_far = [set()]
        self._loop, self._loop_rounds = None, 0
        self._outer_calls += 1

    @never_torch_compile
    def end_outermost_call(self) -> None:
        self.calls_so_far = []

    @skip_frame_in_compile
    def call_nested_module(self, original: Any, module: Any, args: Any, kwargs: Any) -> Any:
        """Runs a nested module call, and checks whether the same call was made before."""
        is_repeated = True
        with self.state.recorder_work:
            is_repeated = self._is_repeated(module)
        if not is_repeated:
            return self._call_watching_nested(original, module, args, kwargs)
        state = self.state
        pass_through = state.module_calls.pass_through
        state.module_calls.pass_through = state.in_module = True
        try:
            return original(module, *args, **kwargs)
        finally:
            state.in_module = False
            state.module_calls.pass_through = pass_through or state.module_calls.is_released

    @skip_frame_in_compile
    def _call_watching_nested(self, original: Any, module: Any, args: Any, kwargs: Any) -> Any:
        calls_so_far = self.calls_so_far
        calls_so_far.append(set())
        try:
            return original(module, *args, **kwargs)
        finally:
            calls_so_far.pop()

    @never_torch_compile
    def _is_repeated(self, module: Any) -> bool:
        frame = sys._getframe(4)  # noqa: SLF001 - the caller of the module
        call_key = (id(module), id(frame), frame.f_lasti)
        is_repeated = call_key in self.calls_so_far[-1]
        self.calls_so_far[-1].add(call_key)
        if is_repeated:
            self._count_loop_round(call_key)
        return is_repeated

    def _count_loop_round(self, call_key: Hashable) -> None:
        loop = len(self.calls_so_far), call_key
        if self._loop is None or loop[0] < self._loop[0]:
            self._loop, self._loop_rounds = loop, 0
        if loop == self._loop:
            self._loop_rounds += 1
            if self._loop_rounds >= MIN_NESTED_LOOP_ROUNDS:
                self.state.end_step(StepSource.NESTED_MODULE)
