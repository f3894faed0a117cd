"""Counters over time: as the trace samples them, memory, how busy devices are, what is queued.

A sample holds until the next: samples lie on lanes as slices do, each as long as its value holds.
Where many fall on one pixel the lowest and the highest are kept: a peak never vanishes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.analysis.cached import cached_per_trace
from selftime.analysis.device.work import device_work
from selftime.analysis.memory.allocations import totals
from selftime.analysis.slice_filters import covered_time
from selftime.analysis.timeline.downsampling import Cells, Window, cells
from selftime.analysis.timeline.lanes import Lanes
from selftime.arrays import Floats, Ints
from selftime.trace import Trace


class _Curve(NamedTuple):
    """One counter: its samples in any order; of one instant the last holds."""

    category: str
    name: str
    track: int | None
    time: Ints
    value: Floats


@dataclass(frozen=True, slots=True)
class Curves:
    """All counters of a trace, one on each lane."""

    names: pl.DataFrame
    """One row for each lane: category, name, and track (null where it belongs to none)."""
    lanes: Lanes
    value: Floats
    """The value of each sample; NaN where it is unknown."""


@cached_per_trace
def curves(trace: Trace) -> Curves:
    """Every counter, each sample as long as until the next, the last until the trace's end.

    Categories: counter (the trace's own), memory (bytes allocated and reserved, by device),
    utilization (in percent: 100 while a device works, else 0), queue (work of a stream that is
    launched and not done).
    """
    work = device_work(trace)
    found = [*_busy(work), *_queued(work), *_memory(trace), *_sampled(trace)]
    finish = _last_end(trace)
    time, until, value = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0)]
    for curve in found:
        order = np.argsort(curve.time, kind="stable")
        time.append(curve.time[order])
        until.append(np.append(time[-1][1:], max(finish, int(time[-1][-1]))))
        value.append(curve.value[order])
    start = np.concatenate(time)
    lanes = Lanes(
        track=np.arange(len(found)),
        row=np.zeros(len(found), np.int64),
        bounds=np.cumsum([len(times) for times in time]),
        start=start,
        before=np.append(0, np.cumsum(np.concatenate(until) - start)),
        place=np.arange(start.size, dtype=np.uint32),
    )
    names = pl.DataFrame(
        [(curve.category, curve.name, curve.track) for curve in found],
        schema={"category": pl.String, "name": pl.String, "track": pl.UInt32},
        orient="row",
    )
    return Curves(names, lanes, np.concatenate(value))


def _last_end(trace: Trace) -> int:
    ends = trace.slices.select((pl.col("start") + pl.col("duration").fill_null(0)).max())
    return int(ends.item() or 0)


def _busy(work: pl.DataFrame) -> Iterator[_Curve]:
    for (device,), mine in work.group_by("device", maintain_order=True):
        time = np.stack(covered_time(mine), axis=1).ravel()
        value = np.where(np.arange(time.size) % 2, 0.0, 100.0)
        if time.size:
            yield _Curve("utilization", f"{_device(device)}percent busy", None, time, value)


def _queued(work: pl.DataFrame) -> Iterator[_Curve]:
    """Work of each stream from its launch to its end, but what seems to end before its launch."""
    sound = work.filter(pl.col("launched") <= pl.col("end"))
    for (track, device, stream), mine in sound.group_by(
        "track", "device", "stream", maintain_order=True
    ):
        time = np.append(mine["end"].to_numpy(), mine["launched"].to_numpy())
        order = np.argsort(time, kind="stable")  # of one instant ends come first
        value = np.cumsum(np.where(order < mine.height, -1.0, 1.0))
        name = (
            f"{_device(device)}queued"
            if stream is None
            else f"{_device(device)}stream {stream} queued"
        )
        yield _Curve("queue", name, int(str(track)), time[order], value)


def _device(number: object) -> str:
    return "" if number is None else f"device {number} "


def _memory(trace: Trace) -> Iterator[_Curve]:
    every = totals(trace)
    for (kind, device), mine in every.group_by("device_type", "device", maintain_order=True):
        place = kind if device is None or int(str(device)) < 0 else f"{kind} {device}"
        for what in ("allocated", "reserved"):
            known = mine.filter(pl.col(what).is_not_null())
            if known.height:
                value = known[what].cast(pl.Float64).to_numpy()
                yield _Curve("memory", f"{place} {what}", None, known["time"].to_numpy(), value)


def _sampled(trace: Trace) -> Iterator[_Curve]:
    for (track, name, series), mine in trace.counters.group_by(
        "track", "name", "series", maintain_order=True
    ):
        value = mine["value"].fill_null(np.nan).to_numpy()
        yield _Curve(
            "counter", f"{name}: {series}", int(str(track)), mine["time"].to_numpy(), value
        )


def visible_curves(trace: Trace, window: Window, chosen: NDArray[np.bool_]) -> pl.DataFrame:
    """What is visible of the chosen counters, one row a cell.

    Columns: category, name, track, start, duration, count (samples), value (its mean over that
    time), low, high.
    """
    return _told(curves(trace), cells(curves(trace).lanes, window, chosen))


def listed_curves(trace: Trace) -> pl.DataFrame:
    """Every counter over all its time, one row each, with the columns of `visible_curves`."""
    bounds = curves(trace).lanes.bounds
    return _told(curves(trace), Cells(bounds[:-1], bounds[1:]))


def _told(index: Curves, seen: Cells) -> pl.DataFrame:
    lanes = index.lanes
    lane = lanes.lane_of(seen.low)
    start = lanes.start[seen.low]
    mean, low, high = _summed(index, seen, lane)
    return index.names[lane].select(
        "category",
        "name",
        "track",
        start=pl.Series(start),
        duration=pl.Series(lanes.end(seen.high - 1) - start),
        count=pl.Series(seen.high - seen.low),
        value=pl.Series(mean, nan_to_null=True),
        low=pl.Series(low, nan_to_null=True),
        high=pl.Series(high, nan_to_null=True),
    )


def _summed(index: Curves, seen: Cells, lane: Ints) -> tuple[Floats, Floats, Floats]:
    """Mean, lowest and highest known value of each cell; NaN where none is known."""
    mean, low, high = (np.full(lane.size, np.nan) for _ in range(3))
    for one in np.unique(lane):
        mine = np.flatnonzero(lane == one)  # its cells follow one another without a gap
        first, last = int(seen.low[mine[0]]), int(seen.high[mine[-1]])
        begins = seen.low[mine] - first
        value = index.value[first:last]
        low[mine], high[mine] = np.fmin.reduceat(value, begins), np.fmax.reduceat(value, begins)
        time = np.where(np.isnan(value), 0, np.diff(index.lanes.before[first : last + 1]))
        whole = np.add.reduceat(time, begins)
        total = np.add.reduceat(np.nan_to_num(value) * time, begins)
        mean[mine] = np.where(whole > 0, total / np.maximum(whole, 1), high[mine])
    return np.clip(mean, low, high), low, high
