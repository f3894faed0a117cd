"""Computes how well devices are used in given steps, as a table and as figures of `overview`.

All times are of those steps alone, each from its begin until its device work was done; what ran
between the steps is not counted. Kernels that ran at the same time count as busy once.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import polars as pl

from selftime import names, units
from selftime.analysis.device.device_work import device_work
from selftime.analysis.device.kernel_attributes import achieved_occupancy_percent
from selftime.analysis.health.recording_under_check import is_device_work_mostly_lost
from selftime.analysis.slice_arguments import argument_row_numbers
from selftime.analysis.slice_grouping import group_and_first_row_of_rows
from selftime.analysis.steps.steady_steps import counted_step_spans
from selftime.intervals import Intervals, covered_time_before, length, union
from selftime.trace import Trace
from selftime.units import Unit, count_text, share_text

_KERNEL_WORK_KINDS = ("kernel", "communication")
_UTILISATION_SCHEMA = {
    "device": pl.Int32,
    "properties": pl.UInt32,
    "kernels": pl.Int64,
    "window": pl.Int64,
    "busy": pl.Int64,
    "kernel_busy": pl.Int64,
    "compute_busy": pl.Int64,
    "sm_time": pl.Float64,
    "kernel_time": pl.Int64,
    "sized_time": pl.Int64,
    "occupied_time": pl.Float64,
    "occupancy_time": pl.Int64,
    "occupancy_kernels": pl.Int64,
    "compute_time": pl.Int64,
    "tensor_time": pl.Int64,
    "plain_time": pl.Int64,
}


def device_utilisation(trace: Trace, steps: pl.DataFrame) -> pl.DataFrame:
    """Returns busy times (ns) and occupancy in the given steps, one row per device that did work.

    The steps are given by columns begin and done, in ns, sorted and disjoint.

    Columns: device and properties (the row of `devices`), null where the trace does not have them;
    kernels, how many ran; window, the time of the steps. Unions: busy (any work), kernel_busy,
    compute_busy (kernels except collectives); sm_time, the integral of the share of multiprocessors
    that have a block, `min(1, sum of blocks per multiprocessor)`, over kernels with a known grid.
    Sums over kernels: kernel_time, sized_time (with a known grid), occupied_time (times estimated
    achieved occupancy, where there is one), occupancy_time and occupancy_kernels (time and number
    of those). Sums over computing kernels: compute_time, tensor_time and plain_time (certainly with
    and certainly without tensor cores).

    The formulas are those of PyTorch's TensorBoard plugin. Work on a device without a number counts
    to a device whose number is null.
    """
    windows = union(steps["begin"].to_numpy(), steps["done"].to_numpy())
    work = _clip_work_to_steps(_device_work_with_launch_configuration(trace), windows)
    groups = work.group_by("device", maintain_order=True)
    rows = [
        {"device": device, "window": length(windows), **_utilisation_row_of_device(own)}
        for (device,), own in groups
    ]
    return pl.DataFrame(rows, schema=_UTILISATION_SCHEMA).sort("device", nulls_last=True)


def _device_work_with_launch_configuration(trace: Trace) -> pl.DataFrame:
    """Returns device slices with blocks per SM, occupancy, and whether each uses tensor cores."""
    described = trace.devices.select(properties="id", multiprocessors="multiprocessors")
    args = trace.device_args.select(
        "id",
        "properties",
        "blocks_per_sm",
        blocks=_block_counts_of_grids(trace.device_args["grid"]),
    ).join(described, on="properties", how="left", maintain_order="left")
    many = pl.when(pl.col("multiprocessors") > 0).then("multiprocessors")
    args = args.select(
        "properties",
        per_sm=pl.coalesce("blocks_per_sm", pl.col("blocks") / many),
        occupancy=achieved_occupancy_percent(trace)["occupancy"],
    )
    work = device_work(trace).select("id", "name", "kind", "device", "start", "end")
    rows = argument_row_numbers(trace, "device_args", work["id"])
    told = args.select(pl.all().gather(rows))
    return work.hstack(told).with_columns(tensor=_uses_tensor_cores(work["name"]))


def _block_counts_of_grids(grids: pl.Series) -> pl.Series:
    """Returns the number of blocks of each launch grid; null where unknown."""
    known = grids.is_not_null()
    blocks = np.prod(grids.drop_nulls().to_numpy().astype(np.int64), axis=1)
    every = pl.Series([None], dtype=pl.Int64).new_from_index(0, grids.len())
    return every.scatter(known.arg_true(), pl.Series(blocks, dtype=pl.Int64))


def _uses_tensor_cores(kernel_names: pl.Series) -> pl.Series:
    """Returns whether each kernel uses tensor cores, from its name; null where unknown."""
    group, first = group_and_first_row_of_rows(kernel_names.to_frame())
    texts = kernel_names.gather(pl.Series(first)).cast(pl.String).to_list()
    told = pl.Series([names.uses_tensor_cores(name) for name in texts], dtype=pl.Boolean)
    return told.gather(pl.Series(group))


def _clip_work_to_steps(work: pl.DataFrame, step_windows: Intervals) -> pl.DataFrame:
    """Adds begin, end and length of device work in ns, counting only the time within steps."""
    begin = covered_time_before(step_windows, work["start"].to_numpy())
    end = covered_time_before(step_windows, work["end"].to_numpy())
    return work.with_columns(begin=begin, until=end, time=end - begin)


def _utilisation_row_of_device(device_work_in_steps: pl.DataFrame) -> dict[str, Any]:
    kernels = device_work_in_steps.filter(pl.col("kind").is_in(_KERNEL_WORK_KINDS))
    sized = kernels.filter(pl.col("per_sm").is_not_null())
    occupied = kernels.filter(pl.col("occupancy").is_not_null())
    computing = device_work_in_steps.filter(pl.col("kind") == "kernel")
    ran = occupied.filter(pl.col("time") > 0)
    return {
        "properties": device_work_in_steps["properties"].drop_nulls().first(),
        "kernels": kernels.filter(pl.col("time") > 0).height,
        "busy": _busy_time_in_steps_ns(device_work_in_steps),
        "kernel_busy": _busy_time_in_steps_ns(kernels),
        "compute_busy": _busy_time_in_steps_ns(computing),
        "sm_time": _sm_busy_time_ns(sized) if sized.height else None,
        "kernel_time": kernels["time"].sum(),
        "sized_time": sized["time"].sum(),
        "occupied_time": (occupied["time"] * occupied["occupancy"] / 100).sum()
        if ran.height
        else None,
        "occupancy_time": occupied["time"].sum(),
        "occupancy_kernels": ran.height,
        "compute_time": computing["time"].sum(),
        "tensor_time": computing.filter(pl.col("tensor"))["time"].sum(),
        "plain_time": computing.filter(~pl.col("tensor"))["time"].sum(),
    }


def _busy_time_in_steps_ns(work: pl.DataFrame) -> int:
    return length(union(work["begin"].to_numpy(), work["until"].to_numpy()))


def _sm_busy_time_ns(kernels: pl.DataFrame) -> float:
    """Returns in ns the integral over time of `min(1, blocks per SM of all running kernels)`."""
    blocks = kernels["per_sm"].clip(0).to_numpy()
    times = np.concatenate([kernels["begin"].to_numpy(), kernels["until"].to_numpy()])
    order = np.argsort(times, kind="stable")
    level = np.cumsum(np.concatenate([blocks, -blocks])[order])[:-1]
    return float((np.clip(level, 0, 1) * np.diff(times[order])).sum())


_SECTION_OF_DEVICE_FIGURES: Final = "device"


@dataclass(frozen=True, slots=True)
class OverviewFigure:
    """One number or text of the view `overview`, with its definition; None where unknown."""

    section: str
    metric: str
    value: float | None
    unit: Unit
    definition: str
    words: str | None = None
    """The text to show in place of the number; None to show the number in its unit."""
    device: int | None = None
    share: float | None = None
    """The figure divided by the whole of which it is a part, such as a step, 0 to 1; None if it has
    no whole.
    """

    @property
    def text(self) -> str | None:
        if self.words is not None or self.value is None:
            return self.words
        text = units.value_text(self.value, self.unit)
        return text if self.share is None else f"{text} ({units.value_text(self.share, 'ratio')})"


def share_figure(
    section: str, metric: str, part: float | None, whole: float | None, definition: str
) -> OverviewFigure:
    """Returns an overview figure of `part / whole`; unknown if either is None or the whole is 0."""
    value = None if part is None or not whole else part / whole
    return OverviewFigure(section, metric, value, "ratio", definition)


def device_utilisation_figures(trace: Trace, steps: pl.DataFrame) -> Iterator[OverviewFigure]:
    """Yields overview figures of each device that worked in the given steps, such as occupancy."""
    described = {row["id"]: row for row in trace.devices.iter_rows(named=True)}
    for used in device_utilisation(trace, counted_step_spans(steps)).iter_rows(named=True):
        about = described.get(used["properties"], {})
        if is_device_work_mostly_lost(trace):
            used["window"] = None  # the share of busy time is unknown
        for figure in (
            *_device_description_figures(about),
            *_busy_share_figures(used),
            *_occupancy_figures(used),
            *_tensor_core_figures(used),
        ):
            yield replace(figure, device=used["device"])


def _device_description_figures(device_row: dict[str, Any]) -> Iterator[OverviewFigure]:
    major, minor = device_row.get("compute_major"), device_row.get("compute_minor")
    version = None if major is None else f"{major}.{minor or 0}"
    name = device_row.get("name")
    yield OverviewFigure(
        _SECTION_OF_DEVICE_FIGURES, "name", None, "text", "The device as its driver names it.", name
    )
    yield OverviewFigure(
        _SECTION_OF_DEVICE_FIGURES,
        "memory",
        device_row.get("memory"),
        "bytes",
        "The total memory of the device.",
    )
    text = "The version of the device's architecture."
    yield OverviewFigure(
        _SECTION_OF_DEVICE_FIGURES, "compute capability", None, "text", text, version
    )
    many = device_row.get("multiprocessors")
    yield OverviewFigure(
        _SECTION_OF_DEVICE_FIGURES, "multiprocessors", many, "count", "SMs; on AMD, compute units."
    )


def _busy_share_figures(device_use: dict[str, Any]) -> Iterator[OverviewFigure]:
    whole = device_use["window"]
    for metric, column, what in (
        ("busy", "busy", "any work, copies and fills too"),
        ("kernel busy", "kernel_busy", "a kernel"),
        ("compute busy", "compute_busy", "a kernel other than a collective"),
    ):
        text = f"Share of the counted steps' time with {what}."
        yield share_figure(_SECTION_OF_DEVICE_FIGURES, metric, device_use[column], whole, text)


def _occupancy_figures(device_use: dict[str, Any]) -> Iterator[OverviewFigure]:
    """Yields estimates of SM efficiency and occupancy: how much of a device its kernels fill."""
    kernels = device_use["kernel_time"]
    untold = 1 - device_use["sized_time"] / kernels if kernels else 0.0
    text = "Estimated share of the counted steps' time in which an average SM had a block."
    figure = share_figure(
        _SECTION_OF_DEVICE_FIGURES,
        "SM efficiency",
        device_use["sm_time"],
        device_use["window"],
        text,
    )
    if untold and figure.value is not None:
        told = f"{text} The grids of {share_text(untold)} of kernel time are not known."
        words = f"at least {share_text(figure.value)}"
        figure = replace(figure, definition=told, words=words)
    yield figure
    text = "Achieved occupancy, estimated by the recorder, weighted by kernel time."
    occupied, time = device_use["occupied_time"], device_use["occupancy_time"]
    yield share_figure(_SECTION_OF_DEVICE_FIGURES, "occupancy", occupied, time, text)
    counts = (
        f"{count_text(device_use['occupancy_kernels'])} of {count_text(device_use['kernels'])} "
        "kernels"
    )
    text = f"Share of kernel time that has such an estimate: {counts}."
    yield share_figure(_SECTION_OF_DEVICE_FIGURES, "occupancy known", time, kernels, text)


def _tensor_core_figures(device_use: dict[str, Any]) -> Iterator[OverviewFigure]:
    whole, yes, no = device_use["compute_time"], device_use["tensor_time"], device_use["plain_time"]
    for metric, time, what in (
        ("tensor cores", yes, "which use tensor or matrix cores, by their names"),
        ("no tensor cores", no, "which use none, by their names"),
        ("tensor cores unknown", whole - yes - no, "whose names do not say"),
    ):
        text = f"Share of the time of computing kernels {what}."
        yield share_figure(_SECTION_OF_DEVICE_FIGURES, metric, time, whole, text)
