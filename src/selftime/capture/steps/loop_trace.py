"""Trace functions for single Python frames (`frame.f_trace`) that detect loop iterations.

A step must not begin within a trace function: the profiler that starts there would see its call
and not its return. So a trace function of the loop of the steps requests a call by the interpreter
(`main_thread_calls`) before a jump back to the loop's start: the interpreter makes it while it
jumps, exactly between two iterations.
"""

import sys
from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Final

from selftime.capture.code_loops import loops_at
from selftime.capture.steps.step_loop import StepLoop
from selftime.capture.steps.torch_compile import never_torch_compile

if TYPE_CHECKING:
    from selftime.capture.main_thread_calls import CallRequest
    from selftime.capture.steps.loops import LoopStepFinder

_SUSPENDABLE_CODE_FLAGS: Final = 0x20 | 0x80 | 0x200
"""Flags of the code of generators and coroutines: `CO_GENERATOR | CO_COROUTINE |
CO_ASYNC_GENERATOR` of `inspect`."""


_FORGETS_OPCODES: Final = sys.version_info >= (3, 13)
"""Whether the interpreter no longer calls for instructions once a profiler has started."""

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
        search = self._finder.search
        if search.candidates and event == "line":
            last, self._offset = self._offset, frame.f_lasti
            self._count(frame.f_code, last)
        elif search.candidates and event == "return" and not _is_suspendable(frame.f_code):
            for loop in reversed(loops_at(frame.f_code, self._offset)):
                search.end_entry(loop)
        if search.candidates:
            return self.trace_line
        frame.f_trace = self._finder.trace_function_for_steps(frame)
        return frame.f_trace

    def _count(self, code: CodeType, last: int) -> None:
        """Counts an iteration, or the end of a loop, on the way from offset `last` to a line."""
        search, offset = self._finder.search, self._offset
        loops = loops_at(code, last)
        for loop in reversed(loops):
            if not loop.contains(offset):
                search.end_entry(loop)
        if offset <= last:
            around = [loop for loop in loops if loop.contains(offset)]
            if around:
                search.count_iteration(around[-1])


def trace_function_for_steps(
    finder: "LoopStepFinder", loops: Sequence[StepLoop], frame: FrameType
) -> Any:
    """Returns the trace function of a frame that ends a step at each iteration of its loops."""
    frame.f_trace_opcodes = finder.is_exact
    return StepLoopTrace(finder, loops, frame).trace_instruction


class StepLoopTrace:
    """Ends a step at each iteration of the loops that make steps in one frame, and at their end.

    While the finder is exact, a step ends where the interpreter jumps back. Later, when no profiler
    will start at the end of a step, it ends before the first line that follows the jump: a fifth of
    the cost, since the interpreter calls only for each line and not for each instruction.
    """

    def __init__(
        self, finder: "LoopStepFinder", loops: Sequence[StepLoop], frame: FrameType
    ) -> None:
        self.on_line: Callable[[FrameType, str, object], object] | None = None
        """Function called before each line of the frame for another user of tracing, such as the
        line marker; None without one."""
        self._finder = finder
        self._loops = list(loops)
        self._loop_by_jump = {jump: loop for loop in loops for jump in loop.loop.jumps}
        self._offset = frame.f_lasti
        """Bytecode offset of the last executed line's first instruction."""
        self._loop = self._loop_at(self._offset)
        """The loop that the frame is in."""
        self._loop_end = -1 if self._loop is None else self._loop.end
        """Offset of the last instruction of the loop that the frame is in; else -1."""
        self._has_begun_iteration = True
        """Whether an iteration that has not ended has begun."""
        self._has_asked_for_opcodes = False
        self._is_suspendable = _is_suspendable(frame.f_code)

    @never_torch_compile
    def trace_instruction(self, frame: FrameType, event: str, _argument: object) -> Any:
        """Trace function for `sys.settrace`: ends a step if a loop jumps back or is left."""
        if event == "line" and self.on_line is None:
            offset = frame.f_lasti
            if self._offset < offset <= self._loop_end:  # most lines
                self._offset = offset
                self._has_begun_iteration = True
                return self.trace_instruction
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
                self._has_asked_for_opcodes = frame.f_trace_opcodes = False
            elif (loop := self._loop_by_jump.get(frame.f_lasti)) is not None:
                self._has_begun_iteration = False
                request = self._finder.end_step_on_deletion(loop)
        elif event == "line":
            request = self._on_line(frame)
            if self.on_line is not None:
                self.on_line(frame, event, None)
        elif event == "return" and self._loop is not None and not self._is_suspendable:
            request = self._leave_loop(self._loop)
        return request

    def _on_line(self, frame: FrameType) -> "CallRequest | None":
        last, offset, loop, request = self._offset, frame.f_lasti, self._loop, None
        self._offset = offset
        if loop is not None and loop.start <= offset <= loop.end:
            if offset <= last and not frame.f_trace_opcodes and loop.is_iteration(last, offset):
                self._has_begun_iteration = False
                self._finder.end_counted_step(loop)
                if not loop.is_followed:
                    self._forget_loop(loop)
            if offset != loop.start or not loop.is_for:
                self._has_begun_iteration = True
        else:
            if loop is not None:
                request = self._leave_loop(loop)
            self._loop = self._loop_at(offset)
            self._loop_end = -1 if self._loop is None else self._loop.end
            self._has_begun_iteration = True
        if self._finder.is_exact and not (self._has_asked_for_opcodes and frame.f_trace_opcodes):
            # To ask has no effect in Python 3.13 until the frame has its trace function.
            self._has_asked_for_opcodes = frame.f_trace_opcodes = True
        elif self._finder.is_exact and _FORGETS_OPCODES:
            frame.f_trace_opcodes = False
            frame.f_trace_opcodes = True
        return request

    def _loop_at(self, offset: int) -> StepLoop | None:
        for loop in self._loops:
            if loop.start <= offset <= loop.end:
                return loop
        return None

    def _leave_loop(self, loop: StepLoop) -> "CallRequest | None":
        """Notes that a loop has ended; returns the request to end its last step, if it goes on."""
        self._loop, self._loop_end = None, -1
        if self._has_begun_iteration or self._finder.is_step_end_due:
            return self._finder.end_last_step_on_deletion(loop)
        self._finder.leave_loop()
        return None

    def _forget_loop(self, loop: StepLoop) -> None:
        self._loops.remove(loop)
        self._loop_by_jump = {jump: it for it in self._loops for jump in it.loop.jumps}
        self._loop, self._loop_end = None, -1


def _is_suspendable(code: CodeType) -> bool:
    return bool(code.co_flags & _SUSPENDABLE_CODE_FLAGS)


def step_loop_trace(trace_function: object) -> StepLoopTrace | None:
    """Returns the `StepLoopTrace` whose method a trace function is; None for other functions."""
    owner = getattr(trace_function, "__self__", None)
    return owner if isinstance(owner, StepLoopTrace) else None
