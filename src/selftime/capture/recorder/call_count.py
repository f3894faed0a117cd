"""Counts the Python frames of a recording while it is being made.

The profiler does not tell how many it holds. A frame takes 24 bytes while it is recorded, and 1,600
bytes and 4 to 8 us once the recording stops. They are counted in two ways, and the larger number
holds:

- The interpreter calls a function of C at each call of the program, which counts them. From Python
  3.12 on `sys.monitoring` tells all calls. Before, `sys.settrace` tells those of functions in
  Python, for about 0.3 us each, and those of functions in C are estimated. This is left out in a
  program that has a trace function of its own, such as under a debugger.
- The profiler stores frames in blocks of one size. Where memory has grown by nothing else between
  two looks at it, as in a loop that calls functions in C alone, that is frames.
"""

import functools
import sys
from typing import Any, Final

from selftime.capture.facts.malloc import bytes_in_arenas
from selftime.capture.steps.loop_trace import LOOP_TRACE_MODULE
from selftime.capture.trace_function import counting_trace, is_counting, trace_below_count

FRAMES_PER_CALL: Final = 2
"""How many frames are recorded for each call of a function in Python, with those of functions in C
that it calls: measured 1.3 to 2.4 in training, in loading of batches and in tree searches."""

BYTES_PER_FRAME: Final = 24
"""Memory that a frame takes while it is recorded: 16 bytes for the call, 8 for the return."""

FRAME_BLOCK_BYTES: Final = 8_208
"""Memory that all blocks of frames are multiples of: 1,024 instants of returns, the address of the
next block, and what glibc adds. A block of calls takes twice as much."""

_HAS_MONITORING: Final = sys.version_info >= (3, 12)
_TOOL_NAME: Final = "selftime"
_FREE_TOOLS: Final = (3, 4)
"""Ids of `sys.monitoring` that have no use by convention."""


class FrameBlocks:
    """Counts the frames that lie in blocks which nothing else of the program came between."""

    def __init__(self) -> None:
        self._in_arenas = bytes_in_arenas()
        self._bytes = 0

    def count(self) -> int:
        """Looks at the memory again; returns the number of frames so far, at the least."""
        before, self._in_arenas = self._in_arenas, bytes_in_arenas()
        if before is not None and self._in_arenas is not None:
            grown = self._in_arenas - before
            if grown > 0 and grown % FRAME_BLOCK_BYTES == 0:
                self._bytes += grown
        return self._bytes // BYTES_PER_FRAME


class CallCount:
    """Counts calls from `begin` to `end`, which the same thread must make."""

    def __init__(self) -> None:
        self._counter: Any = None
        """What the interpreter calls; its cache's misses are the calls. None while none counts."""
        self._tool: int | None = None

    @property
    def frames(self) -> int:
        """Returns how many frames are recorded, at a guess; 0 if that is not counted."""
        counter = self._counter
        if counter is None:
            return 0
        calls = int(counter.cache_info().misses)
        return calls if self._tool is not None else FRAMES_PER_CALL * calls

    def begin(self) -> None:
        """Begins to count, if the interpreter's means are not in use."""
        if _HAS_MONITORING:
            self._begin_monitoring()
            return
        trace = sys.gettrace()
        if trace is None or getattr(trace, "__module__", None) == LOOP_TRACE_MODULE:
            self._counter = counting_trace(trace)
            sys.settrace(self._counter)

    def end(self) -> None:
        """Ends the count; does nothing if none was begun."""
        counter, self._counter = self._counter, None
        if self._tool is not None:
            _free_tool(self._tool)
            self._tool = None
        elif counter is not None and sys.gettrace() is counter:
            sys.settrace(trace_below_count())

    def _begin_monitoring(self) -> None:
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined]  # of Python 3.12
        tool = next((each for each in _FREE_TOOLS if monitoring.get_tool(each) is None), None)
        if tool is None:
            return
        events = monitoring.events
        self._tool, self._counter = tool, functools.lru_cache(maxsize=0)("".format)  # takes all
        monitoring.use_tool_id(tool, _TOOL_NAME)
        monitoring.register_callback(tool, events.PY_START, self._counter)
        monitoring.register_callback(tool, events.C_RETURN, self._counter)
        monitoring.set_events(tool, events.PY_START | events.CALL)  # the latter with C_RETURN


def end_count_in_forked_child() -> None:
    """Ends a count of the parent process in a forked child."""
    if _HAS_MONITORING:
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined]  # of Python 3.12
        for tool in _FREE_TOOLS:
            if monitoring.get_tool(tool) == _TOOL_NAME:
                _free_tool(tool)
    elif is_counting(sys.gettrace()):
        sys.settrace(trace_below_count())


def _free_tool(tool: int) -> None:
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined]  # of Python 3.12
    monitoring.set_events(tool, 0)
    for event in (monitoring.events.PY_START, monitoring.events.C_RETURN):
        monitoring.register_callback(tool, event, None)
    monitoring.free_tool_id(tool)
