"""Put a file's slices in order, on tracks, and within each other."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from selftime import names
from selftime.ingest.events.assemble import FileColumns
from selftime.ingest.events.columns import Columns
from selftime.ingest.events.event import NO_INT
from selftime.ingest.text.header import FIRST_EPOCH
from selftime.nesting import BLEED, NONE, nest
from selftime.schema import TRACK_KINDS

__all__ = ["Arranged", "arrange"]

Ints = NDArray[np.int64]

_KIND: Final = {kind: number for number, kind in enumerate(TRACK_KINDS)}
_RANK: Final = {"user_annotation": 0, "cpu_op": 1}
_RANK_OF_OTHERS: Final = 2
_SIDE_BY_SIDE: Final = ("device", "device sync")
"""Kinds of track whose slices lie side by side, even if their times overlap."""


@dataclass(slots=True)
class Arranged:
    """The slices in order of start; all arrays have shape (n,)."""

    name: NDArray[np.uint32]
    category: NDArray[np.uint32]
    thread: NDArray[np.uint32]
    kind: NDArray[np.uint8]
    """Kind of the track, as its place in `TRACK_KINDS`."""
    track: Ints
    start: Ints
    end: Ints
    known_end: NDArray[np.bool_]
    parent: Ints
    depth: Ints
    self_time: Ints
    place: Ints
    """From the slice's number in the file to its place in this order."""
    written_start: Ints
    written_end: Ints
    tracks: list[tuple[int, str]]
    """Thread and kind of each track."""
    origin: int
    """What was taken from every time of the file, in ns."""
    categories: dict[str, int]
    """The code of each category."""

    def is_in(self, categories: tuple[str, ...]) -> NDArray[np.bool_]:
        codes = [self.categories[name] for name in categories if name in self.categories]
        return np.isin(self.category, codes)

    def is_kind(self, kind: str) -> NDArray[np.bool_]:
        return np.asarray(self.kind == _KIND[kind])


def arrange(columns: FileColumns) -> Arranged:
    """Order, track, and nest the slices of a file."""
    raw = columns.slices
    _forget_zeros(columns)
    start, origin = _from_origin(raw["start"], columns.groups)
    order = np.argsort(start, kind="stable")
    start, duration = start[order], raw["duration"][order]
    known_end = duration != NO_INT
    end = np.where(known_end, start + np.where(known_end, duration, 0), start)
    category = raw["category"][order]
    categories, kind = _kinds(columns, category)
    thread = raw["thread"][order]
    track, tracks = _tracks(thread, kind)
    place = np.empty(order.size, np.int64)
    place[order] = np.arange(order.size)
    nested = _nest(track, start, end, kind, _ranks(categories, category))
    return Arranged(
        raw["name"][order],
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
        start,
        end,
        tracks,
        origin,
        categories,
    )


def _forget_zeros(columns: FileColumns) -> None:
    """Among times since the epoch a zero is no time: it was lost."""
    start, duration = columns.slices["start"], columns.slices["duration"]
    zeros = start == 0
    others = start[~zeros & (start != NO_INT)]
    if not zeros.any() or not others.size or others.min() < FIRST_EPOCH:
        return
    start[zeros] = NO_INT
    duration[zeros] = NO_INT
    columns.faults["no time: kept without one, out of totals"] += int(zeros.sum())


def _from_origin(start: Ints, groups: dict[str, Columns]) -> tuple[Ints, int]:
    """Starts from the earliest event; an event without a time is put there."""
    known = start != NO_INT
    firsts = [start[known], *(g["time"][g["time"] != NO_INT] for g in _timed(groups))]
    firsts = [times for times in firsts if times.size]
    origin = int(min(times.min() for times in firsts)) if firsts else 0
    return np.where(known, start - origin, 0), origin


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


def _ranks(categories: dict[str, int], category: NDArray[np.uint32]) -> Ints:
    """Of slices with equal times annotations lie around operators, and those around calls."""
    ranks = np.full(max(categories.values(), default=-1) + 1, _RANK_OF_OTHERS, np.int64)
    for name, code in categories.items():
        ranks[code] = _RANK.get(name, _RANK_OF_OTHERS)
    return np.asarray(ranks[category])


def _tracks(
    thread: NDArray[np.uint32], kind: NDArray[np.uint8]
) -> tuple[Ints, list[tuple[int, str]]]:
    """One track for each kind of slice on each thread, in order of first appearance."""
    both = thread.astype(np.int64) * len(TRACK_KINDS) + kind
    found, first, inverse = np.unique(both, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(found.size, np.int64)
    number[order] = np.arange(found.size)
    tracks = [divmod(int(key), len(TRACK_KINDS)) for key in found[order]]
    return number[inverse], [(where, TRACK_KINDS[what]) for where, what in tracks]


def _nest(
    track: Ints, start: Ints, end: Ints, kind: NDArray[np.uint8], rank: Ints
) -> dict[str, Any]:
    """Nest host tracks, clipping what rounding did; device work keeps its times and its place."""
    beside = np.isin(kind, [_KIND[name] for name in _SIDE_BY_SIDE])
    found = {
        field: np.empty(track.size, np.int64)
        for field in ("start", "end", "parent", "depth", "self_time")
    }
    for part, bleed in ((~beside, BLEED), (beside, 0)):
        where = np.flatnonzero(part)
        nesting = nest(track[where], start[where], end[where], rank[where], bleed=bleed)
        for field, column in found.items():
            column[where] = getattr(nesting, field)
        above = nesting.parent
        found["parent"][where] = np.where(above == NONE, NONE, where[above] if where.size else NONE)
    found["parent"][beside] = NONE
    found["depth"][beside] = 0
    return found
