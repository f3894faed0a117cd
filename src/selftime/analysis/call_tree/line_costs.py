"""What each source line costs: all operators, calls and frames, summed by line."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.call_tree.costs import (
    call_tree_entry_costs,
    device_work_by_launching_entry,
)
from selftime.analysis.call_tree.training_passes import (
    BACKWARD_PASS,
    FORWARD_PASS,
    RECOMPUTE_PASS,
    PassTree,
    find_training_passes,
)
from selftime.analysis.operator_dtypes import is_operator_computing_in_dtype
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_filters import (
    covered_time,
    filter_by_name,
    is_on_track_kind,
    slices_on,
)
from selftime.analysis.source_sites import numbered_source_sites
from selftime.analysis.steps.steady_steps import (
    counted_step_windows,
    is_instant_in_windows,
    steps_with_counted_flags,
)
from selftime.array_types import Flags, Ints
from selftime.nesting import NO_SLICE
from selftime.trace import Trace


def line_costs(
    trace: Trace, *, dtype: str = "", within_slice_named: str = "", counted_steps_only: bool = False
) -> pl.DataFrame:
    """Returns the costs of each source line, one row per line, and one row for unknown lines."""
    if not (dtype or within_slice_named):
        return _costs_in_counted_steps(trace) if counted_steps_only else _costs_in_all(trace)
    return _compute_line_costs(
        trace,
        dtype=dtype,
        within_slice_named=within_slice_named,
        counted_steps_only=counted_steps_only,
    )


@cached_per_trace
def _costs_in_all(trace: Trace) -> pl.DataFrame:
    return _compute_line_costs(trace, dtype="", within_slice_named="", counted_steps_only=False)


@cached_per_trace
def _costs_in_counted_steps(trace: Trace) -> pl.DataFrame:
    return _compute_line_costs(trace, dtype="", within_slice_named="", counted_steps_only=True)


def _compute_line_costs(
    trace: Trace, *, dtype: str, within_slice_named: str, counted_steps_only: bool
) -> pl.DataFrame:
    tree = find_training_passes(trace)
    ids = pl.Series("id", tree.entries.id, dtype=pl.UInt32)
    chosen = _is_selected_slice(
        trace,
        ids,
        dtype=dtype,
        within_slice_named=within_slice_named,
        counted_steps_only=counted_steps_only,
    )
    whole = not (dtype or within_slice_named)
    is_frame = is_on_track_kind(trace, "python")[tree.entries.id]
    amounts, lost = _own_costs_of_tree_entries(trace, tree)
    if counted_steps_only:
        lost = _device_work_without_launch_in_steps(trace, tree)
    found = numbered_source_sites(trace, ids)
    key = _line_row_index_of_entries(found.table, found.number)
    outer = _is_outermost_entry_of_line(tree, key)
    for kind in ("device_time", "self_cpu_time"):
        total = tree.subtree_total(
            amounts[kind] if chosen.all() else np.where(chosen, amounts[kind], 0)
        )
        amounts[f"total_{kind.removeprefix('self_')}"] = np.where(outer, total, 0)
    rows = _costs_by_line(
        trace, tree, chosen, _LineCostKeys(key, tree.pass_code, is_frame), amounts
    )
    if whole:
        rows = _line_rows_with_unowned_costs(rows, lost)
    return _line_rows_with_file_and_function(rows, found.table, trace)


def _is_selected_slice(
    trace: Trace,
    slice_ids: pl.Series,
    *,
    dtype: str,
    within_slice_named: str,
    counted_steps_only: bool,
) -> Flags:
    chosen = np.ones(slice_ids.len(), bool)
    if within_slice_named:
        chosen &= _began_inside_slice_named(trace, slice_ids, within_slice_named)
    if dtype:
        chosen &= is_operator_computing_in_dtype(trace, slice_ids, dtype)
    if counted_steps_only:
        starts = trace.slices["start"].gather(slice_ids).to_numpy()
        chosen &= is_instant_in_windows(starts, counted_step_windows(trace))
    return chosen


def _began_inside_slice_named(trace: Trace, slice_ids: pl.Series, name_prefix: str) -> Flags:
    """Flags slices that began while a slice with the given name prefix was open on their thread.

    This compares times and not ancestors, because annotations can cross frames and steps are not in
    the tree on a thread with frames.
    """
    thread = trace.tracks["thread"].gather(trace.slices["track"].gather(slice_ids)).to_numpy()
    starts = trace.slices["start"].gather(slice_ids).to_numpy()
    around = filter_by_name(slices_on(trace, "host"), lambda name: name.startswith(name_prefix))
    whose = trace.tracks["thread"].gather(around["track"])
    found = np.zeros(slice_ids.len(), bool)
    for number in whose.unique().to_list():
        begin, end = covered_time(around.filter(whose == number))
        mine = np.flatnonzero(thread == number)
        found[mine] = is_instant_in_windows(
            starts[mine], pl.DataFrame({"start": begin, "end": end})
        )
    return found


def _own_costs_of_tree_entries(
    trace: Trace, tree: PassTree
) -> tuple[dict[str, Ints], dict[str, int]]:
    """Returns each call tree slice's costs without children, by column, and costs of no slice."""
    entries = tree.entries
    cost = call_tree_entry_costs(trace, entries, device_work_by_launching_entry(trace, entries))
    amounts = {
        "device_time": cost.device,
        "self_cpu_time": entries.self_time,
        "waits": cost.waits,
        "device_slices": cost.device_slices,
        "cpu_memory": cost.cpu_memory,
        "device_memory": cost.device_memory,
    }
    lost = {"device_time": cost.lost["device"], **cost.lost}
    return amounts, {name: much for name, much in lost.items() if name in amounts}


def _device_work_without_launch_in_steps(trace: Trace, tree: PassTree) -> dict[str, int]:
    """Returns the time (ns) and count of device slices of unknown launch in the counted steps."""
    work = device_work_by_launching_entry(trace, tree.entries)
    ids = work.id[work.owner == NO_SLICE]
    inside = is_instant_in_windows(
        trace.slices["start"].to_numpy()[ids], counted_step_windows(trace)
    )
    duration = work.duration[work.owner == NO_SLICE]
    return {"device_time": int(duration[inside].sum()), "device_slices": int(inside.sum())}


def _line_row_index_of_entries(line_table: pl.DataFrame, line_number_of_entry: Ints) -> Ints:
    """Returns each call tree slice's row in `line_table`; -1 if its source line is unknown."""
    unknown = line_table["file"].is_null().to_numpy()
    line = np.append(np.where(unknown, NO_SLICE, np.arange(line_table.height)), NO_SLICE)
    return np.asarray(line[line_number_of_entry])


def _is_outermost_entry_of_line(tree: PassTree, line_row_of_entry: Ints) -> Flags:
    """Flags call tree slices without an ancestor of the same source line.

    Most entries have the line of their parent. So only the first entry of each such run, its head,
    is tested, and the search goes from head to head.
    """
    head = np.arange(line_row_of_entry.size)
    for level in tree.levels[1:]:
        same = level[line_row_of_entry[level] == line_row_of_entry[tree.parent[level]]]
        head[same] = head[tree.parent[same]]
    outer = head == np.arange(line_row_of_entry.size)
    at = np.flatnonzero(outer & (tree.parent != NO_SLICE))
    above = head[tree.parent[at]]
    while at.size:
        again = line_row_of_entry[above] == line_row_of_entry[at]
        outer[at[again]] = False
        at, above = at[~again], tree.parent[above[~again]]
        at, above = at[above != NO_SLICE], head[above[above != NO_SLICE]]
    return np.asarray(outer)


class _LineCostKeys(NamedTuple):
    """The source line and training pass by which slice costs are summed; arrays of shape (n,)."""

    line: Ints
    """The row of each slice's source line in the table of lines, or -1 if there is none."""
    pass_code: NDArray[np.int8]
    """The training pass in which each slice ran: FORWARD_PASS, BACKWARD_PASS or RECOMPUTE_PASS."""
    is_frame: Flags


def _costs_by_line(
    trace: Trace,
    tree: PassTree,
    is_chosen_entry: Flags,
    keys: _LineCostKeys,
    amounts: dict[str, Ints],
) -> pl.DataFrame:
    """Returns one row per source line with its summed costs, keyed by row in the table of lines.

    Costs are first summed by line, pass and kind of entry, of which there are few combinations.
    """
    nothing = [name for name, much in amounts.items() if not much.any()]
    events = pl.DataFrame(
        {
            "key": ((keys.line - NO_SLICE) * _TRAINING_PASS_COUNT + keys.pass_code) * 2
            + keys.is_frame,
            "first": trace.slices["start"].to_numpy()[tree.entries.id],
            "since_batch": _time_since_batch_loading_ns(trace, tree.entries.id),
            **{name: much for name, much in amounts.items() if name not in nothing},
        }
    )
    if not is_chosen_entry.all():
        events = events.filter(pl.Series(is_chosen_entry))
    times, key = pl.col("first", "since_batch").min(), pl.col("key")
    parts = (
        events.group_by("key")
        .agg(times, pl.exclude("key", "first", "since_batch").sum(), count=pl.len())
        .with_columns(pl.lit(0, pl.Int64).alias(name) for name in nothing)
        .with_columns(
            at=key // (2 * _TRAINING_PASS_COUNT) + NO_SLICE,
            running=key // 2 % _TRAINING_PASS_COUNT,
            is_frame=key % 2 == 1,
        )
    )
    return parts.group_by("at").agg(
        times, pl.col(*amounts).sum(), *_pass_and_python_cost_expressions()
    )


_TRAINING_PASS_COUNT: Final = max(FORWARD_PASS, BACKWARD_PASS, RECOMPUTE_PASS) + 1


def _pass_and_python_cost_expressions() -> Iterator[pl.Expr]:
    """Yields column expressions: a line's backward, recompute and Python ns, operator count."""
    is_frame = pl.col("is_frame")
    for name, code in (("backward", BACKWARD_PASS), ("recompute", RECOMPUTE_PASS)):
        for kind, own in (("device_time", "device_time"), ("cpu_time", "self_cpu_time")):
            yield pl.col(own).filter(pl.col("running") == code).sum().alias(f"{name}_{kind}")
    yield pl.col("self_cpu_time").filter(is_frame).sum().alias("python_time")
    yield pl.col("count").filter(~is_frame).sum().cast(pl.Int64).alias("operators")


def _line_rows_with_unowned_costs(
    line_rows: pl.DataFrame, unowned_costs: dict[str, int]
) -> pl.DataFrame:
    """Returns the rows, with costs of no call tree slice added to the row of unknown lines."""
    if not any(unowned_costs.values()):
        return line_rows
    more = pl.DataFrame(
        {"at": NO_SLICE, **unowned_costs}, schema=dict.fromkeys(["at", *unowned_costs], pl.Int64)
    )
    line_rows = pl.concat([line_rows, more], how="diagonal")
    times = pl.col("first", "since_batch").min()
    return line_rows.group_by("at").agg(times, pl.exclude("at", "first", "since_batch").sum())


def _line_rows_with_file_and_function(
    line_rows: pl.DataFrame, line_table: pl.DataFrame, trace: Trace
) -> pl.DataFrame:
    """Returns the rows with the columns file, line and function, null where unknown."""
    known = pl.col("at") != NO_SLICE
    place = line_rows.select(pl.when(known).then("at").cast(pl.UInt32)).to_series()
    line_rows = line_rows.with_columns(line_table.select(pl.all().gather(place)))
    unknown: dict[str, Any] = {
        name: pl.when(known).then(name) for name in ("total_device_time", "total_cpu_time")
    }
    if not trace.memory.height:
        unknown |= {"cpu_memory": None, "device_memory": None}
    line_rows = line_rows.with_columns(**unknown)
    return line_rows.drop("at")


def _time_since_batch_loading_ns(trace: Trace, slice_ids: Ints) -> pl.Series:
    """Returns the ns from the last begin of data loading to the begin of each slice.

    Without data loading, it is the time from the last begin of a step. Loading comes first because
    a step that ends with the optimizer begins at the end of the loop's body, while the program's
    own step begins where it takes a batch.
    """
    loading = filter_by_name(slices_on(trace, "host"), names.is_data_loading)["start"]
    begins = (
        (loading if loading.len() else steps_with_counted_flags(trace)["start"]).sort().to_numpy()
    )
    if not begins.size:
        return pl.Series(dtype=pl.Int64).extend_constant(None, slice_ids.size)
    start = trace.slices["start"].to_numpy()
    at = np.searchsorted(begins, start, side="right") - 1  # of slices in order of their start
    since = np.where(at < 0, NO_SLICE, start - begins[at])[slice_ids]
    early = since == NO_SLICE
    return pl.Series(since).set(pl.Series(early), None) if early.any() else pl.Series(since)
