"""Host time, device time and memory of each host slice, with and without its children.

The entries are those of the call tree, as torch's tables have them: without Python frames unless
requested, and with an operator that only calls another of its name merged with that one. Two errors
of torch's tables are not repeated: device work of both merged operators counts, and memory counts
on the thread that recorded it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.call_tree.call_tree import CallTree, call_tree, has_python_frames
from selftime.analysis.call_tree.parent_array_forests import (
    is_marked_or_has_marked_ancestor,
    nearest_marked_of_every_node,
    subtree_totals,
)
from selftime.analysis.device.device_work import slice_durations_without_impossible
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_filters import rows_with_matching_name
from selftime.array_types import Flags, Ints
from selftime.devices import HOST_DEVICE_TYPES
from selftime.nesting import NO_SLICE, innermost_slice_at, nearest_ancestor
from selftime.trace import Trace

NAME_OF_ALL_PROFILER_STEPS = "ProfilerStep*"
"""The one name under which torch's tables list all profiler steps."""


@dataclass(frozen=True, slots=True)
class SelfTimes:
    """Time (ns) and memory of each host slice, alone and with children; parents come first."""

    id: Ints
    name: pl.Series
    category: pl.Series
    parent: Ints
    """The index in these arrays of the slice that encloses each slice, or -1 if there is none."""
    cpu: Ints
    self_cpu: Ints
    device: Ints
    self_device: Ints
    memory: dict[str, Ints]
    """Bytes allocated minus bytes released: `cpu` and `device` with children, `self_cpu` and
    `self_device` without.
    """
    memory_outside_slices: pl.DataFrame
    """Memory allocated or released outside every host slice: one row per record, columns `cpu` and
    `device` in bytes.
    """
    owner: Ints
    """For each slice of the trace, by id: the index in these arrays to which its costs are charged,
    or -1 if there is none.
    """

    def sum_by_entry(self, slices: Ints, amounts: Ints) -> Ints:
        """Returns for each host slice the sum of the amounts of the slices charged to it."""
        return _sum_amounts_by_entry(self.owner, slices, amounts, self.id.size)


def self_times(trace: Trace, *, with_python_frames: bool = False) -> SelfTimes:
    """Returns time and memory of each host slice: operators, annotations and runtime calls.

    With `with_python_frames`, Python frames are entries too, so that a frame's own time is not
    charged to the annotation around it. The arrays are shared and read-only.
    """
    if with_python_frames and has_python_frames(trace):
        return _self_times_with_python_frames(trace)
    return _self_times_without_python_frames(trace)


@cached_per_trace
def _self_times_with_python_frames(trace: Trace) -> SelfTimes:
    return _self_times_of_tree(trace, call_tree(trace, clip=False))


@cached_per_trace
def _self_times_without_python_frames(trace: Trace) -> SelfTimes:
    return _self_times_of_tree(trace, call_tree(trace, frames=False))


def _self_times_of_tree(trace: Trace, tree: CallTree) -> SelfTimes:
    """Returns time and memory of each slice of a call tree."""
    name = _slice_names_as_in_torch(trace).gather(tree.id)
    kept, above, self_cpu = _merge_only_children_of_same_name(name.to_physical().to_numpy(), tree)
    at = np.flatnonzero(kept)
    local = np.full(kept.size + 1, NO_SLICE, np.int64)  # the last entry is for -1: no slice
    local[at] = np.arange(at.size)
    owner = _owning_entry_of_slices(tree, kept, local)
    own_device = _own_device_time_of_entries(trace, owner, at.size)
    memory, memory_outside_slices = _own_memory_and_unowned_records(trace, tree, owner, at.size)
    above = local[above[at]]
    ids = tree.id[at]
    found = SelfTimes(
        id=ids,
        name=name.gather(at),
        category=trace.slices["category"].gather(ids),
        parent=above,
        cpu=trace.slices["duration"].fill_null(0).to_numpy()[ids],
        self_cpu=self_cpu[at],
        device=subtree_totals(above, own_device),
        self_device=own_device,
        memory={
            **{f"self_{side}": own for side, own in memory.items()},
            **{side: subtree_totals(above, own) for side, own in memory.items()},
        },
        memory_outside_slices=memory_outside_slices,
        owner=owner,
    )
    shared = (found.id, found.parent, found.cpu, found.self_cpu, found.device, found.self_device)
    for array in (*shared, *found.memory.values(), found.owner):
        array.flags.writeable = False
    return found


def _slice_names_as_in_torch(trace: Trace) -> pl.Series:
    """Returns slice names as in torch's tables, where all profiler steps share one name."""
    named = trace.slices["name"]
    steps = rows_with_matching_name(
        trace.slices, lambda name: names.profiler_step_number(name) is not None
    )
    at = np.flatnonzero(steps) if steps.dtype == np.bool_ else steps
    if at.size:
        one = pl.Series([NAME_OF_ALL_PROFILER_STEPS], dtype=named.dtype)
        return named.clone().scatter(pl.Series(at), one)
    return named


def _merge_only_children_of_same_name(
    name_codes: NDArray[Any], tree: CallTree
) -> tuple[Flags, Ints, Ints]:
    """Merges an operator's only child into the operator if both have the same name.

    Returns which entries of the tree are kept, their parents, and their self times.
    """
    kept, above = np.ones(tree.id.size, bool), tree.parent.copy()
    self_time = tree.self_time.copy()
    at = np.flatnonzero(above != NO_SLICE)
    children = np.bincount(above[at], minlength=kept.size)
    at = at[name_codes[at] == name_codes[above[at]]]
    while (merged := at[children[above[at]] == 1]).size:
        kept[merged] = False
        holder = nearest_ancestor(above, kept, merged)
        np.add.at(self_time, holder, self_time[merged])
        # A holder now has the children of the one that it had. No other entry has other children.
        at = np.flatnonzero(kept & ~np.append(kept, True)[above])
        above[at] = nearest_ancestor(above, kept, above[at])
        children[holder] = 0
        np.add.at(children, above[at], 1)
        at = at[name_codes[at] == name_codes[above[at]]]
    return kept, above, self_time


def _owning_entry_of_slices(tree: CallTree, is_kept: Flags, entry_of_node: Ints) -> Ints:
    """Returns the kept slice that each slice is charged to: itself, its nearest ancestor, or -1."""
    holder = entry_of_node[nearest_marked_of_every_node(tree.parent, is_kept)]
    return np.append(holder, NO_SLICE)[tree.place]


def _own_device_time_of_entries(trace: Trace, owner: Ints, entry_count: int) -> Ints:
    """Returns for each host slice the time (ns) of the device work that it launched itself.

    Work counts for its innermost operator; without one, for the runtime call that launched it.
    """
    work = trace.device_args.select("id", "operator")
    by = work.select(pl.coalesce("operator", trace.slices["launch"].gather(work["id"]))).to_series()
    known = by.is_not_null()
    time = slice_durations_without_impossible(trace).gather(work["id"].filter(known)).fill_null(0)
    return _sum_amounts_by_entry(owner, by.filter(known).to_numpy(), time.to_numpy(), entry_count)


def _own_memory_and_unowned_records(
    trace: Trace, tree: CallTree, owner: Ints, entry_count: int
) -> tuple[dict[str, Ints], pl.DataFrame]:
    """Returns each host slice's net bytes by device side, and memory records outside all slices."""
    on_host = pl.col("device_type").is_in(HOST_DEVICE_TYPES)
    memory = trace.memory.select("time", "track", "device_type", "bytes", "failed")
    records = memory.filter(~pl.col("failed"))
    records = records.select(
        "time",
        thread=trace.tracks["thread"].gather(records["track"]),
        cpu=pl.when(on_host).then("bytes").otherwise(0).fill_null(0),
        device=pl.when(~on_host).then("bytes").otherwise(0).fill_null(0),
    )
    where = _innermost_slices_of_records(trace, tree, records)
    inside = where != NO_SLICE
    own = {
        side: _sum_amounts_by_entry(
            owner, where[inside], records[side].to_numpy()[inside], entry_count
        )
        for side in ("cpu", "device")
    }
    return own, records.filter(pl.Series(~inside)).select("cpu", "device")


def _innermost_slices_of_records(trace: Trace, tree: CallTree, records: pl.DataFrame) -> Ints:
    """Returns the id of the innermost host slice around each memory record; -1 for none."""
    threads, time = records["thread"].to_numpy(), records["time"].to_numpy()
    found = np.full(time.size, NO_SLICE, np.int64)
    thread = trace.tracks["thread"].gather(trace.slices["track"].gather(tree.id)).to_numpy()
    place = np.full(tree.id.size, NO_SLICE, np.int64)
    for number in np.unique(threads):
        mine = np.flatnonzero((thread == number) & ~tree.is_cross_thread)
        mine = mine[np.argsort(tree.start[mine], kind="stable")]
        place[mine] = np.arange(mine.size)
        above = np.where(tree.parent[mine] == NO_SLICE, NO_SLICE, place[tree.parent[mine]])
        asked = np.flatnonzero(threads == number)
        inner = innermost_slice_at(tree.start[mine], tree.end[mine], above, time[asked])
        found[asked] = np.where(
            inner == NO_SLICE, NO_SLICE, tree.id[mine[inner]] if mine.size else NO_SLICE
        )
    return found


def _sum_amounts_by_entry(owner: Ints, slices: Any, amounts: Any, entry_count: int) -> Ints:
    total = np.zeros(entry_count, np.int64)
    if len(slices):
        place = owner[slices.astype(np.int64)]
        np.add.at(total, place[place != NO_SLICE], amounts[place != NO_SLICE])
    return total


def is_inside_entry_named(self_times_of_host: SelfTimes, name_prefix: str) -> NDArray[np.bool_]:
    """Flags slices that, or whose ancestors, have the name prefix; an empty prefix flags all."""
    if not name_prefix:
        return np.ones(self_times_of_host.id.size, bool)
    wanted: NDArray[np.bool_] = (
        self_times_of_host.name.cast(pl.String).str.starts_with(name_prefix).to_numpy()
    )
    return is_marked_or_has_marked_ancestor(self_times_of_host.parent, wanted)
