"""The work of devices: kernels, collectives, copies and fills, with their launches.

A kernel is communication if its arguments say so, else if its name is that of a collective.
Annotations that the recorder repeats on a device are not work.
"""

from typing import Final

import polars as pl

from selftime import names
from selftime.analysis.device.impossible_durations import (
    device_slices_with_impossible_duration,
    is_call_bounding_work_ends,
    latest_possible_ends,
)
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_arguments import arguments_of_slices
from selftime.analysis.slice_filters import filter_by_name, runtime_calls_by_name, slices_on
from selftime.trace import Trace

DEVICE_WORK_KINDS: Final = ("kernel", "communication", "memcpy", "memset")
"""The kinds of device work; `kernel` is every kernel that is not a collective."""

_DEVICE_AND_STREAM_COLUMNS: Final = ("device", "stream")
_WORK_KIND_BY_COPY_CATEGORY: Final = {"gpu_memcpy": "memcpy", "gpu_memset": "memset"}


@cached_per_trace
def device_work(trace: Trace) -> pl.DataFrame:
    """Returns device slices of known end, in order of time; impossible durations are shortened.

    Columns: id, name, category, track, start, duration and launch (the call's slice, or null) as in
    `slices`; end and launched (when the call began), both in ns; kind, one of `DEVICE_WORK_KINDS`;
    device and stream as in `device_args`, else of the track; and operator (the slice of the
    innermost operator around the launch). Work with an impossible duration ends at its latest
    possible end: see `device_slices_with_impossible_duration`; `device_work_as_recorded` has the
    durations as recorded.
    """
    work = device_work_as_recorded(trace)
    found = work_with_impossible_duration(trace)
    ends = latest_possible_ends(work, found, _calls_bounding_work_ends(trace), recorder_end(trace))
    if not ends.height:
        return work
    at = work["id"].is_in(ends["id"].implode()).arg_true()
    told = work.select("id", "start", "end")[at]
    told = told.join(ends.rename({"end": "possible"}), on="id", how="left", maintain_order="left")
    end = told.select(pl.coalesce("possible", "end")).to_series()
    return work.with_columns(
        end=work["end"].clone().scatter(at, end),
        duration=work["duration"].clone().scatter(at, end - told["start"]),
    )


@cached_per_trace
def work_with_impossible_duration(trace: Trace) -> pl.DataFrame:
    """Returns the trace's device slices whose recorded duration is impossible."""
    return device_slices_with_impossible_duration(
        device_work_as_recorded(trace), _calls_bounding_work_ends(trace), recorder_end(trace)
    )


def _calls_bounding_work_ends(trace: Trace) -> pl.DataFrame:
    """Returns calls that limit how late earlier device work ended: waits, CUDA graph launches."""
    return runtime_calls_by_name(trace, is_call_bounding_work_ends)


@cached_per_trace
def is_device_unrecorded(trace: Trace) -> bool:
    """Returns whether the host gave work to a device although the trace contains none.

    It launched some, or issued collectives that run on devices.
    """
    if slices_on(trace, "device").height:
        return False
    if runtime_calls_by_name(trace, names.is_launch).height:
        return True
    return bool(filter_by_name(slices_on(trace, "host"), names.issues_device_collective).height)


@cached_per_trace
def slice_durations_without_impossible(trace: Trace) -> pl.Series:
    """Returns each slice's duration in ns, in order of id; impossible durations are shortened."""
    work, durations = device_work(trace), trace.slices["duration"]
    changed = work.filter(work["duration"] != durations.gather(work["id"]))
    return (
        durations.clone().scatter(changed["id"], changed["duration"])
        if changed.height
        else durations
    )


def recorder_end(trace: Trace) -> int | None:
    """Returns when the profiler stopped recording, in ns; None if its own slices do not show it."""
    spans = slices_on(trace, "profiler").filter(
        (pl.col("category").cast(pl.String) == names.RECORDER_SPAN_CATEGORY)
        & pl.col("duration").is_not_null()
    )
    return None if not spans.height else int(spans.select(_slice_end_expression().max()).item())


@cached_per_trace
def device_work_as_recorded(trace: Trace) -> pl.DataFrame:
    """Returns device slices of known end with their recorded durations, even impossible ones.

    The columns are those of `device_work`.
    """
    slices = slices_on(trace, "device", ended=True)
    told = arguments_of_slices(trace, "device_args", slices["id"], "device", "stream", "operator")
    launched = trace.slices["start"].gather(slices["launch"])
    work = slices.select(
        "id", "name", "category", "track", "start", "duration", "launch"
    ).with_columns(end=_slice_end_expression(), launched=launched)
    is_copy = work["category"].is_in(list(_WORK_KIND_BY_COPY_CATEGORY))
    communicates = _ids_of_collective_kernels(trace, work.select("id", "name").filter(~is_copy))
    kind = pl.lit("kernel")
    for category, name in _WORK_KIND_BY_COPY_CATEGORY.items():
        kind = pl.when(pl.col("category") == category).then(pl.lit(name)).otherwise(kind)
    is_collective = pl.col("id").is_in(communicates.implode())
    kind = pl.when(is_collective).then(pl.lit("communication")).otherwise(kind)
    track = trace.tracks.select("device", "stream")[work["track"]]
    place = (
        told[name].zip_with(told[name].is_not_null(), track[name])
        for name in _DEVICE_AND_STREAM_COLUMNS
    )
    work = work.with_columns(kind=kind).hstack(told.with_columns(*place))
    return work if _is_work_sorted_by_start(work) else work.sort("start", "id")


def _is_work_sorted_by_start(work: pl.DataFrame) -> bool:
    """Returns whether device work is sorted by start, then id, as slices usually are."""
    start, number = work["start"].to_numpy(), work["id"].to_numpy()
    return bool((start[1:] >= start[:-1]).all() and (number[1:] > number[:-1]).all())


def _slice_end_expression() -> pl.Expr:
    return pl.col("start") + pl.col("duration")


def _ids_of_collective_kernels(trace: Trace, kernels: pl.DataFrame) -> pl.Series:
    told = kernels.join(trace.collective_args.select("id"), on="id", how="semi")["id"]
    named = filter_by_name(kernels, names.is_collective_kernel)["id"]
    return pl.concat([told, named]).unique()
