"""Records one step with a mark at each executed line, to find the source lines of operators.

One step after the recorded ones is recorded separately, without devices, while a trace function
(`sys.settrace`) is called for every line of the user's own functions. For each line it writes a
line mark, a profiler event without duration, between the operators. Library code and generated code
run untraced.

    marker = LineMarker(SourceFiles)
    marker.begin_marking()
    ...                     # one step
    marker.end_marking()
    read_recorded_lines(tree, ..., marked_lines=marker.marks)

The program's results do not change; the step is slower. Nothing is marked in a program that has a
trace function already, such as under a debugger or coverage.
"""

import os
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, Final

from torch._C._autograd import _enable_record_function, _profiler_enabled
from torch._C._profiler import _RecordFunctionFast
from torch.profiler import ProfilerActivity, profile

from selftime.capture.lines.event_tree import (
    LINE_MARK_PREFIX,
    running_python_frames,
    walk_event_tree,
)
from selftime.capture.lines.marked_lines import FunctionKey, MarkedLines, learn_marked_lines
from selftime.capture.lines.sources import SourceFiles, readable_sys_path
from selftime.capture.profiler.inductor_import import compiler_import
from selftime.capture.profiler.open_ranges import open_ranges
from selftime.capture.profiler.profiler_stderr import hide_usdt_lines
from selftime.capture.steps.loop_trace import LOOP_TRACE_MODULE, step_loop_trace

MAX_LINE_MARKS_PER_STEP: Final = 100_000
"""Largest number of line marks in a step; a step that executes more lines is discarded.

At about 1 µs and 200 bytes each they cost 0.1 s and 20 MB.
"""


class LineMarker:
    """Records a mark for each executed line between `begin_marking` and `end_marking`.

    `sources_factory` creates the object that decides which files are the user's.
    """

    def __init__(self, sources_factory: Callable[[], SourceFiles]) -> None:
        self._sources_factory = sources_factory
        self._step: _MarkedStep | None = None
        self._marks: MarkedLines | None = None

    def begin_marking(self) -> bool:
        """Begins to mark lines; returns False if another profiler or trace function is running.

        At least one unrecorded step must come before, and no range of the recording may be open.
        Torch's profiler writes the end of an event that began in another recording into freed
        memory, and step boundaries are inside `Optimizer.step`: to begin where a recording stops
        would crash.
        """
        if not _is_traced_by_selftime_at_most() or _profiler_enabled():
            return False
        if sys.getprofile() is not None:  # the recording would remove it
            return False
        if open_ranges.outlive_recording:
            return False
        step = _MarkedStep(self._sources_factory())
        if step.start_marking(sys._getframe(1)):  # noqa: SLF001 - the only way to the caller
            self._step = step
        return self._step is step

    def end_marking(self) -> None:
        """Ends the marking of lines; does nothing unless `begin_marking` returned True."""
        if self._step is not None:
            self._step.stop_marking()

    @property
    def marks(self) -> MarkedLines | None:
        """Returns which line called each operator in the marked step; None if it is incomplete."""
        step = self._step
        if step is not None and step.is_complete:
            self._step = None
            self._marks = step.read_marked_lines()
        return self._marks


class _MarkedStep:
    """A recording of one step with a mark at each executed line."""

    def __init__(self, sources: SourceFiles) -> None:
        self._sources = sources
        self._recorder: Any = profile(activities=[ProfilerActivity.CPU], with_stack=True)
        self._running_frames = running_python_frames()
        self._process = os.getpid()
        self._running = False
        self._marks_left = MAX_LINE_MARKS_PER_STEP
        self._codes: dict[int, CodeType] = {}
        self._is_user_file: dict[str, bool] = {}
        self._marks_by_line: dict[int, _RecordFunctionFast] = {}
        self._loop_trace: Any = None
        """selftime's own trace function that finds steps from loops, which must keep working;
        None without it."""

    @property
    def is_complete(self) -> bool:
        return not self._running and self._marks_left > 0

    def start_marking(self, innermost_frame: FrameType) -> bool:
        try:
            with hide_usdt_lines(), compiler_import(before_frames=False):
                self._recorder.start()
        except RuntimeError:  # another recording runs that `_profiler_enabled` does not report
            return False
        open_ranges.begin_recording()
        self._running = True
        self._loop_trace = sys.gettrace()
        frame: FrameType | None = innermost_frame
        while frame is not None:
            frame.f_trace = self._trace_function(frame, frame.f_trace)
            frame = frame.f_back
        sys.settrace(self._trace_call)
        return True

    def stop_marking(self) -> None:
        if not self._running:
            return
        self._running = False
        self._stop_tracing()
        with readable_sys_path(), hide_usdt_lines():
            self._recorder.stop()
        open_ranges.end_recording()

    def read_marked_lines(self) -> MarkedLines:
        tree = self._recorder.profiler.kineto_results.experimental_event_tree()
        found = walk_event_tree(tree, sources=self._sources, running_frames=self._running_frames)
        codes: dict[FunctionKey, list[CodeType]] = {}
        for code in self._codes.values():
            file = self._sources.user_file(self._sources.recorded_name(code.co_filename))
            if file is not None:
                key = (file, max(code.co_firstlineno, 1), code.co_name)
                codes.setdefault(key, []).append(code)
        return learn_marked_lines(found.activations, codes)

    def _stop_tracing(self) -> None:
        if sys.gettrace() == self._trace_call:
            sys.settrace(self._loop_trace)
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the only way to it
        while frame is not None:
            if frame.f_trace == self._trace_line:
                frame.f_trace = None
            elif (loop_trace := step_loop_trace(frame.f_trace)) is not None:
                loop_trace.on_line = None
            frame = frame.f_back

    def _trace_call(self, frame: FrameType, event: str, argument: object) -> Any:
        """Trace function for `sys.settrace`: requests line events for functions of the user."""
        other = None if self._loop_trace is None else self._loop_trace(frame, event, argument)
        return self._trace_function(frame, other)

    def _trace_function(self, frame: FrameType, other: Any) -> Any:
        """Returns the new trace function of a frame whose present trace function is `other`."""
        if os.getpid() != self._process:
            self._stop_in_forked_child()
        if not self._running:
            return other
        code = frame.f_code
        is_user = self._is_user_file.get(code.co_filename)
        if is_user is None:
            recorded = self._sources.recorded_name(code.co_filename)
            is_user = self._sources.user_file(recorded) is not None
            self._is_user_file[code.co_filename] = is_user
        if not is_user:
            return other
        self._codes[id(code)] = code
        if other is None:
            return self._trace_line
        if (loop_trace := step_loop_trace(other)) is not None:
            loop_trace.on_line = self._trace_line
        return other

    def _trace_line(self, frame: FrameType, event: str, argument: object) -> Any:
        """Trace function for `sys.settrace`: records a mark before a line runs."""
        del argument
        if event == "line" and self._running:
            line = frame.f_lineno
            mark = self._marks_by_line.get(line)
            if mark is None:
                mark = self._marks_by_line[line] = _RecordFunctionFast(f"{LINE_MARK_PREFIX}{line}")
            with mark:
                self._marks_left -= 1
            if self._marks_left <= 0:
                sys.settrace(self._loop_trace)
        return self._trace_line

    def _stop_in_forked_child(self) -> None:
        """Stops recording and tracing in a forked child."""
        self._running = False
        _enable_record_function(False)
        sys.settrace(None)
        sys.setprofile(None)


def _is_traced_by_selftime_at_most() -> bool:
    """Returns whether `sys.settrace` is unused, or used only by selftime's search for loops."""
    trace = sys.gettrace()
    return trace is None or getattr(trace, "__module__", None) == LOOP_TRACE_MODULE
