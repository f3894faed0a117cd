"""What devices did at the same time: compute, communication, copies, and parallel streams."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final, Literal, NamedTuple

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
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.view_declaration import view

_WORK_CATEGORIES_BY_COLUMN: Final = {
    "compute": ("kernel",),
    "communication": ("communication",),
    "copies": ("memcpy", "memset"),
}


@view(
    Column("device", pl.Int32, "id", "The device; null for the host, or without a number.", True),
    Column("step", pl.Int64, "id", "The step; null if not by step.", True),
    Column("window", pl.Int64, "ns", "The length of the observed time."),
    Column("compute", pl.Int64, "ns", "Time in which a kernel ran, other than a collective.", True),
    Column(
        "exposed_communication",
        pl.Int64,
        "ns",
        "Time in which a collective ran, and no other kernel.",
        True,
    ),
    Column(
        "exposed_copies",
        pl.Int64,
        "ns",
        "Time in which a copy or fill ran, and no kernel or collective.",
        True,
    ),
    Column("idle", pl.Int64, "ns", "Time in which no kernel, collective, copy or fill ran.", True),
    Column(
        "communication", pl.Int64, "ns", "Time in which a collective ran, overlaps included.", True
    ),
    Column(
        "hidden_share",
        pl.Float64,
        "ratio",
        "The part of the communication time during which other kernels ran.",
        True,
    ),
    Column("copies", pl.Int64, "ns", "Time in which a copy or fill ran, overlaps included.", True),
    Column(
        "compute_alone",
        pl.Int64,
        "ns",
        "Time in which a kernel ran, but no collective, copy or fill.",
        True,
    ),
    Column(
        "overlapped", pl.Int64, "ns", "Time in which two or three kinds of work ran at once.", True
    ),
    Column(
        "concurrent",
        pl.Int64,
        "ns",
        "Time in which two or more streams worked at once; for a pair, in which both did.",
        True,
    ),
    Column("streams", pl.Int64, "count", "The number of streams that had work.", True),
    Column("stream", pl.Int64, "id", "The first stream of a pair; null if not by pair.", True),
    Column("other", pl.Int64, "id", "The second stream of a pair; null if not by pair.", True),
)
def overlap(trace: Trace, *, by: Literal["device", "step", "streams"] = "device") -> pl.DataFrame:
    """Compute, communication and copies of each device: time of each alone, and time in parallel.

    All are lengths of time, not sums of durations. Compute, exposed communication, exposed copies
    and idle add up to the window: from the begin of the first step until the last step and its
    device work are done. `by` gives a row per step, from when the previous one was done, or per
    pair of streams that worked at the same time.

    Where a trace has no device work, the host's operators are compute, and its collectives are
    communication; idle is the rest. Where work was launched but none was recorded, values are null.
    """
    places = list(_work_intervals_by_device(trace))
    if by == "streams":
        when = observed_time_in_steps(trace)
        tables = [_overlap_rows_of_stream_pairs(place, when) for place in places]
    else:
        steps = steps_with_counted_flags(trace) if by == "step" else None
        tables = [
            _overlap_rows_of_windows(place, *_step_or_observed_windows(trace, steps))
            for place in places
        ]
        if steps is not None:
            tables = [table.with_columns(step=steps["number"]) for table in tables]
    order = ["step", "device"] if by == "step" else []
    if is_device_work_mostly_lost(trace):
        tables = [table.with_columns(idle=None) for table in tables if "idle" in table.columns]
    empty = pl.DataFrame(schema={column.name: column.dtype for column in overlap.columns})
    table = pl.concat([empty, *map(_with_all_view_columns, tables)])
    return table.sort(order, nulls_last=True, maintain_order=True) if order else table


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


def _with_all_view_columns(table: pl.DataFrame) -> pl.DataFrame:
    """Returns the table with every column of the view; a column that it lacks is null."""
    return table.select(
        (pl.col(c.name) if c.name in table.columns else pl.lit(None)).cast(c.dtype).alias(c.name)
        for c in overlap.columns
    )
