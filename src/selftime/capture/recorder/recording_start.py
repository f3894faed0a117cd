"""Decides at which step a recording begins: once steps are steady, and the same on all ranks."""

from collections.abc import Callable, Sequence

from selftime.capture.profiler.open_ranges import open_ranges
from selftime.capture.recorder.job_agreement import JobAgreement
from selftime.capture.recorder.recording_plan import are_steps_steady
from selftime.capture.recorder.run_options import RunOptions


class RecordingStart:
    """When the main recording of a cycle begins, and how many steps it has on each rank."""

    def __init__(self, options: RunOptions, name: str, steps_before: int) -> None:
        """Makes the next decision of a name, which is the same on all ranks.

        `steps_before` is how many steps had ended before those that this decision sees: a rank that
        was still writing a recording sees fewer of them.
        """
        self._options, self._steps_before = options, steps_before
        self._agreement = JobAgreement(name, options.active, options.ranks)
        self._planned_steps: int | None = None

    def is_due(
        self, steps_seen: int, unrecorded_ns: Sequence[int], plan: Callable[[], int]
    ) -> bool:
        """Returns whether to begin now.

        Args:
            steps_seen: The number of steps that have ended.
            unrecorded_ns: Durations of steps that were not recorded, in ns.
            plan: Returns how many steps this rank would record; called once, when it is ready.
        """
        if self._options.warmup is not None:
            is_late_enough = steps_seen >= max(self._options.warmup, 1)
            return is_late_enough and not open_ranges.outlive_recording
        is_ready = are_steps_steady(unrecorded_ns)
        if is_ready and self._planned_steps is None:
            self._planned_steps = plan()
        step = self._steps_before + steps_seen
        return self._agreement.may_begin(step, self._planned_steps if is_ready else None)

    def steps(self, plan: Callable[[], int]) -> int:
        """Returns how many steps to record; `plan` as above."""
        if self._planned_steps is None:
            self._planned_steps = plan()
        return min(self._planned_steps, self._agreement.steps or self._planned_steps)
