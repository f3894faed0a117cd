"""Stacks of Python frames with the time of the operators under them, for flame graphs.

One line a stack: frames, root first, separated by `;`, a space, and the self time in nanoseconds.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from torch._C._autograd import DeviceType, _KinetoEvent
from torch._C._profiler import (
    RecordScope,
    _ExtraFields_PyCall,
    _ExtraFields_PyCCall,
    _ExtraFields_TorchOp,
    _ProfilerEvent,
)

from selftime.capture.lines.operator_lines import fields_of

METRICS: Final = (
    "self_cpu_time_total",
    "self_cuda_time_total",
    "self_xpu_time_total",
    "self_privateuse1_time_total",
)
"""The metrics that torch's `export_stacks` knows: host time, and device time by its old names."""

_SPOILERS: Final = str.maketrans(" ;\t\n", "____")


def device_times(events: Iterable[_KinetoEvent]) -> dict[int, int]:
    """Device time of each operator by External id: the work that it launched itself."""
    times: dict[int, int] = {}
    for event in events:
        operator = event.linked_correlation_id()
        if operator and event.device_type() != DeviceType.CPU:
            times[operator] = times.get(operator, 0) + event.duration_ns()
    return times


def folded(
    roots: Iterable[_ProfilerEvent], *, device: Mapping[int, int] | None = None
) -> Iterator[str]:
    """The lines, equal stacks joined; host self time, or `device` time by External id."""
    frames: list[tuple[int, str]] = [(-1, "")]
    numbers: dict[tuple[int, str], int] = {}
    weights: dict[int, int] = {}
    operators: dict[int, tuple[int, int]] = {}
    inner: dict[int, int] = {}
    stack: list[tuple[_ProfilerEvent, int, int]] = [(root, 0, 0) for root in roots]
    while stack:
        event, frame, around = stack.pop()
        fields = fields_of(event)
        if isinstance(fields, _ExtraFields_PyCall | _ExtraFields_PyCCall):
            key = (frame, _label(event))
            frame = numbers.setdefault(key, len(frames))
            if frame == len(frames):
                frames.append(key)
        elif isinstance(fields, _ExtraFields_TorchOp) and fields.scope != RecordScope.USER_SCOPE:
            number, duration = event.correlation_id, event.duration_time_ns
            if device is None:
                operators[number] = (frame, duration)
                inner[around] = inner.get(around, 0) + duration
            else:
                weights[frame] = weights.get(frame, 0) + device.get(number, 0)
            around = number
        stack.extend((child, frame, around) for child in event.children)
    for number, (frame, duration) in operators.items():
        weights[frame] = weights.get(frame, 0) + max(0, duration - inner.get(number, 0))
    for frame, weight in weights.items():
        if frame and weight > 0:
            yield f"{_path(frames, frame)} {weight}"


def _label(event: _ProfilerEvent) -> str:
    try:
        return event.name.translate(_SPOILERS)
    except UnicodeDecodeError:  # the recorder may hold text that was freed
        return "<unknown>"


def _path(frames: list[tuple[int, str]], frame: int) -> str:
    labels = []
    while frame:
        frame, label = frames[frame]
        labels.append(label)
    return ";".join(reversed(labels))
