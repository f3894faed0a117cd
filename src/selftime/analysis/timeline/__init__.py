"""Computes what the timeline shows between two instants at a given width in pixels.

Slices are assigned to lanes once per trace. A tile is then found by bisection, so that its cost
depends on the pixels and not on the size of the trace.
"""

from selftime.analysis.timeline.counter_curves import (
    counter_curves,
    list_counter_curves,
    visible_counter_curves,
)
from selftime.analysis.timeline.downsampling import TimelineWindow
from selftime.analysis.timeline.flow_arrows import (
    device_work_of_slice,
    flow_arrows_of_slice,
    related_slices,
)
from selftime.analysis.timeline.table_track import (
    DURATION_COLUMNS,
    START_COLUMNS,
    TableTrack,
    track_of_table,
)
from selftime.analysis.timeline.tracks import (
    list_rows_by_name,
    list_timeline_tracks,
    select_time_window,
    select_tracks,
)
from selftime.analysis.timeline.visible_slices import (
    SliceLanes,
    instant_mark_lanes,
    slice_lanes,
    slice_lanes_by_name,
    visible_instant_marks,
    visible_slices,
)

__all__ = [
    "DURATION_COLUMNS",
    "START_COLUMNS",
    "SliceLanes",
    "TableTrack",
    "TimelineWindow",
    "counter_curves",
    "device_work_of_slice",
    "flow_arrows_of_slice",
    "instant_mark_lanes",
    "list_counter_curves",
    "list_rows_by_name",
    "list_timeline_tracks",
    "related_slices",
    "select_time_window",
    "select_tracks",
    "slice_lanes",
    "slice_lanes_by_name",
    "track_of_table",
    "visible_counter_curves",
    "visible_instant_marks",
    "visible_slices",
]
