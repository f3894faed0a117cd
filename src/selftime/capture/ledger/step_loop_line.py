"""Finds the source line of the loop whose iterations are steps, from stacks between steps.

Between two steps the loop's frame stays on the stack, while the functions that the loop calls
return. So the loop of the steps is the innermost loop in a frame that was on the stack between the
steps before, too. In a library's loop it is the user's line that calls the library.
"""

from collections.abc import Callable
from types import FrameType
from typing import Final

from selftime.capture.code_loops import loops_at

SAME_LINES_NEEDED: Final = 2
"""Number of consecutive steps whose stacks must show the same loop."""

MAX_OBSERVED_STEPS: Final = 8
"""Largest number of steps whose stacks are searched for the loop; after that it stays unknown."""


class StepLoopLine:
    """Finds the file and line of the loop that makes the steps of one kind."""

    def __init__(
        self,
        is_user_file: Callable[[str], bool],
        file_and_line: tuple[str, int] | None = None,
    ) -> None:
        self.file_and_line = file_and_line
        self._is_user_file = is_user_file
        self._observed = 0
        self._last: tuple[str, int] | None = None
        self._same = 0

    @property
    def is_done(self) -> bool:
        """Returns whether the loop was found or the search for it has been given up."""
        return self.file_and_line is not None or self._observed >= MAX_OBSERVED_STEPS

    def observe_stack(self, innermost_frame: FrameType | None) -> None:
        """Searches the stack between two steps for the loop, and compares it with the last one.

        Frames are marked by `f_trace_opcodes`, which does nothing while no trace function is set:
        to keep the frames themselves would keep the program's tensors.
        """
        self._observed += 1
        seen = self._loop_line(innermost_frame)
        self._same = self._same + 1 if seen is not None and seen == self._last else 1
        self._last = seen
        if seen is not None and self._same >= SAME_LINES_NEEDED:
            self.file_and_line = seen
        _mark_frames(innermost_frame, is_marked=not self.is_done)

    def _loop_line(self, innermost_frame: FrameType | None) -> tuple[str, int] | None:
        frame = innermost_frame
        while frame is not None:
            if frame.f_trace_opcodes and (loops := loops_at(frame.f_code, frame.f_lasti)):
                if self._is_user_file(frame.f_code.co_filename):
                    return frame.f_code.co_filename, loops[-1].line
                return self._user_line(frame)
            frame = frame.f_back
        return None

    def _user_line(self, frame: FrameType | None) -> tuple[str, int] | None:
        """Returns the line of the user's code from which a frame was called."""
        while frame is not None:
            if self._is_user_file(frame.f_code.co_filename):
                return frame.f_code.co_filename, frame.f_lineno
            frame = frame.f_back
        return None


def _mark_frames(frame: FrameType | None, *, is_marked: bool) -> None:
    while frame is not None:
        frame.f_trace_opcodes = is_marked
        frame = frame.f_back
