"""Marks the lines of one step after a recording, for the exact line of each operator."""

from collections.abc import Callable

from selftime.capture.lines.line_marker import LineMarker
from selftime.capture.lines.sources import SourceFiles
from selftime.capture.profiler.profile import Profile


class MarkedStep:
    """One more step, recorded with a mark at each line.

    One step is left out before it: torch closes an annotation opened during a recording, here the
    optimizer's around this boundary, in that recording's memory, even if it has been freed when
    another recording runs.
    """

    def __init__(self, user_packages: Callable[[], tuple[str, ...]]) -> None:
        self._user_packages = user_packages
        self._marker: LineMarker | None = None

    def begin(self) -> bool:
        """Begins to mark lines; returns False if that is not possible."""
        marker = LineMarker(lambda: SourceFiles(self._user_packages()))
        if not marker.begin_marking():
            return False
        self._marker = marker
        return True

    def end(self) -> None:
        """Ends the step."""
        if self._marker is not None:
            self._marker.end_marking()

    def attach_to(self, profile: Profile) -> None:
        """Adds the source lines of the step, if there was one, to a recording."""
        if self._marker is not None:
            profile.marked_lines = self._marker.marks
        self._marker = None
