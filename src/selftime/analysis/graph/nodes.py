"""What a critical path may pass through beside the host: device work, and collectives of hosts."""

from dataclasses import dataclass

import numpy as np

from selftime.analysis.cached import cached_per_trace
from selftime.analysis.graph.building import dependency_graph
from selftime.analysis.graph.segment_kinds import CODE
from selftime.arrays import Ints
from selftime.nesting import NONE
from selftime.trace import Trace


@dataclass(frozen=True, slots=True)
class Nodes:
    """The work of a graph, in its order, and then the calls that are collectives of hosts.

    Arrays of shape (n,), times in ns.
    """

    id: Ints
    start: Ints
    end: Ints
    kind: Ints
    """Its code, as in `CODE`."""
    call: Ints
    """The call that launched it, of a collective of the host itself; NONE if not known."""
    collectives: Ints
    """The calls that are collectives of hosts."""


@cached_per_trace
def nodes_of(trace: Trace) -> Nodes:
    """The nodes of a trace's dependency graph that a critical path may pass through."""
    graph = dependency_graph(trace)
    calls, work = graph.calls, graph.work
    host = np.flatnonzero(calls.is_collective)
    return Nodes(
        id=np.append(work.id, calls.id[host]),
        start=np.append(work.start, calls.start[host]),
        end=np.append(work.end, calls.end[host]),
        kind=np.append(graph.bindings.kind, np.full(host.size, CODE["communication"])),
        call=np.append(graph.bindings.call, host),
        collectives=host,
    )


def node_of_call(graph_size: int, nodes: Nodes, calls: Ints) -> Ints:
    """The node of each call, NONE of those that are no collectives of the host."""
    place = np.full(graph_size + 1, NONE)
    first = nodes.id.size - nodes.collectives.size
    place[nodes.collectives] = first + np.arange(nodes.collectives.size)
    return place[calls]
