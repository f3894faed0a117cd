"""Tells the ledger of the run when backward passes and optimizer steps begin and end.

Not while a profiler records the program, which would record this as well.
"""

from threading import get_ident
from typing import TYPE_CHECKING, Any

from selftime.capture.steps.detection_state import StepDetectionState
from selftime.capture.steps.torch_compile import never_torch_compile, skip_frame_in_compile

if TYPE_CHECKING:
    from selftime.capture.ledger.phases import StepPhases


def timed_backward_pass(state: StepDetectionState, original: Any) -> Any:
    """Returns torch's function for backward passes, changed so that their time is taken."""

    @skip_frame_in_compile
    def run_timed(*args: Any, **kwargs: Any) -> Any:
        phases = _phases_of_this_thread(state)
        if phases is None:
            return original(*args, **kwargs)
        _begin_backward(phases, in_optimizer=state.in_optimizer)
        try:
            return original(*args, **kwargs)
        finally:
            _end_backward(phases)

    return run_timed


def timed_optimizer_step(state: StepDetectionState, original: Any) -> Any:
    """Returns the `step` of an optimizer's class, changed so that its time is taken."""

    @skip_frame_in_compile
    def step_timed(*args: Any, **kwargs: Any) -> Any:
        phases = _phases_of_this_thread(state)
        if phases is None:
            return original(*args, **kwargs)
        _begin_optimizer(phases)
        try:
            return original(*args, **kwargs)
        finally:
            _end_optimizer(phases)

    return step_timed


@never_torch_compile
def _phases_of_this_thread(state: StepDetectionState) -> "StepPhases | None":
    ledger = state.ledger
    is_timed = ledger is not None and not state.is_off and ledger.thread == get_ident()
    return ledger.phases if ledger is not None and is_timed else None


@never_torch_compile
def _begin_backward(phases: "StepPhases", *, in_optimizer: bool) -> None:
    phases.begin_backward(in_optimizer=in_optimizer)


@never_torch_compile
def _end_backward(phases: "StepPhases") -> None:
    phases.end_backward()


@never_torch_compile
def _begin_optimizer(phases: "StepPhases") -> None:
    phases.begin_optimizer()


@never_torch_compile
def _end_optimizer(phases: "StepPhases") -> None:
    phases.end_optimizer()
