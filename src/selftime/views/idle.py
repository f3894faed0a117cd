"""Gaps in which a device or a stream was idle, with the cause of each gap."""

from typing import Final, Literal

import polars as pl

from selftime.analysis.device.device_work import device_work
from selftime.analysis.idle.gap_causes import gaps_with_causes
from selftime.analysis.idle.gaps import idle_gaps_in_work, observed_time_in_steps
from selftime.analysis.per_trace_cache import cached_per_trace_and_options
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS
from selftime.intervals import length
from selftime.schema import Column, NameType
from selftime.trace import Trace
from selftime.views.view_declaration import LINE_EVIDENCE_DOC, Nanoseconds, RowLimit, view

_CAUSE_OF_GAPS_BELOW_THRESHOLD: Final = "kernel_gap"
_DEVICE_AND_STREAM_COLUMNS: Final = ("device", "stream")
_GAP_SORT_COLUMNS: Final = ("start", *_DEVICE_AND_STREAM_COLUMNS)
_GAP_COUNT_AND_DURATION_COLUMNS: Final = ("count", "median", "longest")
_AGGREGATED_GAP_COLUMNS: Final = ("duration", "share", *_GAP_COUNT_AND_DURATION_COLUMNS)
_GROUPING_COLUMNS_BY_OPTION: Final = {
    "gap": (*_DEVICE_AND_STREAM_COLUMNS, "start"),
    "cause": (*_DEVICE_AND_STREAM_COLUMNS, "cause"),
    "line": (*_DEVICE_AND_STREAM_COLUMNS, "cause", *SOURCE_SITE_COLUMNS),
}


@view(
    Column("cause", pl.String, "name", "Why the device was idle for most of the gap."),
    Column("duration", pl.Int64, "ns", "Sum of the device's idle time in all gaps of the row."),
    Column("share", pl.Float64, "ratio", "The row's idle time as a share of the observed time."),
    Column(
        "count",
        pl.Int64,
        "count",
        "The number of gaps between device work; null for a single gap.",
        True,
    ),
    Column(
        "file",
        pl.String,
        "text",
        "The source file that the host was executing while the device was idle; null if unknown.",
        True,
    ),
    Column(
        "line",
        pl.Int32,
        "id",
        "The source line that the host was executing while the device was idle; null if unknown.",
        True,
    ),
    Column(
        "what",
        NameType,
        "name",
        "The host slice, such as an operator or a launch, that the host was executing while the "
        "device was idle; null if none.",
        True,
    ),
    Column(
        "function",
        pl.String,
        "name",
        "The function that contains the source line; null if unknown.",
        True,
    ),
    Column("how", pl.String, "name", LINE_EVIDENCE_DOC, True),
    Column(
        "longest",
        pl.Int64,
        "ns",
        "The longest gap of the row; its names, lines and instants are those of this gap.",
        True,
    ),
    Column(
        "median",
        pl.Float64,
        "ns",
        "Median duration of the gaps of the row; null for a single gap.",
        True,
    ),
    Column(
        "before",
        NameType,
        "name",
        "The name of the device work whose end began the gap; null if none.",
        True,
    ),
    Column(
        "after",
        NameType,
        "name",
        "The name of the device work that ended the gap; null if none.",
        True,
    ),
    Column(
        "start",
        pl.Int64,
        "instant",
        "When the device became idle; for several gaps, in the longest gap.",
    ),
    Column(
        "launched",
        pl.Int64,
        "instant",
        "When the host launched the work that ended the gap; null if unknown.",
        True,
    ),
    Column(
        "device",
        pl.Int32,
        "id",
        "The number of the device that was idle; null if it has no number.",
        True,
    ),
    Column(
        "stream",
        pl.Int64,
        "id",
        "The number of the stream that was idle; null in scope `device`.",
        True,
    ),
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
    top: RowLimit = 0,
) -> pl.DataFrame:
    """Gaps in which a device (or with `scope`, a stream) was idle, with causes; longest first.

    Every gap has one cause: profiler, garbage_collection, compilation, kernel_loading,
    data_loading, checkpoint, logging, allocation (of device memory), pageable_copy (to the device),
    sync (a wait of the host had emptied the queue), collective, optimizer, runtime (a call of the
    device runtime), dispatch (operators), python, unknown (no slice of the thread), other_stream;
    queued: the work that ended the gap had been launched already; or unrecorded: the recording lost
    work that was launched during the gap, which may therefore not be a gap.

    `by` sums the gaps by cause, or by cause and source line. Gaps below `threshold` ns are normal
    between two kernels (their median is 0.75 to 3 us): they are included in the sums, as
    `kernel_gap`, so that these add up to all idle time. Gaps of a device lie between the begin of
    the first step and the end of the last and of its device work, with `counted` in the steps that
    count for medians; gaps of a stream also lie between its own first and last work. `top` keeps
    the first rows; 0 keeps all.
    """
    when = observed_time_in_steps(trace, counted_steps_only=counted)
    rows, short = _long_and_short_gaps(trace, scope, threshold, counted)
    if by != "gap":
        rows = pl.concat(
            [rows, short.with_columns(cause=pl.lit(_CAUSE_OF_GAPS_BELOW_THRESHOLD))], how="diagonal"
        )
    named = rows.with_columns(
        _slice_names(trace, rows[end]).alias(end) for end in ("before", "after")
    )
    table = _sum_idle_gaps_by_keys(named, list(_GROUPING_COLUMNS_BY_OPTION[by]), length(when))
    if by == "gap":
        table = table.with_columns(
            pl.lit(None).cast(table.schema[n]).alias(n) for n in _GAP_COUNT_AND_DURATION_COLUMNS
        )
    return table.head(top) if top > 0 else table


@cached_per_trace_and_options
def _long_and_short_gaps(
    trace: Trace, scope: Literal["device", "stream"], threshold: int, counted: bool
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Returns the gaps of at least `threshold` ns with their causes, and the shorter ones."""
    work = device_work(trace)
    when = observed_time_in_steps(trace, counted_steps_only=counted)
    found = idle_gaps_in_work(work, when, scope).with_columns(
        duration=pl.col("end") - pl.col("start")
    )
    is_long = pl.col("duration") >= threshold
    return gaps_with_causes(trace, found.filter(is_long), work), found.filter(~is_long)


def _slice_names(trace: Trace, slice_ids: pl.Series) -> pl.Series:
    return trace.slices["name"].gather(slice_ids)


def _sum_idle_gaps_by_keys(
    gap_rows: pl.DataFrame, keys: list[str], observed_ns: int
) -> pl.DataFrame:
    """Returns one row per group of gaps: summed times, and further values of its longest gap."""
    firsts = [c.name for c in idle.columns if c.name not in (*_AGGREGATED_GAP_COLUMNS, *keys)]
    descending = [True, *[False] * len(_GAP_SORT_COLUMNS)]
    return (
        gap_rows.sort("duration", *_GAP_SORT_COLUMNS, descending=descending)
        .group_by(keys, maintain_order=True)
        .agg(
            pl.col("duration").sum(),
            pl.len().alias("count"),
            pl.col("duration").median().alias("median"),
            pl.col("duration").first().alias("longest"),
            pl.col(firsts).first(),
        )
        .with_columns(share=pl.col("duration") / max(observed_ns, 1))
        .sort("duration", *_GAP_SORT_COLUMNS, descending=descending)
        .select(pl.col(column.name).cast(column.dtype) for column in idle.columns)
    )
