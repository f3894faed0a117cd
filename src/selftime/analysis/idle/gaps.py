"""When devices and streams had nothing to do: gaps between their work, and the work around each.

A gap is what the union of the work leaves, so that overlapping kernels hide nothing and count
once. Gaps lie within the program's steps: before the first work of a step, and between steps, a
device is idle too.
"""

from typing import Final, Literal

import numpy as np
import polars as pl

from selftime.analysis.device.work import device_work
from selftime.analysis.slice_filters import covered_time
from selftime.analysis.steps.steady_steps import assessed_steps, counted_spans, recorded_windows
from selftime.intervals import Intervals, clip, subtract, union
from selftime.trace import Trace

Scope = Literal["device", "stream"]

_SCHEMA: Final = {
    "start": pl.Int64,
    "end": pl.Int64,
    "device": pl.Int32,
    "stream": pl.Int64,
    "before": pl.UInt32,
    "after": pl.UInt32,
}


def observed(trace: Trace, *, counted: bool = False) -> Intervals:
    """The time looked at: from the begin of the first step until the last is done.

    A step is done when the device has finished what it launched. A hole between windows of the
    profiler is left out. With `counted` the time of the steps that count for medians, each from
    when the one before was done.
    """
    steps = assessed_steps(trace)
    if counted:
        windows = counted_spans(steps)
        return union(windows["begin"].to_numpy(), windows["done"].to_numpy())
    return recorded_windows(steps)


def placed_work(trace: Trace) -> pl.DataFrame:
    """Work of devices: the same as `device_work`."""
    return device_work(trace)


def gaps(work: pl.DataFrame, when: Intervals, scope: Scope) -> pl.DataFrame:
    """Gaps of every device, or of every stream, within the time looked at.

    Columns: start, end (ns); device, stream (null in scope `device`); before, after: the slices of
    the work that ended last before the gap and that begins next, null where there is none. The
    gaps of one device or stream are in order and apart. Those of a stream lie between its own first
    and last work: what it does not do before and after says nothing.
    """
    keys = ["device"] if scope == "device" else ["device", "stream"]
    real = work.filter(pl.col("duration") > 0)
    found = [pl.DataFrame(schema=_SCHEMA)]
    for place, own in real.group_by(keys, maintain_order=True):
        looked_at = when
        if scope == "stream":
            looked_at = clip(
                when, int(own["start"].to_numpy()[0]), int(own["end"].to_numpy().max())
            )
        found.append(_between(own, looked_at).with_columns(**_place(keys, place)))
    return pl.concat([table.select(*_SCHEMA) for table in found])


def _place(keys: list[str], place: tuple[object, ...]) -> dict[str, pl.Expr]:
    told = dict(zip(keys, place, strict=True))
    return {key: pl.lit(told.get(key), dtype=_SCHEMA[key]) for key in ("device", "stream")}


def _between(own: pl.DataFrame, when: Intervals) -> pl.DataFrame:
    """Gaps of one device or stream, whose work is in order of start."""
    idle = subtract(when, covered_time(own))
    by_end = own.sort("end", maintain_order=True)
    before = np.searchsorted(by_end["end"].to_numpy(), idle.starts, side="right") - 1
    after = np.searchsorted(own["start"].to_numpy(), idle.ends, side="left")
    return pl.DataFrame(
        {
            "start": idle.starts,
            "end": idle.ends,
            "before": _gathered(by_end["id"], before),
            "after": _gathered(own["id"], after),
        }
    )


def _gathered(ids: pl.Series, at: np.ndarray) -> pl.Series:
    """The slices at these places; null where a place lies outside."""
    place = pl.Series(at, dtype=pl.Int64)
    return ids.gather(place.set((place < 0) | (place >= ids.len()), None).cast(pl.UInt32))
