"""What waits of the host cost: how long the device had nothing to do because of each.

While the host waits it launches nothing. A device that was done before the wait ended, or that runs
empty before the host has launched again, stands idle; a device with work in its queue does not, and
a wait then costs nothing, however long it is.
"""

import numpy as np
import polars as pl

from selftime.analysis.cached import cached_per_trace
from selftime.analysis.idle.gaps import placed_work
from selftime.analysis.idle.host_waits import host_waits
from selftime.analysis.slice_filters import covered_time
from selftime.arrays import Ints
from selftime.intervals import Intervals, before
from selftime.trace import Trace


@cached_per_trace
def waits_with_idle_time(trace: Trace) -> pl.DataFrame:
    """Waits of the host with what they cost the device, in order of time.

    Columns: those of `host_waits`; device, the one to which its thread had launched last, or
    launches next; idle, how much of the wait the device had no work (ns); starvation, how long
    it had none from the end of the wait to the begin of the work that was launched next, or to
    the next wait of the thread (ns), null if nothing was launched after it; ended, the work
    that ended last before the wait did, if any ended in it.
    """
    work = placed_work(trace).filter(pl.col("duration") > 0)
    found = _on_devices(trace, host_waits(trace), work).with_row_index("at")
    columns = {
        "idle": np.zeros(found.height, np.int64),
        "starvation": np.full(found.height, -1, np.int64),
        "ended": np.full(found.height, -1, np.int64),
    }
    for (device,), own in found.group_by("device", maintain_order=True):
        mine = work.filter(pl.col("device").eq_missing(pl.lit(device)))
        at = own["at"].to_numpy()
        for name, values in _on_device(own, mine).items():
            columns[name][at] = values
    return found.drop("at").with_columns(
        idle=columns["idle"],
        starvation=_known(columns["starvation"]),
        ended=_known(columns["ended"]).cast(pl.UInt32),
    )


def _known(values: Ints) -> pl.Series:
    known = pl.Series(values, dtype=pl.Int64)
    return known.set(known < 0, None)


def _on_devices(trace: Trace, held: pl.DataFrame, work: pl.DataFrame) -> pl.DataFrame:
    """With the device of the thread, and until: when its next wait begins."""
    known = work.filter(pl.col("launched").is_not_null())
    track = trace.slices["track"].gather(known["launch"])
    launches = known.select(
        "device", start="launched", thread=trace.tracks["thread"].gather(track)
    ).sort("start")
    earlier = held.join_asof(
        launches, on="start", by="thread", strategy="backward", check_sortedness=False
    )
    later = held.select("start", "thread").join_asof(
        launches, on="start", by="thread", strategy="forward", check_sortedness=False
    )
    other = held.select("start").join_asof(
        launches.select("start", "device"), on="start", strategy="nearest", check_sortedness=False
    )
    return earlier.with_columns(
        device=pl.coalesce(earlier["device"], later["device"], other["device"]),
        until=pl.col("start").shift(-1).over("thread"),
    )


def _on_device(own: pl.DataFrame, work: pl.DataFrame) -> dict[str, Ints]:
    start, end = own["start"].to_numpy(), own["end"].to_numpy()
    busy = covered_time(work)
    ends = work.sort("end", maintain_order=True)
    last = np.searchsorted(ends["end"].to_numpy(), end, side="right") - 1
    ended = ends["id"].to_numpy().astype(np.int64)[last] if work.height else last
    within = (last >= 0) & (ends["end"].to_numpy()[last] > start) if work.height else last >= 0
    return {
        "idle": _idle(busy, start, end),
        "starvation": _starved(own, work, busy),
        "ended": np.where(within, ended, -1),
    }


def _idle(busy: Intervals, start: Ints, end: Ints) -> Ints:
    return end - start - (before(busy, end) - before(busy, start))


def _starved(own: pl.DataFrame, work: pl.DataFrame, busy: Intervals) -> Ints:
    """Idle time from the end of each wait to the next launched work; -1 if there is none."""
    queue = work.filter(pl.col("launched").is_not_null()).sort("launched", "start")
    end = own["end"].to_numpy()
    following = np.searchsorted(queue["launched"].to_numpy(), end, side="left")
    known = following < queue.height
    until = end.copy()
    until[known] = queue["start"].to_numpy()[following[known]]
    until = np.minimum(until, own["until"].fill_null(np.iinfo(np.int64).max).to_numpy())
    until = np.maximum(until, end)
    return np.where(known, _idle(busy, end, until), -1)
