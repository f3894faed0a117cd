"""Finds steps from `torch.optim` optimizers: a step ends when all optimizers have stepped."""

import functools
import sys
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from threading import get_ident
from time import perf_counter_ns
from typing import Any, Final

import torch

from selftime.capture.attribute_patches import AttributePatches
from selftime.capture.facts.creation_sites import note_creation
from selftime.capture.steps.detection_state import StepDetectionState, StepSource
from selftime.capture.steps.first_round import FirstRound
from selftime.capture.steps.gradient_accumulation import GradientAccumulation
from selftime.capture.steps.repetition import EventRounds, RoundMember, call_site_hash
from selftime.capture.steps.torch_compile import never_torch_compile, skip_wrapper_frames_in_compile

MAX_EVENTS_TO_WAIT_FOR_OPTIMIZER: Final = 40
"""Number of module calls and backward passes to wait for an optimizer's first step before these
themselves count as steps."""

MAX_EVENTS_OF_ACCUMULATION: Final = 2_000
"""The same while each backward pass adds to the gradients of the one before it."""


@dataclass(slots=True, eq=False)
class _SeenOptimizer:
    """An optimizer that the program has created or whose `step` it has called."""

    optimizer_ref: "weakref.ref[Any]"
    member: RoundMember
    site: int | None = None
    """Hash of the source position from which the program calls the optimizer's `step`; None
    before the first call."""
    steps_inside_other: bool = False
    """Whether the optimizer steps within another optimizer's step, or within a backward pass."""
    backward_passes: int = -1
    """Number of backward passes that had begun when the optimizer last stepped; -1 before its
    first step."""
    is_replaced: bool = False
    """Whether a newer optimizer called at the same source position counts as its replacement."""


class OptimizerStepFinder:
    """Wraps the `step` method of all optimizer classes, to find where steps end."""

    def __init__(self, state: StepDetectionState, patches: AttributePatches) -> None:
        self.state = state
        self.patches = patches
        self._entries: list[_SeenOptimizer] = []
        self._entry_by_id: dict[int, _SeenOptimizer] = {}
        self._rounds = EventRounds()
        self.rollouts = state.rollouts
        state.has_live_optimizer = self.has_live_optimizer
        self._backward_optimizers = RoundMember(count_when_added=0)
        """Stands for all optimizers that step within a backward pass (such as one per layer):
        they count as one."""
        self._reported_source: StepSource | None = None
        self._wait_count = 0
        self._accumulation = GradientAccumulation()
        self._passes_at_last_step = -1
        """Number of backward passes that had begun at the last optimizer step; -1 before it."""
        self.differentiations_at_step: int | None = None
        """Number of differentiations at the last optimizer step; None before it."""
        self._settled: int | None = None
        """Identity of the only optimizer, each of whose steps ends a step; None if not settled."""
        self._first_round = FirstRound(state)

    def attach(self) -> None:
        """Wraps the `step` method of all existing optimizer classes."""
        # torch calls it when an optimizer is created or unpickled, and wraps `step` in it.
        self.patches.wrap_attribute(
            torch.optim.Optimizer,
            "_patch_step_function",
            skip_wrapper_frames_in_compile(self._wrap_patch_step),
        )
        for kind in _all_subclasses(torch.optim.Optimizer):
            if getattr(kind.__dict__.get("step"), "hooked", False):
                self._wrap_step_of_class(kind)

    def has_live_optimizer(self) -> bool:
        """Returns whether an optimizer of the program still exists."""
        return next(self._live_optimizers(), None) is not None

    def has_gradients(self) -> bool:
        """Returns whether the first parameter of any optimizer's parameter group has a gradient."""
        return any(
            parameter.grad is not None
            for optimizer in self._live_optimizers()
            for parameter in _first_parameter_of_each_group(optimizer)
        )

    def may_step_soon(self) -> bool:
        """Returns whether to wait for an optimizer's step before other events count as steps."""
        if not any(
            parameter.requires_grad
            for optimizer in self._live_optimizers()
            for parameter in _first_parameter_of_each_group(optimizer)
        ):
            return False
        self._wait_count += 1
        is_accumulating = self._accumulation.is_going_on
        most = MAX_EVENTS_OF_ACCUMULATION if is_accumulating else MAX_EVENTS_TO_WAIT_FOR_OPTIMIZER
        return self._wait_count <= most

    def note_backward_pass(self) -> None:
        """Takes note that a backward pass has ended before any optimizer has stepped."""
        self._accumulation.end_pass(
            parameter
            for optimizer in self._live_optimizers()
            for parameter in _first_parameter_of_each_group(optimizer)
        )

    def expect_no_step(self) -> None:
        """Makes other events count as steps at once, since the optimizers step no more."""
        self._wait_count = MAX_EVENTS_OF_ACCUMULATION

    def _live_optimizers(self) -> Iterator[Any]:
        for entry in self._entries:
            optimizer = entry.optimizer_ref()
            if optimizer is not None:
                yield optimizer

    def _wrap_patch_step(self, original: Any) -> Any:
        @functools.wraps(original)
        def patch_step(optimizer: Any) -> None:
            original(optimizer)
            if self.state.is_off:
                return
            with self.state.recorder_work:
                self._remember_new_optimizer(optimizer)

        return patch_step

    def _remember_new_optimizer(self, optimizer: Any) -> None:
        self._remember_optimizer(optimizer)
        state = self.state
        if state.ledger is not None:
            class_name, frame = type(optimizer).__name__, sys._getframe()  # noqa: SLF001 - for lines
            note_creation("optimizer", class_name, frame, state.ledger.kinds.is_user_file)
        if state.ledger is not None and state.backward_passes == self._passes_at_last_step:
            state.ledger.end_work_between_trainings(state.recorder_work.start_ns)
            state.pause_hooks.step_ends = 0  # the next steps may be in another loop
        kind = next(base for base in type(optimizer).__mro__ if "step" in base.__dict__)
        self._wrap_step_of_class(kind)

    def _wrap_step_of_class(self, kind: Any) -> None:
        if (kind, "step") not in self.patches:
            self.patches.wrap_attribute(
                kind, "step", skip_wrapper_frames_in_compile(self._wrap_optimizer_step)
            )

    def _wrap_optimizer_step(self, original: Any) -> Any:
        state = self.state

        @functools.wraps(original)
        def step(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or state.is_off or not args:
                return original(*args, **kwargs)
            if state.in_optimizer or state.in_backward:
                with state.recorder_work:
                    self._remember_optimizer(args[0]).steps_inside_other = True
                state.stepped_in_backward = state.in_backward
                return original(*args, **kwargs)
            if state.thread != get_ident() and state.ignores_this_thread(StepSource.OPTIMIZER):
                return original(*args, **kwargs)
            if state.ledger is not None and not state.ledger.has_begun:
                with state.recorder_work:
                    state.begin_first_step()
            on_training_event = state.pause_hooks.on_training_event
            if on_training_event is not None:
                with state.recorder_work:
                    on_training_event()
            pass_through = state.module_calls.pass_through
            state.module_calls.pass_through = state.in_optimizer = True
            began = perf_counter_ns()
            try:
                result = original(*args, **kwargs)
            finally:
                state.in_optimizer = False
                state.module_calls.pass_through = pass_through or state.module_calls.is_released
            self.differentiations_at_step = state.differentiations
            if not state.recorder_work.is_recorded:
                ended = perf_counter_ns()
                state.phases.add_optimizer(began, ended)
                if self._settled == id(args[0]) and state.end_settled_step(ended):
                    self._passes_at_last_step = state.backward_passes
                    return result
            with state.recorder_work:
                self._on_optimizer_step_return(args[0])
            return result

        return step

    @never_torch_compile
    def _remember_optimizer(self, optimizer: Any) -> _SeenOptimizer:
        entry = self._entry_by_id.get(id(optimizer))
        if entry is None or entry.optimizer_ref() is not optimizer:
            self._settled = None
            self._entries = [
                known
                for known in self._entries
                if known.site is not None or known.optimizer_ref() is not None
            ]
            entry = _SeenOptimizer(
                weakref.ref(optimizer), RoundMember(count_when_added=self._rounds.count)
            )
            self._entry_by_id[id(optimizer)] = entry
            self._entries.append(entry)
        return entry

    @never_torch_compile
    def _on_optimizer_step_return(self, optimizer: Any) -> None:
        entry = self._entry_by_id.get(id(optimizer))
        if entry is None or entry.optimizer_ref() is not optimizer:
            entry = self._remember_optimizer(optimizer)
        if entry.site is None:
            entry.site = call_site_hash(frames_above=2)
            self._take_over_from_predecessor(entry)
        elif entry.is_replaced:  # but it steps again: one for each parameter, not each task
            self._restore_replaced_optimizers(entry.site)
        entry.backward_passes = self.state.backward_passes
        self._count_step_of_member(entry.member)

    def _restore_replaced_optimizers(self, site: int) -> None:
        """Marks optimizers as in use again if they step after they counted as replaced."""
        for entry in self._entry_by_id.values():
            if entry.is_replaced and entry.site == site and entry.optimizer_ref() is not None:
                entry.is_replaced = False
                entry.member = RoundMember(count_when_added=self._rounds.count)
                self._entries.append(entry)

    @never_torch_compile
    def on_backward_pass_end(self) -> None:
        """Counts all optimizer steps made during a backward pass as a single one."""
        self._count_step_of_member(self._backward_optimizers)

    def _count_step_of_member(self, member: RoundMember) -> None:
        self._wait_count = 0
        self._passes_at_last_step = self.state.backward_passes
        self.state.batches_without_better = 0
        self.state.torch_events += 1
        if len(self._entries) > 1 or member is self._backward_optimizers:
            self._remove_dead_optimizers()
        is_first = member.last_occurrence is None
        expects_unseen = (
            is_first or self._reported_source is None
        ) and self._expects_unseen_optimizer(member)
        is_round_complete = self._rounds.completes_round(member, more_expected=expects_unseen)
        if expects_unseen:
            self._reported_source = StepSource.SOME_OPTIMIZERS
        elif is_first or self._reported_source is None:
            if self._reported_source is StepSource.SOME_OPTIMIZERS:
                self._first_round.end(member)
            self._reported_source = StepSource.OPTIMIZER
        elif member is self._first_round.last_member:
            self._first_round.compare_with_second()
        ends_step = is_round_complete
        if not self.rollouts.ends_each_step:
            ends_step = self.rollouts.ends_step(is_round_complete=is_round_complete)
        if not self.rollouts.is_learning and not self.state.module_calls.is_released:
            self.state.module_calls.remove_wrapper()  # a better source than module calls
        if ends_step:
            is_final = not self.rollouts.is_learning
            source = self._reported_source if is_final else StepSource.SOME_OPTIMIZERS
            self.state.end_step(source)
        is_single = len(self._entries) == 1 and self._entries[0].member is member
        is_settled = self.state.is_settled and is_single and self.rollouts.ends_each_step
        self._settled = id(self._entries[0].optimizer_ref()) if is_settled else None

    def _remove_dead_optimizers(self) -> None:
        for entry in self._entries:
            if entry.optimizer_ref() is None:
                self._rounds.remove_member(entry.member)

    def _expects_unseen_optimizer(self, stepping: RoundMember) -> bool:
        """Returns whether an optimizer that has not stepped yet has parameters of its own.

        They may need no gradient now: adversaries freeze each other while one of them is trained.
        """
        used: set[int] = set()
        waiting: list[set[int]] = []
        for entry in self._entries:
            optimizer = entry.optimizer_ref()
            if optimizer is None:
                continue
            held = set(map(id, _first_parameter_of_each_group(optimizer)))
            if (
                entry.steps_inside_other
                or entry.member is stepping
                or entry.member.last_occurrence is not None
            ):
                used |= held
            elif held:
                waiting.append(held)
        return any(not held & used for held in waiting)

    def _take_over_from_predecessor(self, newcomer: _SeenOptimizer) -> None:
        """Lets a new optimizer replace an earlier one that stepped at the same call site.

        A program that creates an optimizer for each task or model uses one after the other.
        """
        predecessors = [
            entry
            for entry in self._entries
            if entry is not newcomer
            and entry.site == newcomer.site
            and (  # else both are of this step
                not self.state.backward_passes or entry.backward_passes < self.state.backward_passes
            )
            and (
                entry.optimizer_ref() is None
                or (entry.member.last_occurrence or 0) <= newcomer.member.count_when_added
            )
        ]
        if predecessors:
            predecessors.sort(key=lambda entry: entry.member.last_occurrence or 0)
            for entry in predecessors:
                entry.is_replaced = True
                self._entries.remove(entry)
                self._rounds.remove_member(entry.member)
            newcomer.member = predecessors[-1].member


def _first_parameter_of_each_group(optimizer: Any) -> Iterator[Any]:
    """Yields the first parameter of each parameter group of an optimizer."""
    for group in optimizer.param_groups:
        yield from group["params"][:1]


def _all_subclasses(kind: Any) -> Iterator[Any]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _all_subclasses(subclass)
