"""When the program was in which category: sets of time, over the whole trace.

The categories are those of the old TensorBoard plugin, in its order of precedence: a moment counts
to the first that holds of it.
"""

from typing import Final

import polars as pl

from selftime import names
from selftime.analysis.device.work import device_work
from selftime.analysis.main_thread import on_main_thread
from selftime.analysis.slice_filters import covered_time, filter_by_name, matches_name, slices_on
from selftime.analysis.steps.step_boundaries import find_steps
from selftime.intervals import Intervals
from selftime.trace import Trace

__all__ = ["CATEGORIES", "DEVICE_CATEGORIES", "covered_time", "spans", "without_marks"]

DEVICE_CATEGORIES: Final = ("kernel", "memcpy", "memset", "communication")
"""Categories in which a device works; where a trace has no device work, hosts communicate."""
CATEGORIES: Final = (*DEVICE_CATEGORIES, "runtime", "data_loading", "cpu")
"""Every category but `other`, by precedence."""


def spans(trace: Trace) -> dict[str, Intervals]:
    """The time of each of `CATEGORIES`, whatever else ran then, and `busy`: of any device work.

    The program's waits for data are those on its main thread. Marks of the steps themselves
    are no operators: they say nothing about what the host did.
    """
    work, host, steps = device_work(trace), slices_on(trace, "host"), find_steps(trace)
    times = work.select("kind", "start", "duration")
    on_device = {
        kind: covered_time(times.filter(pl.col("kind") == kind)) for kind in DEVICE_CATEGORIES
    }
    calls = host["category"].is_in(list(names.CALLS))
    return {
        **on_device,
        "busy": covered_time(work),
        "communication": _communication(work, host),
        "runtime": covered_time(host.select("start", "duration").filter(calls)),
        "data_loading": covered_time(
            on_main_thread(trace, filter_by_name(host, names.is_data_loading))
        ),
        "cpu": covered_time(without_marks(host, steps)),
    }


def _communication(work: pl.DataFrame, host: pl.DataFrame) -> Intervals:
    """The time of collectives: their kernels, and annotations of those that the host exchanges.

    Where a trace has no device work, every collective's annotation counts: nothing else tells.
    """
    is_meant = names.is_host_collective if work.height else names.is_collective_annotation
    marked = filter_by_name(host, is_meant).select("start", "duration")
    kernels = work.filter(pl.col("kind") == "communication").select("start", "duration")
    return covered_time(pl.concat([kernels, marked]))


def without_marks(host: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """Host slices but those that mark steps and last as long as these: track, start, duration."""
    told = steps.filter(pl.col("source").is_in(["profiler", "annotation"]))
    marks = frozenset(told["mark"].drop_nulls().to_list())
    flags = matches_name(host, lambda name: names.step_number(name) is None and name not in marks)
    return host.select("track", "start", "duration").filter(pl.Series(flags))
