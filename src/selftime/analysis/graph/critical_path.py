"""Finds the critical path of each step, from its end back to the end of the previous step.

Its segments are device work, what the host did meanwhile, and gaps between nodes.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.graph.binding_edges import (
    CriticalPathEdges,
    concatenate_edges,
    dependency_edges_into_nodes,
    dependency_edges_into_step_ends,
    select_edges,
)
from selftime.analysis.graph.building import critical_path_nodes
from selftime.analysis.graph.dependency_graphs import (
    CODE_OF_SEGMENT_LINK,
    PATH_SEGMENT_KINDS,
    SEGMENT_LINK_KINDS,
)
from selftime.analysis.graph.serial_threads import SingleThreadStates, host_states, serial_threads
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.array_types import Ints
from selftime.nesting import NO_SLICE
from selftime.trace import Trace

EDGE_SEGMENTS_SCHEMA: Final = {
    "edge": pl.Int64,
    "start": pl.Int64,
    "end": pl.Int64,
    "kind": pl.Int64,
    "slice": pl.Int64,
    "link": pl.Int64,
}
"""Columns of critical path segments: edge number, start and end in ns, codes of kind and link, and
slice id (-1 if there is none).
"""

_MAX_SEGMENTS_PER_CHUNK: Final = 2_000_000
"""Largest number of host segments built at once, to limit memory use."""


def _segment_table(
    edge: Ints, start: Ints, end: Ints, kind: Ints, slice_id: Ints, link: Ints
) -> pl.DataFrame:
    """Returns a table of critical path segments, without segments of zero length."""
    columns = zip(EDGE_SEGMENTS_SCHEMA, (edge, start, end, kind, slice_id, link), strict=True)
    table = pl.DataFrame(dict(columns), schema=EDGE_SEGMENTS_SCHEMA)
    return table.filter(pl.col("end") > pl.col("start"))


def segments_of_edges(
    trace: Trace, edges: CriticalPathEdges, edge_number: Ints, origin_node: Ints, cut_time: Ints
) -> Iterator[pl.DataFrame]:
    """Yields tables of critical path segments: the parts of each edge after its `cut_time` (ns).

    Args:
        trace: The trace.
        edges: The edges.
        edge_number: The number of each edge, for its segments.
        origin_node: The node that each edge leads back from, or -1 if there is none.
        cut_time: Where each edge is cut, in ns.
    """
    yield _gap_segments_of_edges(trace, edges, edge_number, origin_node, cut_time)
    yield from _host_segments_of_edges(trace, edges, edge_number, cut_time)


def segments_of_nodes(
    trace: Trace, edge_number: Ints, node: Ints, begin: Ints, end: Ints, link: Ints
) -> pl.DataFrame:
    """Returns a critical path segment for each node: its part between `begin` and `end` (ns)."""
    nodes = critical_path_nodes(trace)
    start = np.maximum(nodes.start[node], begin)
    return _segment_table(edge_number, start, end, nodes.kind[node], nodes.id[node], link)


def _gap_segments_of_edges(
    trace: Trace, edges: CriticalPathEdges, edge_number: Ints, origin_node: Ints, cut_time: Ints
) -> pl.DataFrame:
    """Returns each edge's gap after `cut_time` (ns) as a segment, with the work that began late."""
    start = np.maximum(edges.cause, cut_time)
    number = np.append(critical_path_nodes(trace).id, NO_SLICE)[origin_node]
    return _segment_table(edge_number, start, edges.begin, edges.gap_code, number, edges.link_code)


def _host_segments_of_edges(
    trace: Trace, edges: CriticalPathEdges, edge_number: Ints, cut_time: Ints
) -> Iterator[pl.DataFrame]:
    """Yields segments of the host's activity along critical path edges after `cut_time` (ns)."""
    main = np.full(edge_number.size, serial_threads(trace).main_thread)
    unheld = np.where(
        edges.previous_node == NO_SLICE, CODE_OF_SEGMENT_LINK["begin"], CODE_OF_SEGMENT_LINK["host"]
    )
    started = np.where(
        edges.previous_node_reached_at >= cut_time, CODE_OF_SEGMENT_LINK["wait"], unheld
    )
    hopped = np.where(
        edges.main_thread_reached_at > np.maximum(edges.previous_node_reached_at, cut_time),
        CODE_OF_SEGMENT_LINK["thread"],
        started,
    )
    yield from _host_segments_of_spans(
        trace,
        edges.thread,
        edge_number,
        np.maximum(edges.main_thread_reached_at, cut_time),
        edges.cause,
        hopped,
    )
    yield from _host_segments_of_spans(
        trace,
        main,
        edge_number,
        np.maximum(edges.previous_node_reached_at, cut_time),
        edges.main_thread_reached_at,
        started,
    )


def _host_segments_of_spans(
    trace: Trace, thread: Ints, edge_number: Ints, begin: Ints, end: Ints, first_link: Ints
) -> Iterator[pl.DataFrame]:
    """Yields segments of host activity in time intervals; `first_link` says why each began."""
    states = host_states(trace)
    for number in np.unique(thread[end > begin]).tolist():
        found = states.states(number)
        own = np.flatnonzero((thread == number) & (end > begin))
        first = np.searchsorted(found.state_bounds, begin[own], side="right") - 1
        many = np.searchsorted(found.state_bounds, end[own], side="left") - first
        batch = np.cumsum(many) // _MAX_SEGMENTS_PER_CHUNK
        for one in np.unique(batch).tolist():
            mine = batch == one
            table = _thread_states_cut_to_spans(
                found, own[mine], first[mine], many[mine], (begin, end, first_link)
            )
            yield _segments_with_enclosing_slices(trace, number, table).with_columns(
                edge=pl.Series(edge_number).gather(table["edge"])
            )


def _thread_states_cut_to_spans(
    states: SingleThreadStates,
    span_index: Ints,
    first_state: Ints,
    state_count: Ints,
    bounds: tuple[Ints, Ints, Ints],
) -> pl.DataFrame:
    """Returns what a host thread did within given time intervals, as critical path segments."""
    low, high, link = bounds
    edge = np.repeat(span_index, state_count)
    within = np.arange(edge.size) - np.repeat(np.cumsum(state_count) - state_count, state_count)
    state = np.repeat(first_state, state_count) + within
    return _segment_table(
        edge,
        np.maximum(states.state_bounds[state], low[edge]),
        np.minimum(states.state_bounds[state + 1], high[edge]),
        states.kind[state],
        states.slice_id[state],
        np.where(within == 0, link[edge], CODE_OF_SEGMENT_LINK["host"]),
    )


def _segments_with_enclosing_slices(
    trace: Trace, thread_number: int, segments: pl.DataFrame
) -> pl.DataFrame:
    """Fills the slice of host segments between operators: the open Python frame or annotation."""
    number, link = segments["slice"].to_numpy().copy(), segments["link"].to_numpy().copy()
    edge, known = segments["edge"].to_numpy(), np.flatnonzero(number != NO_SLICE)
    track = trace.slices["track"].to_numpy()[number[known]]
    thread = trace.tracks["thread"].to_numpy()[track]
    hops = (thread[1:] != thread[:-1]) & (edge[known[1:]] == edge[known[:-1]])
    link[known[1:][hops]] = CODE_OF_SEGMENT_LINK["thread"]
    between = np.flatnonzero(number == NO_SLICE)
    middle = ((segments["start"] + segments["end"]) // 2).to_numpy()[between]
    number[between] = host_states(trace).open_frame_or_annotation(thread_number, middle)
    return segments.with_columns(slice=number, link=link)


PATH_SEGMENTS_SCHEMA: Final[dict[str, pl.DataType | type[pl.DataType]]] = {
    "step": pl.Int64,
    "counted": pl.Boolean,
    "kind": pl.Enum(PATH_SEGMENT_KINDS),
    "slice": pl.UInt32,
    "name": pl.Categorical(),
    "start": pl.Int64,
    "end": pl.Int64,
    "link": pl.Enum(SEGMENT_LINK_KINDS),
}
"""Columns of `critical_path_segments`; times in ns."""


@cached_per_trace
def critical_path_segments(trace: Trace) -> pl.DataFrame:
    """Returns the critical path of each step as a table, one row for each segment.

    One row for each segment, in order of time. Columns: step, its number; counted, whether the step
    is typical; kind, one of `PATH_SEGMENT_KINDS`; slice, the device work, the operator or frame, or
    for a gap the work that began late, null if unknown; name, the slice's; start and end, in ns;
    link, the reason why it began, one of `SEGMENT_LINK_KINDS`. The segments of a step are
    contiguous, from the step's `begin` to its `done`.
    """
    steps = steps_with_counted_flags(trace)
    begin, done = steps["begin"].to_numpy(), steps["done"].to_numpy()
    first = dependency_edges_into_step_ends(trace, steps["end"].to_numpy(), done)
    every = concatenate_edges(dependency_edges_into_nodes(trace), first)
    passed, step, low = _edges_steps_and_cuts_of_paths(every, begin, done)
    edges = select_edges(every, passed)
    origin = np.where(passed < every.begin.size - done.size, passed, NO_SLICE)
    tables = [pl.DataFrame(schema=EDGE_SEGMENTS_SCHEMA)]
    tables += segments_of_edges(trace, edges, step, origin, low)
    into = np.flatnonzero(
        (edges.previous_node != NO_SLICE) & (edges.previous_node_reached_at > low)
    )
    link = np.append(every.link_code, CODE_OF_SEGMENT_LINK["unknown"])[edges.previous_node[into]]
    tables.append(
        segments_of_nodes(
            trace,
            step[into],
            edges.previous_node[into],
            low[into],
            edges.previous_node_reached_at[into],
            link,
        )
    )
    return _segments_with_names(trace, steps, pl.concat(tables).sort("start"))


def _edges_steps_and_cuts_of_paths(
    edges: CriticalPathEdges, step_begin_times: Ints, step_done_times: Ints
) -> tuple[Ints, Ints, Ints]:
    """Returns the edges of all steps' paths, each edge's step, and where (ns) the edge is cut."""
    enter, following = edges.previous_node_reached_at.tolist(), edges.previous_node.tolist()
    passed: list[int] = []
    many = []
    first = edges.begin.size - step_done_times.size
    for number, (low, high) in enumerate(
        zip(step_begin_times.tolist(), step_done_times.tolist(), strict=True)
    ):
        before = len(passed)
        at = first + number if high > low else NO_SLICE
        while at != NO_SLICE:
            passed.append(at)
            at = following[at] if enter[at] > low else NO_SLICE
        many.append(len(passed) - before)
    step = np.repeat(np.arange(step_done_times.size), many)
    return np.array(passed, np.int64), step, step_begin_times[step]


def _segments_with_names(trace: Trace, steps: pl.DataFrame, segments: pl.DataFrame) -> pl.DataFrame:
    """Returns the segments with step numbers, and with names in place of kind and link codes."""
    slices = pl.select(pl.when(segments["slice"] != NO_SLICE).then(segments["slice"])).to_series()
    slices = slices.cast(pl.UInt32)
    return pl.DataFrame(
        {
            "step": steps["number"].gather(segments["edge"]),
            "counted": steps["counted"].gather(segments["edge"]),
            "kind": _names_of_codes(segments["kind"], PATH_SEGMENT_KINDS),
            "slice": slices,
            "name": trace.slices["name"].gather(slices),
            "start": segments["start"],
            "end": segments["end"],
            "link": _names_of_codes(segments["link"], SEGMENT_LINK_KINDS),
        },
        schema=PATH_SEGMENTS_SCHEMA,
    )


def _names_of_codes(codes: pl.Series, names: tuple[str, ...]) -> pl.Series:
    """Returns the name of each code, `names[code]`."""
    return pl.Series(names, dtype=pl.Enum(names)).gather(codes)
