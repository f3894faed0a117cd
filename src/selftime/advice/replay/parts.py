"""Which threads of the host take turns, so that they are one serial program, and which do not."""

from selftime.analysis.graph.serial_threads import taking_turns
from selftime.analysis.host_work import is_work
from selftime.analysis.slice_filters import slices_on
from selftime.intervals import union
from selftime.trace import Trace


def serial_parts(trace: Trace, threads: list[int]) -> dict[int, int]:
    """The number of the serial part that each of the threads belongs to, 0 for the busiest."""
    host = slices_on(trace, "host", ended=True)
    working = is_work(host)
    thread = trace.tracks["thread"].gather(host["track"]).to_numpy()[working]
    start = host["start"].to_numpy()[working]
    end = start + host["duration"].to_numpy()[working]
    busy = {t: union(start[mine], end[mine]) for t in threads for mine in [thread == t]}
    return taking_turns(busy)
