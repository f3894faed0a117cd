"""Finds an ancestor of every slice of a trace, in one pass from the outermost slices inwards.

`nesting.nearest_ancestor` climbs from each slice, which is cheaper for few slices.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_arguments import parent_of_every_slice
from selftime.array_types import Flags, Ints
from selftime.nesting import NO_SLICE, nearest_ancestor
from selftime.trace import Trace

_MIN_SLICES_PER_ASKED_SLICE_TO_CLIMB: Final = 8
"""Smallest ratio of all slices to those asked for at which climbing from these is cheaper."""


@dataclass(frozen=True, slots=True)
class _SlicesOfDepth:
    """The slices of one depth, which have no ancestors but at lower depths."""

    ids: NDArray[np.int32]
    parents: NDArray[np.int32]


@cached_per_trace
def _slices_by_depth(trace: Trace) -> list[_SlicesOfDepth]:
    """Returns the trace's slices that have a parent, by depth, the outermost first."""
    nested = trace.slices.select("id", "depth", "parent").filter(pl.col("parent").is_not_null())
    order = np.argsort(nested["depth"].to_numpy(), kind="stable")
    ids, parents = (nested[name].to_numpy()[order].astype(np.int32) for name in ("id", "parent"))
    bounds = np.flatnonzero(np.diff(nested["depth"].to_numpy()[order])) + 1
    return list(map(_SlicesOfDepth, np.split(ids, bounds), np.split(parents, bounds)))


def nearest_ancestor_of_every_slice(trace: Trace, is_wanted: Flags) -> NDArray[np.int32]:
    """Returns each slice's nearest slice flagged in `is_wanted`: itself, an ancestor, or -1."""
    found = np.where(is_wanted, np.arange(is_wanted.size, dtype=np.int32), np.int32(NO_SLICE))
    for level in _slices_by_depth(trace):
        found[level.ids] = np.where(is_wanted[level.ids], level.ids, found[level.parents])
    return found


def nearest_ancestor_of_slices(trace: Trace, is_wanted: Flags, slice_ids: Ints) -> Ints:
    """Returns each given slice's nearest slice flagged in `is_wanted`, or -1; -1 for the id -1."""
    if slice_ids.size * _MIN_SLICES_PER_ASKED_SLICE_TO_CLIMB < is_wanted.size:
        return nearest_ancestor(parent_of_every_slice(trace), is_wanted, slice_ids)
    found = nearest_ancestor_of_every_slice(trace, is_wanted).astype(np.int64)
    return np.append(found, NO_SLICE)[slice_ids]


def outermost_ancestor_of_every_slice(trace: Trace, is_wanted: Flags) -> NDArray[np.int32]:
    """Returns each slice's outermost slice flagged in `is_wanted`: an ancestor, itself, or -1."""
    found = np.where(is_wanted, np.arange(is_wanted.size, dtype=np.int32), np.int32(NO_SLICE))
    for level in _slices_by_depth(trace):
        above = found[level.parents]
        found[level.ids] = np.where(above == NO_SLICE, found[level.ids], above)
    return found
