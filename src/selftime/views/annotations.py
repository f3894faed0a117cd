"""Annotated ranges of the program: host time per step, in total and while no device worked."""

from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.call_tree.parent_array_forests import nodes_by_level, subtree_totals_by_level
from selftime.analysis.slice_ancestors import nearest_ancestor_of_every_slice
from selftime.analysis.slice_arguments import parent_of_every_slice
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS, source_sites_of_slices
from selftime.analysis.steps.steady_steps import counted_step_windows, is_instant_in_windows
from selftime.analysis.steps.step_boundaries import recording_window
from selftime.array_types import Ints
from selftime.intervals import covered_time_before, subtract, union
from selftime.nesting import NO_SLICE
from selftime.schema import Column, NameType
from selftime.trace import Trace
from selftime.views.view_declaration import LINE_EVIDENCE_DOC, view

_NAME_AND_SOURCE_LINE_COLUMNS: Final = ("name", *SOURCE_SITE_COLUMNS)


@view(
    Column(
        "name",
        NameType,
        "name",
        "The annotation's name: a DataLoader's, an optimizer's, or the user's own.",
    ),
    Column(
        "file",
        pl.String,
        "text",
        "The source file that entered the annotated range; null if unknown.",
        True,
    ),
    Column(
        "line",
        pl.Int32,
        "id",
        "The source line that entered the annotated range; null if unknown.",
        True,
    ),
    Column(
        "function",
        pl.String,
        "name",
        "The function that contains the source line; null if unknown.",
        True,
    ),
    Column("how", pl.String, "name", LINE_EVIDENCE_DOC, True),
    Column("count", pl.Int64, "count", "The number of times that the annotated range ran."),
    Column(
        "count_per_step",
        pl.Float64,
        "count",
        "The number of times that the annotated range ran in a step, on average.",
    ),
    Column(
        "host_time", pl.Float64, "ns", "Host time in the annotated range in a step, on average."
    ),
    Column(
        "exposed_time",
        pl.Float64,
        "ns",
        "Host time in the annotated range in a step while no device worked.",
    ),
    Column(
        "deviation",
        pl.Float64,
        "ns",
        "Median absolute deviation of `exposed_time` over the steps.",
    ),
    Column(
        "operators",
        pl.Float64,
        "count",
        "The number of operators within the annotated range in a step, on average.",
    ),
    Column("first", pl.Int64, "id", "The slice id of the annotated range's first run."),
)
def annotations(trace: Trace) -> pl.DataFrame:
    """Annotations other than steps, by their host time per step while no device worked.

    Only the steps that count for medians are included. Exposed is the host time in which no device
    worked: shortening the rest saves nothing. Where a trace has no device work all host time is
    exposed.
    """
    host = slices_on(trace, "host")
    marks = host.filter(
        pl.col("category").is_in(list(names.ANNOTATION_CATEGORIES))
        | _is_data_loading_or_optimizer_slice(host)
    ).filter(pl.col("duration").is_not_null())
    marks = filter_by_name(marks, lambda name: names.profiler_step_number(name) is None)
    steps = counted_step_windows(trace)
    marks = marks.filter(
        pl.Series(is_instant_in_windows(marks["start"].to_numpy(), steps), dtype=pl.Boolean)
    )
    count = max(steps.height, 1)
    start = marks["start"].to_numpy()
    end = start + marks["duration"].to_numpy()
    told = marks.select("id", "name").hstack(source_sites_of_slices(trace, marks["id"]))
    events = told.with_columns(
        host_time=end - start,
        exposed_time=_device_idle_ns_within_ranges(trace, start, end),
        operators=_operator_counts_within_annotations(trace, marks["id"]),
        step=np.searchsorted(steps["start"].to_numpy(), start, side="right"),
    )
    return (
        events.group_by(_NAME_AND_SOURCE_LINE_COLUMNS, maintain_order=True)
        .agg(
            pl.len().cast(pl.Int64).alias("count"),
            (pl.len() / count).alias("count_per_step"),
            *((pl.col(name).sum() / count) for name in ("host_time", "exposed_time", "operators")),
            pl.col("id").first().cast(pl.Int64).alias("first"),
        )
        .with_columns(deviation=_median_deviations_of_exposed_times_ns(events, count))
        .sort("exposed_time", "name", descending=[True, False])
        .select(pl.col(column.name).cast(column.dtype) for column in annotations.columns)
    )


def _median_deviations_of_exposed_times_ns(events: pl.DataFrame, step_count: int) -> pl.Series:
    """Returns the median absolute deviation of each annotation's device-idle ns per step."""
    by_step = events.group_by(*_NAME_AND_SOURCE_LINE_COLUMNS, "step", maintain_order=True).agg(
        pl.col("exposed_time").sum()
    )
    listed = by_step.group_by(_NAME_AND_SOURCE_LINE_COLUMNS, maintain_order=True).agg(
        "exposed_time"
    )["exposed_time"]
    found = []
    for times in listed.to_list():
        # In a step without the annotation the time is 0.
        every = np.array([*times, *[0] * (step_count - len(times))])
        found.append(float(np.median(np.abs(every - np.median(every)))))
    return pl.Series(found, dtype=pl.Float64)


def _is_data_loading_or_optimizer_slice(host: pl.DataFrame) -> pl.Series:
    """Returns for each slice whether it is data loading or an optimizer's step, by its name."""

    def is_data_loading_or_optimizer_name(name: str) -> bool:
        return names.is_data_loading(name) or names.is_optimizer_step(name)

    return host["id"].is_in(filter_by_name(host, is_data_loading_or_optimizer_name)["id"].implode())


def _device_idle_ns_within_ranges(trace: Trace, start: Ints, end: Ints) -> Ints:
    """Returns for each range from `start` to `end` the ns in which no device worked."""
    device = slices_on(trace, "device", ended=True)
    if not device.height:
        return end - start
    begin = device["start"].to_numpy()
    busy = union(begin, begin + device["duration"].to_numpy())
    low, high = recording_window(trace)
    idle = subtract(union([low], [high]), busy)
    return covered_time_before(idle, end) - covered_time_before(idle, start)


def _operator_counts_within_annotations(trace: Trace, annotation_ids: pl.Series) -> Ints:
    """Returns the number of operators inside each annotation, at any depth."""
    parent, ids = parent_of_every_slice(trace), annotation_ids.to_numpy()
    operators = trace.slices["category"].is_in(list(names.OPERATOR_CATEGORIES)).to_numpy()
    place = np.full(parent.size, NO_SLICE, np.int64)
    place[ids] = np.arange(ids.size)
    nearest = nearest_ancestor_of_every_slice(trace, place != NO_SLICE)
    around = np.append(place, NO_SLICE)[np.append(nearest, NO_SLICE)[parent]]
    own, above = around[operators], around[ids]
    count = np.bincount(own[own != NO_SLICE], minlength=ids.size)
    return subtree_totals_by_level(above, nodes_by_level(above), count)
