"""Writes stacks for flame graphs: Python frames, weighted by the time of their operators.

Each line is a stack: frames, root first, separated by `;`, then a space and the self time in ns.
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

from selftime.capture.lines.operator_lines import extra_fields
from selftime.errors import UsageError

_STACK_METRICS: Final = (
    "self_cpu_time_total",
    "self_cuda_time_total",
    "self_xpu_time_total",
    "self_privateuse1_time_total",
)
"""Metrics that torch's `export_stacks` accepts: self time on the host or on a device."""

_RESERVED_CHARACTER_REPLACEMENTS: Final = str.maketrans(" ;\t\n", "____")


def check_metric(metric: str) -> None:
    """Raises UsageError unless torch's `export_stacks` accepts the metric."""
    if metric not in _STACK_METRICS:
        choices = ", ".join(_STACK_METRICS)
        raise UsageError(f"`metric` is `{metric}`; choose one of {choices}")


def device_time_by_operator(events: Iterable[_KinetoEvent]) -> dict[int, int]:
    """Returns {External id: time in ns of the device work that the operator launched directly}."""
    times: dict[int, int] = {}
    for event in events:
        operator = event.linked_correlation_id()
        if operator and event.device_type() != DeviceType.CPU:
            times[operator] = times.get(operator, 0) + event.duration_ns()
    return times


def folded_stacks(
    roots: Iterable[_ProfilerEvent], *, device_times: Mapping[int, int] | None = None
) -> Iterator[str]:
    """Yields a line `frame;frame;… time` for each distinct stack; the time is in ns.

    The time is the host self time, or `device_times` (by External id) if given.
    """
    frames: list[tuple[int, str]] = [(-1, "")]
    numbers: dict[tuple[int, str], int] = {}
    weights: dict[int, int] = {}
    operators: dict[int, tuple[int, int]] = {}
    child_time: dict[int, int] = {}
    stack: list[tuple[_ProfilerEvent, int, int]] = [(root, 0, 0) for root in roots]
    while stack:
        event, frame, enclosing = stack.pop()
        fields = extra_fields(event)
        if isinstance(fields, _ExtraFields_PyCall | _ExtraFields_PyCCall):
            key = (frame, _stack_frame_label(event))
            frame = numbers.setdefault(key, len(frames))
            if frame == len(frames):
                frames.append(key)
        elif isinstance(fields, _ExtraFields_TorchOp) and fields.scope != RecordScope.USER_SCOPE:
            operator_id, duration = event.correlation_id, event.duration_time_ns
            if device_times is None:
                operators[operator_id] = (frame, duration)
                child_time[enclosing] = child_time.get(enclosing, 0) + duration
            else:
                weights[frame] = weights.get(frame, 0) + device_times.get(operator_id, 0)
            enclosing = operator_id
        stack.extend((child, frame, enclosing) for child in event.children)
    for operator_id, (frame, duration) in operators.items():
        weights[frame] = weights.get(frame, 0) + max(0, duration - child_time.get(operator_id, 0))
    for frame, weight in weights.items():
        if frame and weight > 0:
            yield f"{_folded_frame_path(frames, frame)} {weight}"


def _stack_frame_label(event: _ProfilerEvent) -> str:
    try:
        return event.name.translate(_RESERVED_CHARACTER_REPLACEMENTS)
    except UnicodeDecodeError:  # the profiler may refer to text that was freed
        return "<unknown>"


def _folded_frame_path(frames: list[tuple[int, str]], frame: int) -> str:
    labels = []
    while frame:
        frame, label = frames[frame]
        labels.append(label)
    return ";".join(reversed(labels))
