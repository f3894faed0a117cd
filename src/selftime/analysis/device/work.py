"""Work of devices: kernels, collectives, copies and fills, with who launched them and when.

A kernel communicates if its arguments say so, else if its name is that of a collective.
Device-side copies of annotations are no work.
"""

from typing import Final

import polars as pl

from selftime import names
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.device.impossible_durations import impossible, possible_ends, tells_of_ends
from selftime.analysis.slice_arguments import arguments_of
from selftime.analysis.slice_filters import filter_by_name, runtime_calls_by_name, slices_on
from selftime.trace import Trace

KINDS: Final = ("kernel", "communication", "memcpy", "memset")
"""Kinds of work: `kernel` computes."""

_PLACE: Final = ("device", "stream")
_COPIES: Final = {"gpu_memcpy": "memcpy", "gpu_memset": "memset"}


@cached_per_trace
def device_work(trace: Trace) -> pl.DataFrame:
    """Device slices whose end is known, in order of time, none longer than it can have lasted.

    Columns: those of `slices` that tell id, name, category, track, start, duration and launch (the
    call's slice, or null); end and launched (when the call began), both ns; kind, one of `KINDS`;
    device and stream, as `device_args` has them, else the track; and operator (the slice of the
    innermost operator around the launch). Durations that cannot be end with what had to wait for
    them: see `impossible`; `recorded_work` has them as they were written.
    """
    work = recorded_work(trace)
    found = impossible_work(trace)
    ends = possible_ends(work, found, _telling_calls(trace), recorder_end(trace))
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
def impossible_work(trace: Trace) -> pl.DataFrame:
    """The recorded work whose duration cannot be."""
    return impossible(recorded_work(trace), _telling_calls(trace), recorder_end(trace))


def _telling_calls(trace: Trace) -> pl.DataFrame:
    """Calls that say how long work can have lasted."""
    return runtime_calls_by_name(trace, tells_of_ends)


@cached_per_trace
def is_unseen(trace: Trace) -> bool:
    """Whether work was launched on a device and none of any device was recorded."""
    if slices_on(trace, "device").height:
        return False
    return bool(runtime_calls_by_name(trace, names.is_launch).height)


@cached_per_trace
def device_durations(trace: Trace) -> pl.Series:
    """The durations of all slices by id, those of device work as `device_work` has them."""
    work, durations = device_work(trace), trace.slices["duration"]
    changed = work.filter(work["duration"] != durations.gather(work["id"]))
    return (
        durations.clone().scatter(changed["id"], changed["duration"])
        if changed.height
        else durations
    )


def recorder_end(trace: Trace) -> int | None:
    """When the recorder stopped, by its own slices, in ns; None where it left none."""
    spans = slices_on(trace, "profiler").filter(
        (pl.col("category").cast(pl.String) == names.RECORDER_SPAN)
        & pl.col("duration").is_not_null()
    )
    return None if not spans.height else int(spans.select(_end().max()).item())


@cached_per_trace
def recorded_work(trace: Trace) -> pl.DataFrame:
    """Device slices whose end is known, as they were written; columns as in `device_work`."""
    slices = slices_on(trace, "device", ended=True)
    told = arguments_of(trace, "device_args", slices["id"], "device", "stream", "operator")
    launched = trace.slices["start"].gather(slices["launch"])
    work = slices.select(
        "id", "name", "category", "track", "start", "duration", "launch"
    ).with_columns(end=_end(), launched=launched)
    is_copy = work["category"].is_in(list(_COPIES))
    communicates = _collectives(trace, work.select("id", "name").filter(~is_copy))
    kind = pl.lit("kernel")
    for category, name in _COPIES.items():
        kind = pl.when(pl.col("category") == category).then(pl.lit(name)).otherwise(kind)
    is_collective = pl.col("id").is_in(communicates.implode())
    kind = pl.when(is_collective).then(pl.lit("communication")).otherwise(kind)
    track = trace.tracks.select("device", "stream")[work["track"]]
    place = (told[name].zip_with(told[name].is_not_null(), track[name]) for name in _PLACE)
    work = work.with_columns(kind=kind).hstack(told.with_columns(*place))
    return work if _in_order(work) else work.sort("start", "id")


def _in_order(work: pl.DataFrame) -> bool:
    """Whether it is in order of start, then of id, as slices mostly are."""
    start, number = work["start"].to_numpy(), work["id"].to_numpy()
    return bool((start[1:] >= start[:-1]).all() and (number[1:] > number[:-1]).all())


def _end() -> pl.Expr:
    return pl.col("start") + pl.col("duration")


def _collectives(trace: Trace, kernels: pl.DataFrame) -> pl.Series:
    told = kernels.join(trace.collective_args.select("id"), on="id", how="semi")["id"]
    named = filter_by_name(kernels, names.is_collective_kernel)["id"]
    return pl.concat([told, named]).unique()
