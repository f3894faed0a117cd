"""Computes the parent, depth and self time of each slice of a track.

A slice's parent is the innermost slice of its track that contains it. Its self time is the time in
which it is the innermost, that is the latest begun of the open slices. So the self times of a track
add up to the union of its slices, whether they nest or cross. Where slices nest, self time is the
duration minus the durations of the children.

Slices that begin or end up to `MAX_ROUNDING_CROSSING_NS` outside a neighbour do so
by rounding, and are clipped.
Slices that cross by more are kept as they are.
"""

from selftime.nesting.slice_crossings import (
    MAX_ROUNDING_CROSSING_NS,
    NO_SLICE,
    Nesting,
    crosses_no_slice,
)
from selftime.nesting.slice_nesting import (
    flag_with_ancestors,
    innermost_of_slices_at,
    innermost_slice_at,
    innermost_slice_on_tracks,
    nearest_ancestor,
    nest_slices,
)

__all__ = [
    "MAX_ROUNDING_CROSSING_NS",
    "NO_SLICE",
    "Nesting",
    "crosses_no_slice",
    "flag_with_ancestors",
    "innermost_of_slices_at",
    "innermost_slice_at",
    "innermost_slice_on_tracks",
    "nearest_ancestor",
    "nest_slices",
]
