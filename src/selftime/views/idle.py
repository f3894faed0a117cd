"""When devices had nothing to do, and why."""

from typing import Final, Literal

import polars as pl

from selftime.analysis.idle.gap_causes import gaps_with_causes
from selftime.analysis.idle.gaps import gaps, observed, placed_work
from selftime.analysis.sites import SITE
from selftime.intervals import length
from selftime.schema import Column, Name
from selftime.trace import Trace
from selftime.views.base import Nanoseconds, Top, view

_KERNEL_GAP: Final = "kernel_gap"
_PLACE: Final = ("device", "stream")
_ORDER: Final = ("start", *_PLACE)
_OF_SUMS: Final = ("count", "median", "longest")
_AMOUNTS: Final = ("duration", "share", *_OF_SUMS)
_KEYS: Final = {
    "gap": (*_PLACE, "start"),
    "cause": (*_PLACE, "cause"),
    "line": (*_PLACE, "cause", *SITE),
}


@view(
    Column("cause", pl.String, "name", "What kept the device waiting, for most of the gap."),
    Column("duration", pl.Int64, "ns", "How long it was idle, in all gaps of the row."),
    Column("share", pl.Float64, "ratio", "Share of the time looked at."),
    Column("count", pl.Int64, "count", "Gaps of the row, if they are summed.", True),
    Column("file", pl.String, "text", "The source file that the host was in, if known.", True),
    Column("line", pl.Int32, "id", "The source line, if known.", True),
    Column("what", Name, "name", "The slice that the host was in, if in one.", True),
    Column("function", pl.String, "name", "The function the line is in, if known.", True),
    Column("how", pl.String, "name", "How the line is known: stack or definition.", True),
    Column(
        "longest",
        pl.Int64,
        "ns",
        "The longest gap; lines, names and instants are of that one.",
        True,
    ),
    Column("median", pl.Float64, "ns", "Median length of the gaps, if they are summed.", True),
    Column("before", Name, "name", "The work that ended when the gap began, if any.", True),
    Column("after", Name, "name", "The work that began when the gap ended, if any.", True),
    Column("start", pl.Int64, "instant", "When the gap began."),
    Column("launched", pl.Int64, "instant", "When the host launched what ended the gap.", True),
    Column("device", pl.Int32, "id", "The device, if numbered.", True),
    Column("stream", pl.Int64, "id", "The stream, in scope `stream`.", True),
    needs=("device",),
    sums=("duration", "count"),
)
def idle(
    trace: Trace,
    *,
    by: Literal["gap", "cause", "line"] = "gap",
    scope: Literal["device", "stream"] = "device",
    threshold: Nanoseconds = 3_000,
    counted: bool = False,
    top: Top = 0,
) -> pl.DataFrame:
    """Gaps in which a device, or with `scope` a stream, had nothing to do; longest first.

    Every gap has one cause: profiler, garbage_collection, compilation, kernel_loading,
    data_loading, checkpoint, logging, allocation (of device memory), pageable_copy (to the device),
    sync (a wait of the host had let the queue run empty), collective, optimizer, runtime (a call of
    it), dispatch (operators), python, unknown (no slice of the thread), other_stream, queued: the
    work that ended the gap had been launched already; or unrecorded: work was launched in the gap
    that the recording lost, so that it may be no gap.

    `by` sums the gaps by cause, or by cause and source line. Gaps below `threshold` ns lie between
    any two kernels (their median is 0.75 to 3 us): they are in the sums, so that these add up to
    all idle time, as `kernel_gap`. Gaps of a device lie between the begin of the first step and the
    end of the last and of its device work, with `counted` in the steps that count for medians;
    those of a stream also between its own first and last work. `top` keeps the first rows; 0 keeps
    all.
    """
    when = observed(trace, counted=counted)
    work = placed_work(trace)
    found = gaps(work, when, scope).with_columns(duration=pl.col("end") - pl.col("start"))
    rows = gaps_with_causes(trace, found.filter(pl.col("duration") >= threshold), work)
    if by != "gap":
        short = found.filter(pl.col("duration") < threshold)
        rows = pl.concat([rows, short.with_columns(cause=pl.lit(_KERNEL_GAP))], how="diagonal")
    named = rows.with_columns(_name(trace, rows[end]).alias(end) for end in ("before", "after"))
    table = _summed(named, list(_KEYS[by]), length(when))
    if by == "gap":
        table = table.with_columns(pl.lit(None).cast(table.schema[n]).alias(n) for n in _OF_SUMS)
    return table.head(top) if top > 0 else table


def _name(trace: Trace, ids: pl.Series) -> pl.Series:
    return trace.slices["name"].gather(ids)


def _summed(rows: pl.DataFrame, keys: list[str], looked_at: int) -> pl.DataFrame:
    """One row for each of the keys, all but its sums those of its longest gap; longest first."""
    firsts = [c.name for c in idle.columns if c.name not in (*_AMOUNTS, *keys)]
    descending = [True, *[False] * len(_ORDER)]
    return (
        rows.sort("duration", *_ORDER, descending=descending)
        .group_by(keys, maintain_order=True)
        .agg(
            pl.col("duration").sum(),
            pl.len().alias("count"),
            pl.col("duration").median().alias("median"),
            pl.col("duration").first().alias("longest"),
            pl.col(firsts).first(),
        )
        .with_columns(share=pl.col("duration") / max(looked_at, 1))
        .sort("duration", *_ORDER, descending=descending)
        .select(pl.col(column.name).cast(column.dtype) for column in idle.columns)
    )
