"""Runs a profiler of selftime's own in the program: starts it, advances it, stops it."""

import sys
from collections.abc import Callable
from contextlib import suppress

from torch._C._autograd import _enable_record_function, _profiler_enabled
from torch.profiler import ProfilerAction

from selftime.capture.profiler.open_ranges import open_ranges
from selftime.capture.profiler.profile import Profile
from selftime.capture.profiler.profiler_pitfalls import stop_leftover_recording
from selftime.capture.profiler.profiler_stderr import hide_usdt_lines
from selftime.capture.recorder.call_count import end_count_in_forked_child
from selftime.capture.recorder.recorded_details import RecordedDetails, new_profile
from selftime.capture.recorder.recorded_program import do_nothing
from selftime.capture.steps import RecorderWork
from selftime.errors import RecordingError


class RunningProfiler:
    """A profiler that has been started in the program; it may have been stopped since."""

    def __init__(
        self,
        action_of_step: Callable[[int], ProfilerAction],
        details: RecordedDetails,
        recorder_work: RecorderWork | None,
        *,
        packages: tuple[str, ...] = (),
        before_start: Callable[[], None] = do_nothing,
    ) -> None:
        """Starts a profiler.

        Args:
            action_of_step: What it does in each step, given the step's number.
            details: What it records of each operator.
            recorder_work: Marks selftime's own work between the steps; None without any.
            packages: Folders of installed packages that count as the user's code.
            before_start: Called right before it starts, if nothing else records.

        Raises:
            RecordingError: It cannot run; the message says why.
        """
        if _profiler_enabled():
            raise RecordingError(
                "the program runs its own profiler, and only one can run at a time; remove one"
            )
        if open_ranges.outlive_recording:
            raise RecordingError(
                "a range of `record_function` of an earlier recording is still open"
            )
        self.profile: Profile = new_profile(action_of_step, details, packages)
        """The profiler object; once stopped, it has the recording."""
        self.profile.recorder_work = recorder_work
        before_start()
        open_ranges.begin_recording()
        try:
            with hide_usdt_lines():
                self.profile.start()
        except RuntimeError as error:
            open_ranges.end_recording()
            raise RecordingError(f"the recorder could not start: {error}") from error

    @property
    def is_running(self) -> bool:
        return self.profile.running

    def end_step(self) -> None:
        """Advances it to what it does in the next step."""
        with hide_usdt_lines():
            self.profile.step()

    def stop(self) -> bool:
        """Stops it if it runs; returns False if another thread would have to stop it."""
        if self.is_running:
            try:
                with hide_usdt_lines():
                    self.profile.stop()
            except RecordingError:
                return False
            open_ranges.end_recording()
        return True

    def forget(self) -> None:
        """Deletes what it has recorded."""
        self.profile.forget()


def end_in_forked_child() -> None:
    """Ends the recording of the parent process in a forked child, whose calls it would slow."""
    _enable_record_function(False)
    sys.setprofile(None)
    end_count_in_forked_child()


def discard_after_failure(discard: Callable[[], None], *, was_recording: bool) -> None:
    """Calls `discard`, which may fail; stops what still records if a profiler `was_recording`."""
    with suppress(Exception):
        discard()
    if was_recording:
        stop_leftover_recording()
