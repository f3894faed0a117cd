"""The program behind a trace: what its hosts did and launched, and what each part waited for.

A program is a list of entries in the order in which they began: calls of the runtime, and the ends
of steps. Each belongs to a serial part of the host, threads that take turns being one. Between two
entries of a part its host works. Every constraint holds an observed remainder, so that the replay
of the unchanged program gives back the times that were recorded.
"""

from dataclasses import dataclass
from typing import Final

import polars as pl

from selftime.arrays import Ints

NOTHING: Final = -1
"""No such entry, work or stream."""
ALL: Final = -2
"""A wait for the work of all streams."""


@dataclass(frozen=True, slots=True)
class Entries:
    """Calls and marks in order; all arrays have shape (n,), times are ns.

    A call that waits returns at the latest of its own time and its condition plus `after`: the
    condition is the end of `waits_for` (a work), of the last work of `waits_stream`, or of all.
    """

    id: Ints
    """The slice of the call; NOTHING for marks."""
    part: Ints
    """The serial part of the host."""
    start: Ints
    end: Ints
    before: Ints
    """Host time since the entry before of the same part; negative where they overlap."""
    own: Ints
    """Host time of the call without its wait."""
    waits_for: Ints
    waits_stream: Ints
    after: Ints
    first_work: Ints
    last_work: Ints
    """Its work is `first_work:last_work`."""
    mark: Ints
    """The step that ends here, else NOTHING."""


@dataclass(frozen=True, slots=True)
class Work:
    """Work of devices in the order of its launches; all arrays have shape (m,), times are ns.

    Work begins at the latest of its call's begin plus `latency`, the end of its stream's work plus
    `gap`, and the end of the work `needs` plus `needs_gap`.
    """

    id: Ints
    stream: Ints
    start: Ints
    end: Ints
    latency: Ints
    gap: Ints
    needs: Ints
    needs_gap: Ints


@dataclass(frozen=True, slots=True)
class Program:
    """Entries and work, and what was estimated from the trace."""

    entries: Entries
    work: Work
    begin: int
    """When the first entry began."""
    parts: int
    streams: pl.DataFrame
    """Columns number, device, stream."""
    latency: int
    """Typical time from a call's begin to its work's on an idle stream, in ns."""
    gap: int
    """Typical time between two works of a busy stream, in ns."""
    depth: int
    """Works that a stream holds before launches block."""
