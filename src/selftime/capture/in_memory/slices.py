"""What a recording's events tell of a table of operators, in order of time."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from torch._C._autograd import _KinetoEvent

from selftime import names
from selftime.arrays import Flags, Ints
from selftime.capture.in_memory.events import Codes, Events

Numbers = NDArray[np.uint32]
Texts = tuple[Numbers, list[str]]
"""Numbers of texts, and the texts."""

KINDS: Final = ("host", "python", "device")
"""The kinds of track whose slices count in a table of operators."""
_NO_KIND: Final = 255
_HOST: Final = -1
"""The device of what the host does."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which arguments of operators are read besides: each costs a question to each of them."""

    shapes: bool = False
    overloads: bool = False
    flops: bool = False


@dataclass(frozen=True, slots=True)
class Slices:
    """The slices in order of start, times in ns from the earliest event; arrays have shape (n,)."""

    category: NDArray[np.uint8]
    categories: list[str]
    name: Numbers
    names: list[str]
    kind: NDArray[np.uint8]
    """The place in `KINDS`."""
    thread: Numbers
    threads: list[tuple[int, int]]
    """Device and stream; -1 and the thread's number in the system for the host."""
    start: Ints
    end: Ints
    known_end: Flags
    asynchronous: Flags
    """Whether it ended on another thread than it began."""

    def of_kind(self, kind: str) -> Ints:
        """The places of the slices on tracks of a kind."""
        return np.flatnonzero(self.kind == KINDS.index(kind))

    def of(self, categories: tuple[str, ...]) -> Ints:
        """The places of the slices of some categories."""
        return _places(categories, self.categories, self.category)


@dataclass(frozen=True, slots=True)
class Records:
    """Memory that was allocated or released, in order of time; arrays have shape (m,)."""

    time: Ints
    thread: Numbers
    bytes: Ints
    device_type: Ints


@dataclass(frozen=True, slots=True)
class Launches:
    """Device work and the calls that may have launched it, by place, and the numbers they share."""

    works: Ints
    asked: Ints
    calls: Ints
    told: Ints


@dataclass(frozen=True, slots=True)
class Arguments:
    """Operators and annotations by place, and what is wanted of them."""

    operators: Ints
    shapes: Texts | None
    overloads: Texts | None
    flops: Ints | None


def read(events: Events, wanted: Wanted) -> tuple[Slices, Records, Launches, Arguments]:
    """Ask the events everything that counts; those of the slices are left, in their order.

    Raises:
        UnicodeDecodeError: A name is not UTF-8.
    """
    lanes: Codes[int] = Codes()
    texts: Codes[str] = Codes()
    name = events.coded(_KinetoEvent.name, texts)
    category, categories, kind = _categories(events)
    start = events.numbers(_KinetoEvent.start_ns, np.int64)
    origin = int(start.min()) if start.size else 0
    start -= origin
    is_record = (kind == _NO_KIND) & (name == texts.get(names.ALLOCATION, len(texts)))
    records = _records(events, start, np.flatnonzero(is_record), lanes)
    hidden = events.numbers(_KinetoEvent.is_hidden_event, np.bool_)
    order = np.flatnonzero((kind != _NO_KIND) & ~hidden)
    order = order[np.argsort(start[order], kind="stable")]
    events.take(order)
    start, category, kind = start[order], category[order], kind[order]
    operators = _places((*names.OPERATORS, *names.ANNOTATIONS), categories, category)
    known_end, asynchronous = _ends(events, operators)
    end = events.numbers(_KinetoEvent.end_ns, np.int64) - origin
    thread, threads = _threads(events, np.flatnonzero(kind == KINDS.index("device")), lanes)
    slices = Slices(
        category=category,
        categories=categories,
        name=name[order],
        names=list(texts),
        kind=kind,
        thread=thread,
        threads=threads,
        start=start,
        end=np.where(known_end, np.maximum(end, start), start),
        known_end=known_end,
        asynchronous=asynchronous,
    )
    return slices, records, _launches(events, slices), _arguments(events, operators, wanted)


def _categories(events: Events) -> tuple[NDArray[np.uint8], list[str], NDArray[np.uint8]]:
    """The number of each event's category, the categories, and the kind of its track."""
    written: Codes[str] = Codes()
    category = events.coded(_KinetoEvent.activity_type, written).astype(np.uint8)
    categories = [names.CURRENT_CATEGORY.get(text.lower(), text.lower()) for text in written]
    kinds = [names.TRACK_KIND.get(text) for text in categories]
    numbers = [KINDS.index(kind) if kind in KINDS else _NO_KIND for kind in kinds]
    return category, categories, np.array(numbers, np.uint8)[category]


def _places(wanted: tuple[str, ...], categories: list[str], category: NDArray[np.uint8]) -> Ints:
    is_wanted = np.array([text in wanted for text in categories], bool)
    return np.flatnonzero(is_wanted[category])


def _records(events: Events, start: Ints, at: Ints, lanes: Codes[int]) -> Records:
    at = at[np.argsort(start[at], kind="stable")]
    return Records(
        start[at],
        events.coded(_KinetoEvent.device_resource_id, lanes, at),
        events.numbers(_KinetoEvent.nbytes, np.int64, at),  # type: ignore[attr-defined]  # it has
        events.numbers(lambda event: event.device_type().value, np.int64, at),
    )


def _ends(events: Events, operators: Ints) -> tuple[Flags, Flags]:
    """Whether the end of each slice is known, and whether it lies on another thread.

    The recorder numbers threads from 1; an operator that still ran has ended on none.
    """
    known, moved = np.ones(len(events), bool), np.zeros(len(events), bool)
    began = events.numbers(_KinetoEvent.start_thread_id, np.int64, operators)
    ended = events.numbers(_KinetoEvent.end_thread_id, np.int64, operators)
    known[operators] = ended != 0
    moved[operators] = began != ended
    moved[operators] |= events.numbers(_KinetoEvent.is_async, np.bool_, operators)
    return known, moved


def _threads(
    events: Events, works: Ints, lanes: Codes[int]
) -> tuple[Numbers, list[tuple[int, int]]]:
    """The thread of each slice; the streams of devices come behind those of the host."""
    thread = events.coded(_KinetoEvent.device_resource_id, lanes)
    streams: Codes[tuple[int, int]] = Codes()
    if works.size:
        found = events.coded(lambda e: (e.device_index(), e.device_resource_id()), streams, works)
        thread[works] = found + len(lanes)
    return thread, [*((_HOST, lane) for lane in lanes), *streams]


def _launches(events: Events, slices: Slices) -> Launches:
    works = slices.of_kind("device")
    calls = slices.of(names.CALLS) if works.size else works
    ask = _KinetoEvent.correlation_id
    return Launches(
        works, events.numbers(ask, np.int64, works), calls, events.numbers(ask, np.int64, calls)
    )


def _arguments(events: Events, operators: Ints, wanted: Wanted) -> Arguments:
    shapes: Codes[str] = Codes()
    overloads: Codes[str] = Codes()
    return Arguments(
        operators,
        (events.coded(lambda event: str(event.shapes()), shapes, operators), list(shapes))
        if wanted.shapes
        else None,
        (events.coded(_KinetoEvent.overload_name, overloads, operators), list(overloads))
        if wanted.overloads
        else None,
        events.numbers(_KinetoEvent.flops, np.int64, operators) if wanted.flops else None,
    )
