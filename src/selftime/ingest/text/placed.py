"""A trace whose slices can be found again in the text of its file.

Slices are numbered by start, a file's events by where they stand. Who writes a file anew knows
events by their place, and has to know which slice each is.
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
from selftime.ingest.tables import build_placed
from selftime.ingest.text.document import read_document
from selftime.ingest.text.parts import opened
from selftime.ingest.text.sniff import is_pickle
from selftime.ingest.text.source import Source
from selftime.ingest.times.nanoseconds import instants
from selftime.ingest.workers import decoder
from selftime.trace import Trace

_MEMORY: Final = frozenset({names.ALLOCATION, names.OUT_OF_MEMORY})


@dataclass(frozen=True, slots=True)
class Placed:
    """A trace, and where its slices stand in the file."""

    trace: Trace
    slice_of: SignedInts
    """The slice of each complete event, in the file's order; those made of two events follow."""
    zero: int
    """The trace's origin as the file writes times, in ns."""


def load_placed(
    place: str | os.PathLike[str], progress: Callable[[int, int | None], None] | None = None
) -> Placed:
    """Read one file, whatever the cache holds of it.

    Raises:
        UnreadableTrace: There is no such file, or nothing in it can be read as a trace.
    """
    where = os.fspath(place)
    with opened(where) as (file, size):
        source = Source(file, size, progress)
        blocks = source.blocks()
        first = next(blocks, b"")
        if is_pickle(first):
            raise UnreadableTrace(f"`{where}` is a memory snapshot: give a trace in JSON")
        try:
            with decoder(size) as reading:
                document = read_document(chain([first], blocks), reading)
        except UnreadableTrace as error:
            raise UnreadableTrace(f"`{where}` cannot be read: {error}") from error
    if not any(phase for chunk in document.chunks for phase, _ in chunk.phases if phase != "M"):
        raise UnreadableTrace(f"`{where}` holds no event that is sound: give a whole trace")
    trace, slices = build_placed(document, source.faults, where)
    return Placed(trace, slices.place, slices.origin)


class _Brief(msgspec.Struct, gc=False):
    """What tells where an event belongs; of any type, for nobody checked it."""

    ph: Any = None
    name: Any = None
    pid: Any = None
    tid: Any = None
    ts: Raw = Raw(b"null")
    id: Raw = Raw(b"")
    cat: Any = None


_BRIEFS: Final = msgspec.json.Decoder(list[_Brief])


@dataclass(frozen=True, slots=True)
class Marks:
    """What tells of some events where they belong; a list or array has an entry for each."""

    phase: list[str]
    is_complete: NDArray[np.bool_]
    """Whether it is a slice by itself."""
    name: list[Any]
    thread: list[tuple[str, str]]
    time: SignedInts
    """When it is, as the file writes it, in ns; `NO_INT` if it does not tell."""
    in_nanoseconds: NDArray[np.bool_]
    """Whether the time is written in integer nanoseconds since the epoch."""
    group: list[tuple[str, bytes]]
    """Category and id, by which the ends of an arrow or an asynchronous span find each other."""


def marks_of(text: bytes) -> Marks:
    """The marks of the events of a text, as `parts` hands it on."""
    briefs = _BRIEFS.decode(b"[%b]" % text)
    phase = [str(one.ph or "") for one in briefs]
    complete = [
        ph == "X" and one.name not in _MEMORY for ph, one in zip(phase, briefs, strict=True)
    ]
    time, written = (
        instants([one.ts for one in briefs]) if briefs else (np.empty(0, np.int64), None)
    )
    return Marks(
        phase,
        np.array(complete, bool),
        [one.name for one in briefs],
        [(str(one.pid), str(one.tid)) for one in briefs],
        time,
        np.zeros(time.size, bool) if written is None else written,
        [(str(one.cat), bytes(one.id)) for one in briefs],
    )
