"""Counters over time: as the trace samples them, memory, how busy devices are, what is queued.

A sample holds until the next: samples lie on lanes as slices do, each as long as its value holds.
Where many fall on one pixel the lowest and the highest are kept: a peak never vanishes.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.trace import Trace
from selftime.views.accounts.allocations import records, with_totals
from selftime.views.accounts.tiles.cells import Cells, Window, cells
from selftime.views.accounts.tiles.kept import kept
from selftime.views.accounts.tiles.lanes import Lanes, lay_out
from selftime.views.accounts.times import times_of
from selftime.views.accounts.work import device_work

__all__ = ["Curves", "curves", "listed_curves", "visible_curves"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SAMPLE: Final = {
    "category": pl.String,
    "name": pl.String,
    "track": pl.UInt32,
    "time": pl.Int64,
    "value": pl.Float64,
}
_KEY: Final = ("category", "name", "track")


@dataclass(frozen=True, slots=True)
class Curves:
    """All counters of a trace, one on each lane."""

    names: pl.DataFrame
    """One row for each lane: category, name, and track (null where it belongs to none)."""
    lanes: Lanes
    value: Floats
    """The value of each sample; NaN where it is unknown."""


@kept
def curves(trace: Trace) -> Curves:
    """Every counter, each sample as long as until the next, the last until the trace's end.

    Categories: counter (the trace's own), memory (bytes allocated and reserved, by device),
    utilization (in percent: 100 while a device works, else 0), queue (work of a stream that is launched and not
    done).
    """
    work = device_work(trace)
    parts = (_busy(work), _queued(trace, work), _memory(trace), _sampled(trace))
    samples = pl.concat(
        [part.select(pl.col(name).cast(kind) for name, kind in _SAMPLE.items()) for part in parts]
    )
    names = samples.select(*_KEY).unique(maintain_order=True).with_row_index("lane")
    samples = samples.join(names, on=_KEY, nulls_equal=True).sort(
        "lane", "time", maintain_order=True
    )
    lane, time = samples["lane"].to_numpy(), samples["time"].to_numpy()
    until = np.append(time[1:], time[-1:])
    is_last = np.append(lane[1:] != lane[:-1], lane[-1:] >= 0)
    until[is_last] = np.maximum(time[is_last], _last_end(trace))
    lanes = lay_out(lane, np.zeros_like(lane), time, until)
    return Curves(names, lanes, samples["value"].fill_null(np.nan).to_numpy()[lanes.place])


def _last_end(trace: Trace) -> int:
    ends = trace.slices.select((pl.col("start") + pl.col("duration").fill_null(0)).max())
    return int(ends.item() or 0)


def _sampled(trace: Trace) -> pl.DataFrame:
    names = pl.concat_str(pl.col("name", "series").cast(pl.String), separator=": ")
    return trace.counters.select(
        pl.lit("counter").alias("category"), "track", "time", "value", name=names
    )


def _memory(trace: Trace) -> pl.DataFrame:
    totals = with_totals(records(trace))
    device = pl.when(pl.col("device") >= 0).then(pl.format(" {}", "device")).otherwise(pl.lit(""))
    place = pl.concat_str("device_type", device, ignore_nulls=True)
    curve = totals.select("time", "allocated", "reserved", place=place).unpivot(
        index=["time", "place"], variable_name="what"
    )
    return curve.filter(pl.col("value").is_not_null()).select(
        pl.lit("memory").alias("category"),
        pl.lit(None).alias("track"),
        "time",
        "value",
        name=pl.format("{} {}", "place", "what"),
    )


def _busy(work: pl.DataFrame) -> pl.DataFrame:
    parts = []
    for (device,), mine in work.group_by("device", maintain_order=True):
        times = np.stack(times_of(mine), axis=1).ravel()
        name = "percent busy" if device is None else f"device {device} percent busy"
        percent = np.where(np.arange(times.size) % 2, 0.0, 100.0)
        parts.append(
            pl.DataFrame({"time": times, "value": percent}).with_columns(name=pl.lit(name))
        )
    if not parts:
        return pl.DataFrame(schema=_SAMPLE)
    return pl.concat(parts).with_columns(category=pl.lit("utilization"), track=pl.lit(None))


def _queued(trace: Trace, work: pl.DataFrame) -> pl.DataFrame:
    """Work of each stream from its launch to its end, but what seems to end before its launch."""
    sound = work.filter(pl.col("launched") <= pl.col("end"))
    changes = pl.concat(
        [
            sound.select("track", pl.col("end").alias("time"), by=pl.lit(-1.0)),
            sound.select("track", pl.col("launched").alias("time"), by=pl.lit(1.0)),
        ]
    ).sort("track", "time", maintain_order=True)
    name = pl.format("device {} stream {} queued", "device", "stream").fill_null("queued")
    return (
        changes.with_columns(value=pl.col("by").cum_sum().over("track"))
        .join(trace.tracks.select("id", name=name), left_on="track", right_on="id")
        .with_columns(category=pl.lit("queue"))
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
