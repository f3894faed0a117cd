"""Nesting of slices: parents, depths and self times.

A slice's parent is the innermost slice of its track that contains it. Its self time is the time in
which it is the innermost, that is the latest begun of the open slices. So the self times of a track
add up to the union of its slices, whether they nest or cross. Where slices nest, self time is the
duration minus the durations of the children.

Slices that begin or end up to `ROUNDING_NS` outside a neighbour do so by rounding, and are clipped.
Slices that cross by more are kept as they are.
"""

from selftime.nesting.crossings import NONE, ROUNDING_NS, Nesting, crosses_nothing
from selftime.nesting.innermost import innermost_at, innermost_on, nearest
from selftime.nesting.nest import nest

__all__ = [
    "NONE",
    "ROUNDING_NS",
    "Nesting",
    "crosses_nothing",
    "innermost_at",
    "innermost_on",
    "nearest",
    "nest",
]
