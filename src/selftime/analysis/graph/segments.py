"""The segments of ways and nodes: gaps, what the host did, device work."""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.graph.edges import Edges
from selftime.analysis.graph.host_states import Tiles, doing_of
from selftime.analysis.graph.nodes import nodes_of
from selftime.analysis.graph.segment_kinds import LINK
from selftime.analysis.graph.serial_threads import threads_of
from selftime.arrays import Ints
from selftime.nesting import NONE
from selftime.trace import Trace

SEGMENTS: Final = {
    "way": pl.Int64,
    "start": pl.Int64,
    "end": pl.Int64,
    "kind": pl.Int64,
    "slice": pl.Int64,
    "link": pl.Int64,
}
"""Columns of segments: the number of the way, instants in ns, codes, and the slice or NONE."""

_AT_ONCE: Final = 2_000_000
"""So many segments of the host are made at once: stretches may share them."""


def _segments(
    way: Ints, start: Ints, end: Ints, kind: Ints, number: Ints, link: Ints
) -> pl.DataFrame:
    """A table of segments, those without length left out."""
    columns = zip(SEGMENTS, (way, start, end, kind, number, link), strict=True)
    table = pl.DataFrame(dict(columns), schema=SEGMENTS)
    return table.filter(pl.col("end") > pl.col("start"))


def segments_of_edges(
    trace: Trace, ways: Edges, way: Ints, node: Ints, low: Ints
) -> Iterator[pl.DataFrame]:
    """The segments of ways back, from `low` on, in several tables.

    Args:
        trace: The trace.
        ways: The ways.
        way: The number of each, for its segments.
        node: The node that each leads back from, or NONE.
        low: Where each is cut, in ns.
    """
    yield _gaps(trace, ways, way, node, low)
    yield from _on_host(trace, ways, way, low)


def segments_of_nodes(
    trace: Trace, way: Ints, node: Ints, low: Ints, high: Ints, link: Ints
) -> pl.DataFrame:
    """The part of each node between two instants."""
    nodes = nodes_of(trace)
    start = np.maximum(nodes.start[node], low)
    return _segments(way, start, high, nodes.kind[node], nodes.id[node], link)


def _gaps(trace: Trace, ways: Edges, way: Ints, node: Ints, low: Ints) -> pl.DataFrame:
    """The gaps before nodes, from `low` on; they bear the slices that begin late."""
    start = np.maximum(ways.cause, low)
    number = np.append(nodes_of(trace).id, NONE)[node]
    return _segments(way, start, ways.begin, ways.gap, number, ways.link)


def _on_host(trace: Trace, ways: Edges, way: Ints, low: Ints) -> Iterator[pl.DataFrame]:
    """What the host did on the ways, from `low` on, in several tables."""
    main = np.full(way.size, threads_of(trace).main)
    untold = np.where(ways.next == NONE, LINK["begin"], LINK["host"])
    started = np.where(ways.enter >= low, LINK["wait"], untold)
    hopped = np.where(ways.hop > np.maximum(ways.enter, low), LINK["thread"], started)
    yield from _stretches(trace, ways.part, way, np.maximum(ways.hop, low), ways.cause, hopped)
    yield from _stretches(trace, main, way, np.maximum(ways.enter, low), ways.hop, started)


def _stretches(
    trace: Trace, part: Ints, way: Ints, low: Ints, high: Ints, link: Ints
) -> Iterator[pl.DataFrame]:
    """What the parts of the host did between two instants each; `link` is that of the first."""
    doing = doing_of(trace)
    for number in np.unique(part[high > low]).tolist():
        tiles = doing.tiles(number)
        own = np.flatnonzero((part == number) & (high > low))
        first = np.searchsorted(tiles.edge, low[own], side="right") - 1
        many = np.searchsorted(tiles.edge, high[own], side="left") - first
        batch = np.cumsum(many) // _AT_ONCE
        for one in np.unique(batch).tolist():
            mine = batch == one
            table = _cut(tiles, own[mine], first[mine], many[mine], (low, high, link))
            yield _named(trace, number, table).with_columns(way=pl.Series(way).gather(table["way"]))


def _cut(
    tiles: Tiles, own: Ints, first: Ints, many: Ints, told: tuple[Ints, Ints, Ints]
) -> pl.DataFrame:
    low, high, link = told
    way = np.repeat(own, many)
    within = np.arange(way.size) - np.repeat(np.cumsum(many) - many, many)
    tile = np.repeat(first, many) + within
    return _segments(
        way,
        np.maximum(tiles.edge[tile], low[way]),
        np.minimum(tiles.edge[tile + 1], high[way]),
        tiles.kind[tile],
        tiles.slice[tile],
        np.where(within == 0, link[way], LINK["host"]),
    )


def _named(trace: Trace, part: int, table: pl.DataFrame) -> pl.DataFrame:
    """With the frame or annotation of what lies between operators, and hops between threads."""
    number, link = table["slice"].to_numpy().copy(), table["link"].to_numpy().copy()
    way, known = table["way"].to_numpy(), np.flatnonzero(number != NONE)
    track = trace.slices["track"].to_numpy()[number[known]]
    thread = trace.tracks["thread"].to_numpy()[track]
    hops = (thread[1:] != thread[:-1]) & (way[known[1:]] == way[known[:-1]])
    link[known[1:][hops]] = LINK["thread"]
    between = np.flatnonzero(number == NONE)
    middle = ((table["start"] + table["end"]) // 2).to_numpy()[between]
    number[between] = doing_of(trace).between(part, middle)
    return table.with_columns(slice=number, link=link)
