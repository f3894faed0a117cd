"""When the program was in which category: sets of time, over the whole trace.

The categories are those of the old TensorBoard plugin, in its order of precedence: a moment counts
to the first that holds of it.
"""

from typing import Final

import polars as pl

from selftime import names
from selftime.intervals import Intervals
from selftime.trace import Trace
from selftime.views.accounts.device.work import device_work
from selftime.views.accounts.named import is_named, of_kind, whose_name
from selftime.views.accounts.steps.stepping import find_steps
from selftime.views.accounts.times import times_of

__all__ = ["CATEGORIES", "DEVICE_CATEGORIES", "spans", "times_of", "without_marks"]

DEVICE_CATEGORIES: Final = ("kernel", "memcpy", "memset", "communication")
"""Categories in which a device works; where a trace has no device work, hosts communicate."""
CATEGORIES: Final = (*DEVICE_CATEGORIES, "runtime", "data_loading", "cpu")
"""Every category but `other`, by precedence."""


def spans(trace: Trace) -> dict[str, Intervals]:
    """The time of each of `CATEGORIES`, whatever else ran then, and `busy`: of any device work.

    The program's waits for data are those on the thread of its steps. Marks of the steps themselves
    are no operators: they say nothing about what the host did.
    """
    work, host, steps = device_work(trace), of_kind(trace, "host"), find_steps(trace)
    times = work.select("kind", "start", "duration")
    on_device = {kind: times_of(times.filter(pl.col("kind") == kind)) for kind in DEVICE_CATEGORIES}
    calls = host["category"].is_in(list(names.CALLS))
    return {
        **on_device,
        "busy": times_of(work),
        "communication": _communication(work, host),
        "runtime": times_of(host.select("start", "duration").filter(calls)),
        "data_loading": times_of(_loading(host, steps)),
        "cpu": times_of(without_marks(host, steps)),
    }


def _communication(work: pl.DataFrame, host: pl.DataFrame) -> Intervals:
    """The time of collectives: their kernels, and annotations of those that the host exchanges.

    Where a trace has no device work, every collective's annotation counts: nothing else tells.
    """
    is_meant = names.is_host_collective if work.height else names.is_collective_annotation
    marked = whose_name(host, is_meant).select("start", "duration")
    kernels = work.filter(pl.col("kind") == "communication").select("start", "duration")
    return times_of(pl.concat([kernels, marked]))


def _loading(host: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    loading = whose_name(host, names.is_data_loading)
    track = steps["track"].drop_nulls().unique()
    return loading.filter(pl.col("track").is_in(track.implode())) if track.len() else loading


def without_marks(host: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """Host slices but those that mark steps and last as long as these: track, start, duration."""
    told = steps.filter(pl.col("source").is_in(["profiler", "annotation"]))
    marks = frozenset(told["mark"].drop_nulls().to_list())
    flags = is_named(host, lambda name: names.step_number(name) is None and name not in marks)
    return host.select("track", "start", "duration").filter(pl.Series(flags))
