"""Tiles: what of a trace is visible between two instants at a number of pixels.

Slices are laid on lanes once for a trace; a tile is then found by bisection, so that what it costs
depends on the pixels and not on the size of the trace.
"""

from selftime.analysis.timeline.counters import curves, listed_curves, visible_curves
from selftime.analysis.timeline.downsampling import Window
from selftime.analysis.timeline.flow_arrows import flows_of, related_slices
from selftime.analysis.timeline.slices import mark_lanes, slice_lanes, visible_marks, visible_slices
from selftime.analysis.timeline.tracks import chosen_time, chosen_tracks, listed_tracks

__all__ = [
    "Window",
    "chosen_time",
    "chosen_tracks",
    "curves",
    "flows_of",
    "listed_curves",
    "listed_tracks",
    "mark_lanes",
    "related_slices",
    "slice_lanes",
    "visible_curves",
    "visible_marks",
    "visible_slices",
]
