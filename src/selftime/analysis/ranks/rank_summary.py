"""What one rank's trace tells of its part in a job: small tables, to be laid beside the others'."""

from dataclasses import dataclass, field
from typing import Final

import polars as pl

from selftime import names
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.call_tree.line_costs import line_costs
from selftime.analysis.device.work import device_work
from selftime.analysis.graph.collective_arrivals import WORK, arrivals, tails
from selftime.analysis.ranks.collectives import collectives
from selftime.analysis.ranks.membership import groups
from selftime.analysis.ranks.time_before import amounts
from selftime.analysis.sites import SITE, sites
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.analysis.steps.breakdown import breakdown
from selftime.analysis.steps.steady_steps import assessed_steps, counted_windows, is_within
from selftime.trace import Trace

_STEP: Final = ("number", "source", "counted", "begin", "done", "host_time", "device_time")
_ARRIVAL: Final = ("before", "work", *WORK)
_LINE: Final = ("device_time", "self_cpu_time", "waits")


@dataclass(frozen=True, slots=True, eq=False)
class RankSummary:
    """What one rank's trace tells. Times in ns; instants from `origin`."""

    rows: pl.DataFrame
    """One row a collective: the columns of `collectives`, `amounts`, its line, and window, the
    number of the recording that holds it, from 0."""
    origin: int
    """When the recording begins by the rank's own clock, in ns since 1970; 0 if not told."""
    steps: pl.DataFrame = field(default_factory=pl.DataFrame)
    """One row a step: number, source, counted, begin, done, host_time, device_time, and the columns
    of `breakdown`."""
    lines: pl.DataFrame = field(default_factory=pl.DataFrame)
    """One row a source line: file, line, function, how, and what it took in the counted steps:
    device_time, self_cpu_time, waits."""
    work: pl.DataFrame = field(default_factory=pl.DataFrame)
    """One row a name: name, count and time of kernels but collectives in the counted steps; of
    operators, without what they call, where no device worked."""
    groups: pl.DataFrame = field(default_factory=pl.DataFrame)
    """One row a process group that the header lists: group, description, backend, size, ranks."""
    arrivals: pl.DataFrame = field(default_factory=pl.DataFrame)
    """In the order of `rows`: how the rank came to each. Columns: before, work and its kinds as in
    `graph.collective_arrivals`; longest, the kind of its longest segment; of that name and line."""
    tails: pl.DataFrame = field(default_factory=pl.DataFrame)
    """One row a step: number and done, and how it came to its end, with the same columns."""
    device: str | None = None
    """What the device is called."""


@cached_per_trace
def rank_summary(trace: Trace) -> RankSummary:
    rows = collectives(trace)
    return RankSummary(
        rows.hstack(amounts(trace))
        .hstack(sites(trace, rows["id"]))
        .with_columns(window=pl.lit(0, pl.Int64)),
        trace.origin or 0,
        assessed_steps(trace).select(_STEP).hstack(breakdown(trace)),
        _lines(trace),
        _work(trace),
        groups(trace),
        _with_sites(trace, arrivals(trace)),
        _with_sites(trace, tails(trace).rename({"step": "number"}), "number", "done"),
        next(iter(trace.devices["name"].cast(pl.String).drop_nulls()), None),
    )


def _with_sites(trace: Trace, found: pl.DataFrame, *more: str) -> pl.DataFrame:
    """What each arrival is made of, and the line of most of it."""
    most = pl.max_horizontal(WORK)
    kind = pl.coalesce(pl.when((pl.col(k) == most) & (most > 0)).then(pl.lit(k)) for k in WORK)
    slice_ = pl.coalesce(pl.when(pl.col("longest") == k).then(pl.col(f"{k}_slice")) for k in WORK)
    found = found.with_columns(longest=kind).with_columns(slice=slice_)
    name = trace.slices["name"].gather(found["slice"]).cast(pl.String)
    table = found.select(*more, *_ARRIVAL, "longest").with_columns(name=name)
    return table.hstack(sites(trace, found["slice"]))


def _lines(trace: Trace) -> pl.DataFrame:
    found = line_costs(trace, counted=True).select(*SITE, *_LINE)
    spent = (pl.col("device_time") > 0) | (pl.col("self_cpu_time") > 0)
    return found.filter(spent & pl.col("file").is_not_null()).sort(*SITE)


def _work(trace: Trace) -> pl.DataFrame:
    work = device_work(trace)
    done = work.filter(pl.col("kind") != "communication").select(
        "name", "start", time="duration", begun=pl.col("launched").fill_null(pl.col("start"))
    )
    if not work.height:
        host = slices_on(trace, "host", ended=True)
        host = host.filter(pl.col("category").is_in(list(names.OPERATORS)))
        done = filter_by_name(host, lambda name: not names.is_collective_annotation(name)).select(
            "name", "start", time="self", begun="start"
        )
    inside = is_within(done["begun"].to_numpy(), counted_windows(trace))
    return (
        done.filter(pl.Series(inside, dtype=pl.Boolean))
        .group_by(pl.col("name").cast(pl.String))
        .agg(pl.len().alias("count"), pl.col("time").sum())
        .sort("name")
    )
