"""Converts the allocator events in a memory snapshot to arrays for each device.

The values are those of `torch.cuda.memory._snapshot()` (torch/csrc/cuda/memory_snapshot.cpp):
`device_traces` holds each device's last actions, `segments` its memory at the end, block by block.
Nothing is assumed: a value of the wrong type counts as unknown.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np

from selftime import names
from selftime.array_types import Ints
from selftime.errors import UnreadableTrace
from selftime.names.notebook_cells import labels_of_compiled_names

_MAX_TIME_US: Final = (1 << 63) // 1000 - 1
"""Largest time, in microseconds, that fits 63 bits in ns."""
_MAX_MEMORY_ADDRESS: Final = (1 << 64) - 1
_MAX_PLAUSIBLE_MEMORY_BYTES: Final = 1 << 60
_MAX_PLAUSIBLE_DEVICES: Final = 1 << 10
"""Largest plausible number of devices: no machine has more."""
_SIGN_BY_RESERVATION_ACTION: Final = {
    "segment_alloc": 1,
    "segment_map": 1,
    "segment_free": -1,
    "segment_unmap": -1,
}
_BLOCK_ALLOCATION_ACTION: Final = "alloc"
_BLOCK_RELEASE_REQUEST_ACTION: Final = "free_requested"
_BLOCK_RELEASE_COMPLETION_ACTION: Final = "free_completed"
"""The action recorded when all streams are done with a block. It counts as the release only if a
snapshot has no `free_requested`.
"""
_FAILED_ALLOCATION_ACTION: Final = "oom"
_KNOWN_ALLOCATOR_ACTIONS: Final = frozenset(
    {
        *_SIGN_BY_RESERVATION_ACTION,
        _BLOCK_ALLOCATION_ACTION,
        _BLOCK_RELEASE_REQUEST_ACTION,
        _BLOCK_RELEASE_COMPLETION_ACTION,
        _FAILED_ALLOCATION_ACTION,
    }
)
_ALLOCATED_BLOCK_STATE: Final = "active_allocated"
_MAX_KEPT_FRAMES_PER_STACK: Final = 256
"""Largest number of frames of a stack that are kept, innermost first."""
_MAX_KEPT_CHARACTERS_PER_FRAME: Final = 400
"""Largest number of characters of a frame that are kept."""


class MemoryBlock(NamedTuple):
    """A block of device memory that was in use when the snapshot was taken; size in bytes."""

    address: int | None
    size: int
    stack: str | None


@dataclass(frozen=True, slots=True)
class DeviceAllocatorRecords:
    """One device's memory allocations and releases in order of time; one array value for each."""

    number: int
    time: Ints
    """Time of each record in ns; it never decreases."""
    is_timed: bool
    """Whether the snapshot has times. If not, records get times one microsecond apart, in their
    order.
    """
    change: Ints
    """Bytes that each record allocates; negative if it releases them, 0 if only reserved memory
    changes.
    """
    reserve: Ints
    """Bytes by which each record changes the reserved memory."""
    failed: Ints
    """Bytes requested by each failed allocation; 0 for other records."""
    address: list[int | None]
    stack: list[str | None]
    blocks: list[MemoryBlock]
    reserved: int | None
    """Bytes that the allocator has reserved at the end; None if the snapshot has no segments."""
    unread: int
    """The number of entries of the snapshot that could not be read."""
    escaped: int
    """The number of stack frames whose text was escaped because it is not valid Unicode."""


def allocator_records_by_device(
    snapshot: dict[Any, Any], pickle_bytes: int
) -> list[DeviceAllocatorRecords]:
    """Returns the allocations and releases on each device that a memory snapshot contains."""
    traces = snapshot.get("device_traces")
    entries = dict(enumerate(traces[:_MAX_PLAUSIBLE_DEVICES])) if isinstance(traces, list) else {}
    segments: dict[int, list[dict[Any, Any]]] = {}
    for segment in dicts_in_list(snapshot.get("segments")):
        segments.setdefault(
            _integer_or_none(segment.get("device"), _MAX_PLAUSIBLE_DEVICES) or 0, []
        ).append(segment)
    lists = [*entries.values(), *(s.get("blocks") for listed in segments.values() for s in listed)]
    if sum(len(entry) for entry in lists if isinstance(entry, list)) > pickle_bytes:
        raise UnreadableTrace(
            "it is a pickle that repeats one list many times: give a whole snapshot"
        )
    stack_texts = _StackTextCache()
    has_segments = "segments" in snapshot
    return [
        _records_of_device(
            n, entries.get(n), segments.get(n, []) if has_segments else None, stack_texts
        )
        for n in sorted({*entries, *segments})
        if entries.get(n) or segments.get(n)
    ]


def dicts_in_list(values: Any) -> list[dict[Any, Any]]:
    """Returns the dicts among the items of a list; an empty list if the value is not a list."""
    return (
        [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []
    )


def snapshot_time_ns(microseconds: Any) -> int | None:
    """Converts a time in a snapshot from microseconds to ns; None if it is invalid."""
    known = _integer_or_none(microseconds, _MAX_TIME_US)
    return None if known is None else known * 1000


def _records_of_device(
    number: int, entries: Any, segments: list[dict[Any, Any]] | None, stack_texts: "_StackTextCache"
) -> DeviceAllocatorRecords:
    every = dicts_in_list(entries)
    acts = [
        e
        for e in every
        if isinstance(e.get("action"), str) and e["action"] in _KNOWN_ALLOCATOR_ACTIONS
    ]
    sized = list(
        zip(acts, _integer_of_each_entry(acts, "size", _MAX_PLAUSIBLE_MEMORY_BYTES), strict=True)
    )
    loss = (
        _BLOCK_RELEASE_REQUEST_ACTION
        if any(entry["action"] == _BLOCK_RELEASE_REQUEST_ACTION for entry in acts)
        else _BLOCK_RELEASE_COMPLETION_ACTION
    )
    other = (
        _BLOCK_RELEASE_COMPLETION_ACTION
        if loss == _BLOCK_RELEASE_REQUEST_ACTION
        else _BLOCK_RELEASE_REQUEST_ACTION
    )
    kept = [(e, size) for e, size in sized if size is not None and e["action"] != other]
    known, action = [e for e, _ in kept], [e["action"] for e, _ in kept]
    size = np.array([size for _, size in kept], np.int64)
    time, is_timed = _nondecreasing_times_ns(_integer_of_each_entry(known, "time_us", _MAX_TIME_US))
    sign_of_block = _signs_of_actions(action, {_BLOCK_ALLOCATION_ACTION: 1, loss: -1})
    address = _integer_of_each_entry(known, "addr", _MAX_MEMORY_ADDRESS)
    unsized = sum(size is None for _, size in sized)
    escaped = stack_texts.escaped
    return DeviceAllocatorRecords(
        number=number,
        time=time,
        is_timed=is_timed,
        change=sign_of_block * size,
        reserve=_signs_of_actions(action, _SIGN_BY_RESERVATION_ACTION) * size,
        failed=_signs_of_actions(action, {_FAILED_ALLOCATION_ACTION: 1}) * size,
        address=[at if sign else None for at, sign in zip(address, sign_of_block, strict=True)],
        stack=_stack_texts_of_entries(known, action, stack_texts),
        blocks=[
            block for segment in segments or [] for block in _blocks_in_use(segment, stack_texts)
        ],
        reserved=None
        if segments is None
        else sum(_bytes_of_key(s, "total_size") or 0 for s in segments),
        unread=unsized + len(entries if isinstance(entries, list) else []) - len(every),
        escaped=stack_texts.escaped - escaped,
    )


def _integer_of_each_entry(
    entries: list[dict[Any, Any]], key: str, maximum: int
) -> list[int | None]:
    """Returns each entry's integer at `key`, or None where it is absent or not in 0..`maximum`."""
    values = [entry.get(key) for entry in entries]
    return [v if type(v) is int and 0 <= v <= maximum else None for v in values]


def _nondecreasing_times_ns(microseconds: list[int | None]) -> tuple[Ints, bool]:
    """Converts times from microseconds to non-decreasing ns, and returns whether any was known."""
    first = next((time for time in microseconds if time is not None), None)
    if first is None:
        return np.arange(len(microseconds), dtype=np.int64) * 1000, not microseconds
    known = np.array([first if time is None else time for time in microseconds], np.int64)
    return np.maximum.accumulate(known) * 1000, True


def _signs_of_actions(actions: list[str], signs: dict[str, int]) -> Ints:
    return np.array([signs.get(action, 0) for action in actions], np.int64)


def _stack_texts_of_entries(
    entries: list[dict[Any, Any]], actions: list[str], stack_texts: "_StackTextCache"
) -> list[str | None]:
    """Returns each entry's call stack as text; None for actions that never have a stack."""
    found = [stack_texts.stack_text(entry.get("frames")) for entry in entries]
    recorded = {action for action, stack in zip(actions, found, strict=True) if stack}
    return [
        stack if action in recorded else None for action, stack in zip(actions, found, strict=True)
    ]


def _blocks_in_use(
    segment: dict[Any, Any], stack_texts: "_StackTextCache"
) -> Iterable[MemoryBlock]:
    """Yields the allocated blocks of a memory segment."""
    at = _integer_or_none(segment.get("address"), _MAX_MEMORY_ADDRESS)
    for block in dicts_in_list(segment.get("blocks")):
        size = _bytes_of_key(block)
        address = _integer_or_none(block.get("address"), _MAX_MEMORY_ADDRESS)
        address = at if address is None else address
        if block.get("state") == _ALLOCATED_BLOCK_STATE and size is not None:
            last = _last_dict_or_empty(block.get("history"))  # as PyTorch 2.0 wrote it
            asked = (
                _bytes_of_key(block, "requested_size") or _bytes_of_key(last, "real_size") or size
            )
            frames = block.get("frames") or last.get("frames")
            yield MemoryBlock(address, asked, stack_texts.stack_text(frames) or None)
        at = None if at is None or size is None else at + size


def _last_dict_or_empty(values: Any) -> dict[Any, Any]:
    """Returns the last item of a list if it is a dict; else an empty dict."""
    last = values[-1] if isinstance(values, list) and values else None
    return last if isinstance(last, dict) else {}


def _bytes_of_key(entry: dict[Any, Any], key: str = "size") -> int | None:
    return _integer_or_none(entry.get(key), _MAX_PLAUSIBLE_MEMORY_BYTES)


def _integer_or_none(value: Any, maximum: int) -> int | None:
    """Returns the value if it is an integer from 0 to `maximum`; else None."""
    return value if type(value) is int and 0 <= value <= maximum else None


class _StackTextCache:
    """Converts call stacks to texts; equal frames and equal stacks share one text.

    A list that is referenced several times is read once.
    """

    def __init__(self) -> None:
        self.frames: dict[tuple[str, int, str], str] = {}
        self.lists: dict[int, str] = {}
        self.texts: dict[str, str] = {}
        self.escaped = 0

    def stack_text(self, frames: Any) -> str:
        """Returns a call stack's Python frames as text, innermost first; empty without frames."""
        if not isinstance(frames, list) or not frames:
            return ""
        found = self.lists.get(id(frames))
        if found is None:
            kept = (self._frame_text(frame) for frame in frames if isinstance(frame, dict))
            text = ";".join(islice(filter(None, kept), _MAX_KEPT_FRAMES_PER_STACK))
            found = self.lists[id(frames)] = self.texts.setdefault(text, text)
        return found

    def _frame_text(self, frame: dict[Any, Any]) -> str:
        file, line, name = frame.get("filename"), frame.get("line"), frame.get("name")
        if not (isinstance(file, str) and type(line) is int and isinstance(name, str)):
            return ""
        found = self.frames.get((file, line, name))
        if found is None:
            file = labels_of_compiled_names([file]).get(file, file)
            text = names.profiler_stack_frame(
                file[:_MAX_KEPT_CHARACTERS_PER_FRAME], line, name[:_MAX_KEPT_CHARACTERS_PER_FRAME]
            )[:_MAX_KEPT_CHARACTERS_PER_FRAME]
            found = self.frames[file, line, name] = escape_surrogates(text)
            self.escaped += found != text
        return found


def escape_surrogates(text: str) -> str:
    """Escapes lone surrogates in a text, which result from file names that are not valid UTF-8.

    >>> print(escape_surrogates("caf" + chr(0xDCE9)).isascii())
    True
    """
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
