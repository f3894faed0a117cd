"""Selects slices by kind, name, time, source line, input shape, call stack or step."""

from typing import Final

import polars as pl

from selftime import names
from selftime.analysis.device.device_work import slice_durations_without_impossible
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_arguments import slices_with_arguments
from selftime.analysis.slice_filters import filter_by_name
from selftime.analysis.slice_grouping import (
    input_shapes,
    map_distinct_names,
    python_stacks_of_operators,
)
from selftime.analysis.source_sites import source_sites_of_slices
from selftime.analysis.steps.steady_steps import counted_step_windows, is_instant_in_windows
from selftime.analysis.timeline.tracks import require_end_after_start
from selftime.errors import UsageError
from selftime.schema import NameType
from selftime.trace import Trace

_KIND_BY_CATEGORY: Final = {
    **dict.fromkeys(names.OPERATOR_CATEGORIES, "operator"),
    **dict.fromkeys(names.ANNOTATION_CATEGORIES, "annotation"),
    **dict.fromkeys(names.FRAME_CATEGORIES, "frame"),
    **dict.fromkeys(names.RUNTIME_CALL_CATEGORIES, "call"),
    **dict.fromkeys(names.DEVICE_WORK_CATEGORIES, "kernel"),
    **dict.fromkeys(names.COPY_CATEGORIES, "copy"),
}
"""Maps a slice's category to its kind, as the option `kind` names it."""

NO_SLICE_ID: Final = -1
"""Value of an option for a slice id that means that no slice is given."""


def slices_in_counted_steps(trace: Trace, slices: pl.DataFrame) -> pl.DataFrame:
    """Returns the slices that began, or were launched, in steps that count for medians."""
    begun = host_begin_or_launch_ns(trace, slices).to_numpy()
    is_counted = is_instant_in_windows(begun, counted_step_windows(trace))
    return slices.filter(pl.Series(is_counted, dtype=pl.Boolean))


def slices_in_time_range(trace: Trace, start: int, end: int) -> pl.DataFrame:
    """Returns slices that overlap a time range (ns), with impossible durations corrected."""
    if end:
        require_end_after_start(start, end)
    slices = trace.slices.with_columns(duration=slice_durations_without_impossible(trace))
    if start:
        slices = slices.filter(pl.col("start") + pl.col("duration").fill_null(0) > start)
    if end:
        slices = slices.filter(pl.col("start") < end)
    return slices


def slices_of_kind(slices: pl.DataFrame, kind: str) -> pl.DataFrame:
    """Returns the slices of a kind, or all for `any`, with the column kind."""
    kinds = map_distinct_names(slices["category"], lambda c: _KIND_BY_CATEGORY.get(c, "other"))
    slices = slices.with_columns(kind=kinds)
    return slices if kind == "any" else slices.filter(pl.col("kind") == kind)


def slices_named(trace: Trace, slices: pl.DataFrame, name: str, like_id: int) -> pl.DataFrame:
    """Returns the slices of a name, and of the name of the slice with the id `like_id`.

    An empty name and `NO_SLICE_ID` match any; a kernel's short name suffices.
    """
    if like_id != NO_SLICE_ID:
        if not 0 <= like_id < trace.slices.height:
            raise UsageError(
                f"`like` is `{like_id}`, which is no slice; slices have the ids from 0 to below"
                f" {trace.slices.height}"
            )
        slices = slices.filter(pl.col("name") == trace.slices["name"][like_id])
    if not name:
        return slices
    exact = slices.filter(pl.col("name") == name)
    if exact.height:
        return exact
    work = slices.filter(pl.col("kind") == "kernel")
    return filter_by_name(work, lambda whole: names.short_kernel_name(whole) == name)


def slices_on_line(trace: Trace, slices: pl.DataFrame, file: str, line: int) -> pl.DataFrame:
    """Returns the slices of a source line; `file` may be just the end of the file's path."""
    if not file and not line:
        return slices
    places = source_lines_of_all_slices(trace)
    wanted = pl.repeat(True, places.height, dtype=pl.Boolean, eager=True)
    if file:
        known = places["file"].drop_nulls().unique().cast(pl.String)
        same = [one for one in known.to_list() if _is_same_file(one, file)]
        wanted &= places["file"].is_in(same).fill_null(value=False)
    if line:
        wanted &= (places["line"].cast(pl.Int64) == line).fill_null(value=False)
    return slices.filter(wanted.gather(slices["id"]))


@cached_per_trace
def source_lines_of_all_slices(trace: Trace) -> pl.DataFrame:
    """Returns the source line of every slice of a trace; the result is cached."""
    places = source_sites_of_slices(trace, trace.slices["id"])
    return places.with_columns(pl.col("file", "function", "how").cast(NameType))


def _is_same_file(path: str, other_path: str) -> bool:
    return path == other_path or path.endswith(f"/{other_path}") or other_path.endswith(f"/{path}")


def slices_of_shape_and_stack(
    trace: Trace, slices: pl.DataFrame, shape: str, stack: str
) -> pl.DataFrame:
    """Returns the slices with a given input shape and call stack; an empty text matches any."""
    if shape:
        slices = slices.filter(pl.col("kind") == "operator")
        slices = slices.filter(input_shapes(trace, slices["id"]) == shape)
    if stack:
        host = host_side_slices(trace, slices)
        has_stack = python_stacks_of_operators(trace, host, stack.count(";") + 1) == stack
        slices = slices.filter(has_stack)
    return slices


def host_side_slices(trace: Trace, slices: pl.DataFrame) -> pl.Series:
    """Returns each slice's own id; for device work, the id of its launching operator or call."""
    around = slices_with_arguments(trace, "device_args", slices.select("id", "launch"), "operator")
    return around.select(pl.coalesce("operator", "launch", "id")).to_series()


def host_begin_or_launch_ns(trace: Trace, slices: pl.DataFrame) -> pl.Series:
    """Returns when each slice began on the host (ns); for device work, its launch if known."""
    launched = trace.slices["start"].gather(slices["launch"])
    return launched.zip_with(launched.is_not_null(), slices["start"])
