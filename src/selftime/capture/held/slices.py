"""Slices and memory records of a recording, in order of time and within each other."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from torch._C._autograd import _KinetoEvent

from selftime import names
from selftime.capture.held.events import Events
from selftime.nesting import BLEED, NONE, nest

__all__ = ["KINDS", "NO_DEVICE", "Records", "Slices", "read"]

Ints = NDArray[np.int64]
Codes = NDArray[np.uint32]
Bools = NDArray[np.bool_]

KINDS: Final = ("host", "python", "device")
"""The kinds of track whose slices count in a table of operators."""
_DEVICE: Final = KINDS.index("device")
_NO_KIND: Final = 255
_RANK: Final = {"user_annotation": 0, "cpu_op": 1}
_RANK_OF_OTHERS: Final = 2
NO_DEVICE: Final = -1
"""The device of what the host does."""


@dataclass(frozen=True, slots=True)
class Slices:
    """The slices in order of start, times from the earliest event; arrays have shape (n,)."""

    category: Codes
    categories: list[str]
    name: Codes
    names: list[str]
    kind: NDArray[np.uint8]
    """The place in `KINDS`."""
    device: Ints
    lane: Ints
    """The thread as the system numbers it, or the stream."""
    start: Ints
    end: Ints
    known_end: Bools
    asynchronous: Bools
    """Whether it ended on another thread than it began."""
    parent: Ints
    depth: Ints
    self_time: Ints

    def is_kind(self, kind: str) -> Bools:
        return np.asarray(self.kind == KINDS.index(kind))

    def is_in(self, categories: tuple[str, ...]) -> Bools:
        codes = [code for code, text in enumerate(self.categories) if text in categories]
        return np.isin(self.category, codes)


@dataclass(frozen=True, slots=True)
class Records:
    """Memory that was allocated or released, in order of time; arrays have shape (m,)."""

    time: Ints
    lane: Ints
    bytes: Ints
    device_type: Ints


def read(events: Events) -> tuple[Slices, Records]:
    """What counts in a table of operators; `events` keep those of the slices, in their order.

    Raises:
        UnicodeDecodeError: A name is not UTF-8.
    """
    name, known = events.texts(_KinetoEvent.name)
    category, written = events.texts(_KinetoEvent.activity_type)
    categories = [names.TODAY.get(text.lower(), text.lower()) for text in written]
    kind = np.array([_kind(text) for text in categories], np.uint8)[category]
    start = events.numbers(_KinetoEvent.start_ns, np.int64)
    origin = int(start.min()) if start.size else 0
    start -= origin
    records = _records(events, start, (kind == _NO_KIND) & (name == _code(names.ALLOCATION, known)))
    hidden = events.numbers(_KinetoEvent.is_hidden_event, np.bool_)
    order = np.flatnonzero((kind != _NO_KIND) & ~hidden)
    order = order[np.argsort(start[order], kind="stable")]
    events.take(order)
    start, kind, category = start[order], kind[order], category[order]
    end = np.maximum(events.numbers(_KinetoEvent.end_ns, np.int64) - origin, start)
    known_end, asynchronous = _ends(events, categories, category)
    end[~known_end] = start[~known_end]
    device = np.full(order.size, NO_DEVICE, np.int64)
    works = np.flatnonzero(kind == _DEVICE)
    device[works] = events.numbers(_KinetoEvent.device_index, np.int64, works)
    lane = events.numbers(_KinetoEvent.device_resource_id, np.int64)
    ranks = np.array([_RANK.get(text, _RANK_OF_OTHERS) for text in categories], np.int64)
    nested = _nest(lane, kind, start, end, ranks[category])
    return Slices(
        category=category,
        categories=categories,
        name=name[order],
        names=known,
        kind=kind,
        device=device,
        lane=lane,
        known_end=known_end,
        asynchronous=asynchronous,
        **nested,
    ), records


def _kind(category: str) -> int:
    kind = names.TRACK_KIND.get(category)
    return KINDS.index(kind) if kind in KINDS else _NO_KIND


def _code(text: str, known: list[str]) -> int:
    return known.index(text) if text in known else NONE


def _records(events: Events, start: Ints, which: Bools) -> Records:
    at = np.flatnonzero(which)
    at = at[np.argsort(start[at], kind="stable")]
    return Records(
        start[at],
        events.numbers(_KinetoEvent.device_resource_id, np.int64, at),
        events.numbers(_KinetoEvent.nbytes, np.int64, at),  # type: ignore[attr-defined]  # it has
        events.numbers(lambda event: event.device_type().value, np.int64, at),
    )


def _ends(events: Events, categories: list[str], category: Codes) -> tuple[Bools, Bools]:
    """Whether the end of each slice is known, and whether it lies on another thread.

    The recorder numbers threads from 1; an operator that still ran has ended on none.
    """
    asked = [code for code, text in enumerate(categories) if text in _OPERATORS]
    at = np.flatnonzero(np.isin(category, asked))
    known, moved = np.ones(category.size, bool), np.zeros(category.size, bool)
    began = events.numbers(_KinetoEvent.start_thread_id, np.int64, at)
    ended = events.numbers(_KinetoEvent.end_thread_id, np.int64, at)
    known[at] = ended != 0
    moved[at] = (began != ended) | events.numbers(_KinetoEvent.is_async, np.bool_, at)
    return known, moved


_OPERATORS: Final = (*names.OPERATORS, *names.ANNOTATIONS)


def _nest(
    lane: Ints, kind: NDArray[np.uint8], start: Ints, end: Ints, rank: Ints
) -> dict[str, Ints]:
    """Nest the tracks of the host; the work of a device lies side by side."""
    found = {
        "start": start.copy(),
        "end": end.copy(),
        "parent": np.full(start.size, NONE, np.int64),
        "depth": np.zeros(start.size, np.int64),
        "self_time": end - start,
    }
    at = np.flatnonzero(kind != _DEVICE)
    if at.size:
        _, thread = np.unique(lane[at], return_inverse=True)
        track = thread * len(KINDS) + kind[at]
        nesting = nest(track, start[at], end[at], rank[at], bleed=BLEED)
        for field, column in found.items():
            column[at] = getattr(nesting, field)
        parent = nesting.parent
        found["parent"][at] = np.where(parent == NONE, NONE, at[parent])
    return found
