"""Lists slices with all that a trace contains about them, or sums them by group."""

from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.slice_arguments import arguments_of_slices
from selftime.analysis.slice_filters import common_value_expression
from selftime.analysis.slice_grouping import (
    map_distinct_names,
    python_stacks_of_operators,
    recorded_operator_argument,
)
from selftime.analysis.slice_selection import (
    host_begin_or_launch_ns,
    host_side_slices,
    source_lines_of_all_slices,
)
from selftime.analysis.source_sites import (
    SOURCE_SITE_COLUMNS,
    numbered_source_sites,
    source_sites_of_slices,
)
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.nesting import NO_SLICE
from selftime.trace import Trace

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


def _source_line_columns(trace: Trace, slices: pl.DataFrame) -> list[pl.Series]:
    if 2 * slices.height < trace.slices.height:
        places = source_sites_of_slices(trace, slices["id"])
    else:
        places = source_lines_of_all_slices(trace)[slices["id"]]
    return [places[column] for column in SOURCE_SITE_COLUMNS]


def longest_occurrences(trace: Trace, slices: pl.DataFrame, top: int) -> pl.DataFrame:
    """Returns rows for the `top` longest slices, each with its share of all slices' total time.

    Columns are looked up in order of time, because neighbours are alike, and sorted afterwards.
    Columns without any value are left out.
    """
    total = max(int(slices["duration"].sum()), 1)
    rows = _longest_slices(slices, top)
    if top:
        rows = rows[_descending_duration_order(rows).head(top)]
    order = _descending_duration_order(rows)
    host = host_side_slices(trace, rows)
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
    found |= {column.name: column for column in thread_device_stream_columns(trace, rows)}
    known = [found[name].alias(name) for name in found if found[name].null_count() < rows.height]
    return rows.with_columns(*known, share=pl.col("duration") / total)


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


def modules_and_threads_of_slices(trace: Trace, slice_ids: pl.Series) -> pl.DataFrame:
    """Returns each slice's module, by its class, and its thread or stream; null where unknown.

    Device work has the module of the operator that launched it. The row of a null id is all null.
    """
    rows = trace.slices[slice_ids.fill_null(0).cast(pl.UInt32)] if trace.slices.height else None
    if rows is None or not rows.height:
        return pl.DataFrame(schema={"module": pl.String, "thread": pl.String})
    operator = _innermost_operators(trace, host_side_slices(trace, rows))
    known = slice_ids.is_not_null()
    found = pl.DataFrame(
        {
            "module": _module_names(trace, operator),
            "thread": thread_device_stream_columns(trace, rows)[0].cast(pl.String),
        }
    )
    return found.with_columns(pl.when(known).then(pl.all()))


def _module_names(trace: Trace, operators: pl.Series) -> pl.Series:
    frame = recorded_operator_argument(trace, operators, "module")
    modules = map_distinct_names(trace.slices["name"].gather(frame), names.module_class)
    return modules.cast(pl.String)


def thread_device_stream_columns(trace: Trace, slices: pl.DataFrame) -> list[pl.Series]:
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
    begun = host_begin_or_launch_ns(trace, slices)
    at = pl.Series(np.searchsorted(steps["start"].to_numpy(), begun.to_numpy(), side="right") - 1)
    at = at.set(at < 0, None)
    within = (steps["end"].gather(at) > begun).fill_null(value=False)
    return steps["number"].gather(at).set(~within, None)


def occurrences_by_group(trace: Trace, slices: pl.DataFrame, by: str, top: int) -> pl.DataFrame:
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
    return table.head(top) if top else table


def _missing_grouping_columns(trace: Trace, slices: pl.DataFrame, by: str) -> list[pl.Series]:
    """Returns the columns for the option `by` that the table of slices lacks."""
    if by == "duration":
        return [_duration_bin_starts_ns(slices["duration"])]
    if by == "line":
        return _source_line_columns(trace, slices)
    if by == "stack":
        host = host_side_slices(trace, slices)
        return [python_stacks_of_operators(trace, host, _FRAMES_PER_STACK).alias("stack")]
    if by == "shape":
        operator = _innermost_operators(trace, host_side_slices(trace, slices))
        return [recorded_operator_argument(trace, operator, "input_shapes")]
    if by == "step":
        return [_step_numbers(trace, slices).alias("step")]
    return [thread_device_stream_columns(trace, slices)[0]] if by == "thread" else []


def _duration_bin_starts_ns(durations: pl.Series) -> pl.Series:
    """Returns in whole ns the start of each duration's bin on a logarithmic scale."""
    exponents = np.arange(20 * _DURATION_BINS_PER_DECADE) / _DURATION_BINS_PER_DECADE
    edges = np.concatenate([[0], np.unique(np.round(10**exponents).clip(0, 2**62)).astype(int)])
    at = np.searchsorted(edges, durations.fill_null(0).to_numpy(), side="right") - 1
    return pl.Series("at_least", edges[at], dtype=pl.Int64).set(durations.is_null(), None)
