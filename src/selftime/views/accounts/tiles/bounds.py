"""From when to when a trace has anything to show."""

from selftime.trace import Trace
from selftime.views.accounts.kept import kept
from selftime.views.accounts.tiles.counters import curves
from selftime.views.accounts.tiles.marks import mark_lanes
from selftime.views.accounts.tiles.slices import slice_lanes

__all__ = ["extent"]


@kept
def extent(trace: Trace) -> tuple[int, int]:
    """Begin of the first and end of the last slice, mark or sample, in ns; 0 and 0 if none is."""
    lanes = [
        lanes
        for lanes in (slice_lanes(trace).lanes, mark_lanes(trace), curves(trace).lanes)
        if lanes.start.size
    ]
    begin = min((int(one.start[one.bounds[:-1]].min()) for one in lanes), default=0)
    end = max((int(one.end(one.bounds[1:] - 1).max()) for one in lanes), default=0)
    return begin, end
