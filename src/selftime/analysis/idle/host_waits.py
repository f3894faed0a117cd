"""Waits of the host for the device: the calls that hold it, and how long.

Calls that synchronise wait. A copy into pageable memory of the host returns when it is done; one
from such memory when it is staged (CUDA Runtime API, "API synchronization behavior"). Where the
name of a copy does not tell the kind of memory, a call that lasted until its copy was done waited
for it. A copy and the synchronisation that the same operator calls next are one wait.
"""

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.device.work import device_work
from selftime.analysis.slice_arguments import with_arguments
from selftime.analysis.slice_filters import filter_by_name, runtime_calls, with_known_end
from selftime.trace import Trace

_TO: Final = {"DtoH": "copy_to_host", "HtoD": "copy_to_device"}


@cached_per_trace
def copies_waited_for(trace: Trace) -> pl.DataFrame:
    """Calls that copy between host and device, and whether they held the host.

    Columns: id (of the call), copy (copy_to_host or copy_to_device), stream, waited.
    """
    copies = _directed(trace)
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


def _directed(trace: Trace) -> pl.DataFrame:
    """Copies between host and device that a call launched, with copy and memory."""
    way = trace.device_args.select("id", way=pl.col("kind").cast(pl.String))
    copies = (
        device_work(trace)
        .filter((pl.col("kind") == "memcpy") & pl.col("launch").is_not_null())
        .select("id", "end", "launch", "stream", name=pl.col("name").cast(pl.String))
        .join(way, on="id", how="left", maintain_order="left")
    )
    rows = [(n, w, *_read(n, w)) for n, w in copies.select("name", "way").unique().iter_rows()]
    kinds = dict.fromkeys(("name", "way", "copy", "memory"), pl.String)
    table = pl.DataFrame(rows, schema=kinds, orient="row").drop_nulls("copy")
    return copies.join(table, on=["name", "way"], nulls_equal=True, maintain_order="left")


def _read(name: str, way: str | None) -> tuple[str | None, str | None]:
    told = names.copy_of(name)
    direction = told.direction or names.copy_of(way or "").direction
    return _TO.get(direction or ""), told.host_memory


@cached_per_trace
def host_waits(trace: Trace) -> pl.DataFrame:
    """Every wait of the host, in order of time.

    Columns: id (the call that waited; of two the one that did longer), kind (stream, device, event,
    copy, copy_to_host, copy_to_device), operator (the innermost slice around the call, or null),
    thread, start, end, wait (ns that the calls lasted), stream (the one waited for, if known).
    """
    before = {n: pl.col(n).shift(1).over("thread") for n in ("copy", "operator", "launches")}
    joins = (
        (pl.col("kind") == "stream")
        & before["copy"].is_not_null()
        & (before["operator"] == pl.col("operator"))
        & (before["launches"] == pl.col("launches"))
    )
    return (
        _acts(trace)
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


def _acts(trace: Trace) -> pl.DataFrame:
    """Calls that wait, and copies that do not, by thread and time.

    `held` tells them apart; `launches` counts what else the thread had launched before.
    """
    calls = with_known_end(runtime_calls(trace))
    thread = trace.tracks["thread"].gather(calls["track"])
    launched = trace.slices["launch"].drop_nulls()
    placed = calls.select(
        "id", "start", "duration", thread=thread, end=pl.col("start") + pl.col("duration")
    )
    acts = _named_waits(calls).join(copies_waited_for(trace), on="id", how="full", coalesce=True)
    told = acts.with_columns(
        kind=pl.coalesce("copy", "named"),
        held=pl.col("named").is_not_null() | pl.col("waited").fill_null(value=False),
    )
    ids = placed["id"].to_numpy()
    acting, launching = _marked(trace, told["id"])[ids], _marked(trace, launched)[ids]
    placed = (
        placed.with_columns(acting=acting)
        .filter(pl.Series(acting | launching))
        .with_columns(launches=(~pl.col("acting")).cum_sum().over("thread"))
        .filter("acting")
        .drop("acting")
        .join(told, on="id")
    )
    return (
        with_arguments(trace, "call_args", placed, "operator", "correlation")
        .join(_recorded(trace), on="correlation", how="left")
        .with_columns(stream=pl.coalesce("recorded", "stream"))
        .sort("thread", "start", "id")
    )


def _marked(trace: Trace, ids: pl.Series) -> NDArray[np.bool_]:
    found = np.zeros(trace.slices.height, bool)
    found[ids.to_numpy()] = True
    return found


def _named_waits(calls: pl.DataFrame) -> pl.DataFrame:
    """Calls that wait by their name: id, and named, what for."""
    waiting = filter_by_name(calls, names.is_blocking_call).select("id", "name")
    name = waiting["name"].cast(pl.String)
    told = {text: names.waits_for(text) for text in name.unique().to_list()}
    return waiting.select("id", named=name.replace_strict(told, return_dtype=pl.String))


def _recorded(trace: Trace) -> pl.DataFrame:
    """The stream that was waited for as the device's own records tell it, by correlation."""
    known = [pl.when(pl.col(c) >= 0).then(c) for c in ("waits_on_stream", "stream")]
    told = trace.sync_args.select("correlation", recorded=pl.coalesce(known)).drop_nulls()
    return told.unique("correlation", keep="first", maintain_order=True)
