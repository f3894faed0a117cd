"""Summarises one rank's trace in small tables, which are compared with those of other ranks.

`time_by_lateness_cause` gives the time that a rank spent on each cause of lateness before each
collective. Times are cumulative from the begin of the recording, so that of any interval is a
difference. From the start of one collective to the start of the next every rank has the same work
to do, so the rank that spends more on a cause is late because of it. From the end of a collective
that does not hold: a rank that waited in it has already done part of the next work.
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.account.step_account import account_segments_of_kind
from selftime.analysis.device.device_work import device_work
from selftime.analysis.graph.collective_arrivals import (
    OWN_WORK_KINDS,
    work_after_collectives,
    work_before_collectives,
)
from selftime.analysis.graph.paths_between_collectives import (
    PATH_NODES_SCHEMA,
    PATHS_SCHEMA,
    paths_between_collectives,
)
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.ranks.collectives import collectives_of_trace
from selftime.analysis.ranks.rank_and_process_groups import process_groups
from selftime.analysis.run.sampled_lines import sampled_lines
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS, source_sites_of_slices
from selftime.analysis.steps.breakdown import step_breakdown, time_category_intervals
from selftime.analysis.steps.steady_steps import (
    counted_step_windows,
    is_instant_in_windows,
    steps_with_counted_flags,
)
from selftime.intervals import Intervals, covered_time_before, subtract, union
from selftime.names.process_ranks import host_in_file_name
from selftime.trace import Trace

LATENESS_CAUSES: Final = ("compute", "gc", "data", "host")
"""What can make a rank late to a collective, besides waiting for other ranks."""
MEASURED_LATENESS_CAUSES: Final = ("compute", "gc", "data", "communication")
"""Causes of lateness whose time is measured; the remaining time is the host's."""


@cached_per_trace
def time_by_lateness_cause(trace: Trace) -> pl.DataFrame:
    """Returns for each collective the total time (ns) spent on each cause until it starts and ends.

    Columns: the cause with `_start` and `_end`, for each of `MEASURED_LATENESS_CAUSES`, until the
    collective's start and end. On a program with a device, compute is the time in which the device
    worked on anything but collectives, and the others count while it did not; else it is the time
    of operators outside the others. Communication is the time in collectives while nothing else
    ran.
    """
    found = collectives_of_trace(trace)
    start, end = found["start"].to_numpy(), found["end"].to_numpy()
    return pl.DataFrame(
        {
            f"{cause}_{side}": covered_time_before(when, at)
            for cause, when in lateness_cause_intervals(trace).items()
            for side, at in (("start", start), ("end", end))
        },
        {
            f"{cause}_{side}": pl.Int64
            for cause in MEASURED_LATENESS_CAUSES
            for side in ("start", "end")
        },
    )


@cached_per_trace
def lateness_cause_intervals(trace: Trace) -> dict[str, Intervals]:
    """Returns for each cause of lateness the disjoint intervals (ns) that a rank spent on it."""
    parts, work = time_category_intervals(trace), device_work(trace)
    communicated = parts["communication"]
    paused = covered_time(filter_by_name(trace.slices, names.is_garbage_collection))
    if work.height:
        computed = covered_time(work.filter(pl.col("kind") != "communication"))
        paused = subtract(paused, computed)
        loading = subtract(parts["data_loading"], _union_of_intervals(computed, paused))
    else:
        loading = subtract(parts["data_loading"], paused)
        computed = subtract(parts["cpu"], _union_of_intervals(paused, loading, communicated))
    exposed = subtract(communicated, _union_of_intervals(computed, paused, loading))
    return {"compute": computed, "gc": paused, "data": loading, "communication": exposed}


def _union_of_intervals(*interval_sets: Intervals) -> Intervals:
    return union(
        np.concatenate([intervals.starts for intervals in interval_sets]),
        np.concatenate([intervals.ends for intervals in interval_sets]),
    )


_RANK_STEP_COLUMNS: Final = (
    "number",
    "source",
    "counted",
    "begin",
    "done",
    "host_time",
    "device_time",
)
_COLLECTIVE_ARRIVAL_COLUMNS: Final = ("before", "work", *OWN_WORK_KINDS)


@dataclass(frozen=True, slots=True, eq=False)
class RankSummary:
    """Small tables that summarise one rank's trace; times in ns, instants relative to `origin`."""

    collectives: pl.DataFrame
    """One row per collective: the columns of `collectives_of_trace` and `time_by_lateness_cause`,
    its source line; `accounted`, its time in ns in the account of the steps; and `window`, the
    number of the recording (from 0) that contains it.
    """
    origin: int
    """When the recording begins by the rank's own clock, in ns since 1970; 0 if unknown."""
    steps: pl.DataFrame = field(default_factory=pl.DataFrame)
    """One row per step: number, source, counted, begin, done, host_time, device_time, and the
    columns of `step_breakdown`."""
    sampled: pl.DataFrame = field(default_factory=pl.DataFrame)
    """One row per line at which usual steps were sampled without recording: file, line, function,
    samples."""
    work: pl.DataFrame = field(default_factory=pl.DataFrame)
    """One row per kernel name, without collectives: name, count, and time in ns in the counted
    steps. Without a device: one row per operator name, with self time.
    """
    groups: pl.DataFrame = field(default_factory=pl.DataFrame)
    """One row per process group in the header: group, description, backend, size, ranks."""
    arrivals: pl.DataFrame = field(default_factory=pl.DataFrame)
    """One row per collective, as in `collectives`, with the rank's own work since the previous one.

    Columns: before, work and its kinds as in `graph.collective_arrivals`; longest, the kind of its
    longest segment; name and line of that segment.
    """
    work_after_last_collective: pl.DataFrame = field(default_factory=pl.DataFrame)
    """One row per step: its number, when it was done (ns), and the rank's own work after its last
    collective, with the columns of `arrivals`.
    """
    device: str | None = None
    """The name of the rank's device; None if unknown."""
    account: pl.DataFrame = field(default_factory=pl.DataFrame)
    """One row per class of time that the counted steps were spent on: class, time in ns."""
    accounted_steps: int = 0
    """The number of steps that `account` is the sum of."""
    spent: pl.DataFrame = field(default_factory=pl.DataFrame)
    """One row per class of time and source line in these steps: class, file, line, function, how,
    time in ns."""
    steps_before: int | None = None
    """What to add to the number of a profiler's step for its number in the run; None if unknown."""
    clock: str | None = None
    """The name of the clock that the rank's times are read from, that of its machine; None if
    unknown."""
    path_nodes: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PATH_NODES_SCHEMA))
    """One row per collective, end of a step, or joint, as in `graph.paths_between_collectives`; of
    several recordings of a rank those of the first.
    """
    paths: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PATHS_SCHEMA))
    """One row per path between them; one from the begin of the recording has its lag from
    `origin`.
    """
    host: str | None = None
    """The name of the machine that the rank ran on; None if unknown."""


@cached_per_trace
def rank_summary(trace: Trace) -> RankSummary:
    """Returns the summary of one rank's trace."""
    rows = collectives_of_trace(trace)
    segments, accounted_steps = account_segments_of_kind(trace)
    nodes, paths = paths_between_collectives(trace)
    account = segments.group_by(pl.col("class").cast(pl.String)).agg(
        time=(pl.col("end") - pl.col("start")).sum()
    )
    return RankSummary(
        rows.hstack(time_by_lateness_cause(trace))
        .hstack(source_sites_of_slices(trace, rows["id"]))
        .with_columns(_accounted_times(segments, rows), window=pl.lit(0, pl.Int64)),
        trace.origin or 0,
        steps_with_counted_flags(trace).select(_RANK_STEP_COLUMNS).hstack(step_breakdown(trace)),
        sampled_lines(trace.run)
        .drop_nulls(("file", "line", "function"))
        .group_by("file", "line", "function")
        .agg(pl.col("samples").sum())
        .sort("file", "line"),
        _kernel_or_operator_times_by_name(trace),
        process_groups(trace),
        _own_work_with_source_sites(trace, work_before_collectives(trace)),
        _own_work_with_source_sites(
            trace, work_after_collectives(trace).rename({"step": "number"}), "number", "done"
        ),
        next(iter(trace.devices["name"].cast(pl.String).drop_nulls()), None),
        account.sort("class"),
        accounted_steps,
        segments.filter(pl.col("file").is_not_null())
        .group_by(pl.col("class").cast(pl.String), *SOURCE_SITE_COLUMNS)
        .agg(time=(pl.col("end") - pl.col("start")).sum())
        .sort("class", *SOURCE_SITE_COLUMNS),
        _steps_before_recording(trace),
        clock if isinstance(clock := trace.facts.get("boot"), str) else None,
        nodes,
        paths,
        _host_of_trace(trace),
    )


def _host_of_trace(trace: Trace) -> str | None:
    """Returns the machine's name from the facts of the recording, else from the file's name."""
    told = trace.facts.get("host")
    if isinstance(told, str) and told:
        return told
    return host_in_file_name(trace.source.replace("\\", "/").rpartition("/")[2])


def _accounted_times(segments: pl.DataFrame, rows: pl.DataFrame) -> pl.Series:
    """Returns how long steps are spent on each collective, in ns, by the account's segments.

    A segment of a call that waits for a collective of another thread is of the collective that runs
    meanwhile; of several, of the one that began first.
    """
    told = segments.filter(pl.col("class") == "communication")
    times = told.group_by("slice").agg(accounted=(pl.col("end") - pl.col("start")).sum())
    asked = rows.select(pl.col("id").cast(pl.UInt32).alias("slice"))
    found = asked.join(times, on="slice", how="left", maintain_order="left")["accounted"]
    waits = told.filter(~pl.col("slice").is_in(asked["slice"].implode()))
    waited = union(waits["start"].to_numpy(), waits["end"].to_numpy())
    begun = pl.max_horizontal("start", pl.col("end").cum_max().shift(1))
    alone = rows.select(begun.alias("start"), pl.max_horizontal("end", begun).alias("end"))
    start, end = (covered_time_before(waited, alone[name].to_numpy()) for name in alone.columns)
    meanwhile = np.where(rows["is_host"].to_numpy(), end - start, 0)
    return found.fill_null(0) + pl.Series(meanwhile, dtype=pl.Int64)


def _steps_before_recording(trace: Trace) -> int | None:
    """Returns the run's number of the first profiler's step, less its own; None if unknown."""
    facts = trace.facts.get("steps")
    first_in_run = facts.get("first_step") if isinstance(facts, dict) else None
    steps = steps_with_counted_flags(trace)
    first = steps.filter(pl.col("source") == "profiler")["number"].first()
    if type(first_in_run) is not int or not isinstance(first, int):
        return None
    return first_in_run - first


def _own_work_with_source_sites(
    trace: Trace, work_rows: pl.DataFrame, *more_columns: str
) -> pl.DataFrame:
    """Returns a rank's times between collectives, with the longest segment's source line."""
    most = pl.max_horizontal(OWN_WORK_KINDS)
    kind = pl.coalesce(
        pl.when((pl.col(k) == most) & (most > 0)).then(pl.lit(k)) for k in OWN_WORK_KINDS
    )
    slice_ = pl.coalesce(
        pl.when(pl.col("longest") == k).then(pl.col(f"{k}_slice")) for k in OWN_WORK_KINDS
    )
    work_rows = work_rows.with_columns(longest=kind).with_columns(slice=slice_)
    name = trace.slices["name"].gather(work_rows["slice"]).cast(pl.String)
    table = work_rows.select(*more_columns, *_COLLECTIVE_ARRIVAL_COLUMNS, "longest").with_columns(
        name=name
    )
    return table.hstack(source_sites_of_slices(trace, work_rows["slice"]))


def _kernel_or_operator_times_by_name(trace: Trace) -> pl.DataFrame:
    """Returns count and time (ns) per kernel name, or operator name without a device, in steps."""
    work = device_work(trace)
    done = work.filter(pl.col("kind") != "communication").select(
        "name", "start", time="duration", begun=pl.col("launched").fill_null(pl.col("start"))
    )
    if not work.height:
        host = slices_on(trace, "host", ended=True)
        host = host.filter(pl.col("category").is_in(list(names.OPERATOR_CATEGORIES)))
        done = filter_by_name(host, lambda name: not names.is_collective_annotation(name)).select(
            "name", "start", time="self", begun="start"
        )
    inside = is_instant_in_windows(done["begun"].to_numpy(), counted_step_windows(trace))
    return (
        done.filter(pl.Series(inside, dtype=pl.Boolean))
        .group_by(pl.col("name").cast(pl.String))
        .agg(pl.len().alias("count"), pl.col("time").sum())
        .sort("name")
    )
