"""What an allocator's snapshot tells of each device, from plain values to columns.

The values are those of `torch.cuda.memory._snapshot()` (torch/csrc/cuda/memory_snapshot.cpp):
`device_traces` holds each device's last actions, `segments` its memory in the end, block by block.
Nothing is taken for granted: what has another type than it should is unknown.
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
"""The last microsecond that can be told in ns."""
_MOST_ADDRESS: Final = (1 << 64) - 1
_MOST_BYTES: Final = 1 << 60
_MOST_DEVICES: Final = 1 << 10
"""More memory, and more devices, than a machine has."""
_RESERVES: Final = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
_GAIN: Final = "alloc"
_LOSS: Final = "free_requested"
_LATER_LOSS: Final = "free_completed"
"""Follows the request when all streams are done; a release only where no request is recorded."""
_FAILED: Final = "oom"
_ACTIONS: Final = frozenset({*_RESERVES, _GAIN, _LOSS, _LATER_LOSS, _FAILED})
_IN_USE: Final = "active_allocated"
_DEEPEST: Final = 256
"""Frames of a stack that are kept, innermost first."""
_LONGEST: Final = 400
"""Characters of a frame that are kept."""


class Block(NamedTuple):
    """A block in use in the end."""

    address: int | None
    size: int
    stack: str | None


@dataclass(frozen=True, slots=True)
class Device:
    """One device's records in order; arrays and lists hold one entry for each."""

    number: int
    time: Ints
    """In ns, never falling."""
    is_timed: bool
    """Whether the snapshot has times; else the order stands for them, a microsecond apart."""
    change: Ints
    """Bytes allocated, released if negative, 0 for what changes the reserve only."""
    reserve: Ints
    """Bytes by which the reserve changes."""
    failed: Ints
    """Bytes of an allocation that failed, else 0."""
    address: list[int | None]
    stack: list[str | None]
    blocks: list[Block]
    reserved: int | None
    """Bytes reserved in the end; None if the snapshot has no segments."""
    unread: int
    """Entries that are not what they should be."""
    escaped: int
    """Frames whose text is no Unicode, and has escapes in its place."""


def devices_of(snapshot: dict[Any, Any], length: int) -> list[Device]:
    """Every device of a snapshot, of whose pickle the length is known."""
    traces = snapshot.get("device_traces")
    entries = dict(enumerate(traces[:_MOST_DEVICES])) if isinstance(traces, list) else {}
    segments: dict[int, list[dict[Any, Any]]] = {}
    for segment in plain_dicts(snapshot.get("segments")):
        segments.setdefault(_whole(segment.get("device"), _MOST_DEVICES) or 0, []).append(segment)
    lists = [*entries.values(), *(s.get("blocks") for those in segments.values() for s in those)]
    if sum(len(one) for one in lists if isinstance(one, list)) > length:
        raise UnreadableTrace("it is a pickle of one list many times over: give a whole snapshot")
    stacks = _Stacks()
    told = "segments" in snapshot
    return [
        _device(n, entries.get(n), segments.get(n, []) if told else None, stacks)
        for n in sorted({*entries, *segments})
        if entries.get(n) or segments.get(n)
    ]


def plain_dicts(values: Any) -> list[dict[Any, Any]]:
    """The dicts in a list; none if it is no list."""
    return [one for one in values if isinstance(one, dict)] if isinstance(values, list) else []


def nanoseconds(microseconds: Any) -> int | None:
    """A time as the snapshot writes it, in ns."""
    known = _whole(microseconds, _LATEST)
    return None if known is None else known * 1000


def _device(
    number: int, entries: Any, segments: list[dict[Any, Any]] | None, stacks: "_Stacks"
) -> Device:
    every = plain_dicts(entries)
    acts = [e for e in every if isinstance(e.get("action"), str) and e["action"] in _ACTIONS]
    sized = list(zip(acts, _wholes(acts, "size", _MOST_BYTES), strict=True))
    loss = _LOSS if any(entry["action"] == _LOSS for entry in acts) else _LATER_LOSS
    other = _LATER_LOSS if loss == _LOSS else _LOSS
    kept = [(e, size) for e, size in sized if size is not None and e["action"] != other]
    known, action = [e for e, _ in kept], [e["action"] for e, _ in kept]
    size = np.array([size for _, size in kept], np.int64)
    time, is_timed = _times(_wholes(known, "time_us", _LATEST))
    blocky = _signed(action, {_GAIN: 1, loss: -1})
    address = _wholes(known, "addr", _MOST_ADDRESS)
    unsized = sum(size is None for _, size in sized)
    escaped = stacks.escaped
    return Device(
        number=number,
        time=time,
        is_timed=is_timed,
        change=blocky * size,
        reserve=_signed(action, _RESERVES) * size,
        failed=_signed(action, {_FAILED: 1}) * size,
        address=[at if sign else None for at, sign in zip(address, blocky, strict=True)],
        stack=_stacks(known, action, stacks),
        blocks=[block for segment in segments or [] for block in _blocks(segment, stacks)],
        reserved=None if segments is None else sum(_size(s, "total_size") or 0 for s in segments),
        unread=unsized + len(entries if isinstance(entries, list) else []) - len(every),
        escaped=stacks.escaped - escaped,
    )


def _wholes(entries: list[dict[Any, Any]], key: str, most: int) -> list[int | None]:
    """Whole numbers in bounds under one key; None for anything else."""
    values = [entry.get(key) for entry in entries]
    return [v if type(v) is int and 0 <= v <= most else None for v in values]


def _times(told: list[int | None]) -> tuple[Ints, bool]:
    """Times from microseconds, in ns, that never fall; one that is unknown is that before it."""
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
    """The stack of each entry; empty only where others of its kind have frames."""
    found = [stacks.text(entry.get("frames")) for entry in entries]
    recorded = {action for action, stack in zip(actions, found, strict=True) if stack}
    return [
        stack if action in recorded else None for action, stack in zip(actions, found, strict=True)
    ]


def _blocks(segment: dict[Any, Any], stacks: "_Stacks") -> Iterable[Block]:
    """The blocks of a segment that are in use; they lie one behind the other."""
    at = _whole(segment.get("address"), _MOST_ADDRESS)
    for block in plain_dicts(segment.get("blocks")):
        size = _size(block)
        address = _whole(block.get("address"), _MOST_ADDRESS)
        address = at if address is None else address
        if block.get("state") == _IN_USE and size is not None:
            last = _last(block.get("history"))  # as PyTorch 2.0 wrote it
            asked = _size(block, "requested_size") or _size(last, "real_size") or size
            frames = block.get("frames") or last.get("frames")
            yield Block(address, asked, stacks.text(frames) or None)
        at = None if at is None or size is None else at + size


def _last(values: Any) -> dict[Any, Any]:
    """The dict at the end of a list; the list itself may stand in many places."""
    last = values[-1] if isinstance(values, list) and values else None
    return last if isinstance(last, dict) else {}


def _size(entry: dict[Any, Any], key: str = "size") -> int | None:
    return _whole(entry.get(key), _MOST_BYTES)


def _whole(value: Any, most: int) -> int | None:
    """A whole number in bounds, else None."""
    return value if type(value) is int and 0 <= value <= most else None


class _Stacks:
    """Texts of stacks; equal frames and equal stacks are one text, however often they stand there.

    A list that stands in several places is read once.
    """

    def __init__(self) -> None:
        self.frames: dict[tuple[str, int, str], str] = {}
        self.lists: dict[int, str] = {}
        self.texts: dict[str, str] = {}
        self.escaped = 0

    def text(self, frames: Any) -> str:
        """A stack as text, innermost first, without what is not Python; empty if there is none."""
        if not isinstance(frames, list) or not frames:
            return ""
        found = self.lists.get(id(frames))
        if found is None:
            kept = (self._frame(one) for one in frames if isinstance(one, dict))
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
            found = self.frames[file, line, name] = writable(text)
            self.escaped += found != text
        return found


def writable(text: str) -> str:
    """The text with escapes for halves of characters, which file names in no Unicode become.

    >>> print(writable("caf" + chr(0xDCE9)).isascii())
    True
    """
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
