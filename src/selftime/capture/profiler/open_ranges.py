"""Knows which `record_function` ranges of the program began in a recording and are still open.

When such a range ends, torch writes its end into the memory of the recording in which it began. If
that recording has stopped and another one runs, the memory is freed, and the program crashes. So
none may begin until these ranges have ended. Ranges are the program's own, or those that torch puts
around the step of an optimizer and the fetching of a batch.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._C._autograd import _profiler_enabled

from selftime.capture.attribute_patches import AttributePatches

_RecordFunction = torch.autograd.profiler.record_function


class OpenRanges:
    """Watches the ranges that begin while a recording runs, in all threads, until they end."""

    def __init__(self) -> None:
        self._patches = AttributePatches()
        self._open: set[int] = set()
        """The id of each range that is open."""
        self._is_recording = False

    def begin_recording(self) -> None:
        """Watches ranges that begin from now on."""
        self._is_recording = True
        if (_RecordFunction, "__enter__") not in self._patches:
            self._patches.wrap_attribute(_RecordFunction, "__enter__", self._around_enter)
            self._patches.wrap_attribute(_RecordFunction, "__exit__", self._around_exit)

    def end_recording(self) -> None:
        """Watches only for the end of ranges that are open."""
        self._is_recording = False
        self._stop_if_all_have_ended()

    @property
    def outlive_recording(self) -> bool:
        """Whether a range of a recording that has stopped is still open."""
        return not self._is_recording and bool(self._open)

    def _stop_if_all_have_ended(self) -> None:
        if not self._is_recording and not self._open:
            self._patches.restore_all()

    def _around_enter(self, enter: Callable[[Any], Any]) -> Callable[[Any], Any]:
        # `wraps` and the import of torch above let `torch.jit.script` compile it as the original.
        @functools.wraps(enter)
        def begin_range(range_: Any) -> Any:
            result = enter(range_)
            if self._is_recording and _profiler_enabled():
                self._open.add(id(range_))
            return result

        return begin_range

    def _around_exit(self, leave: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(leave)
        def end_range(range_: Any, *error: Any) -> Any:
            try:
                return leave(range_, *error)
            finally:
                self._open.discard(id(range_))
                if not self._is_recording:  # else it would be another frame in the recording
                    self._stop_if_all_have_ended()

        return end_range


open_ranges = OpenRanges()
"""The open ranges of this process."""
