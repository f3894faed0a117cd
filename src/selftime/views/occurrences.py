"""Slices with a given name, source line, input shape or call stack, listed or summed."""

from typing import Final, Literal, TypeAlias

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.device.device_work import slice_durations_without_impossible
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_arguments import arguments_of_slices, slices_with_arguments
from selftime.analysis.slice_filters import common_value_expression, filter_by_name
from selftime.analysis.slice_grouping import (
    input_shapes,
    map_distinct_names,
    python_stacks_of_operators,
    recorded_operator_argument,
)
from selftime.analysis.source_sites import (
    SOURCE_SITE_COLUMNS,
    numbered_source_sites,
    source_sites_of_slices,
)
from selftime.analysis.steps.steady_steps import (
    counted_step_windows,
    is_instant_in_windows,
    steps_with_counted_flags,
)
from selftime.analysis.timeline.tracks import require_end_after_start
from selftime.errors import UsageError
from selftime.nesting import NO_SLICE
from selftime.schema import Column, NameType
from selftime.trace import Trace
from selftime.views.view_declaration import LINE_EVIDENCE_DOC, RowLimit, view

_SliceKindOption: TypeAlias = Literal[
    "any", "operator", "annotation", "frame", "call", "kernel", "copy", "other"
]
_GroupingOption: TypeAlias = Literal[
    "slice", "name", "duration", "line", "stack", "shape", "thread", "step"
]

_KIND_BY_CATEGORY: Final = {
    **dict.fromkeys(names.OPERATOR_CATEGORIES, "operator"),
    **dict.fromkeys(names.ANNOTATION_CATEGORIES, "annotation"),
    **dict.fromkeys(names.FRAME_CATEGORIES, "frame"),
    **dict.fromkeys(names.RUNTIME_CALL_CATEGORIES, "call"),
    **dict.fromkeys(names.DEVICE_WORK_CATEGORIES, "kernel"),
    **dict.fromkeys(names.COPY_CATEGORIES, "copy"),
}
"""Maps a slice's category to its kind, as the option `kind` names it."""
_GROUPING_COLUMNS: Final = {
    "name": ("name", "kind"),
    "duration": ("at_least",),
    "line": SOURCE_SITE_COLUMNS,
    "stack": ("stack",),
    "shape": ("input_shapes",),
    "thread": ("thread", "track"),
    "step": ("step",),
}
_EQUAL_ONLY_COLUMNS: Final = ("name", "kind", "category")
"""Columns that are null in a row unless all its slices have the same value."""
_FRAMES_PER_STACK: Final = 5
"""The number of innermost frames that a stack is cut to, as by default in `operators`."""
_DURATION_BINS_PER_DECADE: Final = 20
"""Number of bins of durations per power of ten."""
_NO_SLICE_ID: Final = -1
"""Value of an option for a slice id that means that no slice is given."""


@view(
    Column("name", NameType, "name", "The slice's name; null for several names.", True),
    Column("start", pl.Int64, "instant", "When the slice began; for several, the longest."),
    Column("duration", pl.Int64, "ns", "The slice's duration; for several, the sum.", True),
    Column("self", pl.Int64, "ns", "Time in the slice, not in slices inside it.", True),
    Column("share", pl.Float64, "ratio", "Share of the durations of all rows.", True),
    Column("count", pl.Int64, "count", "The number of slices; null for a single one.", True),
    Column("median", pl.Float64, "ns", "The median duration; null for a single slice.", True),
    Column("p95", pl.Float64, "ns", "95th percentile of durations; null for a single slice.", True),
    Column("longest", pl.Int64, "ns", "The longest duration; null for a single slice.", True),
    Column(
        "at_least", pl.Int64, "ns", "Lower bound of the durations; null if not by duration.", True
    ),
    Column("kind", pl.String, "name", "The kind of slice, as in the option `kind`.", True),
    Column("thread", pl.String, "text", "The name of its thread or stream.", True),
    Column(
        "step", pl.Int64, "id", "The step in which it began, or was launched; null if none.", True
    ),
    Column("file", pl.String, "text", "The source file; null if unknown.", True),
    Column("line", pl.Int32, "id", "The source line; null if unknown.", True),
    Column("function", pl.String, "name", "The line's function; null if unknown.", True),
    Column("how", pl.String, "name", LINE_EVIDENCE_DOC, True),
    Column(
        "operator",
        NameType,
        "name",
        "The innermost operator around it or its launch; null if none.",
        True,
    ),
    Column("module", pl.String, "name", "The nn.Module around that operator; null if none.", True),
    Column(
        "input_shapes", NameType, "text", "Sizes of the operator's inputs; null if unknown.", True
    ),
    Column("stack", NameType, "text", "Python frames, innermost first; null if unknown.", True),
    Column(
        "launch_delay",
        pl.Int64,
        "ns",
        "Delay of device work after its launch; null for others.",
        True,
    ),
    Column("device", pl.Int32, "id", "The device of device work; null for others.", True),
    Column("stream", pl.Int64, "id", "The stream of device work; null for others.", True),
    Column("category", NameType, "name", "The category of the event in the trace.", True),
    Column("track", pl.UInt32, "id", "The slice's track.", True),
    Column("parent", pl.UInt32, "id", "The innermost slice around it; null if none.", True),
    Column("launch", pl.UInt32, "id", "The call that launched device work; null for others.", True),
    Column("id", pl.UInt32, "id", "The slice; for several, the longest."),
    sums=("duration", "self", "share", "count"),
)
def occurrences(  # noqa: PLR0913 - keyword-only options of the command
    trace: Trace,
    *,
    name: str = "",
    kind: _SliceKindOption = "any",
    like: int = _NO_SLICE_ID,
    file: str = "",
    line: int = 0,
    shape: str = "",
    stack: str = "",
    start: int = 0,
    end: int = 0,
    counted: bool = False,
    by: _GroupingOption = "slice",
    top: RowLimit = 0,
) -> pl.DataFrame:
    """Slices with one name, source line, input shape or call stack, or all slices; longest first.

    Every option narrows the slices: `name` to those of that name (a kernel's short one suffices),
    `kind` to operators, annotations, Python frames, calls of the runtime, kernels, copies or other;
    `like` to those with the name of the slice with that id; `file` (its end suffices) and `line` to
    those of that source line, with what it launched and its backward pass; `shape` to operators
    with inputs of these sizes and `stack` to those with these innermost frames, both as `operators`
    writes them; `start` and `end`, in ns, to those that are open in between; `counted` to those in
    steps that count for medians.

    `by` sums them: by name and kind, by duration (as a histogram, 20 rows per power of ten), by
    source line, stack, shape, thread or stream, or step. `top` keeps the first rows; 0 keeps all.
    """
    found = _slices_of_kind(_slices_in_time_range(trace, start, end), kind)
    found = _slices_named(trace, found, name, like)
    if counted:
        begun = _host_begin_or_launch_ns(trace, found).to_numpy()
        is_counted = is_instant_in_windows(begun, counted_step_windows(trace))
        found = found.filter(pl.Series(is_counted, dtype=pl.Boolean))
    found = _slices_on_line(trace, found, file, line)
    found = _slices_of_shape_and_stack(trace, found, shape, stack)
    if by == "slice":
        return _occurrence_rows(trace, found, top)
    return _sum_slices_by_group(trace, found, by, top)


def _slices_in_time_range(trace: Trace, start: int, end: int) -> pl.DataFrame:
    """Returns slices that overlap a time range (ns), with impossible durations corrected."""
    if end:
        require_end_after_start(start, end)
    slices = trace.slices.with_columns(duration=slice_durations_without_impossible(trace))
    if start:
        slices = slices.filter(pl.col("start") + pl.col("duration").fill_null(0) > start)
    if end:
        slices = slices.filter(pl.col("start") < end)
    return slices


def _slices_of_kind(slices: pl.DataFrame, kind: str) -> pl.DataFrame:
    kinds = map_distinct_names(slices["category"], lambda c: _KIND_BY_CATEGORY.get(c, "other"))
    slices = slices.with_columns(kind=kinds)
    return slices if kind == "any" else slices.filter(pl.col("kind") == kind)


def _slices_named(trace: Trace, slices: pl.DataFrame, name: str, like_id: int) -> pl.DataFrame:
    if like_id != _NO_SLICE_ID:
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


def _slices_on_line(trace: Trace, slices: pl.DataFrame, file: str, line: int) -> pl.DataFrame:
    """Returns the slices of a source line; `file` may be just the end of the file's path."""
    if not file and not line:
        return slices
    places = _source_lines_of_all_slices(trace)
    wanted = pl.repeat(True, places.height, dtype=pl.Boolean, eager=True)
    if file:
        known = places["file"].drop_nulls().unique().cast(pl.String)
        same = [one for one in known.to_list() if _is_same_file(one, file)]
        wanted &= places["file"].is_in(same).fill_null(value=False)
    if line:
        wanted &= (places["line"].cast(pl.Int64) == line).fill_null(value=False)
    return slices.filter(wanted.gather(slices["id"]))


def _source_line_columns(trace: Trace, slices: pl.DataFrame) -> list[pl.Series]:
    if 2 * slices.height < trace.slices.height:
        places = source_sites_of_slices(trace, slices["id"])
    else:
        places = _source_lines_of_all_slices(trace)[slices["id"]]
    return [places[column] for column in SOURCE_SITE_COLUMNS]


@cached_per_trace
def _source_lines_of_all_slices(trace: Trace) -> pl.DataFrame:
    """Returns the source line of every slice of a trace; the result is cached."""
    places = source_sites_of_slices(trace, trace.slices["id"])
    return places.with_columns(pl.col("file", "function", "how").cast(NameType))


def _is_same_file(path: str, other_path: str) -> bool:
    return path == other_path or path.endswith(f"/{other_path}") or other_path.endswith(f"/{path}")


def _slices_of_shape_and_stack(
    trace: Trace, slices: pl.DataFrame, shape: str, stack: str
) -> pl.DataFrame:
    """Returns the slices with a given input shape and call stack; an empty text matches any."""
    if shape:
        slices = slices.filter(pl.col("kind") == "operator")
        slices = slices.filter(input_shapes(trace, slices["id"]) == shape)
    if stack:
        host = _host_side_slices(trace, slices)
        has_stack = python_stacks_of_operators(trace, host, stack.count(";") + 1) == stack
        slices = slices.filter(has_stack)
    return slices


def _host_side_slices(trace: Trace, slices: pl.DataFrame) -> pl.Series:
    """Returns each slice's own id; for device work, the id of its launching operator or call."""
    around = slices_with_arguments(trace, "device_args", slices.select("id", "launch"), "operator")
    return around.select(pl.coalesce("operator", "launch", "id")).to_series()


def _host_begin_or_launch_ns(trace: Trace, slices: pl.DataFrame) -> pl.Series:
    """Returns when each slice began on the host (ns); for device work, its launch if known."""
    launched = trace.slices["start"].gather(slices["launch"])
    return launched.zip_with(launched.is_not_null(), slices["start"])


def _occurrence_rows(trace: Trace, slices: pl.DataFrame, top: int) -> pl.DataFrame:
    """Returns rows for the `top` longest slices, each with its share of all slices' total time.

    Columns are looked up in order of time, because neighbours are alike, and sorted afterwards.
    Columns without any value are left out.
    """
    total = max(int(slices["duration"].sum()), 1)
    rows = _longest_slices(slices, top)
    if top:
        rows = rows[_descending_duration_order(rows).head(top)]
    order = _descending_duration_order(rows)
    host = _host_side_slices(trace, rows)
    operator = _innermost_operators(trace, host)
    delay = rows["start"] - trace.slices["start"].gather(rows["launch"])
    found = {
        **_source_line_columns_in_order(trace, rows, order),
        "step": _step_numbers(trace, rows).gather(order),
        "operator": trace.slices["name"].gather(operator.gather(order)),
        "module": _module_names(trace, operator.gather(order)),
        "input_shapes": recorded_operator_argument(trace, operator, "input_shapes").gather(order),
        "stack": python_stacks_of_operators(trace, host, _FRAMES_PER_STACK).gather(order),
        "launch_delay": delay.set(delay < 0, None).gather(order),
    }
    rows = rows.drop("depth")[order]
    found |= {column.name: column for column in _thread_device_stream_columns(trace, rows)}
    known = [found[name].alias(name) for name in found if found[name].null_count() < rows.height]
    return _with_view_columns(rows.with_columns(*known, share=pl.col("duration") / total))


def _descending_duration_order(rows: pl.DataFrame) -> pl.Series:
    """Returns the row indexes that sort rows by duration, longest first."""
    order = pl.arg_sort_by("duration", descending=True, nulls_last=True, maintain_order=True)
    return rows.select(order).to_series()


def _source_line_columns_in_order(
    trace: Trace, rows: pl.DataFrame, order: pl.Series
) -> dict[str, pl.Series]:
    """Returns the source line columns, with rows in the given order; {} if no line is known."""
    found = numbered_source_sites(trace, rows["id"])
    if not (found.number != NO_SLICE).any():
        return {}
    number = pl.Series(found.number[order.to_numpy()])
    number = number.set(number == NO_SLICE, None).cast(pl.UInt32)
    return {column: found.table[column].gather(number) for column in SOURCE_SITE_COLUMNS}


def _longest_slices(slices: pl.DataFrame, top: int) -> pl.DataFrame:
    """Returns the `top` longest slices and all slices as long as the shortest of those."""
    known = slices["duration"].drop_nulls()
    if not top or known.len() <= top:
        return slices
    least = np.partition(known.to_numpy(), known.len() - top)[known.len() - top]
    return slices.filter(pl.col("duration") >= int(least))


def _innermost_operators(trace: Trace, host_slices: pl.Series) -> pl.Series:
    """Returns the id of the innermost operator at or around each host slice; null without one."""
    around = arguments_of_slices(trace, "call_args", host_slices, "operator")["operator"]
    itself = arguments_of_slices(trace, "op_args", host_slices, "id")["id"]
    return itself.zip_with(itself.is_not_null(), around)


def _module_names(trace: Trace, operators: pl.Series) -> pl.Series:
    frame = recorded_operator_argument(trace, operators, "module")
    modules = map_distinct_names(trace.slices["name"].gather(frame), names.module_class)
    return modules.cast(pl.String)


def _thread_device_stream_columns(trace: Trace, slices: pl.DataFrame) -> list[pl.Series]:
    """Returns three columns of slices: name of the thread or stream, device, stream."""
    tracks = trace.tracks.with_columns(
        thread=pl.when(pl.col("stream").is_not_null())
        .then(pl.format("stream {}", "stream"))
        .otherwise(pl.coalesce("name", "tid"))
    )
    return [tracks[column].gather(slices["track"]) for column in ("thread", "device", "stream")]


def _step_numbers(trace: Trace, slices: pl.DataFrame) -> pl.Series:
    """Returns the number of the step in which each slice began, or was launched; null if none."""
    steps = steps_with_counted_flags(trace)
    begun = _host_begin_or_launch_ns(trace, slices)
    at = pl.Series(np.searchsorted(steps["start"].to_numpy(), begun.to_numpy(), side="right") - 1)
    at = at.set(at < 0, None)
    within = (steps["end"].gather(at) > begun).fill_null(value=False)
    return steps["number"].gather(at).set(~within, None)


def _sum_slices_by_group(trace: Trace, slices: pl.DataFrame, by: str, top: int) -> pl.DataFrame:
    """Returns one row per group of slices, by total time, or by duration bin or step number."""
    keys, own_order = list(_GROUPING_COLUMNS[by]), by in ("duration", "step")
    order = keys if own_order else ["duration"]
    known = pl.col("duration").count() > 0
    table = (
        slices.with_columns(_missing_grouping_columns(trace, slices, by))
        .group_by(keys, maintain_order=True)
        .agg(
            pl.col("duration").max().alias("longest"),
            pl.col("duration").median().alias("median"),
            pl.col("duration").quantile(0.95, "nearest").alias("p95"),
            *(pl.when(known).then(pl.col(time).sum()).alias(time) for time in ("duration", "self")),
            pl.len().alias("count"),
            pl.col("start", "id").get(pl.col("duration").arg_max().fill_null(0)),
            *(common_value_expression(c) for c in _EQUAL_ONLY_COLUMNS if c not in keys),
        )
        .with_columns(share=pl.col("duration") / max(int(slices["duration"].sum()), 1))
        .sort(*order, descending=not own_order, nulls_last=True, maintain_order=True)
    )
    return _with_view_columns(table.head(top) if top else table)


def _missing_grouping_columns(trace: Trace, slices: pl.DataFrame, by: str) -> list[pl.Series]:
    """Returns the columns for the option `by` that the table of slices lacks."""
    if by == "duration":
        return [_duration_bin_starts_ns(slices["duration"])]
    if by == "line":
        return _source_line_columns(trace, slices)
    if by == "stack":
        host = _host_side_slices(trace, slices)
        return [python_stacks_of_operators(trace, host, _FRAMES_PER_STACK).alias("stack")]
    if by == "shape":
        operator = _innermost_operators(trace, _host_side_slices(trace, slices))
        return [recorded_operator_argument(trace, operator, "input_shapes")]
    if by == "step":
        return [_step_numbers(trace, slices).alias("step")]
    return [_thread_device_stream_columns(trace, slices)[0]] if by == "thread" else []


def _duration_bin_starts_ns(durations: pl.Series) -> pl.Series:
    """Returns in whole ns the start of each duration's bin on a logarithmic scale."""
    exponents = np.arange(20 * _DURATION_BINS_PER_DECADE) / _DURATION_BINS_PER_DECADE
    edges = np.concatenate([[0], np.unique(np.round(10**exponents).clip(0, 2**62)).astype(int)])
    at = np.searchsorted(edges, durations.fill_null(0).to_numpy(), side="right") - 1
    return pl.Series("at_least", edges[at], dtype=pl.Int64).set(durations.is_null(), None)


def _with_view_columns(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns the rows with every column of the view; a column that they lack is null."""
    return rows.select(
        (pl.col(c.name) if c.name in rows.columns else pl.lit(None).alias(c.name)).cast(c.dtype)
        for c in occurrences.columns
    )
