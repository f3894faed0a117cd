"""Finds waits and what they waited for: calls that block the host, streams that await streams."""

from typing import Any, Final

import polars as pl

from selftime import names
from selftime.analysis.idle.host_waits import copy_calls_with_wait_flag
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.trace import Trace

SLICE_FLOW_SCHEMA: Final = {
    "name": pl.String,
    "id": pl.UInt32,
    "start": pl.Int64,
    "to": pl.UInt32,
    "to_time": pl.Int64,
}
"""Columns of an arrow between slices: its kind; slice and time (ns) where it starts; slice and time
where it ends.
"""
_WAIT_CONDITION_COLUMNS: Final = ("before", "device", "stream", "follows")


@cached_per_trace
def device_work_with_launch(trace: Trace) -> pl.DataFrame:
    """Returns device work whose launch is known, in launch order.

    Columns: id, launch, start, duration, end; track, thread and launched (where and when the call
    began); device, stream, correlation.
    """
    threads = trace.tracks.select(pl.col("id").alias("track"), "thread")
    work = slices_on(trace, "device").filter(pl.col("launch").is_not_null())
    call = trace.slices.select("track", "start")[work["launch"]]
    return (
        work.select("id", "launch", "start", "duration")
        .with_columns(
            call.select(pl.col("track"), launched=pl.col("start")),
            end=pl.col("start") + pl.col("duration").fill_null(0),
        )
        .join(threads, on="track", how="left", maintain_order="left")
        .join(
            trace.device_args.select("id", "device", "stream", "correlation"),
            on="id",
            how="left",
            maintain_order="left",
        )
        .sort("launch", "id")
    )


def waits_of_slice(trace: Trace, slice_id: int) -> pl.DataFrame:
    """Returns the waits in which a slice is the waiting call or the device work involved.

    Columns: those of `flow_arrows_of_slice`: from work to the host's call or record, or to other
    work.
    """
    work, waits = device_work_with_launch(trace), _table_of_all_waits(trace)
    mine = work.filter(pl.col("id") == slice_id).rows(named=True)
    waits = (
        _candidate_waits_of_work(work, waits, mine[0])
        if mine
        else waits.filter(pl.col("id") == slice_id)
    )
    rows = [row for wait in waits.iter_rows(named=True) for row in _flows_of_wait(work, wait)]
    if mine:
        rows = [row for row in rows if slice_id in (row[1], row[3])]
    return pl.DataFrame(rows, schema=dict(SLICE_FLOW_SCHEMA), orient="row").unique(
        maintain_order=True
    )


def _candidate_waits_of_work(
    work: pl.DataFrame, waits: pl.DataFrame, work_row: dict[str, Any]
) -> pl.DataFrame:
    """Returns waits that may have ended when the device work ended, or that may have delayed it."""
    stream = work.filter(_is_on_stream(work_row["device"], work_row["stream"]))["launched"]
    at = work_row["launched"]
    next_launch = stream.filter(stream > at).min()
    last_launch = stream.filter(stream < at).max()
    on_host = pl.col("follows").is_null()
    ended = (pl.col("start") < work_row["end"]) & (pl.col("end") >= work_row["end"])
    is_cause = (pl.col("stream") == work_row["stream"]) & (pl.col("before") >= at)
    is_effect = (pl.col("follows") == work_row["stream"]) & (pl.col("start") <= at)
    if next_launch is not None:
        is_cause &= pl.col("before") <= next_launch
    if last_launch is not None:
        is_effect &= pl.col("start") >= last_launch
    return waits.filter(pl.when(on_host).then(ended).otherwise(is_cause | is_effect))


def _flows_of_wait(work: pl.DataFrame, wait: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Returns the arrows from awaited device work to a wait, as rows of `SLICE_FLOW_SCHEMA`."""
    asked = work.filter(
        _is_on_stream(wait["device"], wait["stream"]), pl.col("launched") <= wait["before"]
    )
    if wait["follows"] is None:
        asked = asked.filter(pl.col("end").is_between(wait["start"], wait["end"], closed="right"))
        return [
            ("wait", id_, end, wait["id"], wait["end"])
            for id_, end in _id_and_end_of_last_ended_work(asked)
        ]
    after = work.filter(
        _is_on_stream(wait["device"], wait["follows"]), pl.col("launched") >= wait["start"]
    ).head(1)
    return [
        ("wait", id_, end, to, begin)
        for id_, end in _id_and_end_of_last_ended_work(asked)
        for to, begin in after.select("id", "start").iter_rows()
        if wait["start"] < end <= begin  # work that was done already is not waited for
    ]


def _id_and_end_of_last_ended_work(work: pl.DataFrame) -> list[tuple[int, int]]:
    """Returns a list with (id, end in ns) of the work that ended last, or an empty list."""
    return work.sort("end", "id").select("id", "end").tail(1).rows()


def _is_on_stream(device: int | None, stream: int | None) -> pl.Expr:
    """Returns a column expression: whether work is on this device and stream; None means any."""
    known = pl.lit(value=True)
    for column, value in (("device", device), ("stream", stream)):
        if value is not None:
            known &= pl.col(column) == value
    return known


@cached_per_trace
def _table_of_all_waits(trace: Trace) -> pl.DataFrame:
    """Returns all waits: calls that block the host, copies, and waits recorded on the device.

    Columns: id, start, end; before (work launched later is not waited for), device and stream that
    are waited for (null if any), follows (the stream that waits; null for the host).
    """
    begin = trace.slices["start"]
    records = trace.sync_args.select(
        pl.col("id").alias("record"),
        "correlation",
        "device",
        *(
            pl.when(pl.col(column) >= 0).then(column).alias(column)
            for column in ("stream", "waits_on_stream")
        ),
        recorded=pl.col("recorded_by"),
    )
    known = pl.concat([records["correlation"], records["recorded"]]).unique()
    calls = trace.call_args.select("id", "correlation").filter(
        pl.col("correlation").is_in(known.implode()) & (pl.col("correlation") > 0)
    )
    marks = calls.select(recorded="correlation", before=begin.gather(calls["id"]))
    told = (
        records.join(marks.unique("recorded"), on="recorded", how="left")
        .with_columns(follows=pl.when(pl.col("waits_on_stream").is_not_null()).then("stream"))
        .with_columns(stream=pl.coalesce("waits_on_stream", "stream"))
    )
    asked = calls.join(told, on="correlation").select("id", *_WAIT_CONDITION_COLUMNS)
    named = filter_by_name(slices_on(trace, "host"), names.is_blocking_call).select("id")
    copies = copy_calls_with_wait_flag(trace).filter("waited").select("id")
    blocking = pl.concat([named, copies]).unique(maintain_order=True)
    waits = pl.concat(
        [
            told.select(pl.col("record").alias("id"), *_WAIT_CONDITION_COLUMNS),
            asked,
            blocking.join(asked, on="id", how="anti"),
        ],
        how="diagonal",
    )
    start, length = begin.gather(waits["id"]), trace.slices["duration"].gather(waits["id"])
    return waits.with_columns(
        before=pl.coalesce("before", start), start=start, end=start + length
    ).filter(pl.col("end").is_not_null())
