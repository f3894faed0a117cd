"""Divides the time of each step into categories, such as kernels, copies and data loading.

The categories are those of the former TensorBoard plugin, in its order of precedence: a moment
counts to the first category that applies.
"""

from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.device.device_work import device_work
from selftime.analysis.main_thread import slices_on_main_thread
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_filters import covered_time, filter_by_name, matches_name, slices_on
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.analysis.steps.step_boundaries import find_steps
from selftime.array_types import Ints
from selftime.intervals import Intervals, covered_time_before, subtract, union
from selftime.trace import Trace

DEVICE_TIME_CATEGORIES: Final = ("kernel", "memcpy", "memset", "communication")
"""Categories of device work. In a trace without device work, communication is on the host."""
STEP_TIME_CATEGORIES: Final = (*DEVICE_TIME_CATEGORIES, "runtime", "data_loading", "cpu")
"""Every category of a step's time except `other`; where several apply at once, the first counts."""


def time_category_intervals(trace: Trace) -> dict[str, Intervals]:
    """Returns the intervals (ns) of each time category, and of all device work (`busy`).

    Data loading is the program's waiting for data on its main thread. Step marks are not operators,
    because they do not show what the host did.
    """
    work, host, steps = device_work(trace), slices_on(trace, "host"), find_steps(trace)
    times = work.select("kind", "start", "duration")
    on_device = {
        kind: covered_time(times.filter(pl.col("kind") == kind)) for kind in DEVICE_TIME_CATEGORIES
    }
    calls = host["category"].is_in(list(names.RUNTIME_CALL_CATEGORIES))
    return {
        **on_device,
        "busy": covered_time(work),
        "communication": _communication_time(work, host),
        "runtime": covered_time(host.select("start", "duration").filter(calls)),
        "data_loading": covered_time(
            slices_on_main_thread(trace, filter_by_name(host, names.is_data_loading))
        ),
        "cpu": covered_time(host_slices_without_step_marks(host, steps)),
    }


def _communication_time(work: pl.DataFrame, host: pl.DataFrame) -> Intervals:
    """Returns the intervals (ns) of collectives: of kernels, and of annotations on the host.

    In a trace without device work, every collective's annotation counts, as it is the only
    evidence.
    """
    is_meant = names.is_host_collective if work.height else names.is_collective_annotation
    marked = filter_by_name(host, is_meant).select("start", "duration")
    kernels = work.filter(pl.col("kind") == "communication").select("start", "duration")
    return covered_time(pl.concat([kernels, marked]))


def host_slices_without_step_marks(host_slices: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """Returns track, start and duration (ns) of host slices, without those that mark steps."""
    told = steps.filter(pl.col("source").is_in(["profiler", "annotation"]))
    marks = frozenset(told["mark"].drop_nulls().to_list())
    flags = matches_name(
        host_slices, lambda name: names.profiler_step_number(name) is None and name not in marks
    )
    return host_slices.select("track", "start", "duration").filter(pl.Series(flags))


@cached_per_trace
def step_breakdown(trace: Trace) -> pl.DataFrame:
    """Returns each step's time in each category, in ns, one row per step in order of time.

    Columns: time, from its begin until it was done; those of `STEP_TIME_CATEGORIES` and other,
    which add up to that: a moment counts to the first category that applies; then, overlaps
    included, busy (a device worked), all_communication and loading. Columns without any recorded
    data are null: data loading, the work of devices, the calls that launched it.
    """
    steps = steps_with_counted_flags(trace)
    start, end = steps["begin"].to_numpy(), steps["done"].to_numpy()
    parts = time_category_intervals(trace)
    table: dict[str, Ints] = {"time": end - start}
    covered = union([], [])
    for part in STEP_TIME_CATEGORIES:
        own = subtract(parts[part], covered)
        covered = _union_of_intervals(covered, parts[part])
        table[part] = covered_time_in_windows(own, start, end)
    table["other"] = (end - start) - covered_time_in_windows(covered, start, end)
    table["busy"] = covered_time_in_windows(parts["busy"], start, end)
    table["all_communication"] = covered_time_in_windows(parts["communication"], start, end)
    table["loading"] = covered_time_in_windows(parts["data_loading"], start, end)
    return pl.DataFrame(table).with_columns(
        pl.lit(None, pl.Int64).alias(part)
        for part in _columns_of_unrecorded_categories(trace, parts)
    )


def _columns_of_unrecorded_categories(trace: Trace, parts: dict[str, Intervals]) -> list[str]:
    """Returns the names of time categories that are unknown because the trace lacks their data."""
    unknown: list[str] = []
    if not parts["data_loading"].starts.size:
        unknown += ["data_loading", "loading"]
    host = slices_on(trace, "host")
    if not host.height:
        unknown.append("cpu")
    if not slices_on(trace, "device")["duration"].is_not_null().any():
        unknown += ["kernel", "memcpy", "memset", "busy"]
        if not parts["communication"].starts.size:
            unknown += ["communication", "all_communication"]
    elif not host["category"].is_in(list(names.RUNTIME_CALL_CATEGORIES)).any():
        unknown.append("runtime")  # the launches were not recorded
    return unknown


def _union_of_intervals(intervals: Intervals, other_intervals: Intervals) -> Intervals:
    starts = np.append(intervals.starts, other_intervals.starts)
    return union(starts, np.append(intervals.ends, other_intervals.ends))


def covered_time_in_windows(intervals: Intervals, start: Ints, end: Ints) -> Ints:
    """Returns for each time window how many ns of it the intervals cover."""
    return covered_time_before(intervals, end) - covered_time_before(intervals, start)
