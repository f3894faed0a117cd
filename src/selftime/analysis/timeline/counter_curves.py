"""Computes counter curves of the timeline: device use, FLOP/s, queue lengths, memory, samples.

A sample is valid until the next: samples lie on lanes as slices do, each as long as its value is
valid. Where many fall on one pixel the lowest and the highest are kept, so that peaks stay visible.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.analysis.device.device_work import device_work
from selftime.analysis.memory.memory_records import memory_records_with_totals
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_filters import covered_time
from selftime.analysis.timeline.downsampling import (
    TimelineBins,
    TimelineWindow,
    visible_timeline_bins,
)
from selftime.analysis.timeline.flop_rate_curves import flop_rate_curves
from selftime.analysis.timeline.lanes import TimelineLanes
from selftime.array_types import Floats, Ints
from selftime.trace import Trace


class CounterCurve(NamedTuple):
    """The samples of one counter, in any order; of samples at the same instant the last counts."""

    category: str
    name: str
    track: int | None
    device: int | None
    time: Ints
    value: Floats
    peak: float | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class CounterCurves:
    """All counters of a trace, each drawn on a lane (a row of the timeline) of its own."""

    counters: pl.DataFrame
    """One row per counter: category, name, track and device (null if it belongs to none); peak,
    the most that it can be, and note, a sentence on it (null where there is none).
    """
    lanes: TimelineLanes
    value: Floats
    """The value of each sample; NaN where unknown."""


@cached_per_trace
def counter_curves(trace: Trace) -> CounterCurves:
    """Returns all counters; each sample lasts until the next one, the last until the trace ends.

    Categories: counter (recorded ones), memory (bytes allocated and reserved, by device),
    utilization (in percent: 100 while a device works, else 0), flops (FLOP/s achieved by a device
    or the CPU), queue (work of a stream that is launched and not done).
    """
    work = device_work(trace)
    found = [
        *_device_utilization_curves(work),
        *_achieved_flop_rate_curves(trace),
        *_launch_queue_curves(work),
        *_allocated_memory_curves(trace),
        *_recorded_counter_curves(trace),
    ]
    return curves_on_lanes(found, _last_slice_end_ns(trace))


def curves_on_lanes(found: list[CounterCurve], finish: int) -> CounterCurves:
    """Returns curves on a lane each; a sample lasts until the next, the last until `finish`."""
    time, until, value = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0)]
    for curve in found:
        order = np.argsort(curve.time, kind="stable")
        time.append(curve.time[order])
        until.append(np.append(time[-1][1:], max(finish, int(time[-1][-1]))))
        value.append(curve.value[order])
    start = np.concatenate(time)
    lanes = TimelineLanes(
        track=np.arange(len(found)),
        row=np.zeros(len(found), np.int64),
        bounds=np.cumsum([len(times) for times in time]),
        start=start,
        before=np.append(0, np.cumsum(np.concatenate(until) - start)),
        place=np.arange(start.size, dtype=np.uint32),
    )
    names = pl.DataFrame(
        [(one.category, one.name, one.track, one.device, one.peak, one.note) for one in found],
        schema={
            "category": pl.String,
            "name": pl.String,
            "track": pl.UInt32,
            "device": pl.Int64,
            "peak": pl.Float64,
            "note": pl.String,
        },
        orient="row",
    )
    return CounterCurves(names, lanes, np.concatenate(value))


def _last_slice_end_ns(trace: Trace) -> int:
    ends = trace.slices.select((pl.col("start") + pl.col("duration").fill_null(0)).max())
    return int(ends.item() or 0)


def _device_utilization_curves(work: pl.DataFrame) -> Iterator[CounterCurve]:
    for (device,), mine in work.group_by("device", maintain_order=True):
        time = np.stack(covered_time(mine), axis=1).ravel()
        value = np.where(np.arange(time.size) % 2, 0.0, 100.0)
        if time.size:
            name = f"{_device_name_prefix(device)}percent busy"
            yield CounterCurve("utilization", name, None, _device_number(device), time, value)


def _achieved_flop_rate_curves(trace: Trace) -> Iterator[CounterCurve]:
    for curve in flop_rate_curves(trace):
        name = "CPU FLOP/s" if curve.is_cpu else f"{_device_name_prefix(curve.device)}FLOP/s"
        yield CounterCurve(
            "flops", name, None, curve.device, curve.time, curve.value, curve.peak, curve.note
        )


def _launch_queue_curves(work: pl.DataFrame) -> Iterator[CounterCurve]:
    """Yields the number of launched but unfinished kernels of each stream over time."""
    sound = work.filter(pl.col("launched") <= pl.col("end"))
    for (track, device, stream), mine in sound.group_by(
        "track", "device", "stream", maintain_order=True
    ):
        time = np.append(mine["end"].to_numpy(), mine["launched"].to_numpy())
        order = np.argsort(time, kind="stable")  # at the same instant, ends come first
        value = np.cumsum(np.where(order < mine.height, -1.0, 1.0))
        name = (
            f"{_device_name_prefix(device)}queued"
            if stream is None
            else f"{_device_name_prefix(device)}stream {stream} queued"
        )
        yield CounterCurve(
            "queue", name, int(str(track)), _device_number(device), time[order], value
        )


def _device_name_prefix(device_number: object) -> str:
    return "" if device_number is None else f"device {device_number} "


def _device_number(value: object) -> int | None:
    return None if value is None else int(str(value))


def _allocated_memory_curves(trace: Trace) -> Iterator[CounterCurve]:
    every = memory_records_with_totals(trace)
    for (kind, device), mine in every.group_by("device_type", "device", maintain_order=True):
        number = _device_number(device)
        number = None if number is None or number < 0 else number
        place = kind if number is None else f"{kind} {number}"
        for what in ("allocated", "reserved"):
            known = mine.filter(pl.col(what).is_not_null())
            if known.height:
                value = known[what].cast(pl.Float64).to_numpy()
                time = known["time"].to_numpy()
                yield CounterCurve("memory", f"{place} {what}", None, number, time, value)


def _recorded_counter_curves(trace: Trace) -> Iterator[CounterCurve]:
    for (track, name, series), mine in trace.counters.group_by(
        "track", "name", "series", maintain_order=True
    ):
        value = mine["value"].fill_null(np.nan).to_numpy()
        time = mine["time"].to_numpy()
        yield CounterCurve("counter", f"{name}: {series}", int(str(track)), None, time, value)


def visible_counter_curves(
    trace: Trace, window: TimelineWindow, lane_flags: NDArray[np.bool_]
) -> pl.DataFrame:
    """Returns what a time window shows of the selected counters, one row per drawn bar.

    Columns: category, name, track, device, start, duration, count (samples), value (its mean over
    that time), low, high.
    """
    return visible_curves(counter_curves(trace), window, lane_flags)


def visible_curves(
    curves: CounterCurves, window: TimelineWindow, lane_flags: NDArray[np.bool_]
) -> pl.DataFrame:
    """Returns what a time window shows of the selected curves, as `visible_counter_curves` does."""
    return _counter_bin_rows(curves, visible_timeline_bins(curves.lanes, window, lane_flags))


def list_counter_curves(trace: Trace) -> pl.DataFrame:
    """Returns one row per counter with its mean, lowest and highest value over the whole trace.

    It has the columns peak and note too.
    """
    return list_curves(counter_curves(trace))


def list_curves(curves: CounterCurves) -> pl.DataFrame:
    """Returns one row per curve, as `list_counter_curves` does."""
    bounds = curves.lanes.bounds
    rows = _counter_bin_rows(curves, TimelineBins(bounds[:-1], bounds[1:]))
    return rows.hstack(curves.counters.select("peak", "note"))


def _counter_bin_rows(curves: CounterCurves, bins: TimelineBins) -> pl.DataFrame:
    lanes = curves.lanes
    lane = lanes.lane_of_intervals(bins.low)
    start = lanes.start[bins.low]
    mean, low, high = _counter_bin_values(curves, bins, lane)
    return curves.counters[lane].select(
        "category",
        "name",
        "track",
        "device",
        start=pl.Series(start),
        duration=pl.Series(lanes.interval_ends(bins.high - 1) - start),
        count=pl.Series(bins.high - bins.low),
        value=pl.Series(mean, nan_to_null=True),
        low=pl.Series(low, nan_to_null=True),
        high=pl.Series(high, nan_to_null=True),
    )


def _counter_bin_values(
    curves: CounterCurves, bins: TimelineBins, lane: Ints
) -> tuple[Floats, Floats, Floats]:
    """Returns the mean, lowest and highest value drawn in each pixel-wide bin; NaN if unknown.

    The mean is that of the time in which the value is known. Where FLOP/s are unknown for longer
    than they are known to be above 0, their mean is unknown: idle time would make it 0.
    """
    rates = (curves.counters["category"] == "flops").to_numpy()
    mean, low, high = (np.full(lane.size, np.nan) for _ in range(3))
    for one in np.unique(lane):
        mine = np.flatnonzero(lane == one)  # its bins are contiguous
        first, last = int(bins.low[mine[0]]), int(bins.high[mine[-1]])
        begins = bins.low[mine] - first
        value = curves.value[first:last]
        low[mine], high[mine] = np.fmin.reduceat(value, begins), np.fmax.reduceat(value, begins)
        all_time = np.diff(curves.lanes.before[first : last + 1])
        time = np.where(np.isnan(value), 0, all_time)
        whole = np.add.reduceat(time, begins)
        total = np.add.reduceat(np.nan_to_num(value) * time, begins)
        mean[mine] = np.where(whole > 0, total / np.maximum(whole, 1), high[mine])
        if rates[one]:
            unknown = np.add.reduceat(all_time, begins) - whole
            working = np.add.reduceat(np.where(value > 0, time, 0), begins)
            mean[mine[unknown > working]] = np.nan
    return np.clip(mean, low, high), low, high
