"""The critical path of each step: from its end back to the end of the step before."""

from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.cached import cached_per_trace
from selftime.analysis.graph.binding_edges import (
    Edges,
    edges_into_nodes,
    edges_into_step_ends,
    joined,
    picked,
)
from selftime.analysis.graph.segment_kinds import KINDS, LINK, LINKS
from selftime.analysis.graph.segments import SEGMENTS, segments_of_edges, segments_of_nodes
from selftime.analysis.steps.steady_steps import assessed_steps
from selftime.arrays import Ints
from selftime.nesting import NONE
from selftime.trace import Trace

PATH_SEGMENTS: Final[dict[str, pl.DataType | type[pl.DataType]]] = {
    "step": pl.Int64,
    "counted": pl.Boolean,
    "kind": pl.Enum(KINDS),
    "slice": pl.UInt32,
    "name": pl.Categorical(),
    "start": pl.Int64,
    "end": pl.Int64,
    "link": pl.Enum(LINKS),
}


@cached_per_trace
def critical_paths(trace: Trace) -> pl.DataFrame:
    """The critical path of each judged step, from when it was done back to when the one before was.

    One row for each segment, in order of time. Columns: step, its number; counted, whether the step
    is typical; kind, one of `KINDS`; slice, the device work, the operator or frame, or for a gap
    the work that began late, null if none is known; name, the slice's; start and end, in ns; link,
    what let it begin, one of `LINKS`. The segments of a step touch each other: they begin with the
    step's `begin` and end with its `done`.
    """
    steps = assessed_steps(trace)
    begin, done = steps["begin"].to_numpy(), steps["done"].to_numpy()
    first = edges_into_step_ends(trace, steps["end"].to_numpy(), done)
    every = joined(edges_into_nodes(trace), first)
    passed, step, low = _passed(every, begin, done)
    edges = picked(every, passed)
    origin = np.where(passed < every.begin.size - done.size, passed, NONE)
    tables = [pl.DataFrame(schema=SEGMENTS)]
    tables += segments_of_edges(trace, edges, step, origin, low)
    into = np.flatnonzero((edges.next != NONE) & (edges.enter > low))
    link = np.append(every.link, LINK["unknown"])[edges.next[into]]
    tables.append(
        segments_of_nodes(trace, step[into], edges.next[into], low[into], edges.enter[into], link)
    )
    return _named(trace, steps, pl.concat(tables).sort("start"))


def _passed(edges: Edges, begin: Ints, done: Ints) -> tuple[Ints, Ints, Ints]:
    """The edges of each path, the number of its step, and the instant at which that is cut."""
    enter, following = edges.enter.tolist(), edges.next.tolist()
    passed: list[int] = []
    many = []
    first = edges.begin.size - done.size
    for number, (low, high) in enumerate(zip(begin.tolist(), done.tolist(), strict=True)):
        before = len(passed)
        at = first + number if high > low else NONE
        while at != NONE:
            passed.append(at)
            at = following[at] if enter[at] > low else NONE
        many.append(len(passed) - before)
    step = np.repeat(np.arange(done.size), many)
    return np.array(passed, np.int64), step, begin[step]


def _named(trace: Trace, steps: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """Segments with names for numbers."""
    slices = pl.select(pl.when(found["slice"] != NONE).then(found["slice"])).to_series()
    slices = slices.cast(pl.UInt32)
    return pl.DataFrame(
        {
            "step": steps["number"].gather(found["edge"]),
            "counted": steps["counted"].gather(found["edge"]),
            "kind": _word(found["kind"], KINDS),
            "slice": slices,
            "name": trace.slices["name"].gather(slices),
            "start": found["start"],
            "end": found["end"],
            "link": _word(found["link"], LINKS),
        },
        schema=PATH_SEGMENTS,
    )


def _word(codes: pl.Series, words: tuple[str, ...]) -> pl.Series:
    """The words that codes stand for."""
    return pl.Series(words, dtype=pl.Enum(words)).gather(codes)
