"""Costs of each call tree slice without its children: device time, launches, waits, memory.

Device work is charged to the call that launched it. Costs that belong to no slice of the tree (work
launched before the recording, memory outside every operator) are kept separately, so that sums are
complete.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.call_tree.call_tree import CallTree
from selftime.analysis.device.device_work import slice_durations_without_impossible
from selftime.analysis.slice_arguments import slices_with_arguments
from selftime.analysis.slice_filters import filter_by_name, is_on_track_kind, slices_on
from selftime.array_types import Ints
from selftime.devices import HOST_DEVICE_TYPES
from selftime.nesting import NO_SLICE
from selftime.trace import Trace


@dataclass(frozen=True, slots=True)
class WorkByLaunchingEntry:
    """Device slices, each with the call tree slice that launched it; arrays of shape (m,)."""

    id: Ints
    duration: Ints
    """The duration of each device slice in ns; impossible durations are shortened; 0 if the end is
    unknown.
    """
    owner: Ints
    """The call tree index of the launching call, or of its operator if the call is not in the tree;
    -1 if unknown.
    """


@dataclass(frozen=True, slots=True)
class CallTreeEntryCosts:
    """Costs of each call tree slice without its children; arrays in the order of the tree."""

    device: Ints
    """Device time in ns: the summed durations of the kernels, copies and fills that each slice
    launched.
    """
    device_slices: Ints
    """Number of kernels, copies and fills that each slice launched."""
    waits: Ints
    """Host time in ns that each slice spent waiting for a device, a lock, a timer or a socket."""
    cpu_memory: Ints
    """Bytes of host memory that each slice allocated, minus the bytes that it released."""
    device_memory: Ints
    """Bytes of device memory that each slice allocated, minus the bytes that it released."""
    lost: dict[str, int]
    """Sum of the costs that belong to no slice of the call tree, by the name of the field above."""


def device_work_by_launching_entry(trace: Trace, entries: CallTree) -> WorkByLaunchingEntry:
    """Returns all device slices, each with the call tree slice that launched it."""
    work = slices_on(trace, "device").select("id", "launch")
    work = slices_with_arguments(trace, "device_args", work, "operator")
    owner = _tree_entry_of_slices(entries, work["launch"])
    owner = np.where(owner == NO_SLICE, _tree_entry_of_slices(entries, work["operator"]), owner)
    duration = slice_durations_without_impossible(trace).gather(work["id"]).fill_null(0)
    return WorkByLaunchingEntry(work["id"].to_numpy(), duration.to_numpy(), owner)


def call_tree_entry_costs(
    trace: Trace, entries: CallTree, work: WorkByLaunchingEntry
) -> CallTreeEntryCosts:
    """Returns the costs of each slice of the call tree, without the costs of its children."""
    once = np.ones(work.owner.size, np.int64)
    operator, memory = _operator_and_bytes_of_records(trace)
    owner = _tree_entry_of_slices(entries, operator)
    amounts: dict[str, tuple[Ints, Ints]] = {
        "device": (work.owner, work.duration),
        "device_slices": (work.owner, once),
        **{kind: (owner, much) for kind, much in memory.items()},
    }
    own = {
        name: _sum_amounts_by_entry(*amount, entries.id.size) for name, amount in amounts.items()
    }
    lost = {name: int(much[at == NO_SLICE].sum()) for name, (at, much) in amounts.items()}
    return CallTreeEntryCosts(**own, waits=_self_time_of_waits(trace, entries), lost=lost)


def _self_time_of_waits(trace: Trace, entries: CallTree) -> Ints:
    """Returns the self time (ns) of each call tree slice that is a wait; 0 for all other slices."""
    named = trace.slices.select("id", "name")
    is_call = trace.slices["category"].is_in(list(names.RUNTIME_CALL_CATEGORIES))
    waiting = [
        filter_by_name(named.filter(is_call), names.is_blocking_call)["id"],
        filter_by_name(named.filter(is_on_track_kind(trace, "python")), names.is_waiting_frame)[
            "id"
        ],
    ]
    place = entries.place[pl.concat(waiting).to_numpy()]
    place = place[place != NO_SLICE]
    found = np.zeros(entries.id.size, np.int64)
    found[place] = entries.self_time[place]
    return found


def _operator_and_bytes_of_records(trace: Trace) -> tuple[pl.Series, dict[str, Ints]]:
    """Returns each memory record's operator id, and its bytes on the host and on a device."""
    memory = trace.memory.select("operator", "device_type", "bytes", "failed")
    records = memory.filter(~pl.col("failed"))
    much = records["bytes"].fill_null(0).to_numpy()
    on_host = records["device_type"].is_in(HOST_DEVICE_TYPES)
    parts = {
        "cpu_memory": on_host,
        "device_memory": ~on_host,
    }  # records of an unknown type are in neither
    return records["operator"], {
        kind: np.where(part.fill_null(value=False).to_numpy(), much, 0)
        for kind, part in parts.items()
    }


def _tree_entry_of_slices(entries: CallTree, slice_ids: pl.Series) -> Ints:
    """Returns the call tree index of each slice id; -1 for null and for slices not in the tree."""
    asked = slice_ids.cast(pl.Int64).fill_null(NO_SLICE).to_numpy()
    if not entries.place.size:
        return np.full(asked.size, NO_SLICE, np.int64)
    return np.where(asked == NO_SLICE, NO_SLICE, entries.place[asked])


def _sum_amounts_by_entry(owner: Ints, amounts: Ints, entry_count: int) -> Ints:
    """Returns for each call tree index the sum of the amounts whose `owner` is that index."""
    total = np.zeros(entry_count, np.int64)
    known = owner != NO_SLICE
    np.add.at(total, owner[known], amounts[known])
    return total
