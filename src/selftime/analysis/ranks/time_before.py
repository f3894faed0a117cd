"""What a rank did until it came to each collective: computed, loaded data, collected garbage.

The rest is its host's: other work of the program, while the device had none. Amounts run from the
begin of the recording, so that what lies between two instants is a difference, whichever they are.
From start to start of two collectives every rank has the same to do, and more of one cause is what
makes it late; from the end of one, who waited there has done a part of the next already.
"""

from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.device.work import device_work
from selftime.analysis.ranks.collectives import collectives
from selftime.analysis.slice_filters import covered_time, filter_by_name
from selftime.analysis.steps.category_times import spans
from selftime.intervals import Intervals, before, subtract, union
from selftime.trace import Trace

CAUSES: Final = ("compute", "gc", "data", "host")
"""What holds a rank up, other than the ranks that it waits for."""
AMOUNTS: Final = ("compute", "gc", "data", "exchange")
"""What is measured; the host's is what is left of the time."""


@cached_per_trace
def amounts(trace: Trace) -> pl.DataFrame:
    """For each of `collectives`, in order, the time until its start and its end, by cause, in ns.

    Columns: amount_start and amount_end for each of `AMOUNTS`. On a program with a device, compute
    is the time in which that worked on anything but collectives, and the others count while it did
    not; else it is the time of operators outside of the others. Exchange is that in collectives
    while nothing else was.
    """
    found = collectives(trace)
    start, end = found["start"].to_numpy(), found["end"].to_numpy()
    return pl.DataFrame(
        {
            f"{cause}_{side}": before(when, at)
            for cause, when in held_up(trace).items()
            for side, at in (("start", start), ("end", end))
        },
        {f"{cause}_{side}": pl.Int64 for cause in AMOUNTS for side in ("start", "end")},
    )


@cached_per_trace
def held_up(trace: Trace) -> dict[str, Intervals]:
    """When each of `AMOUNTS` held the rank up; none at the time of one before."""
    parts, work = spans(trace), device_work(trace)
    exchanged = parts["communication"]
    paused = covered_time(filter_by_name(trace.slices, names.is_garbage_collection))
    if work.height:
        computed = covered_time(work.filter(pl.col("kind") != "communication"))
        paused = subtract(paused, computed)
        loading = subtract(parts["data_loading"], _all(computed, paused))
    else:
        loading = subtract(parts["data_loading"], paused)
        computed = subtract(parts["cpu"], _all(paused, loading, exchanged))
    exchange = subtract(exchanged, _all(computed, paused, loading))
    return {"compute": computed, "gc": paused, "data": loading, "exchange": exchange}


def _all(*sets: Intervals) -> Intervals:
    return union(
        np.concatenate([one.starts for one in sets]), np.concatenate([one.ends for one in sets])
    )
