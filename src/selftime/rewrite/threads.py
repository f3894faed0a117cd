"""Add threads to a trace for slices that cross other slices of their thread."""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
import polars as pl

from selftime import names
from selftime.arrays import Flags, Ints
from selftime.nesting import crosses_nothing
from selftime.trace import Trace

Stack: TypeAlias = "list[tuple[int, int]]"
"""The open slices of a lane: each slice's index by start, and its end in ns."""

_FEW: Final = 32
"""Up to this many lanes are searched linearly; for more, a tree is faster, at a bounded cost."""
_NOTHING: Final = -(1 << 63)


Key = tuple[str, str]
FORMAT: Final = "selftime.tracks/1"
_FIRST: Final = 2_000_000_000
"""The first number of added threads: no system uses numbers this high, and they fit 32 bits."""
_DIGITS: Final = 20
"""The most characters of a 64-bit number."""
_MARKS: Final = pl.Series(names.ANNOTATIONS, dtype=pl.Categorical)
_LABELS: Final = ("thread_name", "thread_sort_index")


def lanes(thread: Ints, start: Ints, end: Ints) -> Ints:
    """Returns the lane of each slice, counted from 0 on its thread.

    The cost grows as n log n, however many slices cross each other.

    Args:
        thread: The thread of each slice, shape (n,).
        start: Start of each slice in ns, shape (n,).
        end: End of each slice in ns, not before its start, shape (n,).

    >>> at = [np.array(column) for column in ([7, 7, 7, 7], [0, 5, 6, 15], [10, 15, 12, 20])]
    >>> lanes(*at)
    array([0, 1, 1, 0])
    """
    found = np.zeros(thread.size, np.int64)
    order = np.lexsort((-end, start, thread))
    borders = np.flatnonzero(np.diff(thread[order])) + 1
    for thread_slices in np.split(order, borders):
        begun, done = start[thread_slices], end[thread_slices]
        piece = _pieces(begun, done)
        heads = np.flatnonzero(piece == np.arange(piece.size))
        lane = np.array(_lanes_of_thread(begun[heads].tolist(), done[heads].tolist()), np.int64)
        found[thread_slices] = lane[np.searchsorted(heads, piece)]
    return found


def _pieces(start: Ints, end: Ints) -> Ints:
    """Returns the first slice of the group of each: slices that nest properly stay together.

    Slices are sorted by start, longest first. A slice that crosses nothing forms a group with its
    contents if none of them is crossed either; any other slice is a group by itself.
    """
    every = np.arange(start.size)
    sound = crosses_nothing(start, end)
    before = np.append(0, np.cumsum(~sound))
    last = np.maximum(np.searchsorted(start, end, "left"), every + 1)
    whole = sound & (before[last] == before[:-1])
    upto = np.maximum.accumulate(np.where(whole, end, _NOTHING))
    inside = np.append(False, start[1:] < upto[:-1])[: start.size]
    return np.asarray(np.maximum.accumulate(np.where(inside, 0, every)))


def _lanes_of_thread(starts: list[int], ends: list[int]) -> list[int]:
    """Returns the lanes of one thread's slices, which are sorted by start, longest first."""
    found: list[int] = []
    stacks: list[Stack] = []
    tops: _Tops | None = None
    for place, (begin, done) in enumerate(zip(starts, ends, strict=True)):
        if tops is None and len(stacks) > _FEW:
            tops = _Tops(stacks, len(starts))
        lane = _best(stacks, begin, done) if tops is None else tops.best(begin, done)
        if lane == len(stacks):
            stacks.append([])
        stacks[lane].append((place, done))
        found.append(lane)
        if tops is not None:
            tops.lay(lane)
    return found


def _best(stacks: list[Stack], begin: int, done: int) -> int:
    """Returns the lane for the next slice among few; ended slices are removed from all lanes."""
    best, latest, free = -1, -1, -1
    for lane, stack in enumerate(stacks):
        while stack and stack[-1][1] <= begin:
            stack.pop()
        if not stack:
            free = lane if free < 0 else free
        elif done <= stack[-1][1] and stack[-1][0] > latest:
            best, latest = lane, stack[-1][0]
    best = free if best < 0 else best
    return len(stacks) if best < 0 else best


class _Tops:
    """The top slices of the lanes, searched for the latest begun one that ends late enough.

    They are the leaves of a tree, ordered by start; each node has the latest end below it.
    """

    def __init__(self, stacks: list[Stack], count: int) -> None:
        self._stacks = stacks
        self._width = 1 << count.bit_length()
        self._last = [_NOTHING] * (2 * self._width)
        self._lane: dict[int, int] = {}
        self._free = [lane for lane, stack in enumerate(stacks) if not stack]
        self._ends = [(end, lane) for lane, stack in enumerate(stacks) for _, end in stack]
        heapify(self._ends)
        for lane, stack in enumerate(stacks):
            if stack:
                self._show(lane)

    def best(self, begin: int, done: int) -> int:
        """Returns the lane for the next slice; ended slices are removed from the lanes."""
        while self._ends and self._ends[0][0] <= begin:
            self._take_off(heappop(self._ends)[1], begin)
        found = self._latest(done)
        if found >= 0:
            return self._lane[found]
        return heappop(self._free) if self._free else len(self._stacks)

    def lay(self, lane: int) -> None:
        """Note that a slice was put on top of a lane."""
        stack = self._stacks[lane]
        if len(stack) > 1:
            self._set(stack[-2][0], _NOTHING)
        heappush(self._ends, (stack[-1][1], lane))
        self._show(lane)

    def _take_off(self, lane: int, begin: int) -> None:
        stack = self._stacks[lane]
        if not stack or stack[-1][1] > begin:
            return
        while stack and stack[-1][1] <= begin:
            place, _ = stack.pop()
            self._set(place, _NOTHING)
        if stack:
            self._show(lane)
        else:
            heappush(self._free, lane)

    def _show(self, lane: int) -> None:
        place, end = self._stacks[lane][-1]
        self._lane[place] = lane
        self._set(place, end)

    def _set(self, place: int, end: int) -> None:
        last, node = self._last, place + self._width
        last[node] = end
        while node > 1:
            node >>= 1
            last[node] = max(last[2 * node], last[2 * node + 1])

    def _latest(self, done: int) -> int:
        """Returns the latest begun slice that ends at or after `done`; negative if none."""
        last, node = self._last, 1
        if last[1] < done:
            return -1
        while node < self._width:
            node = 2 * node + (last[2 * node + 1] >= done)
        return node - self._width


class AddedThreads:
    """The lane of each kept slice; every lane beyond the first is an added thread."""

    def __init__(self, trace: Trace, kept: Flags, start: Ints, end: Ints) -> None:
        tracks = trace.tracks
        thread = tracks["thread"].gather(trace.slices["track"]).to_numpy().astype(np.int64)
        at = np.flatnonzero(kept)
        self.lane = np.zeros(kept.size, np.int64)
        marks = trace.slices["category"].is_in(_MARKS.implode()).to_numpy()
        self.lane[at] = _fewest_moves(thread[at], start[at], end[at], marks[at])
        pairs = np.unique(np.stack([thread, self.lane], 1)[self.lane > 0], axis=0).tolist()
        self._thread = thread
        self._keys: dict[int, Key] = dict(
            zip(tracks["thread"], zip(tracks["process"], tracks["tid"], strict=True), strict=True)
        )
        used_ids = {*tracks["tid"]}
        free = (number for number in range(_FIRST, 1 << 32) if str(number) not in used_ids)
        self._tid: dict[tuple[int, int], int] = {
            (where, lane): number for (where, lane), number in zip(pairs, free, strict=False)
        }
        self._labels: dict[tuple[Key, str], dict[str, Any]] = {}

    def tid(self, number: int) -> int:
        """Returns the thread number of a slice whose lane is not the first."""
        return self._tid[int(self._thread[number]), int(self.lane[number])]

    def note(self, key: Key, name: object, event: bytes) -> None:
        """Remember an event that labels a thread."""
        if name in _LABELS:
            self._labels[key, str(name)] = msgspec.json.decode(event)

    def labels(self) -> list[bytes]:
        """Returns the events that name the added threads, and sort them after theirs."""
        return [msgspec.json.encode(label) for label in self._made()]

    def _made(self) -> Iterator[dict[str, Any]]:
        for (where, lane), tid in self._tid.items():
            key = self._keys[where]
            known = self._labels.get((key, "thread_name"), {})
            name = str(_args(known).get("name") or f"thread {key[1]}").strip()
            common = {"pid": known.get("pid", as_number(key[0])), "tid": tid, "ts": 0}
            first = {"name": "thread_name", "ph": "M", **common}
            yield {**first, "args": {"name": f"{name} ({lane + 1})"}}
            order = self._labels.get((key, "thread_sort_index"))
            if order is not None:
                yield {**first, "name": "thread_sort_index", "args": _args(order)}

    def tracks_json(self) -> bytes:
        """Returns the JSON of `selftime_tracks`: each added thread's original one."""
        moved = [
            {"process": self._keys[where][0], "tid": str(tid), "of": self._keys[where][1]}
            for (where, _), tid in self._tid.items()
        ]
        return msgspec.json.encode({"format": FORMAT, "tracks": moved})


def _fewest_moves(thread: Ints, start: Ints, end: Ints, marks: Flags) -> Ints:
    """Returns lanes with few moved slices: annotations move where they cross other slices.

    A step's annotation begins in one Python frame and ends in another. Sorted by start, the frames
    would move instead, with all slices inside them.
    """
    found = lanes(thread, start, end)
    crossing = np.unique(thread[found > 0])
    for where in crossing[np.isin(crossing, thread[marks])].tolist():
        own, others = (np.flatnonzero((thread == where) & which) for which in (marks, ~marks))
        first = lanes(thread[others], start[others], end[others])
        second = lanes(thread[own], start[own], end[own]) + first.max(initial=-1) + 1
        if np.count_nonzero(first) + own.size < np.count_nonzero(found[thread == where]):
            found[others], found[own] = first, second
    return found


def _args(event: dict[str, Any]) -> dict[str, Any]:
    found = event.get("args")
    return found if isinstance(found, dict) else {}


def as_number(process: str) -> int | str:
    """Returns a process or thread id as files write it: as an integer if it is one."""
    is_one = process.removeprefix("-").isdecimal() and len(process) <= _DIGITS
    return int(process) if is_one else process
