"""Moves slices that partly overlap other slices of their thread to threads added to the trace."""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
import polars as pl

from selftime import names
from selftime.array_types import Flags, Ints
from selftime.nesting import crosses_no_slice
from selftime.trace import Trace

OpenSliceStack: TypeAlias = "list[tuple[int, int]]"
"""Stack of the nested slices of a lane (a row of a thread) that have not ended yet: for each slice,
its index in order of start and its end in ns."""

_MAX_LANES_SEARCHED_ONE_BY_ONE: Final = 32
"""Number of lanes (rows of a thread) up to which a row for a slice is found by trying each; with
more rows, a search tree finds it."""
_END_IF_NO_SLICE_IS_OPEN_NS: Final = -(1 << 63)


ThreadKey = tuple[str, str]
ADDED_TRACKS_FORMAT: Final = "selftime.tracks/1"
_FIRST_ADDED_THREAD_NUMBER: Final = 2_000_000_000
"""Smallest id of an added thread: higher than the ids that systems use, and below 2**32."""
_MAX_INTEGER_CHARACTERS: Final = 20
"""Largest number of characters of a text that is read as a 64-bit integer."""
_ANNOTATION_CATEGORIES: Final = pl.Series(names.ANNOTATION_CATEGORIES, dtype=pl.Categorical)
_THREAD_LABEL_EVENT_NAMES: Final = ("thread_name", "thread_sort_index")


def assign_crossing_free_lanes(thread: Ints, start: Ints, end: Ints) -> Ints:
    """Splits threads into rows (lanes) in which no slices partly overlap; returns each slice's row.

    The cost grows as n log n, however many slices cross each other.

    Args:
        thread: The thread of each slice, shape (n,).
        start: Start of each slice in ns, shape (n,).
        end: End of each slice in ns, not before its start, shape (n,).

    >>> at = [np.array(column) for column in ([7, 7, 7, 7], [0, 5, 6, 15], [10, 15, 12, 20])]
    >>> assign_crossing_free_lanes(*at)
    array([0, 1, 1, 0])
    """
    found = np.zeros(thread.size, np.int64)
    order = np.lexsort((-end, start, thread))
    borders = np.flatnonzero(np.diff(thread[order])) + 1
    for thread_slices in np.split(order, borders):
        begun, done = start[thread_slices], end[thread_slices]
        piece = _first_slice_of_each_nesting_group(begun, done)
        heads = np.flatnonzero(piece == np.arange(piece.size))
        lane = np.array(_lanes_of_thread(begun[heads].tolist(), done[heads].tolist()), np.int64)
        found[thread_slices] = lane[np.searchsorted(heads, piece)]
    return found


def _first_slice_of_each_nesting_group(start: Ints, end: Ints) -> Ints:
    """Returns for each slice the index of the first slice in its group of nested slices.

    Slices are sorted by start, longest first. A slice that crosses nothing forms a group with its
    contents if none of them is crossed either; any other slice is a group by itself.
    """
    every = np.arange(start.size)
    sound = crosses_no_slice(start, end)
    before = np.append(0, np.cumsum(~sound))
    last = np.maximum(np.searchsorted(start, end, "left"), every + 1)
    whole = sound & (before[last] == before[:-1])
    upto = np.maximum.accumulate(np.where(whole, end, _END_IF_NO_SLICE_IS_OPEN_NS))
    inside = np.append(False, start[1:] < upto[:-1])[: start.size]
    return np.asarray(np.maximum.accumulate(np.where(inside, 0, every)))


def _lanes_of_thread(starts: list[int], ends: list[int]) -> list[int]:
    """Returns each slice's row (lane) in a thread; slices are sorted by start, longest first."""
    found: list[int] = []
    stacks: list[OpenSliceStack] = []
    tops: _InnermostSliceTree | None = None
    for place, (begin, done) in enumerate(zip(starts, ends, strict=True)):
        if tops is None and len(stacks) > _MAX_LANES_SEARCHED_ONE_BY_ONE:
            tops = _InnermostSliceTree(stacks, len(starts))
        lane = (
            _choose_lane_by_linear_search(stacks, begin, done)
            if tops is None
            else tops.best_lane(begin, done)
        )
        if lane == len(stacks):
            stacks.append([])
        stacks[lane].append((place, done))
        found.append(lane)
        if tops is not None:
            tops.note_slice_added(lane)
    return found


def _choose_lane_by_linear_search(
    stacks: list[OpenSliceStack], slice_start: int, slice_end: int
) -> int:
    """Returns the row (lane) in which a slice fits, by trying each; drops slices that ended."""
    best, latest, free = -1, -1, -1
    for lane, stack in enumerate(stacks):
        while stack and stack[-1][1] <= slice_start:
            stack.pop()
        if not stack:
            free = lane if free < 0 else free
        elif slice_end <= stack[-1][1] and stack[-1][0] > latest:
            best, latest = lane, stack[-1][0]
    best = free if best < 0 else best
    return len(stacks) if best < 0 else best


class _InnermostSliceTree:
    """A search tree over the innermost open slice of each row (lane), to find a row for a slice.

    The slices are the leaves of the tree, ordered by start; each node has the latest end below it.
    """

    def __init__(self, stacks: list[OpenSliceStack], count: int) -> None:
        self._stacks = stacks
        self._width = 1 << count.bit_length()
        self._last = [_END_IF_NO_SLICE_IS_OPEN_NS] * (2 * self._width)
        self._lane: dict[int, int] = {}
        self._free = [lane for lane, stack in enumerate(stacks) if not stack]
        self._ends = [(end, lane) for lane, stack in enumerate(stacks) for _, end in stack]
        heapify(self._ends)
        for lane, stack in enumerate(stacks):
            if stack:
                self._store_innermost_slice(lane)

    def best_lane(self, slice_start: int, slice_end: int) -> int:
        """Returns the row (lane) in which a slice fits; drops slices that ended before it began."""
        while self._ends and self._ends[0][0] <= slice_start:
            self._remove_ended_slices(heappop(self._ends)[1], slice_start)
        found = self._latest_slice_ending_late_enough(slice_end)
        if found >= 0:
            return self._lane[found]
        return heappop(self._free) if self._free else len(self._stacks)

    def note_slice_added(self, lane: int) -> None:
        """Updates the search tree after a slice was put in the row `lane` of its thread."""
        stack = self._stacks[lane]
        if len(stack) > 1:
            self._set_slice_end(stack[-2][0], _END_IF_NO_SLICE_IS_OPEN_NS)
        heappush(self._ends, (stack[-1][1], lane))
        self._store_innermost_slice(lane)

    def _remove_ended_slices(self, lane: int, time_ns: int) -> None:
        stack = self._stacks[lane]
        if not stack or stack[-1][1] > time_ns:
            return
        while stack and stack[-1][1] <= time_ns:
            place, _ = stack.pop()
            self._set_slice_end(place, _END_IF_NO_SLICE_IS_OPEN_NS)
        if stack:
            self._store_innermost_slice(lane)
        else:
            heappush(self._free, lane)

    def _store_innermost_slice(self, lane: int) -> None:
        place, end = self._stacks[lane][-1]
        self._lane[place] = lane
        self._set_slice_end(place, end)

    def _set_slice_end(self, slice_index: int, end_ns: int) -> None:
        last, node = self._last, slice_index + self._width
        last[node] = end_ns
        while node > 1:
            node >>= 1
            last[node] = max(last[2 * node], last[2 * node + 1])

    def _latest_slice_ending_late_enough(self, min_end: int) -> int:
        """Returns the index of the last-begun slice that ends at `min_end` or later; -1 if none."""
        last, node = self._last, 1
        if last[1] < min_end:
            return -1
        while node < self._width:
            node = 2 * node + (last[2 * node + 1] >= min_end)
        return node - self._width


class AddedThreads:
    """Threads added to a trace for slices that partly overlap other slices of their own thread.

    In JSON (`for_json`) others move, too, since Perfetto would show them in the wrong place or drop
    others: slices without length where a longer one begins at the same time, which it takes for its
    caller; slices without an end, in which it puts all that follow; and all slices of threads whose
    id it takes for another thread's.
    """

    def __init__(
        self,
        trace: Trace,
        is_kept: Flags,
        starts: Ints,
        ends: Ints,
        *,
        for_json: bool = False,
    ) -> None:
        tracks = trace.tracks
        thread = tracks["thread"].gather(trace.slices["track"]).to_numpy().astype(np.int64)
        at = np.flatnonzero(is_kept)
        self.lane = np.zeros(is_kept.size, np.int64)
        marks = trace.slices["category"].is_in(_ANNOTATION_CATEGORIES.implode()).to_numpy()
        self.lane[at] = _assign_lanes_with_few_moves(thread[at], starts[at], ends[at], marks[at])
        self._renamed = _threads_with_other_ids(tracks) if for_json else frozenset[int]()
        if for_json:
            _move_empty_slices(self.lane, at, thread[at], starts[at], ends[at])
            endless = at[trace.slices["duration"].is_null().to_numpy()[at]]
            _move_to_new_lane(self.lane, thread, endless)
            self.lane[np.isin(thread, list(self._renamed))] += 1
        pairs = np.unique(np.stack([thread, self.lane], 1)[self.lane > 0], axis=0).tolist()
        self._thread = thread
        self._keys: dict[int, ThreadKey] = dict(
            zip(tracks["thread"], zip(tracks["process"], tracks["tid"], strict=True), strict=True)
        )
        used_ids = {*tracks["tid"]}
        free = (
            number
            for number in range(_FIRST_ADDED_THREAD_NUMBER, 1 << 32)
            if str(number) not in used_ids
        )
        self._tid: dict[tuple[int, int], int] = {
            (where, lane): number for (where, lane), number in zip(pairs, free, strict=False)
        }
        self._labels: dict[tuple[ThreadKey, str], dict[str, Any]] = {}

    def added_thread_number(self, slice_index: int) -> int:
        """Returns the thread id of the added thread that the slice was moved to."""
        return self._tid[int(self._thread[slice_index]), int(self.lane[slice_index])]

    def added_thread_by_start(
        self, is_kept: Flags, starts: Ints
    ) -> dict[tuple[ThreadKey, int], int]:
        """Maps the (thread, start) of moved slices to their added thread, for events at that time.

        Where a slice that was not moved begins at the same time, the events are taken for its own.
        """
        kept = np.flatnonzero(is_kept)
        where = list(zip(self._thread[kept].tolist(), starts[kept].tolist(), strict=True))
        lanes = self.lane[kept].tolist()
        unmoved = {place for place, lane in zip(where, lanes, strict=True) if not lane}
        return {
            (self._keys[thread], start): self._tid[thread, lane]
            for (thread, start), lane in zip(where, lanes, strict=True)
            if lane and (thread, start) not in unmoved
        }

    def note_thread_label(
        self, thread_key: ThreadKey, event_name: object, event_json: bytes
    ) -> None:
        """Stores an event with a thread's name or sort order, to label the threads added for it."""
        if event_name in _THREAD_LABEL_EVENT_NAMES:
            self._labels[thread_key, str(event_name)] = msgspec.json.decode(event_json)

    def thread_label_events(self) -> list[bytes]:
        """Returns JSON events that give each added thread its name and sort order."""
        return [msgspec.json.encode(label) for label in self._thread_label_values()]

    def _thread_label_values(self) -> Iterator[dict[str, Any]]:
        for (where, lane), tid in self._tid.items():
            key = self._keys[where]
            known = self._labels.get((key, "thread_name"), {})
            name = str(_event_arguments_or_empty(known).get("name") or f"thread {key[1]}").strip()
            common = {"pid": known.get("pid", number_if_integer(key[0])), "tid": tid, "ts": 0}
            first = {"name": "thread_name", "ph": "M", **common}
            number = lane if where in self._renamed else lane + 1
            yield {**first, "args": {"name": name if number == 1 else f"{name} ({number})"}}
            order = self._labels.get((key, "thread_sort_index"))
            if order is not None:
                yield {
                    **first,
                    "name": "thread_sort_index",
                    "args": _event_arguments_or_empty(order),
                }

    def added_tracks_json(self) -> bytes:
        """Returns JSON for the key `selftime_tracks`: each added thread's original thread."""
        moved = [
            {"process": self._keys[where][0], "tid": str(tid), "of": self._keys[where][1]}
            for (where, _), tid in self._tid.items()
        ]
        return msgspec.json.encode({"format": ADDED_TRACKS_FORMAT, "tracks": moved})


def _assign_lanes_with_few_moves(
    thread: Ints, start: Ints, end: Ints, is_annotation: Flags
) -> Ints:
    """Returns each slice's row (lane) in its thread; keeps most slices, best operators, in row 0.

    A step's annotation begins in one Python frame and ends in another. Sorted by start, the frames
    would move instead, with all slices inside them.
    """
    found = assign_crossing_free_lanes(thread, start, end)
    crossing = np.unique(thread[found > 0])
    for where in crossing[np.isin(crossing, thread[is_annotation])].tolist():
        own, others = (
            np.flatnonzero((thread == where) & which) for which in (is_annotation, ~is_annotation)
        )
        first = assign_crossing_free_lanes(thread[others], start[others], end[others])
        second = (
            assign_crossing_free_lanes(thread[own], start[own], end[own])
            + first.max(initial=-1)
            + 1
        )
        if np.count_nonzero(first) + own.size < np.count_nonzero(found[thread == where]):
            found[others], found[own] = first, second
    return found


def _move_empty_slices(lane: Ints, at: Ints, thread: Ints, start: Ints, end: Ints) -> None:
    """Moves empty slices before a longer one of their row and time to a new row, in place.

    `lane` is of each slice of the trace; `thread`, `start`, `end` are of the slices `at` alone.
    """
    order = np.lexsort((np.arange(at.size), start, lane[at], thread))
    key = np.stack([thread[order], lane[at][order], start[order]])
    is_first = np.append(True, (key[:, 1:] != key[:, :-1]).any(axis=0))[: order.size]
    group = np.cumsum(is_first) - 1
    is_long = (end > start)[order]
    places = np.arange(order.size)
    last_long = np.full(group[-1] + 1 if group.size else 0, -1)
    np.maximum.at(last_long, group[is_long], places[is_long])
    all_threads = np.zeros(lane.size, np.int64)
    all_threads[at] = thread
    _move_to_new_lane(lane, all_threads, at[order[~is_long & (places < last_long[group])]])


def _move_to_new_lane(lane: Ints, thread: Ints, chosen: Ints) -> None:
    """Moves the chosen slices of each thread to a new row of it, in place."""
    for where in np.unique(thread[chosen]).tolist():
        last = int(lane[thread == where].max())
        lane[chosen[thread[chosen] == where]] = last + 1


def _threads_with_other_ids(tracks: pl.DataFrame) -> frozenset[int]:
    """Returns the threads with an integer for an id that Perfetto takes for another thread's.

    It holds ids in 32 bits, and takes the thread 0 of a process for its main thread.
    """
    main_threads = {*tracks.filter(pl.col("process") == pl.col("tid"))["process"]}
    found = set[int]()
    for thread, process, text in tracks.select("thread", "process", "tid").iter_rows():
        tid = number_if_integer(text)
        is_zero_beside_main = tid == 0 and process != "0" and process in main_threads
        if isinstance(tid, int) and (not 0 <= tid < 1 << 32 or is_zero_beside_main):
            found.add(thread)
    return frozenset(found)


def _event_arguments_or_empty(event: dict[str, Any]) -> dict[str, Any]:
    found = event.get("args")
    return found if isinstance(found, dict) else {}


def number_if_integer(id_text: str) -> int | str:
    """Returns a process or thread id as an integer if it is one, else as text."""
    is_one = id_text.removeprefix("-").isdecimal() and len(id_text) <= _MAX_INTEGER_CHARACTERS
    return int(id_text) if is_one else id_text
