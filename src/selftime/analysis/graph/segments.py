"""The segments of edges and nodes: gaps, what the host did, device work."""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.graph.binding_edges import Edges
from selftime.analysis.graph.host_states import States, host_states_of
from selftime.analysis.graph.nodes import nodes_of
from selftime.analysis.graph.segment_kinds import LINK
from selftime.analysis.graph.serial_threads import serial_threads_of
from selftime.arrays import Ints
from selftime.nesting import NONE
from selftime.trace import Trace

SEGMENTS: Final = {
    "edge": pl.Int64,
    "start": pl.Int64,
    "end": pl.Int64,
    "kind": pl.Int64,
    "slice": pl.Int64,
    "link": pl.Int64,
}
"""Columns of segments: the number of the edge, instants in ns, codes, and the slice or NONE."""

_AT_ONCE: Final = 2_000_000
"""So many segments of the host are made at once: spans of host time may share them."""


def _segments(
    edge: Ints, start: Ints, end: Ints, kind: Ints, number: Ints, link: Ints
) -> pl.DataFrame:
    """A table of segments, those without length left out."""
    columns = zip(SEGMENTS, (edge, start, end, kind, number, link), strict=True)
    table = pl.DataFrame(dict(columns), schema=SEGMENTS)
    return table.filter(pl.col("end") > pl.col("start"))


def segments_of_edges(
    trace: Trace, edges: Edges, edge: Ints, node: Ints, low: Ints
) -> Iterator[pl.DataFrame]:
    """The segments of edges back, from `low` on, in several tables.

    Args:
        trace: The trace.
        edges: The edges.
        edge: The number of each, for its segments.
        node: The node that each leads back from, or NONE.
        low: Where each is cut, in ns.
    """
    yield _gaps(trace, edges, edge, node, low)
    yield from _on_host(trace, edges, edge, low)


def segments_of_nodes(
    trace: Trace, edge: Ints, node: Ints, low: Ints, high: Ints, link: Ints
) -> pl.DataFrame:
    """The part of each node between two instants."""
    nodes = nodes_of(trace)
    start = np.maximum(nodes.start[node], low)
    return _segments(edge, start, high, nodes.kind[node], nodes.id[node], link)


def _gaps(trace: Trace, edges: Edges, edge: Ints, node: Ints, low: Ints) -> pl.DataFrame:
    """The gaps before nodes, from `low` on; they bear the slices that begin late."""
    start = np.maximum(edges.cause, low)
    number = np.append(nodes_of(trace).id, NONE)[node]
    return _segments(edge, start, edges.begin, edges.gap, number, edges.link)


def _on_host(trace: Trace, edges: Edges, edge: Ints, low: Ints) -> Iterator[pl.DataFrame]:
    """What the host did on the edges, from `low` on, in several tables."""
    main = np.full(edge.size, serial_threads_of(trace).main)
    unheld = np.where(edges.next == NONE, LINK["begin"], LINK["host"])
    started = np.where(edges.enter >= low, LINK["wait"], unheld)
    hopped = np.where(edges.hop > np.maximum(edges.enter, low), LINK["thread"], started)
    yield from _host_segments(
        trace, edges.thread, edge, np.maximum(edges.hop, low), edges.cause, hopped
    )
    yield from _host_segments(trace, main, edge, np.maximum(edges.enter, low), edges.hop, started)


def _host_segments(
    trace: Trace, thread: Ints, edge: Ints, low: Ints, high: Ints, link: Ints
) -> Iterator[pl.DataFrame]:
    """What serial threads did between two instants each; `link` is that of the first segment."""
    states = host_states_of(trace)
    for number in np.unique(thread[high > low]).tolist():
        found = states.states(number)
        own = np.flatnonzero((thread == number) & (high > low))
        first = np.searchsorted(found.edge, low[own], side="right") - 1
        many = np.searchsorted(found.edge, high[own], side="left") - first
        batch = np.cumsum(many) // _AT_ONCE
        for one in np.unique(batch).tolist():
            mine = batch == one
            table = _cut(found, own[mine], first[mine], many[mine], (low, high, link))
            yield _named(trace, number, table).with_columns(
                edge=pl.Series(edge).gather(table["edge"])
            )


def _cut(
    found: States, own: Ints, first: Ints, many: Ints, spans: tuple[Ints, Ints, Ints]
) -> pl.DataFrame:
    low, high, link = spans
    edge = np.repeat(own, many)
    within = np.arange(edge.size) - np.repeat(np.cumsum(many) - many, many)
    state = np.repeat(first, many) + within
    return _segments(
        edge,
        np.maximum(found.edge[state], low[edge]),
        np.minimum(found.edge[state + 1], high[edge]),
        found.kind[state],
        found.slice[state],
        np.where(within == 0, link[edge], LINK["host"]),
    )


def _named(trace: Trace, serial: int, table: pl.DataFrame) -> pl.DataFrame:
    """With the frame or annotation of what lies between operators, and hops between threads."""
    number, link = table["slice"].to_numpy().copy(), table["link"].to_numpy().copy()
    edge, known = table["edge"].to_numpy(), np.flatnonzero(number != NONE)
    track = trace.slices["track"].to_numpy()[number[known]]
    thread = trace.tracks["thread"].to_numpy()[track]
    hops = (thread[1:] != thread[:-1]) & (edge[known[1:]] == edge[known[:-1]])
    link[known[1:][hops]] = LINK["thread"]
    between = np.flatnonzero(number == NONE)
    middle = ((table["start"] + table["end"]) // 2).to_numpy()[between]
    number[between] = host_states_of(trace).between(serial, middle)
    return table.with_columns(slice=number, link=link)
