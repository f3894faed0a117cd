"""Stores the state that all step finders share, and reports the ends of steps."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

from selftime.capture.steps.environment_steps import MIN_SIGHTINGS
from selftime.capture.steps.module_call_wrapper import ModuleCallWrapper
from selftime.capture.steps.pause_hooks import STEPS_BETWEEN_STACKS, PauseHooks
from selftime.capture.steps.recorder_work import RecorderWork
from selftime.capture.steps.repetition import StepKindCounter, is_training_call
from selftime.capture.steps.rollouts import RolloutRounds
from selftime.capture.steps.step_phases import StepPhases
from selftime.capture.steps.torch_compile import never_torch_compile
from selftime.ledger_format import LOOP_STEP_KIND, MODULE_STEP_KIND, ROLLOUT_KIND

if TYPE_CHECKING:
    from selftime.capture.ledger.ledger import Ledger


class StepSource(IntEnum):
    """The kind of event from which the ends of steps are found; a higher value is more reliable."""

    WINDOW = 0
    """There are no steps: a part of the program was recorded."""
    LOOP = 1
    """A step is an iteration of a loop, in a program without any other kind of event."""
    DATALOADER = 2
    """A step is a request for a DataLoader's batch, in a program without module calls or
    optimizers."""
    NESTED_MODULE = 3
    """A step is one of the repeated calls within a single call of a module, as in token
    decoding."""
    MODULE_OTHER_CALLER = 4
    """A step is a call of a module that the program calls repeatedly, from different source
    positions."""
    MODULE = 5
    """A step is a call of a module that the program calls repeatedly from the same source
    position."""
    BACKWARD = 6
    """A step ends after a backward pass, in a program that updates its parameters without an
    optimizer."""
    SOME_OPTIMIZERS = 7
    """A step ends when the optimizers in use so far have stepped; others may still begin to
    step."""
    OPTIMIZER = 8
    """A step ends when all optimizers that the program uses have stepped."""
    TOLD = 9
    """The program itself reports the ends of steps, through `selftime.watch` or a framework's
    callback."""

    @property
    def label(self) -> str:
        return _LABEL_BY_STEP_SOURCE[self]

    @property
    def work(self) -> str:
        """Returns the kind of work that a step does, such as `training`."""
        return _WORK_BY_STEP_SOURCE[self]

    @property
    def ends_steps(self) -> bool:
        """Returns whether the event marks the end of a step; False if it marks the begin."""
        return self is StepSource.LOOP or self >= StepSource.SOME_OPTIMIZERS

    @property
    def is_best_detected(self) -> bool:
        """Returns whether only the program's own reports of steps would be more reliable."""
        return self >= StepSource.OPTIMIZER


_LABEL_BY_STEP_SOURCE = {
    StepSource.WINDOW: "no steps",
    StepSource.LOOP: "loop iterations",
    StepSource.DATALOADER: "DataLoader",
    StepSource.NESTED_MODULE: "module calls",
    StepSource.MODULE_OTHER_CALLER: "module calls",
    StepSource.MODULE: "module calls",
    StepSource.BACKWARD: "backward passes",
    StepSource.SOME_OPTIMIZERS: "optimizer steps",
    StepSource.OPTIMIZER: "optimizer steps",
    StepSource.TOLD: "the program",
}

_WORK_BY_STEP_SOURCE = {
    StepSource.WINDOW: "step",
    StepSource.LOOP: LOOP_STEP_KIND,
    StepSource.DATALOADER: "batch",
    StepSource.NESTED_MODULE: MODULE_STEP_KIND,
    StepSource.MODULE_OTHER_CALLER: MODULE_STEP_KIND,
    StepSource.MODULE: MODULE_STEP_KIND,
    StepSource.BACKWARD: "training",
    StepSource.SOME_OPTIMIZERS: "training",
    StepSource.OPTIMIZER: "training",
    StepSource.TOLD: "step",
}


@dataclass(frozen=True, slots=True)
class _SilentSource:
    """The kind of event that ended steps before it stopped, and what belonged to its steps."""

    source: StepSource
    step_kinds: StepKindCounter
    on_step_after_recording: Callable[[StepSource, bool], bool] | None


@dataclass(slots=True)
class OtherWork:
    """How steps of other work are handled, when the best kind of event has stopped."""

    on_fallback: Callable[[StepSource], bool] | None = None
    """Function called with the less reliable kind of event that ends steps from now on; returns
    whether its steps are to be recorded."""
    on_step: Callable[[StepSource, bool], bool] | None = None
    """Function called with (source, whether the step is unusual) at the end of each step that is
    not to be recorded."""
    on_new_steps: Callable[[], None] | None = None
    """Function called before the first step of another loop, of the same source as before."""
    silent: _SilentSource | None = None
    """The kind of event that stopped, if its steps are recorded; None while it has not."""


@dataclass(slots=True)
class _StepHistory:
    """What shows, once a more reliable kind of event ends steps, what earlier steps were."""

    first_event_ns: dict[int, int] = field(default_factory=dict)
    """Maps the id of each thread but the main one to when it first used torch, in ns."""
    passes_at_step_end: int = 0
    """Number of backward passes begun when the last step ended."""
    trained_from_ns: int | None = None
    """Start in ns of the first of the last steps of other events that all had a backward pass."""
    leads_to_first_pass: bool = False
    """Whether the first backward pass is of what the module calls before it returned."""
    had_optimizer: bool = False  # when events of the best source began to end steps


class StepDetectionState:
    """Passes on the ends of steps from the most reliable kind of event; ignores other kinds.

    Wrappers read and set the attributes directly before and after a call of the program: a call of
    a function of selftime there would be recorded as part of the step.
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
        self.is_off = False
        """Whether all wrappers of torch functions only call the original function."""
        self.in_optimizer = self.in_backward = self.in_module = False
        """Whether the thread that makes steps is in an optimizer's step; likewise the others."""
        self.backward_passes = self.differentiations = 0
        """Number of backward passes so far; of differentiations: also in modules and closures."""
        self.stepped_in_backward = False
        """Whether an optimizer has stepped within the current backward pass."""
        self.batches_without_better = 0
        """Number of batch requests since the last optimizer step, backward pass or module call."""
        self.torch_events = 0
        """Number of optimizer steps, module calls, backward passes and batch requests so far."""
        self.step_kinds = StepKindCounter()
        self.on_progress = on_progress
        self.recorder_work = recorder_work or RecorderWork()
        """Marks the time that selftime's own code takes in the program's thread."""
        self.module_calls = ModuleCallWrapper()
        self.ledger = ledger
        """The run's wall-time ledger; None without one."""
        self.phases = StepPhases(ledger)
        self.on_step_after_recording: Callable[[StepSource, bool], bool] | None = None
        """Function called with (source, whether the step is unusual) at the end of each step
        instead of `on_boundary`; None until the recording has ended. It returns whether the next
        steps are settled: whether they need nothing but the ledger, if they are usual."""
        self.other_work = OtherWork()
        self.is_settled = self.has_evaluated = False
        """Whether the next steps are settled; and whether `train()` was called after `eval()`."""
        self.batch_requests = 0
        """Number of requests for a DataLoader's batch so far."""
        self.rollouts, self.pause_hooks = RolloutRounds(), PauseHooks()
        self.has_live_optimizer: Callable[[], bool] = bool
        """Function that returns whether an optimizer of the program exists."""
        self.stop_loop_search: Callable[[], None] = _nothing
        """Function called when steps are found from a more reliable event than loop iterations."""
        self._on_boundary, self._on_unusual_step = on_boundary, on_unusual_step
        self._is_recording = is_recording
        self.best_source: StepSource | None = None
        """The most reliable kind of event that has marked a step so far; None before the first."""
        self.thread: int | None = None
        """Id of the thread that makes the steps; None until a step was found."""
        self._history = _StepHistory()

    @never_torch_compile
    def ignores_this_thread(self, source: StepSource) -> bool:
        """Returns whether to ignore events of this thread, because another one makes steps.

        Only the thread that started a recording can stop it, so no other replaces it before that.
        """
        if self.is_off:
            return True
        if self.best_source is None or self.thread == threading.get_ident():
            return False
        return source <= self.best_source or self._is_recording is None or self._is_recording()

    @property
    @never_torch_compile
    def is_step_thread(self) -> bool:
        """Returns whether this thread makes the steps (assumed at first: the main thread)."""
        return threading.get_ident() == (self.thread or threading.main_thread().ident)

    def is_recording(self) -> bool:
        """Returns whether steps are being recorded."""
        return self._is_recording is not None and self._is_recording()

    @property
    def is_in_torch_event(self) -> bool:
        """Returns whether an optimizer step, a backward pass or a module call is running."""
        return self.in_optimizer or self.in_backward or self.in_module

    @never_torch_compile
    def accepts_source(self, source: StepSource) -> bool:
        """Returns whether `source` is at least as reliable as the best kind of event so far."""
        return self.best_source is None or source >= self.best_source

    @never_torch_compile
    def begin_first_step(self) -> None:
        """Tells the run's wall-time ledger that setup ends and the first step begins."""
        if self.ledger is None or self.best_source is not None:
            return
        thread = threading.get_ident()
        if thread != self.ledger.thread:  # another one may make the steps, as it turns out
            self._history.first_event_ns.setdefault(thread, self.recorder_work.start_ns)
        elif not self.ledger.has_begun:
            acting = self.rollouts.first_acting
            if acting.sightings >= MIN_SIGHTINGS and not self.ledger.steps:
                self.ledger.begin_first_step(acting.began_ns)
                self.ledger.end_phase(self.recorder_work.start_ns, ROLLOUT_KIND, acting.loop_line)
                self.begin_acting()
            else:
                self.ledger.begin_first_step(self.recorder_work.start_ns)

    @never_torch_compile
    def begin_steps_anew(self) -> None:
        """Drops the best source of steps: the next step that ends begins a recording anew."""
        if self.other_work.on_new_steps is not None:
            self.other_work.on_new_steps()
        self.best_source = None

    @never_torch_compile
    def end_step(self, source: StepSource) -> None:
        """Ends a step and begins the next, unless a more reliable kind of event is known."""
        best = self.best_source
        if self.is_off or (best is not None and source < best):
            return
        if self.is_settled and source is best:
            if self.end_settled_step(self.recorder_work.start_ns):
                return
            self.is_settled = False
        silent = self.other_work.silent
        if silent is not None and source >= silent.source:
            self._resume(silent)
        if source != self.best_source:
            self._begin_source(source)
        else:
            is_unusual = self.step_kinds.end_step_and_check_unusual()
            if source <= StepSource.MODULE:
                self._note_backward_passes()
            else:
                hooks = self.pause_hooks
                if hooks.step_ends % STEPS_BETWEEN_STACKS:
                    hooks.step_ends += 1
                else:
                    hooks.end_step()
            if self.on_step_after_recording is not None:
                can_settle = self.on_step_after_recording(source, is_unusual)
                is_of_training = source > StepSource.MODULE
                self.is_settled = can_settle and is_of_training and not is_unusual
                return
            if is_unusual and self._on_unusual_step is not None:
                self._on_unusual_step()
        with self.module_calls.temporarily_unwrapped():
            self._on_boundary(source)

    @never_torch_compile
    def end_settled_step(self, ended: int) -> bool:
        """Ends a step at time `ended` (ns) if it is as most are in a long loop.

        Returns False if `end_step` has to do more, as at some usual steps, too.
        """
        hooks, ledger = self.pause_hooks, self.ledger
        if (
            ledger is None
            or not self.is_settled
            or not hooks.step_ends % STEPS_BETWEEN_STACKS
            or not self.step_kinds.is_usual_so_far
        ):
            return False
        try:
            if not ledger.end_settled_step(ended):
                return False
        except Exception as error:  # noqa: BLE001 - it is called in the midst of the program
            self.recorder_work.fail(error)
        hooks.step_ends += 1
        self.batches_without_better = 0
        self.torch_events += 1
        self.step_kinds.end_usual_step()
        self.recorder_work.begin_step(ended)
        return True

    def _begin_source(self, source: StepSource) -> None:
        """Finds steps from a more reliable kind of event from now on."""
        if source > StepSource.LOOP:
            self.stop_loop_search()
        if self.ledger is not None:
            if self.best_source is None:
                first = self._history.first_event_ns.get(threading.get_ident())
                if first is not None:
                    self.ledger.begin_first_step_in_this_thread(first)
            elif self.best_source <= StepSource.MODULE < source:
                self._supersede_steps(self.ledger, source)
            else:
                self.ledger.kinds.search_loop_again(source.work)
        self._note_backward_passes()
        self.best_source, self.thread = source, threading.get_ident()
        self._history.had_optimizer = self.has_live_optimizer()
        self.other_work.silent = None
        self.on_step_after_recording = None  # the recorder begins anew
        # Events before the first boundary belong to the setup.
        self.step_kinds = StepKindCounter()

    def _supersede_steps(self, ledger: "Ledger", source: StepSource) -> None:
        """Says what the steps were that were found from module calls and other events until now."""
        is_part = self._history.leads_to_first_pass and not self.has_evaluated
        ledger.kinds.supersede(
            source.work,
            ledger.segment,
            self._history.trained_from_ns,
            is_evaluation=self.has_evaluated,
            is_part_of_step=is_part,
        )
        if self.rollouts.first_acting.sightings and not self.batch_requests:
            self.begin_acting()
        if self.rollouts.has_rollout or self.rollouts.acts_in_environment:
            ledger.kinds.name_superseded_as_phase(ROLLOUT_KIND)

    def begin_acting(self) -> None:
        """Takes note that the model acts in an environment: so it did in evaluation mode, too."""
        if not self.rollouts.acts_in_environment:
            self.rollouts.acts_in_environment = True
            if self.ledger is not None:
                self.ledger.add_line({"acts_in_environment": self.ledger.segment})

    def begin_first_pass(self) -> None:
        """Looks, as the first backward pass begins, whether the calls that made steps led to it."""
        if self.best_source in (StepSource.MODULE, StepSource.MODULE_OTHER_CALLER):
            kinds, history = self.step_kinds, self._history
            all_train = history.had_optimizer and all(map(is_training_call, kinds.events()))
            history.leads_to_first_pass = all_train or kinds.is_like_most()

    def _note_backward_passes(self) -> None:
        """Takes note whether a step that other events end had a backward pass."""
        passes = self._history.passes_at_step_end
        self._history.passes_at_step_end = self.backward_passes
        if self.backward_passes == passes:
            self._history.trained_from_ns = None
        elif self._history.trained_from_ns is None and self.ledger is not None:
            self._history.trained_from_ns = self.ledger.segment

    def fall_back(self, source: StepSource) -> None:
        """Finds steps from a less reliable kind of event, since those of the best one stopped.

        They resume at the next event of the best one.
        """
        if self.best_source is None or source >= self.best_source:
            return
        work = self.other_work
        if work.on_fallback is not None and work.on_fallback(source):
            work.silent, self.on_step_after_recording = None, None
        else:
            work.silent = _SilentSource(
                self.best_source, self.step_kinds, self.on_step_after_recording
            )
            self.on_step_after_recording = work.on_step
        self.best_source, self.step_kinds = source, StepKindCounter()
        self.is_settled = False

    def _resume(self, silent: _SilentSource) -> None:
        self.other_work.silent = None
        self.best_source, self.step_kinds = silent.source, silent.step_kinds
        self.on_step_after_recording = silent.on_step_after_recording


def _nothing() -> None:
    pass
