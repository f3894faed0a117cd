"""The program's steps: how long each took, on the host and on the device, and with what."""

from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.intervals import Intervals, before, subtract, union
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.base import view
from selftime.views.judging import judged_steps
from selftime.views.named import of_kind, whose_name

__all__ = ["steps"]

Ints = NDArray[np.int64]

_PARTS: Final = ("kernel", "memcpy", "memset", "communication", "runtime", "data_loading", "cpu")


@view(
    Column("step", pl.Int64, "id", "The step's number."),
    Column("start", pl.Int64, "instant", "When it began on the host."),
    Column("host_time", pl.Int64, "ns", "From its begin to its end on the host."),
    Column(
        "device_time", pl.Int64, "ns", "Between the ends of its and the last step's work.", True
    ),
    Column("lag", pl.Int64, "ns", "From its end on the host to the end of its device work.", True),
    Column("kernel", pl.Int64, "ns", "Of the host time: a kernel ran, other than a collective."),
    Column("memcpy", pl.Int64, "ns", "Of the rest: a copy ran."),
    Column("memset", pl.Int64, "ns", "Of the rest: a fill ran."),
    Column("communication", pl.Int64, "ns", "Of the rest: a collective ran."),
    Column("runtime", pl.Int64, "ns", "Of the rest: the host was in a runtime call."),
    Column(
        "data_loading", pl.Int64, "ns", "Of the rest: the host waited for the next batch.", True
    ),
    Column("cpu", pl.Int64, "ns", "Of the rest: the host was in an operator or annotation."),
    Column("other", pl.Int64, "ns", "What is left of the host time."),
    Column("loading", pl.Int64, "ns", "All time in data loading, whatever else ran.", True),
    Column("device_slices", pl.Int64, "count", "Kernels, copies and fills that it launched."),
    Column("source", pl.String, "name", "What tells the steps: profiler, optimizer, window."),
    Column("counted", pl.Boolean, "flag", "Whether medians take it in."),
    Column("note", pl.String, "sentence", "Why it is not counted.", True),
)
def steps(trace: Trace) -> pl.DataFrame:
    """Every step with its time by category; the categories add up to the host time.

    A moment counts to the first category that holds of it, in the order of the columns. Device work
    belongs to the step that launched it. The device time of a step is the difference between the
    ends of its last work and of that of the step before: what a step costs once the device is busy.
    """
    found = judged_steps(trace)
    start, end = found["start"].to_numpy(), found["end"].to_numpy()
    parts = _parts(trace)
    columns: dict[str, Any] = {}
    covered = union([], [])
    for part in _PARTS:
        own = subtract(parts[part], covered)
        covered = union(
            np.append(covered.starts, parts[part].starts), np.append(covered.ends, parts[part].ends)
        )
        columns[part] = _within(own, start, end)
    columns["other"] = (end - start) - _within(covered, start, end)
    columns["loading"] = _within(parts["data_loading"], start, end)
    table = found.rename({"number": "step"}).with_columns(**columns)
    if not parts["data_loading"].starts.size:  # no row of it anywhere: not known, which is not zero
        table = table.with_columns(data_loading=None, loading=None)
    return table.select(pl.col(column.name).cast(column.dtype) for column in steps.columns)


def _parts(trace: Trace) -> dict[str, Intervals]:
    """The time of each category, as intervals over the whole trace."""
    device, host = of_kind(trace, "device"), of_kind(trace, "host")
    kernels = device.filter(~_is_in(device, names.COPIES))
    collectives = _collectives(trace, kernels)
    compute = kernels.join(collectives.select("id"), on="id", how="anti")
    marked = whose_name(host, names.is_collective_annotation) if not device.height else host.clear()
    return {
        "kernel": _intervals(compute),
        "memcpy": _intervals(device.filter(_is_in(device, ("gpu_memcpy",)))),
        "memset": _intervals(device.filter(_is_in(device, ("gpu_memset",)))),
        "communication": _intervals(pl.concat([collectives, marked])),
        "runtime": _intervals(host.filter(_is_in(host, names.CALLS))),
        "data_loading": _intervals(whose_name(host, names.is_data_loading)),
        "cpu": _intervals(whose_name(host, lambda name: names.step_number(name) is None)),
    }


def _is_in(slices: pl.DataFrame, categories: tuple[str, ...]) -> pl.Series:
    return slices["category"].cast(pl.String).is_in(list(categories))


def _collectives(trace: Trace, kernels: pl.DataFrame) -> pl.DataFrame:
    """Kernels that communicate: by their arguments, else by their names."""
    told = kernels.join(trace.collective_args.select("id"), on="id", how="semi")
    named = whose_name(kernels, names.is_collective_kernel)
    return pl.concat([told, named]).unique("id", maintain_order=True)


def _intervals(slices: pl.DataFrame) -> Intervals:
    known = slices.filter(pl.col("duration").is_not_null())
    begin = known["start"].to_numpy()
    return union(begin, begin + known["duration"].to_numpy())


def _within(these: Intervals, start: Ints, end: Ints) -> Ints:
    """How much of a set lies in each of the windows."""
    return before(these, end) - before(these, start)
