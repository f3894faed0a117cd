"""Makes the iterations of a loop the steps, in place of the events that ended steps until now."""

from selftime.capture.code_loops import CodeLoop
from selftime.capture.steps.detection_state import StepDetectionState, StepSource
from selftime.ledger_format import UNCOUNTED_STEPS_NAME, UNUSUAL_KIND_SUFFIX


def begin_steps_of_loop(state: StepDetectionState, source: StepSource, loop: CodeLoop) -> None:
    """Ends a step where an iteration of a loop begins, and begins to record such iterations.

    The steps of the same source until now were parts of iterations: they are not counted.
    """
    ledger = state.ledger
    if state.other_work.silent is not None:  # these are not recorded
        state.end_step(source)
        return
    state.begin_steps_anew()
    if ledger is None:
        state.end_step(source)
        return
    for kind in (source.work, source.work + UNUSUAL_KIND_SUFFIX):
        ledger.kinds.rename(kind, UNCOUNTED_STEPS_NAME)
    file = loop.code.co_filename
    ledger.step_loop_line = (file, loop.line) if ledger.kinds.is_user_file(file) else None
    state.end_step(source)
    ledger.step_loop_line = None  # it is the line of these steps alone
