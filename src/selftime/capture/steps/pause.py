"""Collects what is seen of a program between one of its steps and the next."""

import sys
from collections import Counter
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Final

import torch

if TYPE_CHECKING:
    from selftime.capture.ledger.instants import Instant

MAX_THREAD_SWITCH_NS: Final = 10_000_000
"""Time in ns that the program may wait for Python's lock after module calls have been wrapped."""

MAX_REMEMBERED_CALLS: Final = 10_000
"""Largest number of calls in a pause that are remembered until they are known to be steps."""

MODULE_CALL_CODE: Final[CodeType] = torch.nn.Module.__call__.__code__
"""Code of the method that calls a module, while it is as torch made it."""


@dataclass(slots=True)
class Pause:
    """What has been seen of the program since its last step."""

    segment: int
    """Start of the pause, which is the end of the last step, in ns."""
    opened_ns: int
    """When module calls began to be observed, in ns."""
    batch_requests: int
    """Number of batch requests of the program when the pause was opened."""
    was_evaluating: bool
    """Whether the program had called `model.eval()` by then."""
    had_wrapper: bool
    """Whether module calls were wrapped before the pause, too."""
    is_in_module_call: bool
    """Whether a module call was running when the pause was opened."""
    has_left_loops: bool = False
    """Whether none of the loops runs in which the last step ended."""
    loop_lines: Counter[tuple[str, int]] = field(default_factory=Counter)
    """How often each loop of the user's code that began after the last step was the innermost, by
    file and line."""
    may_be_nested: bool = True
    """Whether calls may be within a module call that began before the wrapper was there."""
    has_marked_call: bool = False
    """Whether the frame of such a module call has been marked."""
    repeated: tuple[int, int] | None = None
    """The module call that repeats; None if none has."""
    calls: "list[Instant]" = field(default_factory=list)
    """When it was made."""
    once: "dict[tuple[int, int], Instant]" = field(default_factory=dict)
    """When each other call was made since."""
    input_size: int = 0
    """Number of elements of the input of the call that repeats."""
    training: "Instant | None" = None
    """First call with gradients since the last without, after the loops have ended: if a backward
    pass follows, another training begins there."""
    is_evaluation: bool = False
    """Whether the calls without gradients are counted as an evaluation."""
    is_rollout: bool = False
    """Whether the calls so far are told as a rollout."""
    loops_by_path: dict[int, frozenset[int]] = field(default_factory=dict)
    """The `id` of each loop around the calls of a path."""
    has_gradients: bool = False
    """Whether gradients are on in the calls that are counted as an evaluation."""
    saw_environment: bool = False
    """Whether a stack was within the step of an environment."""

    def add_call(self, key: tuple[int, int], instant: "Instant") -> None:
        if key == self.repeated:
            self.once.clear()
            if len(self.calls) < MAX_REMEMBERED_CALLS:
                self.calls.append(instant)
        elif key in self.once:
            self.repeated, self.calls = key, [self.once[key], instant]
            self.once.clear()
        elif len(self.once) < MAX_REMEMBERED_CALLS:
            self.once[key] = instant

    def is_nested(self) -> bool:
        """Returns whether a call is made within a module call that began before the wrapper.

        That call's frame is marked by `f_trace_opcodes`, which does nothing while no trace function
        is set. One without the mark is a later call, by a method that was looked up before.
        """
        if not self.may_be_nested:
            return False
        frame = _outermost_module_call()
        if frame is None or (self.has_marked_call and not frame.f_trace_opcodes):
            self.may_be_nested = False
        else:
            frame.f_trace_opcodes = self.has_marked_call = True
        return self.may_be_nested

    @property
    def loop_line(self) -> tuple[str, int] | None:
        """Returns file and line of the loop that was seen most often; None if none was."""
        most = self.loop_lines.most_common(1)
        return most[0][0] if most else None

    @property
    def was_in_progress(self) -> bool:
        """Returns whether the calls had begun before they were observed."""
        (_, first, _), (_, second, _) = self.calls[:2]
        latest = self.opened_ns + 2 * (second - first) + MAX_THREAD_SWITCH_NS
        return self.is_in_module_call or first <= latest


def _outermost_module_call() -> FrameType | None:
    """Returns the frame of the outermost module call that the wrapper did not see."""
    found, frame = None, sys._getframe()  # noqa: SLF001 - the only way to the frames
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code is MODULE_CALL_CODE:
            found = frame
    return found
