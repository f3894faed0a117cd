"""Turn an allocator snapshot's values into columns for each device.

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
from selftime.arrays import Ints
from selftime.errors import UnreadableTrace

_LATEST: Final = (1 << 63) // 1000 - 1
"""The latest time in microseconds that fits 63 bits in ns."""
_MOST_ADDRESS: Final = (1 << 64) - 1
_MOST_BYTES: Final = 1 << 60
_MOST_DEVICES: Final = 1 << 10
"""Limits: more memory, and more devices, than any machine has."""
_RESERVES: Final = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
_GAIN: Final = "alloc"
_LOSS: Final = "free_requested"
_LATER_LOSS: Final = "free_completed"
"""Follows `free_requested` when all streams are done; counts as the release only without that."""
_FAILED: Final = "oom"
_ACTIONS: Final = frozenset({*_RESERVES, _GAIN, _LOSS, _LATER_LOSS, _FAILED})
_IN_USE: Final = "active_allocated"
_DEEPEST: Final = 256
"""The most frames of a stack that are kept, innermost first."""
_LONGEST: Final = 400
"""The most characters of a frame that are kept."""


class Block(NamedTuple):
    """A block that is in use at the end of the snapshot; size in bytes."""

    address: int | None
    size: int
    stack: str | None


@dataclass(frozen=True, slots=True)
class Device:
    """One device's records in order; arrays and lists have one entry per record."""

    number: int
    time: Ints
    """Time in ns, never decreasing."""
    is_timed: bool
    """Whether the snapshot has times; if not, records are placed one microsecond apart in order."""
    change: Ints
    """Bytes allocated, negative if released, 0 for records that change only the reserve."""
    reserve: Ints
    """Bytes by which the reserve changes."""
    failed: Ints
    """Bytes of a failed allocation, else 0."""
    address: list[int | None]
    stack: list[str | None]
    blocks: list[Block]
    reserved: int | None
    """Bytes reserved at the end; None if the snapshot has no segments."""
    unread: int
    """The number of entries that could not be read."""
    escaped: int
    """The number of frames whose text is not valid Unicode, and was escaped."""


def devices_of(snapshot: dict[Any, Any], length: int) -> list[Device]:
    """Returns every device of a snapshot; `length` is the length of its pickle in bytes."""
    traces = snapshot.get("device_traces")
    entries = dict(enumerate(traces[:_MOST_DEVICES])) if isinstance(traces, list) else {}
    segments: dict[int, list[dict[Any, Any]]] = {}
    for segment in plain_dicts(snapshot.get("segments")):
        segments.setdefault(_integer(segment.get("device"), _MOST_DEVICES) or 0, []).append(segment)
    lists = [*entries.values(), *(s.get("blocks") for listed in segments.values() for s in listed)]
    if sum(len(entry) for entry in lists if isinstance(entry, list)) > length:
        raise UnreadableTrace("it is a pickle of one list many times over: give a whole snapshot")
    stacks = _Stacks()
    has_segments = "segments" in snapshot
    return [
        _device(n, entries.get(n), segments.get(n, []) if has_segments else None, stacks)
        for n in sorted({*entries, *segments})
        if entries.get(n) or segments.get(n)
    ]


def plain_dicts(values: Any) -> list[dict[Any, Any]]:
    """Returns the dicts in a list; none if it is not a list."""
    return (
        [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []
    )


def nanoseconds(microseconds: Any) -> int | None:
    """Returns a snapshot's time, which is in microseconds, in ns; None if invalid."""
    known = _integer(microseconds, _LATEST)
    return None if known is None else known * 1000


def _device(
    number: int, entries: Any, segments: list[dict[Any, Any]] | None, stacks: "_Stacks"
) -> Device:
    every = plain_dicts(entries)
    acts = [e for e in every if isinstance(e.get("action"), str) and e["action"] in _ACTIONS]
    sized = list(zip(acts, _integers(acts, "size", _MOST_BYTES), strict=True))
    loss = _LOSS if any(entry["action"] == _LOSS for entry in acts) else _LATER_LOSS
    other = _LATER_LOSS if loss == _LOSS else _LOSS
    kept = [(e, size) for e, size in sized if size is not None and e["action"] != other]
    known, action = [e for e, _ in kept], [e["action"] for e, _ in kept]
    size = np.array([size for _, size in kept], np.int64)
    time, is_timed = _times(_integers(known, "time_us", _LATEST))
    sign_of_block = _signed(action, {_GAIN: 1, loss: -1})
    address = _integers(known, "addr", _MOST_ADDRESS)
    unsized = sum(size is None for _, size in sized)
    escaped = stacks.escaped
    return Device(
        number=number,
        time=time,
        is_timed=is_timed,
        change=sign_of_block * size,
        reserve=_signed(action, _RESERVES) * size,
        failed=_signed(action, {_FAILED: 1}) * size,
        address=[at if sign else None for at, sign in zip(address, sign_of_block, strict=True)],
        stack=_stacks(known, action, stacks),
        blocks=[block for segment in segments or [] for block in _blocks(segment, stacks)],
        reserved=None if segments is None else sum(_size(s, "total_size") or 0 for s in segments),
        unread=unsized + len(entries if isinstance(entries, list) else []) - len(every),
        escaped=stacks.escaped - escaped,
    )


def _integers(entries: list[dict[Any, Any]], key: str, most: int) -> list[int | None]:
    """Returns the integers under one key; None where they are missing or out of bounds."""
    values = [entry.get(key) for entry in entries]
    return [v if type(v) is int and 0 <= v <= most else None for v in values]


def _times(told: list[int | None]) -> tuple[Ints, bool]:
    """Returns times from microseconds, in ns, never decreasing; an unknown one repeats the last."""
    first = next((time for time in told if time is not None), None)
    if first is None:
        return np.arange(len(told), dtype=np.int64) * 1000, not told
    known = np.array([first if time is None else time for time in told], np.int64)
    return np.maximum.accumulate(known) * 1000, True


def _signed(actions: list[str], signs: dict[str, int]) -> Ints:
    return np.array([signs.get(action, 0) for action in actions], np.int64)


def _stacks(
    entries: list[dict[Any, Any]], actions: list[str], stacks: "_Stacks"
) -> list[str | None]:
    """Returns the stack of each entry; null for kinds of entry without recorded frames."""
    found = [stacks.text(entry.get("frames")) for entry in entries]
    recorded = {action for action, stack in zip(actions, found, strict=True) if stack}
    return [
        stack if action in recorded else None for action, stack in zip(actions, found, strict=True)
    ]


def _blocks(segment: dict[Any, Any], stacks: "_Stacks") -> Iterable[Block]:
    """Yields the blocks of a segment that are in use; blocks are contiguous."""
    at = _integer(segment.get("address"), _MOST_ADDRESS)
    for block in plain_dicts(segment.get("blocks")):
        size = _size(block)
        address = _integer(block.get("address"), _MOST_ADDRESS)
        address = at if address is None else address
        if block.get("state") == _IN_USE and size is not None:
            last = _last_dict(block.get("history"))  # as PyTorch 2.0 wrote it
            asked = _size(block, "requested_size") or _size(last, "real_size") or size
            frames = block.get("frames") or last.get("frames")
            yield Block(address, asked, stacks.text(frames) or None)
        at = None if at is None or size is None else at + size


def _last_dict(values: Any) -> dict[Any, Any]:
    """Returns the dict at the end of a list; empty if there is none."""
    last = values[-1] if isinstance(values, list) and values else None
    return last if isinstance(last, dict) else {}


def _size(entry: dict[Any, Any], key: str = "size") -> int | None:
    return _integer(entry.get(key), _MOST_BYTES)


def _integer(value: Any, most: int) -> int | None:
    """Returns an integer within 0 and `most`; else None."""
    return value if type(value) is int and 0 <= value <= most else None


class _Stacks:
    """Texts of stacks; equal frames and equal stacks share one text.

    A list that is referenced several times is read once.
    """

    def __init__(self) -> None:
        self.frames: dict[tuple[str, int, str], str] = {}
        self.lists: dict[int, str] = {}
        self.texts: dict[str, str] = {}
        self.escaped = 0

    def text(self, frames: Any) -> str:
        """Returns a stack as text, innermost first, Python frames only; empty if there is none."""
        if not isinstance(frames, list) or not frames:
            return ""
        found = self.lists.get(id(frames))
        if found is None:
            kept = (self._frame(frame) for frame in frames if isinstance(frame, dict))
            text = ";".join(islice(filter(None, kept), _DEEPEST))
            found = self.lists[id(frames)] = self.texts.setdefault(text, text)
        return found

    def _frame(self, frame: dict[Any, Any]) -> str:
        file, line, name = frame.get("filename"), frame.get("line"), frame.get("name")
        if not (isinstance(file, str) and type(line) is int and isinstance(name, str)):
            return ""
        found = self.frames.get((file, line, name))
        if found is None:
            text = names.stack_frame(file[:_LONGEST], line, name[:_LONGEST])[:_LONGEST]
            found = self.frames[file, line, name] = escape_surrogates(text)
            self.escaped += found != text
        return found


def escape_surrogates(text: str) -> str:
    """Returns the text with escapes for lone surrogates, which invalid UTF-8 file names become.

    >>> print(escape_surrogates("caf" + chr(0xDCE9)).isascii())
    True
    """
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
