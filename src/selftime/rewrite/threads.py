"""Threads that are added to a trace for slices that cross others of theirs."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec
import numpy as np
import polars as pl

from selftime import names
from selftime.arrays import Flags, Ints
from selftime.rewrite.lanes import lanes
from selftime.trace import Trace

Key = tuple[str, str]

FORMAT: Final = "selftime.tracks/1"
_FIRST: Final = 2_000_000_000
"""Numbers of added threads begin here: no system gives out such, and they fit 32 bits."""
_DIGITS: Final = 20
"""Characters of a number of 64 bits at most."""
_MARKS: Final = pl.Series(names.ANNOTATIONS, dtype=pl.Categorical)
_LABELS: Final = ("thread_name", "thread_sort_index")


class AddedThreads:
    """For each slice that is kept the lane it lies on; a lane beyond the first is a thread."""

    def __init__(self, trace: Trace, kept: Flags, start: Ints, end: Ints) -> None:
        tracks = trace.tracks
        thread = tracks["thread"].gather(trace.slices["track"]).to_numpy().astype(np.int64)
        at = np.flatnonzero(kept)
        self.lane = np.zeros(kept.size, np.int64)
        marks = trace.slices["category"].is_in(_MARKS.implode()).to_numpy()
        self.lane[at] = _fewest(thread[at], start[at], end[at], marks[at])
        pairs = np.unique(np.stack([thread, self.lane], 1)[self.lane > 0], axis=0).tolist()
        self._thread = thread
        self._keys: dict[int, Key] = dict(
            zip(tracks["thread"], zip(tracks["process"], tracks["tid"], strict=True), strict=True)
        )
        taken = {*tracks["tid"]}
        free = (number for number in range(_FIRST, 1 << 32) if str(number) not in taken)
        self._tid: dict[tuple[int, int], int] = {
            (where, lane): number for (where, lane), number in zip(pairs, free, strict=False)
        }
        self._labels: dict[tuple[Key, str], dict[str, Any]] = {}

    def tid(self, number: int) -> int:
        """The thread of a slice whose lane is not the first."""
        return self._tid[int(self._thread[number]), int(self.lane[number])]

    def note(self, key: Key, name: object, event: bytes) -> None:
        """Take notice of an event that labels a thread."""
        if name in _LABELS:
            self._labels[key, str(name)] = msgspec.json.decode(event)

    def labels(self) -> list[bytes]:
        """The events that name the added threads and put them behind those that they belong to."""
        return [msgspec.json.encode(label) for label in self._made()]

    def _made(self) -> Iterator[dict[str, Any]]:
        for (where, lane), tid in self._tid.items():
            key = self._keys[where]
            known = self._labels.get((key, "thread_name"), {})
            name = str(_args(known).get("name") or f"thread {key[1]}").strip()
            common = {"pid": known.get("pid", number_of(key[0])), "tid": tid, "ts": 0}
            first = {"name": "thread_name", "ph": "M", **common}
            yield {**first, "args": {"name": f"{name} ({lane + 1})"}}
            order = self._labels.get((key, "thread_sort_index"))
            if order is not None:
                yield {**first, "name": "thread_sort_index", "args": _args(order)}

    def told(self) -> bytes:
        """Which thread each added one belongs to, as the key `selftime_tracks` holds it."""
        moved = [
            {"process": self._keys[where][0], "tid": str(tid), "of": self._keys[where][1]}
            for (where, _), tid in self._tid.items()
        ]
        return msgspec.json.encode({"format": FORMAT, "tracks": moved})


def _fewest(thread: Ints, start: Ints, end: Ints, marks: Flags) -> Ints:
    """Lanes of which few are added: where annotations cross other slices, they alone move.

    A step's mark begins in one Python frame and ends in another. By the order of begin the frames
    would move, and with them all that is in them.
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


def number_of(process: str) -> int | str:
    """A process or thread as files write it: as a number, if it is one."""
    is_one = process.removeprefix("-").isdecimal() and len(process) <= _DIGITS
    return int(process) if is_one else process
