"""Finds time in which launched work waits for device work that the recording does not contain.

A recording often begins while the device is still at work that was queued before, as in a server
that launches ahead. The first recorded work of a stream then begins long after its launch, while
nothing recorded runs on the device. That time is neither a launch nor of the line that launched.
"""

from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.device.device_work import device_work
from selftime.array_types import Flags, Ints
from selftime.intervals import covered_time_before, union
from selftime.trace import Trace

MIN_WAIT_FOR_EARLIER_WORK_NS: Final = 100_000
"""Least time from the end of a launch to the begin of its work on a stream that does nothing, for
the stream to be known to have been busy; ten times what a launch usually takes."""
_MIN_SHARE_OF_SEGMENT: Final = 0.5
"""Smallest share of a segment in such a wait for it to count as one: the first launch of all may
take long itself."""


def waits_for_earlier_work(trace: Trace, segments: pl.DataFrame) -> Flags:
    """Flags segments of the critical path in which work waits for unrecorded work of the device.

    Args:
        trace: The trace.
        segments: Rows of `critical_path_segments`.
    """
    found = np.zeros(segments.height, np.bool_)
    first = _first_work_of_streams(trace)
    is_late = segments["kind"].is_in(["latency", "unknown"]) & (segments["link"] == "launch")
    at = np.flatnonzero((is_late & segments["slice"].is_in(first["id"].implode())).to_numpy())
    if not at.size:
        return found
    late = segments[at].join(first, left_on="slice", right_on="id", maintain_order="left")
    begin = np.maximum(late["start"].to_numpy(), late["call_end"].to_numpy())
    end = late["end"].to_numpy()
    idle = end - begin - _time_with_recorded_work(trace, late["device"], begin, end)
    least = np.maximum(
        MIN_WAIT_FOR_EARLIER_WORK_NS,
        (end - late["start"].to_numpy()) * _MIN_SHARE_OF_SEGMENT,
    )
    found[at] = idle >= least
    return found


def _first_work_of_streams(trace: Trace) -> pl.DataFrame:
    """Returns the first recorded work of each stream, if its launch is known.

    Columns: id; device; call_end, when the call that launched it ended, in ns.
    """
    work = device_work(trace).select("id", "start", "launch", "device", "stream")
    first = work.sort("start", "id").unique(["device", "stream"], keep="first", maintain_order=True)
    calls = trace.slices.select(
        pl.col("id").alias("launch"), call_end=pl.col("start") + pl.col("duration")
    )
    return first.join(calls, on="launch").select("id", "device", "call_end").drop_nulls("call_end")


def _time_with_recorded_work(trace: Trace, devices: pl.Series, begin: Ints, end: Ints) -> Ints:
    """Returns how long (ns) recorded work runs on a device in each interval."""
    work, busy = device_work(trace), np.zeros(begin.size, np.int64)
    for device in devices.unique().to_list():
        own = work.filter(pl.col("device").eq_missing(device))
        times = union(own["start"].to_numpy(), own["end"].to_numpy())
        at = np.flatnonzero(devices.eq_missing(device).to_numpy())
        before = covered_time_before(times, np.concatenate([begin[at], end[at]]))
        busy[at] = before[at.size :] - before[: at.size]
    return busy
