"""Annotated stretches of the host program: what each costs in a step, and what of it is exposed."""

from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.call_tree.forest import levels, totals
from selftime.analysis.parents import parents
from selftime.analysis.sites import SITE, sites
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.analysis.steps.steady_steps import counted_windows, is_within
from selftime.analysis.steps.step_boundaries import window
from selftime.arrays import Ints
from selftime.intervals import before, subtract, union
from selftime.nesting import NONE, nearest
from selftime.schema import Column, Name
from selftime.trace import Trace
from selftime.views.base import view

_KEYS: Final = ("name", *SITE)


@view(
    Column("name", Name, "name", "The annotation: a DataLoader, an optimizer, the user's own."),
    Column("file", pl.String, "text", "The source file, if known.", True),
    Column("line", pl.Int32, "id", "The source line, if known.", True),
    Column("function", pl.String, "name", "The function the line is in, if known.", True),
    Column("how", pl.String, "name", "How the line is known: stack or definition.", True),
    Column("count", pl.Int64, "count", "How many times it ran."),
    Column("count_per_step", pl.Float64, "count", "How many times it ran in a step, on average."),
    Column("host_time", pl.Float64, "ns", "Host time in a step, on average."),
    Column("exposed_time", pl.Float64, "ns", "Host time in a step while no device worked."),
    Column("deviation", pl.Float64, "ns", "Median absolute deviation of that over the steps."),
    Column("operators", pl.Float64, "count", "Operators within it in a step, on average."),
    Column("first", pl.Int64, "id", "The slice in which it ran first."),
)
def annotations(trace: Trace) -> pl.DataFrame:
    """Annotations by their exposed host time in a step, without the steps themselves.

    Only the steps that count for medians are looked at. Exposed is the host time in which no device
    worked: to shorten the rest saves nothing. Where a trace has no device work all host time is
    exposed.
    """
    host = slices_on(trace, "host")
    marks = host.filter(pl.col("category").is_in(list(names.ANNOTATIONS)) | _loads(host)).filter(
        pl.col("duration").is_not_null()
    )
    marks = filter_by_name(marks, lambda name: names.step_number(name) is None)
    steps = counted_windows(trace)
    marks = marks.filter(pl.Series(is_within(marks["start"].to_numpy(), steps), dtype=pl.Boolean))
    count = max(steps.height, 1)
    start = marks["start"].to_numpy()
    end = start + marks["duration"].to_numpy()
    told = marks.select("id", "name").hstack(sites(trace, marks["id"]))
    events = told.with_columns(
        host_time=end - start,
        exposed_time=_idle_within(trace, start, end),
        operators=_operators_within(trace, marks["id"]),
        step=np.searchsorted(steps["start"].to_numpy(), start, side="right"),
    )
    return (
        events.group_by(_KEYS, maintain_order=True)
        .agg(
            pl.len().cast(pl.Int64).alias("count"),
            (pl.len() / count).alias("count_per_step"),
            *((pl.col(name).sum() / count) for name in ("host_time", "exposed_time", "operators")),
            pl.col("id").first().cast(pl.Int64).alias("first"),
        )
        .with_columns(deviation=_deviations(events, count))
        .sort("exposed_time", "name", descending=[True, False])
        .select(pl.col(column.name).cast(column.dtype) for column in annotations.columns)
    )


def _deviations(events: pl.DataFrame, steps: int) -> pl.Series:
    """How the exposed time of each region varies; in a step without the region it is 0."""
    by_step = events.group_by(*_KEYS, "step", maintain_order=True).agg(pl.col("exposed_time").sum())
    listed = by_step.group_by(_KEYS, maintain_order=True).agg("exposed_time")["exposed_time"]
    found = []
    for times in listed.to_list():
        every = np.array([*times, *[0] * (steps - len(times))])
        found.append(float(np.median(np.abs(every - np.median(every)))))
    return pl.Series(found, dtype=pl.Float64)


def _loads(host: pl.DataFrame) -> pl.Series:
    """Data loading and optimizers, which traces of 2021 hold as operators."""

    def is_region(name: str) -> bool:
        return names.is_data_loading(name) or names.is_optimizer_step(name)

    return host["id"].is_in(filter_by_name(host, is_region)["id"].implode())


def _idle_within(trace: Trace, start: Ints, end: Ints) -> Ints:
    """How much of each stretch saw no device at work."""
    device = slices_on(trace, "device", ended=True)
    if not device.height:
        return end - start
    begin = device["start"].to_numpy()
    busy = union(begin, begin + device["duration"].to_numpy())
    low, high = window(trace)
    idle = subtract(union([low], [high]), busy)
    return before(idle, end) - before(idle, start)


def _operators_within(trace: Trace, marks: pl.Series) -> Ints:
    """How many operators lie in each mark, at any depth."""
    parent, ids = parents(trace), marks.to_numpy()
    operators = trace.slices["category"].is_in(list(names.OPERATORS)).to_numpy()
    place = np.full(parent.size, NONE, np.int64)
    place[ids] = np.arange(ids.size)
    around = nearest(
        parent, place != NONE, parent[np.concatenate([np.flatnonzero(operators), ids])]
    )
    around = np.where(around == NONE, NONE, place[around]) if place.size else around
    own, above = around[: around.size - ids.size], around[around.size - ids.size :]
    count = np.bincount(own[own != NONE], minlength=ids.size)
    return totals(above, levels(above), count)
