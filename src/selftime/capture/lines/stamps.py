"""One step under line marks: it tells the lines of operators that no call tells.

A step after the recorded ones is recorded once more, by itself and without devices, while Python
reports every line of the user's own functions. Each report leaves a mark, an event of no duration,
between the operators. Code of libraries runs without reports, generated code too.

    stamps = Stamps(SourceFiles)
    stamps.begin()
    ...                     # one step
    stamps.end()
    read_lines(tree, ..., stamps=stamps.marks)

The program's results are its own; the step is slower. A program that traces its own lines, under a
debugger or for coverage, is left alone.
"""

import os
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, Final

from torch._C._autograd import _enable_record_function, _profiler_enabled
from torch._C._profiler import _RecordFunctionFast
from torch.profiler import ProfilerActivity, profile

from selftime.capture.chatter import without_marks
from selftime.capture.lines.line_marks import FrameKey, Marks, learn
from selftime.capture.lines.sources import SourceFiles, readable_path
from selftime.capture.lines.walk import LINE_MARK, open_frames, walk

MOST_MARKS: Final = 100_000
"""A step that executes more lines than these is given up.

At about a microsecond each, and some 200 bytes, they cost a tenth of a second and 20 MB.
"""


class Stamps:
    """Marks the lines of one step between `begin` and `end`; `marks` is what they tell.

    `sources_factory` makes what tells the user's files.
    """

    def __init__(self, sources_factory: Callable[[], SourceFiles]) -> None:
        self._sources_factory = sources_factory
        self._step: _Step | None = None
        self._marks: Marks | None = None

    def begin(self) -> bool:
        """Mark lines from now on; False if something else records or traces this program.

        Leave a step that nobody records before it. Torch's recorder writes the end of an annotation
        or operator that another recording saw begin into memory that it has freed, and a boundary
        between steps lies within `Optimizer.step`: to begin where a recording stops would crash.
        """
        if sys.gettrace() is not None or _profiler_enabled():
            return False
        step = _Step(self._sources_factory())
        if step.start(sys._getframe(1)):  # noqa: SLF001 - the only way to the caller
            self._step = step
        return self._step is step

    def end(self) -> None:
        """Leave no mark from now on; where none was begun this does nothing."""
        if self._step is not None:
            self._step.stop()

    @property
    def marks(self) -> Marks | None:
        """What the marked step tells; None if none was, or if it had too many lines."""
        step = self._step
        if step is not None and step.whole:
            self._step = None
            self._marks = step.read()
        return self._marks


class _Step:
    """One recording under line marks."""

    def __init__(self, sources: SourceFiles) -> None:
        self._sources = sources
        self._recorder: Any = profile(activities=[ProfilerActivity.CPU], with_stack=True)
        self._opened = open_frames()
        self._process = os.getpid()
        self._running = False
        self._left = MOST_MARKS
        self._codes: dict[int, CodeType] = {}
        self._of_user: dict[str, bool] = {}
        self._made: dict[int, _RecordFunctionFast] = {}

    @property
    def whole(self) -> bool:
        return not self._running and self._left > 0

    def start(self, innermost: FrameType) -> bool:
        try:
            with without_marks():
                self._recorder.start()
        except RuntimeError:  # something else records, in a way that nobody can ask for
            return False
        self._running = True
        frame: FrameType | None = innermost
        while frame is not None:
            frame.f_trace = frame.f_trace or self._called(frame, "call", None)
            frame = frame.f_back
        sys.settrace(self._called)
        return True

    def stop(self) -> None:
        if not self._running:
            return
        self._running = False
        self._leave()
        with readable_path(), without_marks():
            self._recorder.stop()

    def read(self) -> Marks:
        tree = self._recorder.profiler.kineto_results.experimental_event_tree()
        found = walk(tree, sources=self._sources, opened=self._opened)
        codes: dict[FrameKey, list[CodeType]] = {}
        for code in self._codes.values():
            file = self._sources.user_file(self._sources.recorded(code.co_filename))
            if file is not None:
                key = (file, max(code.co_firstlineno, 1), code.co_name)
                codes.setdefault(key, []).append(code)
        return learn(found.activations, codes)

    def _leave(self) -> None:
        if sys.gettrace() == self._called:
            sys.settrace(None)
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the only way to it
        while frame is not None:
            if frame.f_trace == self._reported:
                frame.f_trace = None
            frame = frame.f_back

    def _called(self, frame: FrameType, event: str, argument: object) -> Any:
        """Python runs a function: ask for the lines of the user's."""
        del event, argument
        if os.getpid() != self._process:
            self._leave_to_child()
        if not self._running:
            return None
        code = frame.f_code
        mine = self._of_user.get(code.co_filename)
        if mine is None:
            recorded = self._sources.recorded(code.co_filename)
            mine = self._sources.user_file(recorded) is not None
            self._of_user[code.co_filename] = mine
        if not mine:
            return None
        self._codes[id(code)] = code
        return self._reported

    def _reported(self, frame: FrameType, event: str, argument: object) -> Any:
        """Python is about to run a line of the user's: leave a mark."""
        del argument
        if event == "line" and self._running:
            line = frame.f_lineno
            mark = self._made.get(line)
            if mark is None:
                mark = self._made[line] = _RecordFunctionFast(f"{LINE_MARK}{line}")
            with mark:
                self._left -= 1
            if self._left <= 0:
                sys.settrace(None)
        return self._reported

    def _leave_to_child(self) -> None:
        """In a forked child: what runs on there records for nobody."""
        self._running = False
        _enable_record_function(False)
        sys.settrace(None)
        sys.setprofile(None)
