"""Finds the host thread that runs the program's loop, and the slices that are its work."""

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_filters import covered_time, filter_by_name, matches_name, slices_on
from selftime.analysis.steps.step_boundaries import find_steps
from selftime.array_types import Flags, Ints
from selftime.intervals import Intervals, length, subtract
from selftime.trace import Trace


def is_work_of_host_thread(host_slices: pl.DataFrame) -> Flags:
    """Flags host slices in which their own thread works, such as operators; shape (n,).

    Work is calls of a device's runtime, dispatched operators of any library, and nodes of the
    backward pass. Annotations, profiler steps and slices recorded as operators without a
    dispatcher's name are not work: they enclose work, of their own thread or of another thread that
    theirs waits for.
    """
    calls = host_slices["category"].is_in(list(names.RUNTIME_CALL_CATEGORIES)).to_numpy()
    return calls | matches_name(host_slices, _is_dispatched_operator_name)


def _is_dispatched_operator_name(slice_name: str) -> bool:
    return names.is_dispatched_operator(slice_name) or names.is_backward_node(slice_name)


@cached_per_trace
def main_thread(trace: Trace) -> int | None:
    """Returns the main thread's number, as in the column `thread` of `tracks`; None without a host.

    It is the thread that holds the step marks, if that thread itself works: runs operators or
    calls, as `is_work_of_host_thread` defines.

    Otherwise it is the thread that works longest outside nodes of the backward pass. Autograd's
    thread often works longest of all, but only while the thread that called `backward` waits for
    it. Ties are resolved by total work, then by time in any slice or Python frame, then by the
    lowest number.
    """
    tracks = trace.tracks.filter(pl.col("kind").is_in(["host", "python"]))
    threads = tracks["thread"].cast(pl.Int64).unique().sort().to_list()
    host = slices_on(trace, "host", ended=True)
    is_work = pl.Series(is_work_of_host_thread(host), dtype=pl.Boolean)
    work = host.select("track", "start", "duration").filter(is_work)
    marked = _thread_numbers_of_slices(trace, find_steps(trace).drop_nulls("track").head(1))
    if np.isin(_thread_numbers_of_slices(trace, work), marked).any():
        return int(marked[0])
    parts = {
        "work": work,
        "backward": filter_by_name(host, names.is_backward_node),
        "any": pl.concat([host, slices_on(trace, "python", ended=True)]),
    }
    times = {kind: _covered_times_by_thread(trace, part, threads) for kind, part in parts.items()}

    def sort_key_longest_first(thread: int) -> tuple[int, int, int, int]:
        works, backward, any_ = (times[kind][thread] for kind in parts)
        return -length(subtract(works, backward)), -length(works), -length(any_), thread

    return min(threads, key=sort_key_longest_first, default=None)


def slices_on_main_thread(trace: Trace, slices: pl.DataFrame) -> pl.DataFrame:
    """Returns the slices that are on the main thread; the table needs a column `track`."""
    main = main_thread(trace)
    if main is None:
        return slices.clear()
    return slices.filter(
        pl.Series(_thread_numbers_of_slices(trace, slices) == main, dtype=pl.Boolean)
    )


def _thread_numbers_of_slices(trace: Trace, slices: pl.DataFrame) -> Ints:
    return trace.tracks["thread"].gather(slices["track"]).cast(pl.Int64).to_numpy()


def _covered_times_by_thread(
    trace: Trace, slices: pl.DataFrame, threads: list[int]
) -> dict[int, Intervals]:
    """Returns for each thread number the time that its slices cover, as intervals in ns."""
    thread = _thread_numbers_of_slices(trace, slices)
    return {number: covered_time(slices.filter(pl.Series(thread == number))) for number in threads}
