"""Says why nothing of a program was recorded, or less than was asked for."""

from typing import Final

from selftime.capture.recorder.recording_plan import step_count_text
from selftime.capture.steps import StepSource

_MARK_STEPS_ADVICE: Final = (
    "to mark steps yourself, put its loop in `with selftime.profile(schedule="
    "selftime.schedule(wait=1, warmup=1, active=5, repeat=1)) as prof:`, end each round with "
    "`prof.step()`, `print(prof.advise())` after the loop, and run it with `python`"
)
"""Advice to the user for a program in which no steps are found."""

NOT_ASKED: Final = "no recording was requested while the program made steps"
LIGHT: Final = "with `--light` only the ledger of the run is written, and no trace"
"""Why there is no trace, for the user."""


def no_recording_reason(
    source: StepSource | None, steps_seen: int, end_reason: str | None, has_torch_worked: bool
) -> str:
    """Returns why there is no recording, in a sentence.

    Args:
        source: What steps were found from; None if there were none.
        steps_seen: How many there were.
        end_reason: Why the program ended early; None if it did not.
        has_torch_worked: Whether an operator of torch is known to have run.
    """
    is_early = end_reason is not None and end_reason.startswith("ended by")
    if source is not None:
        seen = step_count_text(steps_seen)
        if is_early:
            return f"the program was {end_reason} after {seen}, before one could be recorded"
        return (
            f"the program made {seen}, and the first one is not recorded; it must make at least 2"
        )
    if is_early:
        return f"the program was {end_reason} before its first step"
    if not has_torch_worked:
        return (
            "no step was found: the program used torch for too short a time to be recorded, or "
            "not at all; see `selftime ledger` for what it did"
        )
    return (
        "no step was found: this process made no optimizer step, no backward pass, no "
        "repeated module call and no DataLoader loop, and no other loop with operators of "
        f"torch went on for long enough; {_MARK_STEPS_ADVICE}"
    )


def cut_reason(source: StepSource, steps_recorded: int, excess: str = "") -> str:
    """Returns why a recording has less than was asked for: a limit ended it within a step.

    `excess` says what of the recording was more than planned; empty if a part of a step was to be
    recorded.
    """
    if source is StepSource.WINDOW:
        return "no repeating part was found; this is one section of the program"
    beginning = "" if steps_recorded else "; this is the step's beginning"
    if excess:
        return f"the recording ended within a step: {excess}{beginning}"
    return f"a step has more events than can be recorded{beginning}"


def ended_early_reason(source: StepSource, steps_seen: int, wanted: int) -> str:
    """Returns why a recording has fewer steps than were wanted: the program ended."""
    if source is StepSource.WINDOW:
        return cut_reason(source, 0)
    seen = step_count_text(steps_seen)
    return f"the program ended after {seen}, before {wanted} were recorded"
