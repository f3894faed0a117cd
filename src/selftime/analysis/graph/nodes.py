"""What a walk may pass through beside the host: device work, and collectives that hosts make."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.cached import cached_per_trace
from selftime.analysis.graph.segment_kinds import CODE
from selftime.analysis.graph.serial_threads import NO_PART, threads_of
from selftime.analysis.idle.gaps import placed_work
from selftime.analysis.ranks.collectives import collectives
from selftime.arrays import Ints
from selftime.nesting import NONE
from selftime.trace import Trace

HOST: Final = -1
"""The stream of what runs on no device."""
NEVER: Final = -(1 << 62)
"""Before any instant of a trace: when what is not known to have been was."""

_KIND: Final = {
    "kernel": CODE["compute"],
    "communication": CODE["communication"],
    "memcpy": CODE["copy"],
    "memset": CODE["copy"],
}


@dataclass(frozen=True, slots=True)
class Nodes:
    """Device work and collectives of the host, in order of start; shape (n,), times in ns."""

    id: Ints
    start: Ints
    end: Ints
    kind: Ints
    """Its code, as in `CODE`."""
    stream: Ints
    """The number of its stream among those of all devices, or HOST."""
    launched: Ints
    """When its launch began, of a collective of the host its start; NEVER if not known."""
    thread: Ints
    """The thread that launched it, or NONE."""
    part: Ints
    """The serial part of the host that launched it, or NO_PART."""
    streams: dict[tuple[int | None, int | None], int]
    """The numbers of streams, by device and stream."""


@cached_per_trace
def nodes_of(trace: Trace) -> Nodes:
    """The nodes of a trace."""
    work = placed_work(trace).select(
        "id",
        "start",
        "end",
        "launched",
        "device",
        "stream",
        kind=pl.col("kind").replace_strict(_KIND, return_dtype=pl.Int64),
        at="launch",
    )
    places = work.select("device", "stream").unique(maintain_order=True)
    streams = {place: number for number, place in enumerate(places.iter_rows())}
    numbered = places.with_row_index("number")
    work = work.join(
        numbered, on=["device", "stream"], how="left", nulls_equal=True, maintain_order="left"
    )
    exchanged = collectives(trace).filter("is_host")
    host = exchanged.select(
        "id",
        "start",
        "end",
        launched="start",
        kind=pl.lit(CODE["communication"], pl.Int64),
        at="id",
        number=pl.lit(HOST, pl.Int64),
    )
    work = work.with_columns(pl.col("number").cast(pl.Int64))
    every = pl.concat([work, host], how="diagonal").sort("start", "id")
    track = trace.slices["track"].gather(every["at"])
    thread = trace.tracks["thread"].gather(track).cast(pl.Int64).fill_null(NONE).to_numpy()
    part = np.append(threads_of(trace).part, NO_PART)[thread]
    return Nodes(
        id=every["id"].cast(pl.Int64).to_numpy(),
        start=every["start"].to_numpy(),
        end=every["end"].to_numpy(),
        kind=every["kind"].to_numpy(),
        stream=every["number"].to_numpy(),
        launched=every["launched"].fill_null(NEVER).to_numpy(),
        thread=thread,
        part=part,
        streams=streams,
    )
