"""Trace functions for single Python frames (`frame.f_trace`) that detect loop iterations.

A step must not begin within a trace function: the profiler that starts there would see its call
and not its return. So a trace function of the loop of the steps requests a call by the interpreter
(`main_thread_calls`) before a jump back to the loop's start: the interpreter makes it while it
jumps, exactly between two iterations.
"""

from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from selftime.capture.code_loops import CodeLoop, code_loops, loops_at
from selftime.capture.steps.torch_compile import never_torch_compile

if TYPE_CHECKING:
    from selftime.capture.main_thread_calls import CallRequest
    from selftime.capture.steps.loops import LoopStepFinder

_SUSPENDABLE_CODE_FLAGS: Final = 0x20 | 0x80 | 0x200
"""Flags of the code of generators and coroutines: `CO_GENERATOR | CO_COROUTINE |
CO_ASYNC_GENERATOR` of `inspect`."""


LOOP_TRACE_MODULE: Final = "selftime.capture.steps.loops"
"""Name of the module that defines the `sys.settrace` function that finds steps from loops."""


class LoopCounterTrace:
    """Counts the iterations of all loops in a frame, until the loop that makes steps is known.

    A line whose first instruction does not lie behind that of the line before was reached by a jump
    backwards: an iteration of the innermost loop that both are in.
    """

    def __init__(self, finder: "LoopStepFinder", frame: FrameType) -> None:
        self._finder = finder
        self._offset = frame.f_lasti
        """Bytecode offset of the last executed line's first instruction; in a generator, of its
        last `yield`."""

    @never_torch_compile
    def trace_line(self, frame: FrameType, event: str, _argument: object) -> Any:
        """Trace function for `sys.settrace`: counts an iteration if the line jumped back."""
        try:
            return self._trace_line(frame, event)
        except Exception as error:  # noqa: BLE001 - the program's own line goes on
            self._finder.fail(error)
            return None

    def _trace_line(self, frame: FrameType, event: str) -> Any:
        if event == "line" and self._finder.step_loop is None:
            last, self._offset = self._offset, frame.f_lasti
            if self._offset <= last:
                around = [
                    loop for loop in loops_at(frame.f_code, last) if loop.start <= frame.f_lasti
                ]
                if around:
                    self._finder.count_iteration(around[-1])
        step_loop = self._finder.step_loop
        if step_loop is None:
            return self.trace_line
        return trace_function_for_steps(self._finder, step_loop, frame)


def trace_function_for_steps(
    finder: "LoopStepFinder", step_loop: CodeLoop, frame: FrameType
) -> Any:
    """Returns a frame's trace function that ends steps; None if the frame runs another function."""
    if step_loop.code is not frame.f_code:
        return None
    frame.f_trace_opcodes = finder.is_exact
    return StepLoopTrace(finder, step_loop, frame).trace_instruction


class StepLoopTrace:
    """Ends a step at each iteration of the chosen loop in one frame, and when the loop ends.

    While the finder is exact, a step ends where the interpreter jumps back. Later, when no profiler
    will start at the end of a step, it ends before the first line that follows the jump: a fifth of
    the cost, since the interpreter calls only for each line and not for each instruction.
    """

    def __init__(self, finder: "LoopStepFinder", loop: CodeLoop, frame: FrameType) -> None:
        self.on_line: Callable[[FrameType, str, object], object] | None = None
        """Function called before each line of the frame for another user of tracing, such as the
        line marker; None without one."""
        self._finder = finder
        self._start, self._end, self._jumps = loop.start, loop.end, loop.jumps
        self._inner_ranges = [
            (inner.start, inner.end)
            for inner in code_loops(loop.code)
            if inner is not loop and loop.contains(inner.start) and loop.contains(inner.end)
        ]
        self._offset = frame.f_lasti
        """Bytecode offset of the last executed line's first instruction."""
        self._is_suspendable = bool(loop.code.co_flags & _SUSPENDABLE_CODE_FLAGS)

    @never_torch_compile
    def trace_instruction(self, frame: FrameType, event: str, _argument: object) -> Any:
        """Trace function for `sys.settrace`: ends a step if the loop jumps back or is left."""
        try:
            _request = self._on_event(frame, event)  # a step ends when it is deleted: on return
        except Exception as error:  # noqa: BLE001 - the program's own line goes on
            self._finder.fail(error)
            return None
        return self.trace_instruction

    @never_torch_compile
    def _on_event(self, frame: FrameType, event: str) -> "CallRequest | None":
        """Handles an event; returns the request to end a step, if it ends one."""
        request = None
        if event == "opcode":
            if not self._finder.is_exact:
                frame.f_trace_opcodes = False
            elif frame.f_lasti in self._jumps:
                request = self._finder.end_step_on_deletion()
        elif event == "line":
            last, offset = self._offset, frame.f_lasti
            self._offset = offset
            if self._start <= offset <= self._end:
                if (
                    offset <= last
                    and not frame.f_trace_opcodes
                    and self._is_iteration(last, offset)
                ):
                    self._finder.end_counted_step()
            elif self._start <= last <= self._end:
                request = self._finder.end_last_step_on_deletion()
            if self.on_line is not None:
                self.on_line(frame, event, None)
        elif (
            event == "return"
            and self._start <= self._offset <= self._end
            and not self._is_suspendable
        ):
            request = self._finder.end_last_step_on_deletion()
        return request

    def _is_iteration(self, last: int, offset: int) -> bool:
        """Returns whether a jump back, from offset `last` to `offset`, belongs to this loop."""
        if last > self._end:
            return False
        return not any(start <= offset and last <= end for start, end in self._inner_ranges)


class TraceEventCounter:
    """Counts the lines and calls that one step executes, to estimate the cost of tracing it."""

    def __init__(self) -> None:
        self.events = 0

    @never_torch_compile
    def trace(self, _frame: FrameType, _event: str, _argument: object) -> Any:
        """Trace function for `sys.settrace`: counts a call or a line."""
        self.events += 1
        return self.trace


def step_loop_trace(trace_function: object) -> StepLoopTrace | None:
    """Returns the `StepLoopTrace` whose method a trace function is; None for other functions."""
    owner = getattr(trace_function, "__self__", None)
    return owner if isinstance(owner, StepLoopTrace) else None
