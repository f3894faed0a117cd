"""What a slice hangs together with: its launch and its work, forward and backward, wait and cause.

Each flow goes from what comes first to what follows from it:

    launch     a call of the host that puts work on a device, and the work
    backward   a forward operator, and the operator that computes its gradients
    wait       device work, and the call or record that ended because it had ended
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.trace import Trace
from selftime.views.accounts.named import of_kind, whose_name
from selftime.views.accounts.tiles.kept import kept

__all__ = ["flows_of"]

Ints = NDArray[np.int64]

_SCHEMA: Final = {
    "name": pl.String,
    "id": pl.UInt32,
    "start": pl.Int64,
    "to": pl.UInt32,
    "to_time": pl.Int64,
}


def flows_of(trace: Trace, selected: int, limit: int) -> pl.DataFrame:
    """The flows from and to a slice, and from what lies within it.

    Columns: name, id and start (the slice it comes from, and when), to and to_time (the slice it
    goes to, and when). Of more than `limit` flows of a kind, those to the longest slices.
    """
    chosen = _Chosen.of(trace, selected)
    kinds = (_launches(trace, chosen), _backward(trace, chosen), _waits(trace, chosen))
    found = [_longest(trace, flows, limit) for flows in kinds]
    return pl.concat(
        [flows.select(pl.col(name).cast(kind) for name, kind in _SCHEMA.items()) for flows in found]
    )


@dataclass(frozen=True, slots=True)
class _Chosen:
    """A slice: its times, its thread, what is around it."""

    id: int
    start: int
    end: int
    thread: int
    kind: str
    launch: int | None
    around: list[int]
    """The slice itself, its parent, the parent's parent, and so on."""

    @classmethod
    def of(cls, trace: Trace, number: int) -> "_Chosen":
        slices = trace.slices
        row = slices.row(number, named=True)
        track = trace.tracks.filter(pl.col("id") == row["track"]).row(0, named=True)
        around = [number]
        while (parent := slices["parent"][around[-1]]) is not None:
            around.append(parent)
        end = row["start"] + (row["duration"] or 0)
        kind = track["kind"]
        return cls(number, row["start"], end, track["thread"], kind, row["launch"], around)


@kept
def _launched(trace: Trace) -> pl.DataFrame:
    """Device work whose launch is known, by the launch; with the launch's thread and begin."""
    threads = trace.tracks.select(pl.col("id").alias("track"), "thread")
    work = of_kind(trace, "device").filter(pl.col("launch").is_not_null())
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


def _launches(trace: Trace, chosen: _Chosen) -> pl.DataFrame:
    """From each call to the work that it launched."""
    work = _launched(trace)
    if chosen.launch is not None:
        mine = work.filter(pl.col("id") == chosen.id)
    else:
        inside = pl.col("launched").is_between(chosen.start, chosen.end, closed="left")
        mine = work.filter(
            (pl.col("launch") == chosen.id) | (inside & (pl.col("thread") == chosen.thread))
        )
    return mine.select(
        pl.lit("launch").alias("name"),
        id="launch",
        start="launched",
        to="id",
        to_time="start",
    )


def _backward(trace: Trace, chosen: _Chosen) -> pl.DataFrame:
    """From a forward operator to the backward ones; of the slice, else of the next around it."""
    linked = trace.op_args.select("id", "forward").filter(pl.col("forward").is_not_null())
    around = pl.Series(chosen.around, dtype=pl.UInt32)
    mine = linked.filter(
        pl.col("id").is_in(around.implode()) | pl.col("forward").is_in(around.implode())
    )
    ids = set(mine["id"].to_list()) | set(mine["forward"].to_list())
    nearest = next((one for one in chosen.around if one in ids), chosen.id)
    mine = mine.filter((pl.col("id") == nearest) | (pl.col("forward") == nearest))
    begin = trace.slices["start"]
    return mine.select(
        pl.lit("backward").alias("name"),
        id="forward",
        start=begin.gather(mine["forward"]),
        to="id",
        to_time=begin.gather(mine["id"]),
    )


def _waits(trace: Trace, chosen: _Chosen) -> pl.DataFrame:
    """From work to what waited for it: the host's call or record, or work of another stream."""
    work, waits = _launched(trace), _waiting(trace)
    if chosen.launch is None:
        waits = waits.filter(pl.col("id") == chosen.id)
    else:
        [mine] = work.filter(pl.col("id") == chosen.id).iter_rows(named=True)
        waits = _near(work, waits, mine)
    rows = [row for wait in waits.iter_rows(named=True) for row in _wait(work, wait)]
    if chosen.launch is not None:
        rows = [row for row in rows if chosen.id in (row[1], row[3])]
    return pl.DataFrame(rows, schema=dict(_SCHEMA), orient="row").unique(maintain_order=True)


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


@kept
def _waiting(trace: Trace) -> pl.DataFrame:
    """Waits: calls that hold the host, and the device's records, which tell more where they are.

    Columns: id, start, end; before (work launched later is not waited for), device and stream that
    are waited for (null if any), follows (the stream that waits; null if the host does).
    """
    begin = trace.slices["start"]
    calls = trace.call_args.select("id", "correlation").filter(pl.col("correlation") > 0)
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
    marks = calls.select(recorded="correlation", before=begin.gather(calls["id"]))
    told = (
        records.join(marks.unique("recorded"), on="recorded", how="left")
        .with_columns(follows=pl.when(pl.col("waits_on_stream").is_not_null()).then("stream"))
        .with_columns(stream=pl.coalesce("waits_on_stream", "stream"))
    )
    asked = calls.join(told, on="correlation").select("id", *_TOLD)
    blocking = whose_name(of_kind(trace, "host"), names.is_blocking_call).select("id")
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


_TOLD: Final = ("before", "device", "stream", "follows")


def _longest(trace: Trace, flows: pl.DataFrame, limit: int) -> pl.DataFrame:
    """At most so many flows, those to the longest slices, in order of time."""
    if flows.height <= limit:
        return flows
    length = trace.slices["duration"].gather(flows["to"]).fill_null(0)
    return flows[length.arg_sort(descending=True)[:limit].sort()]
