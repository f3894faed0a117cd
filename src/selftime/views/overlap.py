"""What devices did at the same time: compute, communication, copies, and streams side by side."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final, Literal, NamedTuple

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.device.work import is_unseen
from selftime.analysis.health.recording import is_mostly_lost
from selftime.analysis.idle.gaps import observed, placed_work
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.analysis.steps.breakdown import within
from selftime.analysis.steps.steady_steps import assessed_steps
from selftime.arrays import Ints
from selftime.intervals import Intervals, intersect, subtract, union
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.base import view

_KINDS: Final = {
    "compute": ("kernel",),
    "communication": ("communication",),
    "copies": ("memcpy", "memset"),
}


@view(
    Column("device", pl.Int32, "id", "The device; null for the host, and if not numbered.", True),
    Column("step", pl.Int64, "id", "The step, if by step.", True),
    Column("window", pl.Int64, "ns", "The time looked at."),
    Column("compute", pl.Int64, "ns", "A kernel ran, other than a collective.", True),
    Column("exposed_communication", pl.Int64, "ns", "A collective ran and no such kernel.", True),
    Column("exposed_copies", pl.Int64, "ns", "A copy or fill ran and neither of these.", True),
    Column("idle", pl.Int64, "ns", "None of them ran.", True),
    Column("communication", pl.Int64, "ns", "A collective ran, whatever else did.", True),
    Column("hidden_share", pl.Float64, "ratio", "Of the communication, under kernels.", True),
    Column("copies", pl.Int64, "ns", "A copy or fill ran, whatever else did.", True),
    Column("compute_alone", pl.Int64, "ns", "A kernel ran, no collective, copy or fill.", True),
    Column("overlapped", pl.Int64, "ns", "Two of the three kinds of work ran, or all.", True),
    Column("concurrent", pl.Int64, "ns", "Two or more streams worked; of a pair, both.", True),
    Column("streams", pl.Int64, "count", "Streams that worked in the trace.", True),
    Column("stream", pl.Int64, "id", "The first stream of a pair.", True),
    Column("other", pl.Int64, "id", "The second stream of a pair.", True),
)
def overlap(trace: Trace, *, by: Literal["device", "step", "streams"] = "device") -> pl.DataFrame:
    """Compute, communication and copies of each device: what ran alone and what was hidden.

    All are lengths of time, not sums of durations. Compute, exposed communication, exposed copies
    and idle add up to the window: from the begin of the first step until the last and its device
    work are done. `by` looks at each step from when the one before was done, or at pairs of streams
    that worked at the same time.

    Where a trace has no device work the host computes, in operators, and communicates, in
    collectives that it is seen in; idle is the rest. Where work was launched and none was recorded,
    nothing is known.
    """
    places = list(_places(trace))
    if by == "streams":
        when = observed(trace)
        tables = [_pairs(place, when) for place in places]
    else:
        steps = assessed_steps(trace) if by == "step" else None
        tables = [_parts(place, *_windows(trace, steps)) for place in places]
        if steps is not None:
            tables = [table.with_columns(step=steps["number"]) for table in tables]
    order = ["step", "device"] if by == "step" else []
    if is_mostly_lost(trace):
        tables = [table.with_columns(idle=None) for table in tables if "idle" in table.columns]
    empty = pl.DataFrame(schema={column.name: column.dtype for column in overlap.columns})
    table = pl.concat([empty, *map(_declared, tables)])
    return table.sort(order, nulls_last=True, maintain_order=True) if order else table


class _Place(NamedTuple):
    """A device or the host: when it did what, and when each of its streams worked."""

    device: int | None
    compute: Intervals
    communication: Intervals
    copies: Intervals
    streams: dict[int | None, Intervals]


def _places(trace: Trace) -> Iterator[_Place]:
    """Devices in order of their number; the host if there is none."""
    work = placed_work(trace)
    if not work.height:
        if trace.slices.height and not is_unseen(trace):
            yield _host(trace)
        return
    for device in work["device"].unique().sort().to_list():
        own = work.filter(pl.col("device").eq_missing(pl.lit(device)))
        when = {
            kind: covered_time(own.filter(pl.col("kind").is_in(kinds)))
            for kind, kinds in _KINDS.items()
        }
        streams = {
            stream: covered_time(own.filter(pl.col("stream").eq_missing(pl.lit(stream))))
            for stream in own["stream"].unique().sort().to_list()
        }
        yield _Place(device, when["compute"], when["communication"], when["copies"], streams)


def _host(trace: Trace) -> _Place:
    host = slices_on(trace, "host")
    operators = host.filter(pl.col("category").is_in(list(names.OPERATORS)))
    computing = filter_by_name(operators, lambda name: not names.is_collective_call(name))
    nothing = union([], [])
    exchanges = covered_time(filter_by_name(host, names.is_collective_annotation))
    return _Place(None, covered_time(computing), exchanges, nothing, {})


def _windows(trace: Trace, steps: pl.DataFrame | None) -> tuple[Ints, Ints]:
    """Begin and end of the time of each row."""
    if steps is None:
        when = observed(trace)
        return when.starts, when.ends
    return steps["begin"].to_numpy(), steps["done"].to_numpy()


def _parts(place: _Place, start: Ints, end: Ints) -> pl.DataFrame:
    """One row for each window."""
    compute, communication, copies = place.compute, place.communication, place.copies
    either = _either(compute, communication)
    exposed = subtract(communication, compute)
    busy = within(_either(either, copies), start, end)
    alone = {
        "compute": subtract(subtract(compute, communication), copies),
        "communication": subtract(exposed, copies),
        "copies": subtract(copies, either),
    }
    communicated = within(communication, start, end)
    hidden = communicated - within(exposed, start, end)
    worked = len(place.streams)
    return pl.DataFrame(
        {
            "window": end - start,
            "compute": within(compute, start, end),
            "exposed_communication": within(exposed, start, end),
            "exposed_copies": within(alone["copies"], start, end),
            "idle": (end - start) - busy,
            "communication": communicated,
            "hidden": hidden,
            "copies": within(copies, start, end),
            "compute_alone": within(alone["compute"], start, end),
            "overlapped": busy - sum(within(one, start, end) for one in alone.values()),
            "concurrent": within(_together(list(place.streams.values())), start, end),
        }
    ).with_columns(
        device=pl.lit(place.device, pl.Int32),
        hidden_share=pl.when(pl.col("communication") > 0).then(
            pl.col("hidden") / pl.col("communication")
        ),
        streams=pl.lit(worked or None, pl.Int64),
        concurrent=pl.when(pl.lit(worked > 0)).then("concurrent"),
    )


def _either(these: Intervals, those: Intervals) -> Intervals:
    return union(np.append(these.starts, those.starts), np.append(these.ends, those.ends))


def _together(streams: Sequence[Intervals]) -> Intervals:
    """When two or more of these sets hold."""
    if len(streams) < 2:
        return union([], [])
    starts = np.concatenate([one.starts for one in streams])
    ends = np.concatenate([one.ends for one in streams])
    when = np.concatenate([starts, ends])
    order = np.lexsort((np.repeat([1, 0], starts.size), when))  # ends stand before begins
    open_ = np.cumsum(np.repeat([1, -1], starts.size)[order])
    at = when[order]
    several = np.flatnonzero(open_[:-1] >= 2)
    return union(at[several], at[several + 1])


def _pairs(place: _Place, when: Intervals) -> pl.DataFrame:
    """One row for each pair of streams that worked at the same time; most of that first."""
    window = int((when.ends - when.starts).sum())
    rows = []
    for (one, these), (other, those) in combinations(place.streams.items(), 2):
        both = intersect(intersect(these, those), when)
        time = int((both.ends - both.starts).sum())
        if time:
            rows.append((place.device, window, time, one, other))
    kinds = dict.fromkeys(("device", "window", "concurrent", "stream", "other"), pl.Int64)
    table = pl.DataFrame(rows, schema=kinds, orient="row")
    return table.sort("concurrent", "stream", "other", descending=[True, False, False])


def _declared(table: pl.DataFrame) -> pl.DataFrame:
    """With every declared column; what is not told is null."""
    return table.select(
        (pl.col(c.name) if c.name in table.columns else pl.lit(None)).cast(c.dtype).alias(c.name)
        for c in overlap.columns
    )
