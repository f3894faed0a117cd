"""Load a trace together with the mapping from a file's events to its slices.

Slices are numbered by start time, a file's events by position. A program that rewrites a file knows
events by position, and must find the slice of each.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import msgspec
import numpy as np
from msgspec import Raw
from numpy.typing import NDArray

from selftime import names
from selftime.arrays import SignedInts
from selftime.errors import UnreadableTrace
from selftime.ingest.tables import build_trace_and_order
from selftime.ingest.text.document import read_document
from selftime.ingest.text.parts import open_unchanged
from selftime.ingest.text.sniff import is_pickle
from selftime.ingest.text.source import Source
from selftime.ingest.times.nanoseconds import nanoseconds_and_unit
from selftime.ingest.workers import open_decoder
from selftime.trace import Trace

_MEMORY: Final = frozenset({names.ALLOCATION, names.OUT_OF_MEMORY})


@dataclass(frozen=True, slots=True)
class TraceInFile:
    """A trace, and the slice of each event in its file."""

    trace: Trace
    slice_of: SignedInts
    """The slice of each complete event in the file's order, then of slices made of two events."""
    zero: int
    """The trace's origin on the file's own clock, in ns."""


def load_trace_in_file(
    place: str | os.PathLike[str], progress: Callable[[int, int | None], None] | None = None
) -> TraceInFile:
    """Read one file with the positions of its slices; the cache is not used.

    Raises:
        UnreadableTrace: The file is missing, or cannot be read as a trace.
    """
    where = os.fspath(place)
    with open_unchanged(where) as (file, size):
        source = Source(file, size, progress)
        blocks = source.blocks()
        first = next(blocks, b"")
        if is_pickle(first):
            raise UnreadableTrace(f"`{where}` is a memory snapshot: give a trace in JSON")
        try:
            with open_decoder(size) as reading:
                document = read_document(chain([first], blocks), reading)
        except UnreadableTrace as error:
            raise UnreadableTrace(f"`{where}` cannot be read: {error}") from error
    if not any(phase for chunk in document.chunks for phase, _ in chunk.phases if phase != "M"):
        raise UnreadableTrace(f"`{where}` holds no event that is sound: give a whole trace")
    trace, slices = build_trace_and_order(document, source.faults, where)
    return TraceInFile(trace, slices.place, slices.origin)


class _Brief(msgspec.Struct, gc=False):
    """The fields that identify an event; unchecked, so of any type."""

    ph: Any = None
    name: Any = None
    pid: Any = None
    tid: Any = None
    ts: Raw = Raw(b"null")
    id: Raw = Raw(b"")
    cat: Any = None


_BRIEFS: Final = msgspec.json.Decoder(list[_Brief])


@dataclass(frozen=True, slots=True)
class EventFields:
    """The identifying fields of some events; each list or array has an entry for each event."""

    phase: list[str]
    is_complete: NDArray[np.bool_]
    """Whether the event alone makes a slice."""
    name: list[Any]
    thread: list[tuple[str, str]]
    time: SignedInts
    """The event's time on the file's own clock, in ns; `NO_INT` if it has none."""
    in_nanoseconds: NDArray[np.bool_]
    """Whether the time is written in integer nanoseconds since the Unix epoch."""
    group: list[tuple[str, bytes]]
    """Category and id, which the two ends of a flow arrow or an asynchronous span share."""


def event_fields(text: bytes) -> EventFields:
    """Returns the identifying fields of the events in a text, as `parts` passes it on."""
    briefs = _BRIEFS.decode(b"[%b]" % text)
    phase = [str(brief.ph or "") for brief in briefs]
    complete = [
        ph == "X" and brief.name not in _MEMORY for ph, brief in zip(phase, briefs, strict=True)
    ]
    time, written = (
        nanoseconds_and_unit([brief.ts for brief in briefs])
        if briefs
        else (np.empty(0, np.int64), None)
    )
    return EventFields(
        phase,
        np.array(complete, bool),
        [brief.name for brief in briefs],
        [(str(brief.pid), str(brief.tid)) for brief in briefs],
        time,
        np.zeros(time.size, bool) if written is None else written,
        [(str(brief.cat), bytes(brief.id)) for brief in briefs],
    )
