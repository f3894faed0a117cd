"""Reads operators, kernels, memory events and launches from the events of a recording."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from torch._C._autograd import _KinetoEvent

from selftime import names
from selftime.array_types import Flags, Ints
from selftime.capture.in_memory.events import CodeByValue, KinetoEvents

Numbers = NDArray[np.uint32]
Texts = tuple[Numbers, list[str]]
"""Texts of n operators as (index into the list for each operator, list of distinct texts)."""

TRACK_KINDS: Final = ("host", "python", "device")
"""Kinds of timeline tracks whose slices are read; `ProfiledSlices.kind` holds indices into this
tuple."""
_CODE_OF_OTHER_TRACK_KINDS: Final = 255
"""Value in `ProfiledSlices.kind` of events whose kind of track is not in `TRACK_KINDS`."""
_DEVICE_INDEX_OF_HOST: Final = -1
"""Value that stands for the host in place of a device's index."""


@dataclass(frozen=True, slots=True)
class OptionalOperatorColumns:
    """Which optional properties of operators to read; each one costs a call per operator."""

    shapes: bool = False
    overloads: bool = False
    flops: bool = False


@dataclass(frozen=True, slots=True)
class ProfiledSlices:
    """n operators, frames and device work of a recording, by start in ns since the first event."""

    category: NDArray[np.uint8]
    """Index into `categories` for each slice, shape (n,)."""
    categories: list[str]
    name: Numbers
    """Index into `names` for each slice, shape (n,)."""
    names: list[str]
    kind: NDArray[np.uint8]
    """Index into `TRACK_KINDS` for each slice, shape (n,)."""
    thread: Numbers
    """Index into `threads` for each slice, shape (n,)."""
    threads: list[tuple[int, int]]
    """(device index, stream) of each device stream, and (-1, system thread id) of each host
    thread."""
    start: Ints
    end: Ints
    known_end: Flags
    asynchronous: Flags
    """Whether each slice is asynchronous or ended on a different thread than it began, shape
    (n,)."""

    def indices_of_kind(self, kind: str) -> Ints:
        """Returns the indices of slices on `host`, `python` or `device` tracks, ascending."""
        return np.flatnonzero(self.kind == TRACK_KINDS.index(kind))

    def indices_with_category(self, categories: tuple[str, ...]) -> Ints:
        """Returns the indices of slices with one of the given categories, ascending."""
        return _indices_with_category(categories, self.categories, self.category)


@dataclass(frozen=True, slots=True)
class MemoryRecords:
    """Memory allocations and releases by time (ns), as arrays with one element for each."""

    time: Ints
    """When each allocation or release happened, in ns."""
    thread: Numbers
    bytes: Ints
    device_type: Ints


@dataclass(frozen=True, slots=True)
class WorkLaunches:
    """Slice indices and correlation ids of device work, and of runtime calls that may launch it."""

    device_work: Ints
    work_correlations: Ints
    calls: Ints
    call_correlations: Ints


@dataclass(frozen=True, slots=True)
class OperatorArguments:
    """Shapes, overload names and FLOPs of operators and annotations; None for those not read."""

    operators: Ints
    shapes: Texts | None
    overloads: Texts | None
    flops: Ints | None


def read_profiler_events(
    events: KinetoEvents, columns: OptionalOperatorColumns
) -> tuple[ProfiledSlices, MemoryRecords, WorkLaunches, OperatorArguments]:
    """Reads slices, memory records, launches and operator arguments from the profiler's events.

    Raises:
        UnicodeDecodeError: A name is not UTF-8.
    """
    host_threads: CodeByValue[int] = CodeByValue()
    texts: CodeByValue[str] = CodeByValue()
    name = events.read_value_codes(_KinetoEvent.name, texts)
    category, categories, kind = _category_and_track_kind_codes(events)
    start = events.read_numbers(_KinetoEvent.start_ns, np.int64)
    origin = int(start.min()) if start.size else 0
    start -= origin
    is_record = (kind == _CODE_OF_OTHER_TRACK_KINDS) & (
        name == texts.get(names.ALLOCATION_EVENT, len(texts))
    )
    records = _read_memory_records(events, start, np.flatnonzero(is_record), host_threads)
    hidden = events.read_numbers(_KinetoEvent.is_hidden_event, np.bool_)
    order = np.flatnonzero((kind != _CODE_OF_OTHER_TRACK_KINDS) & ~hidden)
    order = order[np.argsort(start[order], kind="stable")]
    events.keep_events_at(order)
    start, category, kind = start[order], category[order], kind[order]
    operators = _indices_with_category(
        (*names.OPERATOR_CATEGORIES, *names.ANNOTATION_CATEGORIES), categories, category
    )
    known_end, asynchronous = _has_known_end_and_is_asynchronous(events, operators)
    end = events.read_numbers(_KinetoEvent.end_ns, np.int64) - origin
    thread, threads = _read_thread_indices(
        events, np.flatnonzero(kind == TRACK_KINDS.index("device")), host_threads
    )
    slices = ProfiledSlices(
        category=category,
        categories=categories,
        name=name[order],
        names=list(texts),
        kind=kind,
        thread=thread,
        threads=threads,
        start=start,
        end=np.where(known_end, np.maximum(end, start), start),
        known_end=known_end,
        asynchronous=asynchronous,
    )
    arguments = _read_operator_arguments(events, operators, columns)
    return slices, records, _read_work_launches(events, slices), arguments


def _category_and_track_kind_codes(
    events: KinetoEvents,
) -> tuple[NDArray[np.uint8], list[str], NDArray[np.uint8]]:
    """Returns (category code per event, category names, track kind code per event)."""
    codes: CodeByValue[str] = CodeByValue()
    category = events.read_value_codes(_KinetoEvent.activity_type, codes).astype(np.uint8)
    categories = [
        names.CURRENT_CATEGORY_BY_OLD_NAME.get(text.lower(), text.lower()) for text in codes
    ]
    kinds = [names.TRACK_KIND_BY_CATEGORY.get(text) for text in categories]
    numbers = [
        TRACK_KINDS.index(kind) if kind in TRACK_KINDS else _CODE_OF_OTHER_TRACK_KINDS
        for kind in kinds
    ]
    return category, categories, np.array(numbers, np.uint8)[category]


def _indices_with_category(
    wanted: tuple[str, ...], categories: list[str], category: NDArray[np.uint8]
) -> Ints:
    is_wanted = np.array([text in wanted for text in categories], bool)
    return np.flatnonzero(is_wanted[category])


def _read_memory_records(
    events: KinetoEvents, start: Ints, indices: Ints, host_threads: CodeByValue[int]
) -> MemoryRecords:
    indices = indices[np.argsort(start[indices], kind="stable")]
    return MemoryRecords(
        start[indices],
        events.read_value_codes(_KinetoEvent.device_resource_id, host_threads, indices),
        events.read_numbers(_KinetoEvent.nbytes, np.int64, indices),  # type: ignore[attr-defined]  # it has
        events.read_numbers(lambda event: event.device_type().value, np.int64, indices),
    )


def _has_known_end_and_is_asynchronous(
    events: KinetoEvents, operators: Ints
) -> tuple[Flags, Flags]:
    """Returns two masks, one element per slice: whether its end is known, whether it is async.

    The profiler numbers threads from 1; the end thread of an operator that still ran is 0.
    """
    known, asynchronous = np.ones(len(events), bool), np.zeros(len(events), bool)
    start_thread = events.read_numbers(_KinetoEvent.start_thread_id, np.int64, operators)
    end_thread = events.read_numbers(_KinetoEvent.end_thread_id, np.int64, operators)
    known[operators] = end_thread != 0
    asynchronous[operators] = start_thread != end_thread
    asynchronous[operators] |= events.read_numbers(_KinetoEvent.is_async, np.bool_, operators)
    return known, asynchronous


def _read_thread_indices(
    events: KinetoEvents, device_work: Ints, host_threads: CodeByValue[int]
) -> tuple[Numbers, list[tuple[int, int]]]:
    """Returns (thread index per slice, list of (device, thread or stream id) per thread)."""
    thread = events.read_value_codes(_KinetoEvent.device_resource_id, host_threads)
    streams: CodeByValue[tuple[int, int]] = CodeByValue()
    if device_work.size:
        streams_of_work = events.read_value_codes(
            lambda e: (e.device_index(), e.device_resource_id()), streams, device_work
        )
        thread[device_work] = streams_of_work + len(host_threads)
    return thread, [*((_DEVICE_INDEX_OF_HOST, thread_id) for thread_id in host_threads), *streams]


def _read_work_launches(events: KinetoEvents, slices: ProfiledSlices) -> WorkLaunches:
    device_work = slices.indices_of_kind("device")
    calls = (
        slices.indices_with_category(names.RUNTIME_CALL_CATEGORIES)
        if device_work.size
        else device_work
    )
    correlation_id = _KinetoEvent.correlation_id
    return WorkLaunches(
        device_work,
        events.read_numbers(correlation_id, np.int64, device_work),
        calls,
        events.read_numbers(correlation_id, np.int64, calls),
    )


def _read_operator_arguments(
    events: KinetoEvents, operators: Ints, columns: OptionalOperatorColumns
) -> OperatorArguments:
    shapes: CodeByValue[str] = CodeByValue()
    overloads: CodeByValue[str] = CodeByValue()
    return OperatorArguments(
        operators,
        (
            events.read_value_codes(lambda event: str(event.shapes()), shapes, operators),
            list(shapes),
        )
        if columns.shapes
        else None,
        (events.read_value_codes(_KinetoEvent.overload_name, overloads, operators), list(overloads))
        if columns.overloads
        else None,
        events.read_numbers(_KinetoEvent.flops, np.int64, operators) if columns.flops else None,
    )
