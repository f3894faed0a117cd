"""Divides the steps among classes of time, by source line: every nanosecond in exactly one row."""

from typing import Any, Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.account.inner_python import (
    is_called_by_python_within_operator,
    segments_split_at_inner_python,
)
from selftime.analysis.account.segment_pieces import (
    cut_segments,
    slices_of_thread,
    thread_of_slices,
    with_slices,
)
from selftime.analysis.account.time_classes import TIME_CLASSES, time_class_of_segments
from selftime.analysis.account.waits_for_earlier_work import waits_for_earlier_work
from selftime.analysis.device.graph_captures import graph_making_times
from selftime.analysis.graph.critical_path import critical_path_segments
from selftime.analysis.graph.serial_threads import host_states
from selftime.analysis.optimizer_closures import closure_times, is_within
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_ancestors import nearest_ancestor_of_slices
from selftime.analysis.slice_arguments import arguments_of_slices, parent_of_every_slice
from selftime.analysis.slice_filters import matches_name
from selftime.analysis.slice_occurrences import modules_and_threads_of_slices
from selftime.analysis.source_line_owners import profiler_step_ids
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS, source_sites_of_slices
from selftime.analysis.steps.kinds_of_steps import kinds_of_steps
from selftime.analysis.steps.steady_steps import counted_step_spans, steps_with_counted_flags
from selftime.array_types import Ints
from selftime.nesting import NO_SLICE
from selftime.trace import Trace

ACCOUNT_SEGMENT_SCHEMA: Final[dict[Any, Any]] = {
    "step": pl.Int64,
    "counted": pl.Boolean,
    "class": pl.Enum(TIME_CLASSES),
    "what": pl.Categorical(),
    "start": pl.Int64,
    "end": pl.Int64,
    "slice": pl.UInt32,
    "on_device": pl.Boolean,
    "inferred": pl.Boolean,
    "file": pl.String,
    "line": pl.Int32,
    "function": pl.String,
    "how": pl.String,
    "module": pl.String,
    "thread": pl.String,
}
"""Columns of `account_segments`; times in ns."""

_KINDS_OF_WORK: Final = ("compute", "communication", "copy")
"""Kinds of segments of the critical path that are work, and not a delay before it."""
_INFERRED_LINKS: Final = ("inferred", "unknown")
"""Why segments of the critical path began whose dependency the trace does not record."""


@cached_per_trace
def account_segments(trace: Trace) -> pl.DataFrame:
    """Returns what each moment of each step was spent on, one row per segment, in order of time.

    Columns: step, its number; counted, whether the step is typical; class, one of `TIME_CLASSES`;
    what, the optimizer, else the outermost operator, that ran or launched it, else the Python frame
    or the name on the device, and of communication the collective, null if unknown; start and end
    in ns; slice, the id of the slice on the critical path, null if there is none; on_device,
    whether the segment is work of a device; inferred, whether it is not recorded what the segment
    waited for; file, line, function, how: the source line; module, the class of the module around
    it; thread, the thread or stream. The segments of a step are contiguous, from the step's `begin`
    to its `done`.
    """
    segments = segments_split_at_inner_python(trace, critical_path_segments(trace))
    segments = segments_split_at_frames(trace, segments)
    segments = _segments_split_at_graphs(trace, segments)
    is_queued = pl.Series(waits_for_earlier_work(trace, segments))
    classes = time_class_of_segments(trace, segments)
    classes = classes.set(is_queued, "device_wait")
    # The line that launched the work is not why it began late.
    segments = segments.with_columns(slice=segments["slice"].set(is_queued, None))
    is_work = trace.slices["category"].is_in(list(names.DEVICE_WORK_CATEGORIES))
    table = segments.select(
        "step",
        "counted",
        classes,
        _responsible_names(trace, segments["slice"], segments["start"].to_numpy()),
        "start",
        "end",
        "slice",
        on_device=segments["kind"].is_in(_KINDS_OF_WORK)
        & is_work.gather(segments["slice"]).fill_null(value=False),
        inferred=pl.col("link").is_in(_INFERRED_LINKS),
    )
    table = table.with_columns(_names_of_communication(trace, table))
    sites = source_sites_of_slices(trace, segments["slice"])
    ran_in = modules_and_threads_of_slices(trace, segments["slice"])
    table = pl.concat([table, sites.select(SOURCE_SITE_COLUMNS), ran_in], how="horizontal")
    return table.cast(ACCOUNT_SEGMENT_SCHEMA)


def account_segments_of_kind(trace: Trace, kind: str | None = None) -> tuple[pl.DataFrame, int]:
    """Returns the segments of the counted steps, all or those of one kind, and their number.

    Where no step counts, all do. The kinds are those of `kinds_of_steps`; of an unknown one there
    are no segments.
    """
    segments, steps = account_segments(trace), kinds_of_steps(trace)
    if kind is not None:
        chosen = steps.filter(pl.col("is_chosen") & (pl.col("kind") == kind))
    else:
        chosen = counted_step_spans(steps_with_counted_flags(trace))
    chosen = chosen.filter(pl.col("done") > pl.col("begin"))
    if not chosen.height:
        return segments.clear(), 0
    start = segments["start"].to_numpy()
    row = np.searchsorted(chosen["begin"].to_numpy(), start, side="right") - 1
    inside = (row >= 0) & (start < chosen["done"].to_numpy()[row])
    return segments.filter(pl.Series(inside, dtype=pl.Boolean)), chosen.height


def names_of_kinds(trace: Trace) -> list[str]:
    """Returns the kinds of the trace's steps, most steps first; one where all are alike."""
    chosen = kinds_of_steps(trace).filter("is_chosen")
    counts = chosen.group_by("kind", maintain_order=True).len()
    return counts.sort("len", descending=True, maintain_order=True)["kind"].to_list()


def _responsible_names(trace: Trace, slice_ids: pl.Series, instants: Ints) -> pl.Series:
    """Returns the name of what ran or launched each slice, as `what`; null for null ids.

    That is the optimizer's annotation around it, else the outermost operator, else the slice. What
    a closure runs within the optimizer's step is not the optimizer's. An
    operator that Python called within another one, as in a hook, counts as outermost. The
    annotation of a step, which some recordings have as an operator, is none of these.
    """
    slices = trace.slices
    own = slice_ids.cast(pl.Int64).fill_null(NO_SLICE).to_numpy()
    launch = slices["launch"].cast(pl.Int64).fill_null(NO_SLICE).to_numpy()
    at = np.where(own == NO_SLICE, NO_SLICE, np.append(launch, NO_SLICE)[own])
    at = np.where(at == NO_SLICE, own, at)
    parent = parent_of_every_slice(trace)
    is_operator = np.append(
        slices["category"].is_in(list(names.OPERATOR_CATEGORIES)).to_numpy(), False
    )
    steps = profiler_step_ids(trace)
    is_operator[steps] = False
    is_outermost = is_operator[:-1] & ~is_operator[parent]
    is_outermost |= is_called_by_python_within_operator(trace)
    outermost = nearest_ancestor_of_slices(trace, is_outermost, at)
    is_optimizer = matches_name(slices, names.is_optimizer_step)
    chosen = np.where(outermost == NO_SLICE, own, outermost)
    optimizer = nearest_ancestor_of_slices(trace, is_optimizer, at)
    starts = np.append(slices["start"].to_numpy(), 0)
    in_closure = is_within(closure_times(trace), np.where(at == own, instants, starts[at]))
    chosen = np.where((optimizer == NO_SLICE) | in_closure, chosen, optimizer)
    is_hidden = np.isin(chosen, steps) | (in_closure & np.append(is_optimizer, False)[chosen])
    chosen = np.where(is_hidden, NO_SLICE, chosen)
    ids = pl.Series(chosen)
    return slices["name"].gather(ids.set(ids == NO_SLICE, None).cast(pl.UInt32)).alias("what")


def _names_of_communication(trace: Trace, segments: pl.DataFrame) -> pl.Series:
    """Returns the names of segments, as `what`; of communication the collective's, if known.

    What launched it, such as a node of the backward pass, does not show that ranks communicate.
    """
    is_communication = segments["class"] == "communication"
    if not is_communication.any():
        return segments["what"].cast(pl.String)
    ids = segments["slice"].set(~is_communication, None)
    collective = arguments_of_slices(trace, "collective_args", ids, "collective")["collective"]
    kernel = trace.slices["name"].gather(ids.set(~segments["on_device"], None)).cast(pl.String)
    unique = kernel.unique().drop_nulls()
    short = unique.map_elements(names.short_kernel_name, pl.String)
    told = pl.coalesce(
        collective.cast(pl.String), kernel.replace(unique, short), segments["what"].cast(pl.String)
    )
    return pl.select(told.alias("what")).to_series()


def _segments_split_at_graphs(trace: Trace, segments: pl.DataFrame) -> pl.DataFrame:
    """Returns segments of the critical path, the host's split where the making of a graph does."""
    times, is_host = graph_making_times(trace), segments["kind"] == "host"
    if not times.starts.size:
        return segments
    cuts = np.unique(np.concatenate([times.starts, times.ends]))
    cut = cut_segments(segments.filter(is_host), cuts)
    return pl.concat([segments.filter(~is_host), cut]).sort("start")


_BETWEEN_OPERATORS: Final = (*names.FRAME_CATEGORIES, *names.ANNOTATION_CATEGORIES)
"""Categories of the slices that a segment between operators has on the critical path."""


def segments_split_at_frames(trace: Trace, segments: pl.DataFrame) -> pl.DataFrame:
    """Returns segments of the critical path, those between operators split where frames change.

    A segment of `critical_path_segments` between two operators is one piece, with the frame that
    was open at its middle. Here it is a piece for each frame or annotation that was the innermost.
    """
    category = trace.slices["category"].gather(segments["slice"])
    is_between = (segments["kind"] == "host") & category.is_in(list(_BETWEEN_OPERATORS))
    between = segments.filter(is_between.fill_null(value=False))
    if not between.height:
        return segments
    own_thread = thread_of_slices(trace, between["slice"])
    pieces = [segments.filter(~is_between.fill_null(value=False))]
    pieces += [
        _split_at_frames_of_thread(trace, thread, between.filter(own_thread == thread))
        for thread in np.unique(own_thread).tolist()
    ]
    return pl.concat(pieces).sort("start")


def _split_at_frames_of_thread(trace: Trace, thread: int, own: pl.DataFrame) -> pl.DataFrame:
    """Returns the segments of one thread between operators, cut where a frame begins or ends."""
    pieces = cut_segments(own, _frame_boundaries_of_thread(trace, thread))
    middle = (pieces["start"] + pieces["end"]).to_numpy() // 2
    frame = host_states(trace).open_frame_or_annotation(thread, middle)
    return with_slices(trace, pieces, frame)


def _frame_boundaries_of_thread(trace: Trace, thread: int) -> Ints:
    """Returns the instants (ns), ascending, at which a frame or annotation begins or ends."""
    slices = slices_of_thread(trace, thread, _BETWEEN_OPERATORS)
    return np.unique(np.concatenate([slices["start"].to_numpy(), slices["end"].to_numpy()]))
