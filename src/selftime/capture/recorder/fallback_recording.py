"""Keeps a complete recording of steps from a less reliable kind of event, in case none follows."""

from selftime.capture.recorder.recording_cycle import RecordingCycle


class FallbackRecording:
    """A complete recording that is written only if no better one follows."""

    def __init__(self) -> None:
        self._cycle: RecordingCycle | None = None

    def keep(self, cycle: RecordingCycle | None) -> None:
        """Keeps a recording, if it has data, in place of the one that was kept before."""
        if self._cycle is not None and self._cycle.profile is not None:
            self._cycle.profile.forget()
        self._cycle = cycle

    def finish_and_keep(self, cycle: RecordingCycle | None) -> None:
        """Ends a recording early and keeps what it has, if that is a step or more."""
        if cycle is not None:
            cycle.finish(None)
            if cycle.profile is not None:
                self.keep(cycle)

    def take(self) -> RecordingCycle | None:
        """Returns the recording, and keeps it no more; None if there is none."""
        cycle, self._cycle = self._cycle, None
        return cycle if cycle is not None and cycle.profile is not None else None
