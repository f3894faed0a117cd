"""Waits of the host for the device: which calls wait, how long, and the device idle time caused.

Synchronising calls wait. A copy into pageable host memory returns when it is done; a copy out of
such memory returns when it is staged (CUDA Runtime API, "API synchronization behavior"). Where the
name of a copy does not give the kind of memory, a call that lasted until its copy was done waited
for it. A copy and the synchronisation that the same operator calls next are one wait.

While the host waits it launches nothing. A device that finished its work before the wait ended, or
that runs out of work before the host launches again, is idle. A device with work in its queue is
not idle, and a wait then costs nothing, however long it is.
"""

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.device.device_work import device_work
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_arguments import slices_with_arguments
from selftime.analysis.slice_filters import (
    covered_time,
    filter_by_name,
    runtime_calls,
    with_known_end,
)
from selftime.array_types import Ints
from selftime.intervals import Intervals, covered_time_before
from selftime.trace import Trace

_HOST_WAIT_KIND_BY_COPY_DIRECTION: Final = {"DtoH": "copy_to_host", "HtoD": "copy_to_device"}


@cached_per_trace
def copy_calls_with_wait_flag(trace: Trace) -> pl.DataFrame:
    """Returns calls that copy between host and device, and whether the host waited for them.

    Columns: id (of the call), copy (copy_to_host or copy_to_device), stream, waited.
    """
    copies = _launched_copies_with_direction(trace)
    calls = trace.slices.select("start", "duration")[copies["launch"]]
    covered = (calls["start"] + calls["duration"] >= copies["end"]).fill_null(value=False)
    memory = pl.col("memory")
    staged = (pl.col("copy") == "copy_to_device") & (memory == "pageable")
    done = pl.lit(covered) & (memory == "pageable").fill_null(value=True)
    return (
        copies.with_columns(waited=staged.fill_null(value=False) | done)
        .select("copy", "stream", "waited", id="launch")
        .sort("id", "waited", descending=[False, True], maintain_order=True)
        .unique("id", keep="first", maintain_order=True)
    )


def _launched_copies_with_direction(trace: Trace) -> pl.DataFrame:
    """Returns host-device copies with their launching call, direction and kind of host memory."""
    way = trace.device_args.select("id", way=pl.col("kind").cast(pl.String))
    copies = (
        device_work(trace)
        .filter((pl.col("kind") == "memcpy") & pl.col("launch").is_not_null())
        .select("id", "end", "launch", "stream", name=pl.col("name").cast(pl.String))
        .join(way, on="id", how="left", maintain_order="left")
    )
    rows = [
        (n, w, *_copy_wait_kind_and_host_memory(n, w))
        for n, w in copies.select("name", "way").unique().iter_rows()
    ]
    kinds = dict.fromkeys(("name", "way", "copy", "memory"), pl.String)
    table = pl.DataFrame(rows, schema=kinds, orient="row").drop_nulls("copy")
    return copies.join(table, on=["name", "way"], nulls_equal=True, maintain_order="left")


def _copy_wait_kind_and_host_memory(
    name: str, recorded_kind: str | None
) -> tuple[str | None, str | None]:
    told = names.memcpy_kind(name)
    direction = told.direction or names.memcpy_kind(recorded_kind or "").direction
    return _HOST_WAIT_KIND_BY_COPY_DIRECTION.get(direction or ""), told.host_memory


@cached_per_trace
def host_waits(trace: Trace) -> pl.DataFrame:
    """Returns every wait of the host, in order of time.

    Columns: id (the call that waited; of two the longer one), kind (stream, device, event, copy,
    copy_to_host, copy_to_device), operator (the innermost slice around the call, or null), thread,
    start, end, wait (duration of the calls in ns), stream (the one waited for, if known).
    """
    before = {n: pl.col(n).shift(1).over("thread") for n in ("copy", "operator", "launches")}
    joins = (
        (pl.col("kind") == "stream")
        & before["copy"].is_not_null()
        & (before["operator"] == pl.col("operator"))
        & (before["launches"] == pl.col("launches"))
    )
    return (
        _waiting_calls_and_other_copies(trace)
        .with_columns(number=(~joins.fill_null(value=False)).cum_sum())
        .with_columns(
            copied=pl.col("copy").drop_nulls().first().over("number"),
            stream=pl.col("stream").drop_nulls().first().over("number"),
        )
        .filter("held")
        .sort("number", "duration", descending=[False, True], maintain_order=True)
        .group_by("number", maintain_order=True)
        .agg(
            pl.col("id", "kind", "operator", "thread", "copied", "stream").first(),
            pl.col("start").min(),
            pl.col("end").max(),
            pl.col("duration").sum().alias("wait"),
        )
        .with_columns(kind=pl.coalesce("copied", "kind"))
        .sort("start", "id")
        .select("id", "kind", "operator", "thread", "start", "end", "wait", "stream")
    )


def _waiting_calls_and_other_copies(trace: Trace) -> pl.DataFrame:
    """Returns waiting calls, and copy calls that do not wait, sorted by thread and time.

    `held` is true for calls that wait; `launches` counts earlier launches of the thread by other
    calls.
    """
    calls = with_known_end(runtime_calls(trace))
    thread = trace.tracks["thread"].gather(calls["track"])
    launched = trace.slices["launch"].drop_nulls()
    placed = calls.select(
        "id", "start", "duration", thread=thread, end=pl.col("start") + pl.col("duration")
    )
    acts = _calls_whose_names_show_waits(calls).join(
        copy_calls_with_wait_flag(trace), on="id", how="full", coalesce=True
    )
    told = acts.with_columns(
        kind=pl.coalesce("copy", "named"),
        held=pl.col("named").is_not_null() | pl.col("waited").fill_null(value=False),
    )
    ids = placed["id"].to_numpy()
    acting, launching = (
        _flags_at_slice_ids(trace, told["id"])[ids],
        _flags_at_slice_ids(trace, launched)[ids],
    )
    placed = (
        placed.with_columns(acting=acting)
        .filter(pl.Series(acting | launching))
        .with_columns(launches=(~pl.col("acting")).cum_sum().over("thread"))
        .filter("acting")
        .drop("acting")
        .join(told, on="id")
    )
    return (
        slices_with_arguments(trace, "call_args", placed, "operator", "correlation")
        .join(_awaited_streams(trace), on="correlation", how="left")
        .with_columns(stream=pl.coalesce("recorded", "stream"))
        .sort("thread", "start", "id")
    )


def _flags_at_slice_ids(trace: Trace, slice_ids: pl.Series) -> NDArray[np.bool_]:
    found = np.zeros(trace.slices.height, bool)
    found[slice_ids.to_numpy()] = True
    return found


def _calls_whose_names_show_waits(calls: pl.DataFrame) -> pl.DataFrame:
    """Returns calls whose name shows a wait; column `named` says what each call waits for."""
    waiting = filter_by_name(calls, names.is_blocking_call).select("id", "name")
    name = waiting["name"].cast(pl.String)
    told = {text: names.blocking_call_target(text) for text in name.unique().to_list()}
    return waiting.select("id", named=name.replace_strict(told, return_dtype=pl.String))


def _awaited_streams(trace: Trace) -> pl.DataFrame:
    """Returns the awaited stream of each wait that the device recorded, by correlation number."""
    known = [pl.when(pl.col(c) >= 0).then(c) for c in ("waits_on_stream", "stream")]
    told = trace.sync_args.select("correlation", recorded=pl.coalesce(known)).drop_nulls()
    return told.unique("correlation", keep="first", maintain_order=True)


@cached_per_trace
def host_waits_with_idle_time(trace: Trace) -> pl.DataFrame:
    """Returns host waits with the device's idle time (ns) during and after each wait.

    Columns: those of `host_waits`; device, the one to which its thread had launched last, or
    launches next; idle, how much of the wait the device had no work (ns); idle_after, how long it
    had none from the end of the wait to the begin of the work that was launched next, or to the
    next wait of the thread (ns), null if nothing was launched after it; ended, the work that ended
    last during the wait, if any.
    """
    work = device_work(trace).filter(pl.col("duration") > 0)
    found = _waits_with_device_and_next_wait(trace, host_waits(trace), work).with_row_index("at")
    columns = {
        "idle": np.zeros(found.height, np.int64),
        "idle_after": np.full(found.height, -1, np.int64),
        "ended": np.full(found.height, -1, np.int64),
    }
    for (device,), own in found.group_by("device", maintain_order=True):
        mine = work.filter(pl.col("device").eq_missing(pl.lit(device)))
        at = own["at"].to_numpy()
        for name, values in _idle_time_columns_of_waits(own, mine).items():
            columns[name][at] = values
    return found.drop("at").with_columns(
        idle=columns["idle"],
        idle_after=_null_where_negative(columns["idle_after"]),
        ended=_null_where_negative(columns["ended"]).cast(pl.UInt32),
    )


def _null_where_negative(values: Ints) -> pl.Series:
    known = pl.Series(values, dtype=pl.Int64)
    return known.set(known < 0, None)


def _waits_with_device_and_next_wait(
    trace: Trace, waits: pl.DataFrame, work: pl.DataFrame
) -> pl.DataFrame:
    """Adds each wait's device, and the begin of the next wait on its thread (`until`)."""
    known = work.filter(pl.col("launched").is_not_null())
    track = trace.slices["track"].gather(known["launch"])
    launches = known.select(
        "device", start="launched", thread=trace.tracks["thread"].gather(track)
    ).sort("start")
    earlier = waits.join_asof(
        launches, on="start", by="thread", strategy="backward", check_sortedness=False
    )
    later = waits.select("start", "thread").join_asof(
        launches, on="start", by="thread", strategy="forward", check_sortedness=False
    )
    other = waits.select("start").join_asof(
        launches.select("start", "device"), on="start", strategy="nearest", check_sortedness=False
    )
    return earlier.with_columns(
        device=pl.coalesce(earlier["device"], later["device"], other["device"]),
        until=pl.col("start").shift(-1).over("thread"),
    )


def _idle_time_columns_of_waits(waits: pl.DataFrame, work: pl.DataFrame) -> dict[str, Ints]:
    start, end = waits["start"].to_numpy(), waits["end"].to_numpy()
    busy = covered_time(work)
    ends = work.sort("end", maintain_order=True)
    last = np.searchsorted(ends["end"].to_numpy(), end, side="right") - 1
    ended = ends["id"].to_numpy().astype(np.int64)[last] if work.height else last
    within = (last >= 0) & (ends["end"].to_numpy()[last] > start) if work.height else last >= 0
    return {
        "idle": _idle_time_in_spans_ns(busy, start, end),
        "idle_after": _device_idle_after_waits_ns(waits, work, busy),
        "ended": np.where(within, ended, -1),
    }


def _idle_time_in_spans_ns(busy: Intervals, start: Ints, end: Ints) -> Ints:
    return end - start - (covered_time_before(busy, end) - covered_time_before(busy, start))


def _device_idle_after_waits_ns(waits: pl.DataFrame, work: pl.DataFrame, busy: Intervals) -> Ints:
    """Returns how long (ns) the device idled after each wait until its next work; -1 if unknown."""
    queue = work.filter(pl.col("launched").is_not_null()).sort("launched", "start")
    end = waits["end"].to_numpy()
    following = np.searchsorted(queue["launched"].to_numpy(), end, side="left")
    known = following < queue.height
    until = end.copy()
    until[known] = queue["start"].to_numpy()[following[known]]
    until = np.minimum(until, waits["until"].fill_null(np.iinfo(np.int64).max).to_numpy())
    until = np.maximum(until, end)
    return np.where(known, _idle_time_in_spans_ns(busy, end, until), -1)
