"""What calls waited for: work of the device, or room in its queue."""

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.advice.replay.device import SLACK, Device
from selftime.advice.replay.program import ALL, NOTHING
from selftime.analysis.idle.host_waits import host_waits
from selftime.arrays import Ints
from selftime.trace import Trace

_QUICK: Final = 5_000
"""Host time of a wait whose condition holds, in ns, where a trace has none that did not wait."""


def waiting_of(trace: Trace, calls: pl.DataFrame, device: Device, last: Ints) -> dict[str, Ints]:
    """For each entry: own, waits_for, waits_stream and after, as `Entries` has them."""
    start, end = calls["start"].to_numpy(), calls["end"].to_numpy()
    for_work = _room(device, last, start.size)
    asked = _asked(trace, calls)
    at = asked["entry"].to_numpy()
    kind = asked["kind"].to_numpy()
    found = device.last_before(last[at], end[at] + SLACK) if at.size else at
    for_work[at] = found
    for_stream = np.full(start.size, NOTHING, np.int64)
    of_stream = np.isin(kind, ["stream"]) & (found != NOTHING)
    for_stream[at[of_stream]] = device.stream[found[of_stream]]
    for_stream[at[(kind == "device") & (found != NOTHING)]] = ALL
    for_work[for_stream != NOTHING] = NOTHING
    condition, known = _conditions(device, for_work, for_stream, last)
    wrong = (for_stream != NOTHING) & (condition > end + SLACK)  # more ran on than it waited for
    for_work[at] = np.where(wrong[at], found, for_work[at])
    for_stream[wrong] = NOTHING
    condition, known = _conditions(device, for_work, for_stream, last)
    held = known & (condition > start) & (condition <= end + SLACK)
    since = end - condition
    return {
        "own": np.where(held, np.minimum(end - start, _typical(trace, calls, held)), end - start),
        "waits_for": for_work,
        "waits_stream": for_stream,
        "after": np.where(held, since, np.minimum(0, since)),
    }


def _typical(trace: Trace, calls: pl.DataFrame, held: NDArray[np.bool_]) -> Ints:
    """The median host time of calls of the same name that nothing held, by entry, in ns."""
    known = calls["id"].to_numpy() != NOTHING
    slices = calls["id"].set(pl.Series(~known), 0).cast(pl.UInt32)
    named = pl.DataFrame(
        {
            "name": trace.slices["name"].gather(slices).to_physical(),
            "free": pl.Series(calls["end"] - calls["start"]).set(pl.Series(held | ~known), None),
        }
    )
    typical = named.select(pl.col("free").median().over("name")).to_series()
    return typical.fill_null(_QUICK).cast(pl.Int64).to_numpy()


def _asked(trace: Trace, calls: pl.DataFrame) -> pl.DataFrame:
    """Entries that wait for the device: entry and kind."""
    entry = calls.with_row_index("entry").select("entry", "id")
    found = host_waits(trace).select(pl.col("id").cast(pl.Int64), "kind")
    return found.join(entry, on="id").select(pl.col("entry").cast(pl.Int64), "kind").sort("entry")


def _room(device: Device, last: Ints, size: int) -> Ints:
    """For each entry that launches: the work that must be done for the queue to have room."""
    found = np.full(size, NOTHING, np.int64)
    first = np.append(0, last[:-1]) if size else last
    launching = np.flatnonzero(last > first)
    for number in np.unique(device.stream):
        own = np.flatnonzero(device.stream == number)
        mine = launching[device.stream[first[launching]] == number]
        place = device.place[first[mine]] - device.depth
        full = place >= 0
        found[mine[full]] = own[place[full]]
    return found


def _conditions(
    device: Device, for_work: Ints, for_stream: Ints, last: Ints
) -> tuple[Ints, NDArray[np.bool_]]:
    """When each entry's condition held in the recording, and whether it has one."""
    condition = np.zeros(for_work.size, np.int64)
    one = for_work != NOTHING
    condition[one] = device.end[for_work[one]]
    for stream in np.unique(for_stream[for_stream != NOTHING]):
        asking = np.flatnonzero(for_stream == stream)
        every = np.arange(device.end.size)
        own = every if stream == ALL else np.flatnonzero(device.stream == stream)
        reach = np.maximum.accumulate(device.end[own])
        place = np.searchsorted(own, last[asking], side="left") - 1
        condition[asking] = np.where(place >= 0, reach[np.maximum(place, 0)], 0)
    return condition, one | (for_stream != NOTHING)
