"""Loads a trace together with the number of the slice that each event of its file became.

Slices are numbered by start time, a file's events by position. A program that rewrites a file knows
events by position, and must find the slice of each.
"""

import os
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import msgspec
import numpy as np
from msgspec import Raw
from numpy.typing import NDArray

from selftime import names
from selftime.array_types import SignedInts
from selftime.errors import UnreadableTrace
from selftime.ingest.decoding_workers import open_chunk_decoder
from selftime.ingest.text.decompressed_text import DecompressedFile
from selftime.ingest.text.format_detection import is_pickle
from selftime.ingest.text.trace_parsing import parse_first_trace
from selftime.ingest.text.trace_text_stream import open_checking_for_changes
from selftime.ingest.times.nanosecond_conversion import to_nanoseconds_and_unit
from selftime.ingest.trace_tables import build_trace_and_order
from selftime.progress import ProgressCallback
from selftime.trace import Trace

_MEMORY_EVENT_NAMES: Final = frozenset({names.ALLOCATION_EVENT, names.OUT_OF_MEMORY_EVENT})


@dataclass(frozen=True, slots=True)
class TraceWithEventPositions:
    """A trace, with the index of the slice that each event of its file became."""

    trace: Trace
    slice_of_event: SignedInts
    """The slice id of each complete event in file order, then of each slice made of two events."""
    time_origin_ns: int
    """The time on the file's clock, in ns, that is time 0 of the trace."""


def load_trace_with_event_positions(
    path: str | os.PathLike[str], progress: ProgressCallback | None = None
) -> TraceWithEventPositions:
    """Loads the trace in one file, with the slice index of each event; the cache is not used.

    Raises:
        UnreadableTrace: The file is missing, or cannot be read as a trace.
    """
    path_text = os.fspath(path)
    with open_checking_for_changes(path_text) as (file, size):
        source = DecompressedFile(file, size, progress)
        blocks = source.text_blocks()
        first = next(blocks, b"")
        if is_pickle(first):
            raise UnreadableTrace(f"`{path_text}` is a memory snapshot: give a trace in JSON")
        try:
            with open_chunk_decoder(size) as decoder:
                parsed = parse_first_trace(chain([first], blocks), decoder)
        except UnreadableTrace as error:
            raise UnreadableTrace(f"`{path_text}` cannot be read: {error}") from error
    if not any(
        phase
        for chunk in parsed.chunks
        for phase, _ in chunk.event_counts_by_phase_and_category
        if phase != "M"
    ):
        raise UnreadableTrace(f"`{path_text}` has no undamaged event: give a whole trace")
    trace, slices = build_trace_and_order(parsed, source.faults, path_text)
    return TraceWithEventPositions(trace, slices.sorted_index_by_file_row, slices.origin_ns)


class _IdentifyingFields(msgspec.Struct, gc=False):
    """The JSON fields that identify an event: phase, name, thread, time, id; values of any type."""

    ph: Any = None
    name: Any = None
    pid: Any = None
    tid: Any = None
    ts: Raw = Raw(b"null")
    id: Raw = Raw(b"")
    cat: Any = None


_IDENTIFYING_FIELDS_DECODER: Final = msgspec.json.Decoder(list[_IdentifyingFields])


@dataclass(frozen=True, slots=True)
class IdentifyingEventFields:
    """Phase, name, thread, time and id of events; each list or array has one entry per event."""

    phase: list[str]
    is_complete: NDArray[np.bool_]
    """Whether each event makes a slice without a second event for its end."""
    name: list[Any]
    thread: list[tuple[str, str]]
    time_ns: SignedInts
    """Each event's time on the file's clock, in ns; `NO_INT` if the event has no time."""
    is_written_in_ns: NDArray[np.bool_]
    """Whether each event's time is written in integer nanoseconds since the Unix epoch."""
    category_and_id: list[tuple[str, bytes]]
    """Each event's category and id, which are the same for both ends of a flow arrow or an
    asynchronous span.
    """


def identifying_fields_of_events(events_text: bytes) -> IdentifyingEventFields:
    """Returns phase, name, thread, time and id of comma-separated events in a JSON text."""
    fields_of_events = _IDENTIFYING_FIELDS_DECODER.decode(b"[%b]" % events_text)
    phase = [str(event.ph or "") for event in fields_of_events]
    complete = [
        ph == "X" and event.name not in _MEMORY_EVENT_NAMES
        for ph, event in zip(phase, fields_of_events, strict=True)
    ]
    time, written = (
        to_nanoseconds_and_unit([event.ts for event in fields_of_events])
        if fields_of_events
        else (np.empty(0, np.int64), None)
    )
    return IdentifyingEventFields(
        phase,
        np.array(complete, bool),
        [event.name for event in fields_of_events],
        [(str(event.pid), str(event.tid)) for event in fields_of_events],
        time,
        np.zeros(time.size, bool) if written is None else written,
        [(str(event.cat), bytes(event.id)) for event in fields_of_events],
    )
