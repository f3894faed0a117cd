"""What the steps wait for: the chain of host work, device work and gaps that makes them so long."""

from typing import Final, Literal

import polars as pl

from selftime.analysis.graph.critical_path import critical_paths
from selftime.analysis.sites import SITE, sites
from selftime.analysis.slice_filters import common_value
from selftime.schema import Column, Name
from selftime.trace import Trace
from selftime.views.base import Top, view

_KEYS: Final = {
    "kind": ("kind",),
    "name": ("kind", "name"),
    "line": ("kind", *SITE),
    "step": ("step", "kind"),
    "segment": ("start",),
}
"""What rows are told apart by; no two segments begin together."""
_ALONE: Final = ("kind", "name", *SITE, "link", "step")
"""Columns that a row has where all its segments agree on it."""


@view(
    Column("kind", pl.String, "name", "What it is, such as compute, latency or host."),
    Column("name", Name, "name", "The work, operator or frame, if one; late work in gaps.", True),
    Column("time", pl.Int64, "ns", "How much of the path it is."),
    Column("share", pl.Float64, "ratio", "Share of the path."),
    Column("per_step", pl.Float64, "ns", "Time in a step, if segments are summed.", True),
    Column("count", pl.Int64, "count", "Segments of the path."),
    Column("inferred", pl.Int64, "ns", "Of the time, where no record tells what it came after."),
    Column("file", pl.String, "text", "The source file, if one is known.", True),
    Column("line", pl.Int32, "id", "The source line, if one.", True),
    Column("function", pl.String, "name", "The function that the line is in.", True),
    Column("how", pl.String, "name", "How the line is known: stack, stamp or definition.", True),
    Column("link", pl.String, "name", "What let it begin, such as launch or wait, if one.", True),
    Column("step", pl.Int64, "id", "The step, if one.", True),
    Column("start", pl.Int64, "instant", "When the first of its segments begins."),
    Column("longest", pl.UInt32, "id", "The slice of the longest segment, if in one.", True),
    sums=("time", "count", "inferred"),
)
def critical_path(
    trace: Trace,
    *,
    by: Literal["kind", "name", "line", "step", "segment"] = "kind",
    top: Top = 0,
) -> pl.DataFrame:
    """What the critical path of the steps that count is made of, most time first.

    The path leads back from when a step was done to when the one before was, always to what came
    last of all that had to be there: from device work to the work before it on its stream, to that
    of another stream for which it waited, or to its launch; from a wait of the host to the device
    work that ended it; else back along the host, over the threads that take turns. Its segments
    touch: they add up to the time of the steps. What is not on it can take longer and nothing gets
    slower; what is on it can save at most its own time.

    Kinds: compute; communication; copy (fills too); latency, from the launch of work, or the end of
    what it came after, to its begin; data, a wait for a batch; gc; host, all else that the host
    does; unknown, up to the begin of work for no cause that is recorded.

    Links: begin (of the recording), stream, launch, event (the trace tells which work), inferred
    (work of another stream ended just before, or the stream had been made to wait for something),
    wait (of the host), thread (it went on on another), host, unknown.

    `by` adds name, source line or step, or makes a row of each segment, in order of time. `top`
    keeps the first rows; 0 keeps all.
    """
    found = critical_paths(trace)
    if found["counted"].any():
        found = found.filter("counted")
    time = pl.col("end") - pl.col("start")
    found = found.with_columns(
        pl.col("kind", "link").cast(pl.String),
        time=time,
        inferred=pl.when(pl.col("link").is_in(["inferred", "unknown"])).then(time).otherwise(0),
    ).hstack(sites(trace, found["slice"]))
    table = _summed(found, by)
    return table.head(top) if top else table


def _summed(found: pl.DataFrame, by: str) -> pl.DataFrame:
    keys = _KEYS[by]
    steps = found["step"].n_unique() if by not in {"segment", "step"} else None
    longest = pl.col("slice").sort_by("time", "start", descending=[True, False]).first()
    sums = [pl.col("time", "inferred").sum(), pl.len().alias("count"), longest.alias("longest")]
    others = [common_value(name) for name in _ALONE if name not in keys]
    begins = [] if "start" in keys else [pl.col("start").min()]
    table = found.group_by(keys, maintain_order=True).agg(*sums, *others, *begins)
    table = table.with_columns(
        share=pl.col("time") / max(int(found["time"].sum()), 1),
        per_step=pl.col("time") / pl.lit(steps, pl.Float64),
    )
    order = ["start"] if by == "segment" else ["time", "start"]
    descending = [False] if by == "segment" else [True, False]
    return table.sort(order, descending=descending).select(
        pl.col(column.name).cast(column.dtype) for column in critical_path.columns
    )
