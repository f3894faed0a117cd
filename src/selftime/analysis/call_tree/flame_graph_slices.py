"""Chooses the slices that a flame graph is made of, with their parents and own times."""

from typing import NamedTuple

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.call_tree.call_tree import CallTree, call_tree
from selftime.analysis.call_tree.costs import WorkByLaunchingEntry, device_work_by_launching_entry
from selftime.analysis.call_tree.name_tree import parents_without_dropped_nodes
from selftime.analysis.call_tree.time_ordered_tree import own_times_in_window
from selftime.analysis.call_tree.training_passes import find_training_passes
from selftime.analysis.main_thread import main_thread
from selftime.analysis.steps.steady_steps import counted_step_windows, is_instant_in_windows
from selftime.analysis.steps.step_boundaries import find_steps
from selftime.array_types import Flags, Ints
from selftime.errors import UsageError
from selftime.nesting import NO_SLICE, flag_with_ancestors
from selftime.trace import Trace


class FlameGraphSource(NamedTuple):
    """What a flame graph is made of: which times of which slices."""

    by_module: bool = False
    """Whether plain frames are left out, and backward operators are within modules."""
    on_device: bool = False
    """Whether the time is of devices, and kernels are leaves."""
    thread: str = ""
    """The only host thread that counts, by its number; empty for all."""
    counted: bool = False
    """Whether only what began in steps that count for medians does."""
    step: str = ""
    """The number of the only step that counts; empty for all."""


class FlameGraphSlices(NamedTuple):
    """The n slices to fold into a flame graph: ids, parents and own times; arrays of shape (n,)."""

    id: Ints
    parent: Ints
    own: Ints
    """Each slice's time without its children, in ns, on the host or on the device."""
    host: Ints
    """The host slice of each row: the slice itself, or for device work the slice that launched it;
    -1 if unknown.
    """


def slices_for_flame_graph(
    trace: Trace, source: FlameGraphSource
) -> tuple[FlameGraphSlices, Flags]:
    """Returns the slices, and which of them count; the own time of the others is 0."""
    _raise_unless_thread_in_trace(trace, source.thread)
    if source.by_module:
        tree = find_training_passes(trace)
        entries, parent = tree.entries, tree.parent
    else:
        entries = call_tree(trace)
        parent = entries.parent
    stacked = _slices_of_call_tree(trace, entries, parent, source)
    chosen = _is_on_thread(trace, stacked.host, source.thread)
    if source.counted:
        chosen &= _began_in(trace, stacked.host, counted_step_windows(trace))
    if source.step:
        chosen &= _began_in(trace, stacked.host, _window_of_step(trace, source.step))
    return stacked._replace(own=np.where(chosen, stacked.own, 0)), chosen


class SlicesInOrderOfTime(NamedTuple):
    """Slices to keep apart in the order in which they began; arrays of shape (n,)."""

    slices: FlameGraphSlices
    is_chosen: Flags
    """Whether each slice counts; the own time of the others is 0."""
    start: Ints
    """When each slice began on the host or was launched, in ns."""
    track: Ints
    """The track of each host slice, and for device work that of its launch, if that is known."""
    thread: Ints
    """The number of each track's thread; the main thread has -1, so that it is the first."""


def slices_in_order_of_time(trace: Trace, source: FlameGraphSource) -> SlicesInOrderOfTime:
    """Returns the slices in order of time.

    Nothing is moved to where it was called from. Host slices are cut where a chosen step begins and
    ends. Device time is that of the work that was launched in the step.
    """
    _raise_unless_thread_in_trace(trace, source.thread)
    entries = call_tree(trace)
    stacked = _slices_of_call_tree(trace, entries, entries.parent, source)
    placed = np.where(stacked.host != NO_SLICE, stacked.host, stacked.id)
    start = trace.slices["start"].to_numpy()[placed]
    track = trace.slices["track"].to_numpy()[placed].astype(np.int64)
    thread = trace.tracks["thread"].cast(pl.Int64).to_numpy()[track]
    thread = np.where(thread == main_thread(trace), -1, thread)
    chosen = _is_on_thread(trace, stacked.host, source.thread)
    if source.counted:
        chosen &= _began_in(trace, stacked.host, counted_step_windows(trace))
    own = stacked.own
    if source.step:
        window = _window_of_step(trace, source.step)
        if source.on_device:
            chosen &= _began_in(trace, stacked.host, window)
        else:
            place = entries.place[stacked.id]
            own = own_times_in_window(entries, place, stacked.parent, own, window.row(0))
            chosen &= (start < window["end"][0]) & (entries.end[place] > window["start"][0])
            start = np.maximum(start, window["start"][0])
    slices = stacked._replace(own=np.where(chosen, own, 0))
    return SlicesInOrderOfTime(slices, chosen, start, track, thread)


def _raise_unless_thread_in_trace(trace: Trace, thread: str) -> None:
    known = trace.tracks.filter(pl.col("kind").is_in(["host", "python"]))["tid"].unique().sort()
    if thread and thread not in known:
        listed = ", ".join(known)
        raise UsageError(f"`thread` is `{thread}`; the trace has the host threads {listed}")


def _window_of_step(trace: Trace, step: str) -> pl.DataFrame:
    """Returns when a step began and ended on the host (ns), as a table of one row."""
    steps = find_steps(trace)
    found = steps.filter(pl.col("number").cast(pl.String) == step)
    if not found.height:
        numbers = steps["number"]
        listed = f"{numbers[0]} to {numbers[-1]}" if steps.height else "none"
        raise UsageError(f"`step` is `{step[:40]}`; the steps of the trace are {listed}")
    return found.select("start", "end").head(1)


def _is_on_thread(trace: Trace, host: Ints, thread: str) -> Flags:
    """Flags the rows whose host slice is on a thread; all if no thread is given."""
    chosen = np.ones(host.size, bool)
    if thread:
        known = host != NO_SLICE
        of_thread = (trace.tracks["tid"] == thread).to_numpy()
        chosen &= known
        chosen[known] &= of_thread[trace.slices["track"].to_numpy()[host[known]]]
    return chosen


def _began_in(trace: Trace, host: Ints, windows: pl.DataFrame) -> Flags:
    """Flags the rows whose host slice began in one of the windows (ns)."""
    chosen = host != NO_SLICE
    begun = trace.slices["start"].to_numpy()[host[chosen]]
    chosen[chosen] = is_instant_in_windows(begun, windows)
    return np.asarray(chosen)


def _slices_of_call_tree(
    trace: Trace, entries: CallTree, parent: Ints, source: FlameGraphSource
) -> FlameGraphSlices:
    """Returns the slices of a call tree with the given parents; device work below its launch."""
    dropped = np.zeros(entries.id.size, bool)
    if source.by_module:
        dropped |= _is_frame_outside_module_calls(trace)[entries.id] & (parent != NO_SLICE)
    if source.on_device:
        dropped |= _is_slice_of_category(trace, names.RUNTIME_CALL_CATEGORIES)[entries.id]
    above = parents_without_dropped_nodes(parent, dropped)
    holder = np.where(dropped, above, np.arange(above.size))
    if source.on_device:
        return _add_launched_work_as_children(
            device_work_by_launching_entry(trace, entries), entries.id, above, holder
        )
    own = np.zeros(holder.size, np.int64)
    np.add.at(own, holder[holder != NO_SLICE], entries.self_time[holder != NO_SLICE])
    return FlameGraphSlices(
        *keep_rows_and_renumber_parents(~dropped, above, entries.id, own, entries.id)
    )


def _add_launched_work_as_children(
    work: WorkByLaunchingEntry, slice_ids: Ints, parent: Ints, kept_ancestor: Ints
) -> FlameGraphSlices:
    """Returns the host slices that launched device work, with that work as their children."""
    launcher = np.where(
        work.owner == NO_SLICE,
        NO_SLICE,
        kept_ancestor[work.owner] if kept_ancestor.size else NO_SLICE,
    )
    around = flag_with_ancestors(parent, launcher)
    size = work.id.size
    began = np.where(
        work.owner == NO_SLICE, NO_SLICE, slice_ids[work.owner] if slice_ids.size else NO_SLICE
    )
    return FlameGraphSlices(
        *keep_rows_and_renumber_parents(
            np.append(around, np.ones(size, bool)),
            np.append(parent, launcher),
            np.append(slice_ids, work.id),
            np.append(np.zeros(slice_ids.size, np.int64), work.duration),
            np.append(slice_ids, began),
        )
    )


def keep_rows_and_renumber_parents(
    is_kept: Flags, parent: Ints, *columns: Ints
) -> tuple[Ints, ...]:
    """Drops rows from columns; the parents become row numbers among the kept rows.

    The kept parents come second in the returned tuple, after the first of `columns`.
    """
    at = np.flatnonzero(is_kept)
    place = np.full(is_kept.size, NO_SLICE, np.int64)
    place[at] = np.arange(at.size)
    above = parent[at]
    first, *rest = (column[at] for column in columns)
    return first, np.where(above == NO_SLICE, NO_SLICE, place[above]), *rest


def _is_frame_outside_module_calls(trace: Trace) -> Flags:
    """Returns for each slice whether it is a Python frame that is not a call of an `nn.Module`."""
    found = _is_slice_of_category(trace, names.FRAME_CATEGORIES)
    modules = trace.frame_args.select("id", "module_id").drop_nulls()["id"]
    found[modules.to_numpy()] = False
    return found


def _is_slice_of_category(trace: Trace, categories: tuple[str, ...]) -> Flags:
    chosen = trace.slices["category"].is_in(list(categories))
    return chosen.to_numpy().copy()
