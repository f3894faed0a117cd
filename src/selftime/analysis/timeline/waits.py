"""What waited for which work: calls that hold the host, and streams that wait for each other."""

from typing import Any, Final

import polars as pl

from selftime import names
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.idle.host_waits import copies_waited_for
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.trace import Trace

FLOW: Final = {
    "name": pl.String,
    "id": pl.UInt32,
    "start": pl.Int64,
    "to": pl.UInt32,
    "to_time": pl.Int64,
}
"""The columns of a flow: what it is, from which slice and when, to which slice and when."""
_TOLD: Final = ("before", "device", "stream", "follows")


@cached_per_trace
def launched_work(trace: Trace) -> pl.DataFrame:
    """Work whose launch is known, in the order of launches.

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


def waits_of(trace: Trace, selected: int) -> pl.DataFrame:
    """The waits of a call or record; or those that a piece of work ended or had to wait in.

    Columns: those of `flows_of`: from work to the host's call or record, or to other work.
    """
    work, waits = launched_work(trace), _waiting(trace)
    mine = work.filter(pl.col("id") == selected).rows(named=True)
    waits = _near(work, waits, mine[0]) if mine else waits.filter(pl.col("id") == selected)
    rows = [row for wait in waits.iter_rows(named=True) for row in _wait(work, wait)]
    if mine:
        rows = [row for row in rows if selected in (row[1], row[3])]
    return pl.DataFrame(rows, schema=dict(FLOW), orient="row").unique(maintain_order=True)


def _near(work: pl.DataFrame, waits: pl.DataFrame, mine: dict[str, Any]) -> pl.DataFrame:
    """The waits that a piece of work may have ended, or may have waited in."""
    stream = work.filter(_is_on(mine["device"], mine["stream"]))["launched"]
    at = mine["launched"]
    next_launch = stream.filter(stream > at).min()
    last_launch = stream.filter(stream < at).max()
    on_host = pl.col("follows").is_null()
    ended = (pl.col("start") < mine["end"]) & (pl.col("end") >= mine["end"])
    is_cause = (pl.col("stream") == mine["stream"]) & (pl.col("before") >= at)
    is_effect = (pl.col("follows") == mine["stream"]) & (pl.col("start") <= at)
    if next_launch is not None:
        is_cause &= pl.col("before") <= next_launch
    if last_launch is not None:
        is_effect &= pl.col("start") >= last_launch
    return waits.filter(pl.when(on_host).then(ended).otherwise(is_cause | is_effect))


def _wait(work: pl.DataFrame, wait: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The flow of one wait, if its cause is known."""
    asked = work.filter(
        _is_on(wait["device"], wait["stream"]), pl.col("launched") <= wait["before"]
    )
    if wait["follows"] is None:
        asked = asked.filter(pl.col("end").is_between(wait["start"], wait["end"], closed="right"))
        return [("wait", id_, end, wait["id"], wait["end"]) for id_, end in _last(asked)]
    after = work.filter(
        _is_on(wait["device"], wait["follows"]), pl.col("launched") >= wait["start"]
    ).head(1)
    return [
        ("wait", id_, end, to, begin)
        for id_, end in _last(asked)
        for to, begin in after.select("id", "start").iter_rows()
        if wait["start"] < end <= begin  # what was done already is not waited for
    ]


def _last(work: pl.DataFrame) -> list[tuple[int, int]]:
    """Id and end of the work that ended last."""
    return work.sort("end", "id").select("id", "end").tail(1).rows()


def _is_on(device: int | None, stream: int | None) -> pl.Expr:
    """Whether work is of a device and stream; of any, where none is told."""
    known = pl.lit(value=True)
    for column, value in (("device", device), ("stream", stream)):
        if value is not None:
            known &= pl.col(column) == value
    return known


@cached_per_trace
def _waiting(trace: Trace) -> pl.DataFrame:
    """Waits: calls that hold the host, copies too, and the device's records, which tell more.

    Columns: id, start, end; before (work launched later is not waited for), device and stream that
    are waited for (null if any), follows (the stream that waits; null if the host does).
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
    asked = calls.join(told, on="correlation").select("id", *_TOLD)
    named = filter_by_name(slices_on(trace, "host"), names.is_blocking_call).select("id")
    copies = copies_waited_for(trace).filter("waited").select("id")
    blocking = pl.concat([named, copies]).unique(maintain_order=True)
    waits = pl.concat(
        [
            told.select(pl.col("record").alias("id"), *_TOLD),
            asked,
            blocking.join(asked, on="id", how="anti"),
        ],
        how="diagonal",
    )
    start, length = begin.gather(waits["id"]), trace.slices["duration"].gather(waits["id"])
    return waits.with_columns(
        before=pl.coalesce("before", start), start=start, end=start + length
    ).filter(pl.col("end").is_not_null())
