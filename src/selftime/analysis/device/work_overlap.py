"""Measures how long compute, communication, copies and streams of a device worked at once."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.device.device_work import device_work, is_device_unrecorded
from selftime.analysis.health.recording_under_check import is_device_work_mostly_lost
from selftime.analysis.idle.gaps import observed_time_in_steps
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.analysis.steps.breakdown import covered_time_in_windows
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.array_types import Ints
from selftime.intervals import Intervals, intersect, subtract, union
from selftime.trace import Trace

_WORK_CATEGORIES_BY_COLUMN: Final = {
    "compute": ("kernel",),
    "communication": ("communication",),
    "copies": ("memcpy", "memset"),
}


def overlap_of_work_kinds(trace: Trace, *, by_step: bool) -> pl.DataFrame:
    """Returns how long each kind of work of a device ran, alone or in parallel, in ns.

    One row per device for the time from the first step until the last one is done, or one per step
    and device.
    """
    steps = steps_with_counted_flags(trace) if by_step else None
    start, end = _step_or_observed_windows(trace, steps)
    tables = [
        _overlap_rows_of_windows(place, start, end) for place in _work_intervals_by_device(trace)
    ]
    if not tables:
        return pl.DataFrame()
    table = pl.concat(tables)
    if is_device_work_mostly_lost(trace):
        table = table.with_columns(idle=None)
    if steps is None:
        return table
    numbers = pl.concat([steps["number"]] * len(tables))
    return table.with_columns(step=numbers).sort(
        "step", "device", nulls_last=True, maintain_order=True
    )


def overlap_of_stream_pairs(trace: Trace) -> pl.DataFrame:
    """Returns for each two streams of a device how long both worked at once, in ns."""
    when = observed_time_in_steps(trace)
    tables = [
        _overlap_rows_of_stream_pairs(place, when) for place in _work_intervals_by_device(trace)
    ]
    return pl.concat(tables) if tables else pl.DataFrame()


class _WorkIntervals(NamedTuple):
    """The time intervals (ns) of each kind of work and each stream, on one device or the host."""

    device: int | None
    compute: Intervals
    communication: Intervals
    copies: Intervals
    streams: dict[int | None, Intervals]


def _work_intervals_by_device(trace: Trace) -> Iterator[_WorkIntervals]:
    """Yields each device's work intervals, by device number, or the host's without devices."""
    work = device_work(trace)
    if not work.height:
        if trace.slices.height and not is_device_unrecorded(trace):
            yield _host_work_intervals(trace)
        return
    for device in work["device"].unique().sort().to_list():
        own = work.filter(pl.col("device").eq_missing(pl.lit(device)))
        when = {
            kind: covered_time(own.filter(pl.col("kind").is_in(kinds)))
            for kind, kinds in _WORK_CATEGORIES_BY_COLUMN.items()
        }
        streams = {
            stream: covered_time(own.filter(pl.col("stream").eq_missing(pl.lit(stream))))
            for stream in own["stream"].unique().sort().to_list()
        }
        yield _WorkIntervals(
            device, when["compute"], when["communication"], when["copies"], streams
        )


def _host_work_intervals(trace: Trace) -> _WorkIntervals:
    host = slices_on(trace, "host")
    operators = host.filter(pl.col("category").is_in(list(names.OPERATOR_CATEGORIES)))
    computing = filter_by_name(operators, lambda name: not names.is_collective_call(name))
    nothing = union([], [])
    communication = covered_time(filter_by_name(host, names.is_collective_annotation))
    return _WorkIntervals(None, covered_time(computing), communication, nothing, {})


def _step_or_observed_windows(trace: Trace, steps: pl.DataFrame | None) -> tuple[Ints, Ints]:
    """Returns begins and ends (ns) of the steps, or if `steps` is None of the recorded time."""
    if steps is None:
        when = observed_time_in_steps(trace)
        return when.starts, when.ends
    return steps["begin"].to_numpy(), steps["done"].to_numpy()


def _overlap_rows_of_windows(
    work_intervals: _WorkIntervals, start: Ints, end: Ints
) -> pl.DataFrame:
    """Returns one row for each window: how long each kind of work ran, alone or in parallel."""
    compute, communication, copies = (
        work_intervals.compute,
        work_intervals.communication,
        work_intervals.copies,
    )
    either = _union_of_intervals(compute, communication)
    exposed = subtract(communication, compute)
    busy = covered_time_in_windows(_union_of_intervals(either, copies), start, end)
    alone = {
        "compute": subtract(subtract(compute, communication), copies),
        "communication": subtract(exposed, copies),
        "copies": subtract(copies, either),
    }
    communicated = covered_time_in_windows(communication, start, end)
    hidden = communicated - covered_time_in_windows(exposed, start, end)
    worked = len(work_intervals.streams)
    return pl.DataFrame(
        {
            "window": end - start,
            "compute": covered_time_in_windows(compute, start, end),
            "exposed_communication": covered_time_in_windows(exposed, start, end),
            "exposed_copies": covered_time_in_windows(alone["copies"], start, end),
            "idle": (end - start) - busy,
            "communication": communicated,
            "hidden": hidden,
            "copies": covered_time_in_windows(copies, start, end),
            "compute_alone": covered_time_in_windows(alone["compute"], start, end),
            "overlapped": busy
            - sum(covered_time_in_windows(one, start, end) for one in alone.values()),
            "concurrent": covered_time_in_windows(
                _intervals_of_parallel_streams(list(work_intervals.streams.values())), start, end
            ),
        }
    ).with_columns(
        device=pl.lit(work_intervals.device, pl.Int32),
        hidden_share=pl.when(pl.col("communication") > 0).then(
            pl.col("hidden") / pl.col("communication")
        ),
        streams=pl.lit(worked or None, pl.Int64),
        concurrent=pl.when(pl.lit(worked > 0)).then("concurrent"),
    )


def _union_of_intervals(intervals: Intervals, other_intervals: Intervals) -> Intervals:
    return union(
        np.append(intervals.starts, other_intervals.starts),
        np.append(intervals.ends, other_intervals.ends),
    )


def _intervals_of_parallel_streams(streams: Sequence[Intervals]) -> Intervals:
    """Returns the time intervals in which two or more of the streams worked."""
    if len(streams) < 2:
        return union([], [])
    starts = np.concatenate([one.starts for one in streams])
    ends = np.concatenate([one.ends for one in streams])
    when = np.concatenate([starts, ends])
    order = np.lexsort((np.repeat([1, 0], starts.size), when))  # ends come before begins
    open_ = np.cumsum(np.repeat([1, -1], starts.size)[order])
    at = when[order]
    several = np.flatnonzero(open_[:-1] >= 2)
    return union(at[several], at[several + 1])


def _overlap_rows_of_stream_pairs(
    work_intervals: _WorkIntervals, observed: Intervals
) -> pl.DataFrame:
    """Returns one row for each pair of streams that worked in parallel, longest overlap first."""
    window = int((observed.ends - observed.starts).sum())
    rows = []
    for (one, these), (other, those) in combinations(work_intervals.streams.items(), 2):
        both = intersect(intersect(these, those), observed)
        time = int((both.ends - both.starts).sum())
        if time:
            rows.append((work_intervals.device, window, time, one, other))
    kinds = dict.fromkeys(("device", "window", "concurrent", "stream", "other"), pl.Int64)
    table = pl.DataFrame(rows, schema=kinds, orient="row")
    return table.sort("concurrent", "stream", "other", descending=[True, False, False])
