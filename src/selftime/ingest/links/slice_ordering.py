"""Sorts a file's slices by start, assigns them to tracks, and nests them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from selftime import names
from selftime.array_types import SignedInts
from selftime.ingest.events.chunk_merging import FileEventColumns
from selftime.ingest.events.columns import Columns
from selftime.ingest.events.event_types import NO_INT
from selftime.ingest.text.trace_header import EARLIEST_EPOCH_TIME_NS
from selftime.nesting import MAX_ROUNDING_CROSSING_NS, NO_SLICE, nest_slices
from selftime.schema import TRACK_KINDS

ThreadKey = tuple[str, str]

_CODE_BY_TRACK_KIND: Final = {kind: number for number, kind in enumerate(TRACK_KINDS)}
_NESTING_RANK_BY_CATEGORY: Final = {"user_annotation": 0, "cpu_op": 1}
_NESTING_RANK_OF_OTHER_CATEGORIES: Final = 2
_MAX_TIME_NS: Final = 2**63 - 1
_UNNESTED_TRACK_KINDS: Final = ("device", "device sync")
"""Kinds of track whose slices are not nested, even if their times overlap."""


def original_thread_by_added_thread(metadata: Mapping[str, Any]) -> dict[ThreadKey, ThreadKey]:
    """Maps each thread that selftime's export added to the thread whose slices it took over."""
    section = metadata.get("selftime_tracks")
    tracks = section.get("tracks") if isinstance(section, dict) else None
    """The number of the thread and the kind of each track."""
    found: dict[ThreadKey, ThreadKey] = {}
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
    """The n slices of a file sorted by start; all arrays have shape (n,), all times are in ns."""

    name: NDArray[np.uint32]
    """The string code of each slice's name."""
    category: NDArray[np.uint32]
    """The string code of each slice's category."""
    thread: NDArray[np.uint32]
    """The code of each slice's thread."""
    kind: NDArray[np.uint8]
    """The kind of each slice's track, as an index in `TRACK_KINDS`."""
    track: NDArray[np.int32]
    start: SignedInts
    end: SignedInts
    has_known_end: NDArray[np.bool_]
    parent: NDArray[np.int32]
    """The index of the slice that directly encloses each slice, or -1 if there is none."""
    depth: NDArray[np.int32]
    """The number of slices that enclose each slice."""
    self_time: SignedInts
    sorted_index_by_file_row: NDArray[np.int32]
    """For each slice, in the order of the file: its index when sorted by start."""
    original_times_of_clipped_slices: tuple[SignedInts, SignedInts, SignedInts]
    """The indices of slices whose times were clipped, and their starts and ends in ns before that.
    """
    thread_and_kind_by_track: list[tuple[int, str]]
    """The thread number and the kind of each track."""
    origin_ns: int
    """The time in ns that was subtracted from every time of the file."""
    category_codes: dict[str, int]
    """Maps each category to its string code."""

    def has_category(self, categories: tuple[str, ...]) -> NDArray[np.bool_]:
        codes = [self.category_codes[name] for name in categories if name in self.category_codes]
        return np.isin(self.category, codes)

    def is_on_track_kind(self, kind: str) -> NDArray[np.bool_]:
        return np.asarray(self.kind == _CODE_BY_TRACK_KIND[kind])


def order_slices(columns: FileEventColumns) -> OrderedSlices:
    """Sorts a file's slices by start, assigns them to tracks, and nests them; empties `columns`."""
    raw = columns.slices
    _set_impossible_zero_times_to_null(columns)
    origin = _subtract_earliest_time(raw["start"], columns.columns_by_group)
    order = np.argsort(raw["start"], kind="stable")
    start, end = raw.pop("start")[order], raw.pop("duration")[order]
    known_end = end != NO_INT
    end[~known_end] = 0
    end += start
    category, thread = raw.pop("category")[order], raw.pop("thread")[order]
    categories, kind = _category_codes_and_slice_track_kinds(columns, category)
    track, tracks = _track_of_each_slice(thread, kind)
    place = np.empty(order.size, np.int32)
    place[order] = np.arange(order.size, dtype=np.int32)
    name = raw.pop("name")[order]
    del order
    nested = _nest_slices(track, start, end, kind, _nesting_ranks(categories, category))
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


def _set_impossible_zero_times_to_null(columns: FileEventColumns) -> None:
    """Sets zero times to null in a file whose other times count from the Unix epoch."""
    start, duration = columns.slices["start"], columns.slices["duration"]
    zeros = start == 0
    others = start[~zeros & (start != NO_INT)]
    if not zeros.any() or not others.size or others.min() < EARLIEST_EPOCH_TIME_NS:
        return
    start[zeros] = NO_INT
    duration[zeros] = NO_INT
    columns.fault_counts["no time: kept, but not in totals"] += int(zeros.sum())


def _subtract_earliest_time(start: SignedInts, groups: dict[str, Columns]) -> int:
    """Subtracts the earliest time from all starts in place and returns it; null starts become 0."""
    unknown = start == NO_INT
    start[unknown] = _MAX_TIME_NS
    firsts = [
        start,
        *(
            np.where(g["time"] == NO_INT, _MAX_TIME_NS, g["time"])
            for g in _column_groups_with_times(groups)
        ),
    ]
    origin = min((int(times.min()) for times in firsts if times.size), default=_MAX_TIME_NS)
    origin = 0 if origin == _MAX_TIME_NS else origin
    start -= origin
    start[unknown] = 0
    return origin


def _column_groups_with_times(groups: dict[str, Columns]) -> list[Columns]:
    return [groups["memory"]] if "memory" in groups else []


def _category_codes_and_slice_track_kinds(
    columns: FileEventColumns, slice_categories: NDArray[np.uint32]
) -> tuple[dict[str, int], NDArray[np.uint8]]:
    codes = np.unique(slice_categories)
    texts = columns.decode_strings(codes).cast(str).to_list() if codes.size else []
    kind_of = np.full(
        int(codes.max()) + 1 if codes.size else 0, _CODE_BY_TRACK_KIND["other"], np.uint8
    )
    for code, text in zip(codes.tolist(), texts, strict=True):
        kind_of[code] = _CODE_BY_TRACK_KIND[names.TRACK_KIND_BY_CATEGORY.get(text, "other")]
    return dict(zip(texts, codes.tolist(), strict=True)), kind_of[slice_categories]


def _nesting_ranks(
    category_codes: dict[str, int], category: NDArray[np.uint32]
) -> NDArray[np.int8]:
    """Returns each slice's nesting rank; of slices with equal times, the lowest encloses others."""
    ranks = np.full(
        max(category_codes.values(), default=-1) + 1, _NESTING_RANK_OF_OTHER_CATEGORIES, np.int8
    )
    for name, code in category_codes.items():
        ranks[code] = _NESTING_RANK_BY_CATEGORY.get(name, _NESTING_RANK_OF_OTHER_CATEGORIES)
    return np.asarray(ranks[category])


def _track_of_each_slice(
    threads: NDArray[np.uint32], kinds: NDArray[np.uint8]
) -> tuple[NDArray[np.int32], list[tuple[int, str]]]:
    """Returns each slice's track number, and the thread and kind of each track."""
    both = threads.astype(np.int64) * len(TRACK_KINDS) + kinds
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


def _nest_slices(
    track: NDArray[np.int32],
    start: SignedInts,
    end: SignedInts,
    kind: NDArray[np.uint8],
    rank: NDArray[np.int8],
) -> dict[str, Any]:
    """Nests slices by time, except device work; clips slices that cross because of rounding."""
    found: dict[str, Any] = {
        "start": start.copy(),
        "end": end.copy(),
        "parent": np.full(track.size, NO_SLICE, np.int32),
        "depth": np.zeros(track.size, np.int32),
        "self_time": np.empty(track.size, np.int64),
    }
    is_unnested = np.isin(kind, [_CODE_BY_TRACK_KIND[name] for name in _UNNESTED_TRACK_KINDS])
    for where, bleed in (
        (np.flatnonzero(~is_unnested), MAX_ROUNDING_CROSSING_NS),
        (np.flatnonzero(is_unnested), 0),
    ):
        if not where.size:
            continue
        nesting = nest_slices(
            track[where], start[where], end[where], rank[where], rounding_ns=bleed
        )
        found["self_time"][where] = nesting.self_time
        if bleed:
            found["start"][where], found["end"][where] = nesting.start, nesting.end
            found["depth"][where] = nesting.depth
            above = nesting.parent
            found["parent"][where] = np.where(above == NO_SLICE, NO_SLICE, where[above])
    return found
