"""Which thread of the host runs the program's loop."""

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.host_work import is_work
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.analysis.steps.step_boundaries import find_steps
from selftime.arrays import Ints
from selftime.intervals import Intervals, length, subtract
from selftime.trace import Trace


@cached_per_trace
def main_thread(trace: Trace) -> int | None:
    """The main thread's number, as in the column `thread` of `tracks`; None if there is no host.

    It is the thread on which the marks lie that tell the steps, if it works itself: runs operators
    or calls, as `is_work` says.

    Else it is the thread that works longest outside of nodes of the backward pass: autograd's
    thread often works longest of all, but only while the thread that called `backward` waits for
    it. Of threads that are equal in this it is the one that works longest at all, then the one that
    is longest in any slice or Python frame, then the one with the lowest number.
    """
    tracks = trace.tracks.filter(pl.col("kind").is_in(["host", "python"]))
    threads = tracks["thread"].cast(pl.Int64).unique().sort().to_list()
    host = slices_on(trace, "host", ended=True)
    work = host.filter(pl.Series(is_work(host), dtype=pl.Boolean))
    marked = _threads_of(trace, find_steps(trace).drop_nulls("track").head(1))
    if np.isin(_threads_of(trace, work), marked).any():
        return int(marked[0])
    parts = {
        "work": work,
        "backward": filter_by_name(host, names.is_backward_node),
        "any": pl.concat([host, slices_on(trace, "python", ended=True)]),
    }
    times = {kind: _times_by_thread(trace, part, threads) for kind, part in parts.items()}

    def longest_first(thread: int) -> tuple[int, int, int, int]:
        works, backward, any_ = (times[kind][thread] for kind in parts)
        return -length(subtract(works, backward)), -length(works), -length(any_), thread

    return min(threads, key=longest_first, default=None)


def on_main_thread(trace: Trace, slices: pl.DataFrame) -> pl.DataFrame:
    """Those of some slices, which have a column `track`, that lie on the main thread."""
    main = main_thread(trace)
    if main is None:
        return slices.clear()
    return slices.filter(pl.Series(_threads_of(trace, slices) == main, dtype=pl.Boolean))


def _threads_of(trace: Trace, slices: pl.DataFrame) -> Ints:
    return trace.tracks["thread"].gather(slices["track"]).cast(pl.Int64).to_numpy()


def _times_by_thread(
    trace: Trace, slices: pl.DataFrame, threads: list[int]
) -> dict[int, Intervals]:
    """When each thread was in any of the slices."""
    thread = _threads_of(trace, slices)
    return {number: covered_time(slices.filter(pl.Series(thread == number))) for number in threads}
