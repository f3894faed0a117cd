"""Records a stretch of a program: a few of its steady steps, or all of it if it makes none.

Nobody knows beforehand whether a stretch makes steps. It is recorded from its beginning, until the
first step shows that there are steps; what was recorded so far is kept for the case that they are
too few.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from selftime.capture.chatter import without_marks
from selftime.capture.profile import Profile
from selftime.capture.profiler_options import switched_on
from selftime.capture.recorder.deadline import Deadline
from selftime.capture.recorder.other_profilers import watch_rivals
from selftime.capture.recorder.recorder import Recorder
from selftime.capture.recorder.run_options import RunOptions
from selftime.capture.recorder.watching import PROCESS
from selftime.capture.recorder.writer import Writer
from selftime.capture.steps import Source, Steps
from selftime.errors import RecordingError


class Stretch:
    """From `begin` to `end`, once."""

    def __init__(self, options: RunOptions, *, name: str) -> None:
        self.options = replace(options, folder=options.folder.absolute())
        self.name = name
        """What the user wrote, for sentences."""
        self.running = self.waits = False
        self.trace: Path | None = None
        self.recorded = 0
        """Whole steps in the trace; none if it is of the stretch as a whole."""
        self.partial: str | None = None
        """Why the trace holds less than was asked for, if it does."""
        self._recorder = Recorder(self.options)
        self._steps = Steps(self._boundary, self._recorder.pulse)
        self._whole: Profile | None = None
        self._deadline = Deadline(options.seconds, self._overdue)
        self._undo: list[Callable[[], None]] = []

    def begin(self) -> None:
        """Record from here on; a RecordingError says why that cannot be."""
        rival = PROCESS.claim(self, alone=True)
        if rival is not None:
            raise RecordingError(
                f"{rival} is recording already, and one recorder can run at a time"
            )
        self.running = True
        self._steps.attach()
        self._undo = [self._deadline.cancel, self._steps.detach]
        try:
            self._whole = self._record_all()
        except RuntimeError as error:
            self._leave()
            raise RecordingError(f"the recorder could not start: {error}") from error
        self._undo.append(watch_rivals(self._leave_to))
        self._deadline.begin()

    def end(self, reason: str | None = None) -> None:
        """Write what there is; `reason` tells why if the stretch did not simply end."""
        self._leave()
        self._stop()
        self._recorder.finish(reason)
        if self._recorder.traces:
            self.trace, self.recorded = self._recorder.traces[-1], self._recorder.recorded
            self.partial = self._recorder.partial
        elif self._whole is not None:
            self._write(self._whole, reason)
        if self._whole is not None:
            self._whole.forget()
            self._whole = None

    def _leave(self) -> None:
        """Let torch and the process be as they were."""
        for undo in self._undo:
            undo()
        self._undo = []
        self.running = False
        PROCESS.release(self)

    def _write(self, whole: Profile, reason: str | None) -> None:
        self.partial = whole.partial = whole.partial or reason
        written = Writer(self.options.folder).now(whole, _nothing)
        if isinstance(written, RecordingError):
            raise written
        self.trace = written

    def abandon(self) -> None:
        """In a forked child: the recording is its parent's."""
        self._steps.idle = True
        self._recorder.abandon()
        self._whole = None

    def _record_all(self) -> Profile:
        options = self.options
        whole = Profile(
            record_shapes=options.record_shapes,
            profile_memory=options.profile_memory,
            with_stack=options.with_stack,
            experimental_config=switched_on(frames=options.with_stack),
        )
        whole.traps.attended = False
        with without_marks():
            whole.start()
        return whole

    def _boundary(self, source: Source) -> None:
        self._stop()
        self._recorder.boundary(source)

    def _stop(self) -> None:
        self._deadline.cancel()
        if self._whole is not None and self._whole.running:
            with without_marks():
                self._whole.stop()

    def _overdue(self) -> None:
        if self._whole is not None and self._whole.running:
            self._stop()
            self._whole.partial = f"the limit of {self.options.seconds:g} s was reached"

    def _leave_to(self, rival: str) -> None:
        if self._whole is not None and self._whole.running:
            self._stop()
            self._whole.partial = f"{rival} began to record"
        self._recorder.leave_to(rival)


def _nothing() -> None:
    pass
