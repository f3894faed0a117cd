"""Sort a file's slices by start, assign them to tracks, and nest them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from selftime import names
from selftime.arrays import SignedInts
from selftime.ingest.events.assemble import FileColumns
from selftime.ingest.events.columns import Columns
from selftime.ingest.events.event import NO_INT
from selftime.ingest.text.header import FIRST_EPOCH
from selftime.nesting import NONE, ROUNDING_NS, nest
from selftime.schema import TRACK_KINDS

Key = tuple[str, str]

_KIND: Final = {kind: number for number, kind in enumerate(TRACK_KINDS)}
_RANK: Final = {"user_annotation": 0, "cpu_op": 1}
_RANK_OF_OTHERS: Final = 2
_LATEST: Final = 2**63 - 1
_NOT_NESTED: Final = ("device", "device sync")
"""Kinds of track whose slices are not nested, even if their times overlap."""


def home_threads(metadata: Mapping[str, Any]) -> dict[Key, Key]:
    """Returns for each added thread the thread whose events it holds, both as (process, thread)."""
    section = metadata.get("selftime_tracks")
    tracks = section.get("tracks") if isinstance(section, dict) else None
    found: dict[Key, Key] = {}
    for track in tracks if isinstance(tracks, list) else []:
        texts = (
            [track.get(key) for key in ("process", "tid", "of")] if isinstance(track, dict) else []
        )
        match texts:
            case [str(process), str(tid), str(of)]:
                found[process, tid] = process, of
    return found


@dataclass(slots=True)
class OrderedSlices:
    """The slices sorted by start; all arrays have shape (n,), all times are in ns."""

    name: NDArray[np.uint32]
    category: NDArray[np.uint32]
    thread: NDArray[np.uint32]
    kind: NDArray[np.uint8]
    """The kind of the slice's track, as its index in `TRACK_KINDS`."""
    track: NDArray[np.int32]
    start: SignedInts
    end: SignedInts
    known_end: NDArray[np.bool_]
    parent: NDArray[np.int32]
    depth: NDArray[np.int32]
    self_time: SignedInts
    place: NDArray[np.int32]
    """For each slice in the file's order: its index in this order."""
    clipped: tuple[SignedInts, SignedInts, SignedInts]
    """The indices of clipped slices, and their starts and ends as they were written."""
    tracks: list[tuple[int, str]]
    """The thread's number and the kind of each track."""
    origin: int
    """The origin that was subtracted from every time of the file, in ns."""
    categories: dict[str, int]
    """The code of each category."""

    def is_in(self, categories: tuple[str, ...]) -> NDArray[np.bool_]:
        codes = [self.categories[name] for name in categories if name in self.categories]
        return np.isin(self.category, codes)

    def is_kind(self, kind: str) -> NDArray[np.bool_]:
        return np.asarray(self.kind == _KIND[kind])


def order_slices(columns: FileColumns) -> OrderedSlices:
    """Sort the slices of a file, assign tracks, and nest them; the columns are emptied."""
    raw = columns.slices
    _erase_zero_times(columns)
    origin = _to_origin(raw["start"], columns.groups)
    order = np.argsort(raw["start"], kind="stable")
    start, end = raw.pop("start")[order], raw.pop("duration")[order]
    known_end = end != NO_INT
    end[~known_end] = 0
    end += start
    category, thread = raw.pop("category")[order], raw.pop("thread")[order]
    categories, kind = _kinds(columns, category)
    track, tracks = _tracks(thread, kind)
    place = np.empty(order.size, np.int32)
    place[order] = np.arange(order.size, dtype=np.int32)
    name = raw.pop("name")[order]
    del order
    nested = _nest(track, start, end, kind, _ranks(categories, category))
    changed = np.flatnonzero((nested["start"] != start) | (nested["end"] != end))
    return OrderedSlices(
        name,
        category,
        thread,
        kind,
        track,
        nested["start"],
        nested["end"],
        known_end,
        nested["parent"],
        nested["depth"],
        nested["self_time"],
        place,
        (changed, start[changed], end[changed]),
        tracks,
        origin,
        categories,
    )


def _erase_zero_times(columns: FileColumns) -> None:
    """Treat zeros among times since the epoch as missing times."""
    start, duration = columns.slices["start"], columns.slices["duration"]
    zeros = start == 0
    others = start[~zeros & (start != NO_INT)]
    if not zeros.any() or not others.size or others.min() < FIRST_EPOCH:
        return
    start[zeros] = NO_INT
    duration[zeros] = NO_INT
    columns.faults["no time: kept without one, out of totals"] += int(zeros.sum())


def _to_origin(start: SignedInts, groups: dict[str, Columns]) -> int:
    """Subtract the earliest time from all starts, in place; a missing start becomes 0."""
    unknown = start == NO_INT
    start[unknown] = _LATEST
    firsts = [start, *(np.where(g["time"] == NO_INT, _LATEST, g["time"]) for g in _timed(groups))]
    origin = min((int(times.min()) for times in firsts if times.size), default=_LATEST)
    origin = 0 if origin == _LATEST else origin
    start -= origin
    start[unknown] = 0
    return origin


def _timed(groups: dict[str, Columns]) -> list[Columns]:
    return [groups["memory"]] if "memory" in groups else []


def _kinds(
    columns: FileColumns, category: NDArray[np.uint32]
) -> tuple[dict[str, int], NDArray[np.uint8]]:
    codes = np.unique(category)
    texts = columns.text(codes).cast(str).to_list() if codes.size else []
    kind_of = np.full(int(codes.max()) + 1 if codes.size else 0, _KIND["other"], np.uint8)
    for code, text in zip(codes.tolist(), texts, strict=True):
        kind_of[code] = _KIND[names.TRACK_KIND.get(text, "other")]
    return dict(zip(texts, codes.tolist(), strict=True)), kind_of[category]


def _ranks(categories: dict[str, int], category: NDArray[np.uint32]) -> NDArray[np.int8]:
    """Returns the nesting rank of slices with equal times: annotations, operators, calls."""
    ranks = np.full(max(categories.values(), default=-1) + 1, _RANK_OF_OTHERS, np.int8)
    for name, code in categories.items():
        ranks[code] = _RANK.get(name, _RANK_OF_OTHERS)
    return np.asarray(ranks[category])


def _tracks(
    thread: NDArray[np.uint32], kind: NDArray[np.uint8]
) -> tuple[NDArray[np.int32], list[tuple[int, str]]]:
    """Returns each slice's track, one per thread and kind, in order of first appearance."""
    both = thread.astype(np.int64) * len(TRACK_KINDS) + kind
    most = int(both.max(initial=-1)) + 1
    first = np.full(most, both.size, np.int64)
    first[both[::-1]] = np.arange(both.size)[
        ::-1
    ]  # written in reverse, so that the first occurrence remains
    found = np.flatnonzero(first < both.size)
    found = found[np.argsort(first[found])]
    number = np.empty(most, np.int32)
    number[found] = np.arange(found.size)
    tracks = [divmod(key, len(TRACK_KINDS)) for key in found.tolist()]
    return number[both], [(where, TRACK_KINDS[what]) for where, what in tracks]


def _nest(
    track: NDArray[np.int32],
    start: SignedInts,
    end: SignedInts,
    kind: NDArray[np.uint8],
    rank: NDArray[np.int8],
) -> dict[str, Any]:
    """Nest host tracks, clipping rounding errors; device work keeps its times and is not nested."""
    found: dict[str, Any] = {
        "start": start.copy(),
        "end": end.copy(),
        "parent": np.full(track.size, NONE, np.int32),
        "depth": np.zeros(track.size, np.int32),
        "self_time": np.empty(track.size, np.int64),
    }
    beside = np.isin(kind, [_KIND[name] for name in _NOT_NESTED])
    for where, bleed in ((np.flatnonzero(~beside), ROUNDING_NS), (np.flatnonzero(beside), 0)):
        if not where.size:
            continue
        nesting = nest(track[where], start[where], end[where], rank[where], bleed=bleed)
        found["self_time"][where] = nesting.self_time
        if bleed:
            found["start"][where], found["end"][where] = nesting.start, nesting.end
            found["depth"][where] = nesting.depth
            above = nesting.parent
            found["parent"][where] = np.where(above == NONE, NONE, where[above])
    return found
