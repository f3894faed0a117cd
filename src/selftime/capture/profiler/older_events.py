"""Gives the profiler's events in older releases of PyTorch what the newest ones tell of them.

PyTorch 2.4 tells neither the category nor the end of an event, and lists no Python frames: these
are in its tree of events alone.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from torch._C._autograd import DeviceType, _KinetoEvent
from torch._C._profiler import RecordScope, _EventType, _ProfilerEvent

from selftime import names

_METHODS_OF_NEWER_RELEASES: Final = (
    "activity_type",
    "end_ns",
    "is_python_function",
    "overload_name",
)
_FRAME_EVENT_TYPES: Final = (_EventType.PyCall, _EventType.PyCCall)
_USER_SCOPE: Final = int(RecordScope.USER_SCOPE)  # type: ignore[call-overload]  # it is a number
_MEMORY_EVENT_NAME: Final = "[memory]"


def complete_events(results: Any) -> list[_KinetoEvent]:
    """Returns the events of a recording, given torch's `kineto_results`; all have all methods."""
    if all(hasattr(_KinetoEvent, method) for method in _METHODS_OF_NEWER_RELEASES):
        return list(results.events())
    return list(completed_events(results))


def completed_events(results: Any) -> Iterator[Any]:
    """Yields the events of a recording in an older release, and frames that are not among them."""
    thread_ids: dict[int, int] = {}
    for event in results.events():
        if _is_on_host(event):
            thread_ids.setdefault(event.start_thread_id(), event.device_resource_id())
        yield CompletedEvent(event)
    if not hasattr(_KinetoEvent, "is_python_function"):
        for frame in _frames_of_event_tree(results.experimental_event_tree()):
            yield FrameEvent(frame, thread_ids.get(frame.start_tid, frame.start_tid))


class CompletedEvent:
    """An event that answers also what only events of newer releases do."""

    __slots__ = ("_event",)

    def __init__(self, event: Any) -> None:
        self._event = event

    def __getattr__(self, name: str) -> Any:
        return getattr(self._event, name)

    def end_ns(self) -> int:
        start_ns: int = self._event.start_ns()
        duration_ns: int = self._event.duration_ns()
        return start_ns + duration_ns

    def is_python_function(self) -> bool:
        return self.activity_type() in names.FRAME_CATEGORIES

    def overload_name(self) -> str:
        if hasattr(self._event, "overload_name"):
            return str(self._event.overload_name())
        return ""

    def activity_type(self) -> str:
        """Returns the event's category, as far as selftime distinguishes them."""
        event = self._event
        if hasattr(event, "activity_type"):
            return str(event.activity_type())
        if hasattr(event, "is_python_function") and event.is_python_function():
            return "python_function"
        return _category_on_host(event) if _is_on_host(event) else _category_on_device(event)


class FrameEvent:
    """A call in Python, with the methods of an event."""

    __slots__ = ("_frame", "_thread_id")

    def __init__(self, frame: _ProfilerEvent, thread_id: int) -> None:
        self._frame = frame
        self._thread_id = thread_id

    def name(self) -> str:
        return self._frame.name

    def activity_type(self) -> str:
        return "python_function"

    def is_python_function(self) -> bool:
        return True

    def correlation_id(self) -> int:
        return 0

    def linked_correlation_id(self) -> int:
        return 0

    def device_type(self) -> DeviceType:
        return DeviceType.CPU

    def device_resource_id(self) -> int:
        return self._thread_id

    def start_ns(self) -> int:
        return self._frame.start_time_ns

    def end_ns(self) -> int:
        return self._frame.end_time_ns


def _is_on_host(event: Any) -> bool:
    return bool(event.device_type() == DeviceType.CPU)


def _category_on_device(event: Any) -> str:
    return "gpu_user_annotation" if _is_user_range(event) else "kernel"


def _category_on_host(event: Any) -> str:
    if event.linked_correlation_id():
        return "cuda_runtime"
    if _is_user_range(event):
        return "user_annotation"
    if event.correlation_id():
        return "cpu_op"
    return "cpu_instant_event" if event.name() == _MEMORY_EVENT_NAME else "overhead"


def _is_user_range(event: Any) -> bool:
    return bool(event.scope() == _USER_SCOPE)


def _frames_of_event_tree(roots: Iterable[_ProfilerEvent]) -> Iterator[_ProfilerEvent]:
    left = list(roots)
    while left:
        event = left.pop()
        left.extend(event.children)
        if event.tag in _FRAME_EVENT_TYPES:
            yield event
