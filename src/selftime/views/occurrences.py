"""Slices with a given name, source line, input shape or call stack, listed or summed."""

from typing import Literal, TypeAlias

import polars as pl

from selftime.analysis.slice_occurrences import longest_occurrences, occurrences_by_group
from selftime.analysis.slice_selection import (
    NO_SLICE_ID,
    slices_in_counted_steps,
    slices_in_time_range,
    slices_named,
    slices_of_kind,
    slices_of_shape_and_stack,
    slices_on_line,
)
from selftime.schema import Column, NameType
from selftime.trace import Trace
from selftime.views.view_declaration import LINE_EVIDENCE_DOC, RowLimit, view

_SliceKindOption: TypeAlias = Literal[
    "any", "operator", "annotation", "frame", "call", "kernel", "copy", "other"
]

_GroupingOption: TypeAlias = Literal[
    "slice", "name", "duration", "line", "stack", "shape", "thread", "step"
]


@view(
    Column("name", NameType, "name", "The slice's name; null for several names.", True),
    Column(
        "start",
        pl.Int64,
        "instant",
        "When the slice began; for several slices, when the longest began.",
    ),
    Column(
        "duration",
        pl.Int64,
        "ns",
        "The slice's duration; for several slices, the sum of durations.",
        True,
    ),
    Column("self", pl.Int64, "ns", "Time in the slice that is not in slices inside it.", True),
    Column(
        "share",
        pl.Float64,
        "ratio",
        "The row's duration as a share of the durations of all rows.",
        True,
    ),
    Column(
        "count", pl.Int64, "count", "The number of slices in the row; null for a single one.", True
    ),
    Column(
        "median",
        pl.Float64,
        "ns",
        "The median duration of the slices; null for a single slice.",
        True,
    ),
    Column(
        "p95",
        pl.Float64,
        "ns",
        "95th percentile of the slices' durations; null for a single slice.",
        True,
    ),
    Column(
        "longest",
        pl.Int64,
        "ns",
        "The duration of the longest slice; null for a single slice.",
        True,
    ),
    Column(
        "at_least",
        pl.Int64,
        "ns",
        "Lower bound of the slices' durations; null if not grouped by duration.",
        True,
    ),
    Column("kind", pl.String, "name", "The kind of slice, as in the option `kind`.", True),
    Column(
        "thread", pl.String, "text", "The name of the thread or stream that ran the slice.", True
    ),
    Column(
        "step",
        pl.Int64,
        "id",
        "The step in which the slice began or was launched; null if none.",
        True,
    ),
    Column("file", pl.String, "text", "The source file of the slice; null if unknown.", True),
    Column("line", pl.Int32, "id", "The source line of the slice; null if unknown.", True),
    Column(
        "function",
        pl.String,
        "name",
        "The function that contains the source line; null if unknown.",
        True,
    ),
    Column("how", pl.String, "name", LINE_EVIDENCE_DOC, True),
    Column(
        "operator",
        NameType,
        "name",
        "The innermost operator around the slice or its launch; null if none.",
        True,
    ),
    Column(
        "module",
        pl.String,
        "name",
        "The nn.Module around the slice's operator; null if none.",
        True,
    ),
    Column(
        "input_shapes",
        NameType,
        "text",
        "Sizes of the inputs of the slice's operator; null if unknown.",
        True,
    ),
    Column(
        "stack",
        NameType,
        "text",
        "Python frames around the slice, innermost first; null if unknown.",
        True,
    ),
    Column(
        "launch_delay",
        pl.Int64,
        "ns",
        "Time from launch to start of device work; null for host work.",
        True,
    ),
    Column(
        "device",
        pl.Int32,
        "id",
        "The number of the device that ran the slice; null for host work.",
        True,
    ),
    Column(
        "stream",
        pl.Int64,
        "id",
        "The number of the stream that ran the slice; null for host work.",
        True,
    ),
    Column("category", NameType, "name", "The category of the slice, as the trace names it.", True),
    Column("track", pl.UInt32, "id", "The id of the slice's track.", True),
    Column(
        "parent",
        pl.UInt32,
        "id",
        "The id of the innermost slice around the slice; null if none.",
        True,
    ),
    Column(
        "launch",
        pl.UInt32,
        "id",
        "The slice id of the call that launched device work; null for host work.",
        True,
    ),
    Column("id", pl.UInt32, "id", "The slice's id; for several slices, that of the longest."),
    sums=("duration", "self", "share", "count"),
)
def occurrences(  # noqa: PLR0913 - keyword-only options of the command
    trace: Trace,
    *,
    name: str = "",
    kind: _SliceKindOption = "any",
    like: int = NO_SLICE_ID,
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
    found = slices_of_kind(slices_in_time_range(trace, start, end), kind)
    found = slices_named(trace, found, name, like)
    if counted:
        found = slices_in_counted_steps(trace, found)
    found = slices_on_line(trace, found, file, line)
    found = slices_of_shape_and_stack(trace, found, shape, stack)
    if by == "slice":
        return occurrences.table_of(longest_occurrences(trace, found, top))
    return occurrences.table_of(occurrences_by_group(trace, found, by, top))
