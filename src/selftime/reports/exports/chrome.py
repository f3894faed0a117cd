"""A trace in the trace-event format, as Kineto lays it out today: for viewers and for selftime.

Format: "Trace Event Format", JSON Object Format. Times are decimal microseconds without rounding.
Slices that cross others of their thread lie on added threads, which reading puts back, as in a cut.
Read again it gives the same slices with the same links, and so the same views.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import polars as pl

from selftime import names
from selftime.reports.exports.arrows import Arrows
from selftime.reports.exports.base import Asked, Export, Told, batches, ends_of, full_names
from selftime.reports.exports.chrome_args import Arguments, joined, member, microseconds, quoted
from selftime.reports.trace_file import TraceFile, new_file
from selftime.rewrite.threads import AddedThreads, as_number
from selftime.trace import Trace

_BETWEEN: Final = ",\n  "
_BASE: Final = "baseTimeNanoseconds"
_OWN: Final = ("traceEvents", "selftime_tracks")
"""Keys that are written anew."""
_SORT: Final = {"host": 0, "python": 0, "other": 1, "device": 5_000_000, "profiler": 0x20000000}
"""Where Kineto lets viewers show a process, by the first of its tracks' kinds that is here."""
_NO_KEY: Final = "?"
"""Stands in the tables for a process or thread that is not told."""


def write(trace: Trace, output: Path, asked: Asked) -> Told:
    """Write the trace.

    Raises:
        UsageError: `output` is what is read, or nothing that can be written to.
        SelftimeError: It cannot be written.
    """
    told = Told()
    with new_file(output, trace.source) as put:
        file = TraceFile(put)
        zero = _zero(trace)
        for key, value in trace.metadata.items():
            if key not in _OWN:
                file.key(key, _encoded(value))
        added = AddedThreads(
            trace,
            np.ones(trace.slices.height, bool),
            trace.slices["start"].to_numpy(),
            ends_of(trace.slices),
        )
        _write_labels(trace, file, added)
        told.written["slices"] = trace.slices.height
        told.written["arrows"] = _write_slices(trace, file, added, (zero, asked))
        told.written["allocations"] = _write_memory(trace, file, zero)
        told.written["marks"] = _write_instants(trace, file, zero)
        told.written["samples"] = _write_counters(trace, file, zero)
        file.end()
    told.size = put.size
    told.lacks("stacks of allocations", trace.memory["call_stack"].drop_nulls().len())
    return told


CHROME: Final = Export(
    "chrome", "Perfetto, chrome://tracing, TensorBoard and selftime itself", ".json.gz", write
)


def _zero(trace: Trace) -> int:
    """What is added to the trace's times, in ns: those of the file count from where they did."""
    base = trace.metadata.get(_BASE)
    if trace.origin is None:
        return 0
    return trace.origin - base if isinstance(base, int) else trace.origin


def _encoded(value: Any) -> bytes:
    return msgspec.json.encode(value, enc_hook=str)


def _hand_on(file: TraceFile, events: pl.Series) -> int:
    """Write events; how many there were."""
    if events.len():
        file.events(_BETWEEN.join(events.to_list()).encode(), events.len())
    return events.len()


def _write_labels(trace: Trace, file: TraceFile, added: AddedThreads) -> None:
    """What processes and threads are called, and in which order viewers show them."""
    events = []
    for (pid, tid), kinds, tracks in _threads(trace):
        where = {"pid": as_number(pid), "tid": as_number(tid), "ts": 0, "ph": "M"}
        first = tracks.row(0, named=True)
        if first["process_name"] is not None:
            process = {**where, "tid": 0, "args": {"name": first["process_name"]}}
            events.append({"name": "process_name", **process})
        order = next((place for kind, place in _SORT.items() if kind in kinds), _SORT["device"])
        device = 0 if first["device"] is None else first["device"]
        sort = {**where, "tid": 0, "args": {"sort_index": order + device}}
        events.append({"name": "process_sort_index", **sort})
        if first["name"] is not None:
            label = {"name": "thread_name", **where, "args": {"name": first["name"]}}
            added.note((pid, tid), "thread_name", _encoded(label))
            events.append(label)
    texts = [_encoded(event) for event in events]
    texts = [*dict.fromkeys(texts), *added.labels()]
    file.events(_BETWEEN.encode().join(texts), len(texts))
    file.key("selftime_tracks", added.tracks_json())


def _threads(trace: Trace) -> Iterator[tuple[tuple[str, str], set[str], pl.DataFrame]]:
    """The key of each thread, the kinds of its tracks, and these, that of the device first."""
    ordered = trace.tracks.sort("thread", pl.col("device").is_null(), "id", maintain_order=True)
    for _, tracks in ordered.group_by("thread", maintain_order=True):
        yield (tracks["process"][0], tracks["tid"][0]), {*tracks["kind"]}, tracks


def _places(trace: Trace) -> pl.DataFrame:
    """For each track its process and thread as members of an event."""
    process, thread = (
        pl.Series([_key(text) for text in trace.tracks[name]], dtype=pl.String)
        for name in ("process", "tid")
    )
    table = pl.DataFrame({"process": process, "tid": thread})
    return table.select(
        where=joined([member("pid", pl.col("process")), member("tid", pl.col("tid"))]),
        process=member("pid", pl.col("process")),
    )


def _key(text: str) -> str | None:
    """A process or thread as JSON; None if it is not told."""
    if text == _NO_KEY:
        return None
    if text == f"'{_NO_KEY}'":
        text = _NO_KEY
    return msgspec.json.encode(as_number(text)).decode()


def _write_slices(
    trace: Trace, file: TraceFile, added: AddedThreads, timed: tuple[int, Asked]
) -> int:
    """Write the slices, and the arrows from and to them; how many arrows."""
    zero, asked = timed
    places, arguments = _places(trace), Arguments(trace)
    arrows, count = Arrows(trace), 0
    named = full_names(trace)
    for low, high in batches(trace.slices.height):
        some = trace.slices.slice(low, high - low)
        table = pl.DataFrame(
            {
                "name": quoted(named.slice(low, high - low)),
                "category": quoted(some["category"]),
                "where": _where(some, places, added, low),
                "ts": some["start"] + zero,
                "dur": some["duration"],
                "args": arguments.texts(low, high),
            }
        )
        _hand_on(file, table.select(_event()).to_series())
        points = pl.concat(list(arrows.points(low, high)))
        lying = table.select("where", "ts")[(points["slice"] - low).to_list()]
        count += int(points["is_end"].sum())
        _hand_on(file, pl.concat([points, lying], how="horizontal").select(_point()).to_series())
        asked.progress(high, trace.slices.height)
    return count


def _where(slices: pl.DataFrame, places: pl.DataFrame, added: AddedThreads, low: int) -> pl.Series:
    """Process and thread of each slice; of some another thread than their own."""
    where = places["where"].gather(slices["track"])
    moved = np.flatnonzero(added.lane[low : low + slices.height])
    if not moved.size:
        return where
    process = places["process"].gather(slices["track"].gather(moved))
    threads = pl.Series([f'"tid":{added.tid(low + at)}' for at in moved.tolist()])
    told = pl.DataFrame({"process": process, "tid": threads})
    return where.scatter(moved, told.select(joined([pl.col("process"), pl.col("tid")])).to_series())


def _event() -> pl.Expr:
    parts = [
        member("name", pl.col("name")),
        member("cat", pl.col("category")),
        pl.col("where"),
        member("ts", microseconds(pl.col("ts"))),
        member("dur", microseconds(pl.col("dur"))),
        pl.concat_str(pl.lit('"args":{'), pl.col("args"), pl.lit("}")),
    ]
    return pl.concat_str(pl.lit('{"ph":"X",'), joined(parts), pl.lit("}"))


def _point() -> pl.Expr:
    """The begin or the end of an arrow."""
    kind = pl.when("is_end").then(pl.lit('{"ph":"f","bp":"e",')).otherwise(pl.lit('{"ph":"s",'))
    parts = [
        member("cat", pl.concat_str(pl.lit('"'), pl.col("kind"), pl.lit('"'))),
        member("name", pl.concat_str(pl.lit('"'), pl.col("kind"), pl.lit('"'))),
        member("id", pl.col("arrow").cast(pl.String)),
        pl.col("where"),
        member("ts", microseconds(pl.col("ts"))),
    ]
    return pl.concat_str(kind, joined(parts), pl.lit("}"))


_ALLOCATED: Final = (
    ("address", "Addr"),
    ("bytes", "Bytes"),
    ("allocated", "Total Allocated"),
    ("reserved", "Total Reserved"),
    ("device_type", "Device Type"),
    ("device", "Device Id"),
)


def _write_memory(trace: Trace, file: TraceFile, zero: int) -> int:
    memory = trace.memory
    places = _places(trace)
    for low, high in batches(memory.height):
        some = memory.slice(low, high - low)
        args = joined([member(key, pl.col(column).cast(pl.String)) for column, key in _ALLOCATED])
        name = (
            pl.when("failed").then(pl.lit(names.OUT_OF_MEMORY)).otherwise(pl.lit(names.ALLOCATION))
        )
        parts = [
            pl.concat_str(pl.lit('"name":"'), name, pl.lit('"')),
            pl.col("where"),
            member("ts", microseconds(pl.col("time") + zero)),
            pl.concat_str(pl.lit('"args":{'), args, pl.lit("}")),
        ]
        head = pl.lit('{"ph":"i","s":"t","cat":"cpu_instant_event",')
        told = some.with_columns(where=places["where"].gather(some["track"]))
        _hand_on(file, told.select(pl.concat_str(head, joined(parts), pl.lit("}"))).to_series())
    return memory.height


def _write_instants(trace: Trace, file: TraceFile, zero: int) -> int:
    marks = trace.instants
    told = marks.with_columns(
        quoted(marks["name"]).alias("name"),
        quoted(marks["category"]).alias("category"),
        _places(trace)["where"].gather(marks["track"]).alias("where"),
    )
    parts = [
        member("name", pl.col("name")),
        member("cat", pl.col("category")),
        pl.col("where"),
        member("ts", microseconds(pl.col("time") + zero)),
    ]
    text = pl.concat_str(pl.lit('{"ph":"i","s":"t",'), joined(parts), pl.lit("}"))
    return _hand_on(file, told.select(text).to_series())


def _write_counters(trace: Trace, file: TraceFile, zero: int) -> int:
    """Samples of one counter at one time are one event, but for a series that it has twice."""
    samples = trace.counters
    key = ["time", "track", "name"]
    value = pl.col("value")
    text = (
        pl.when(value.is_finite())
        .then(value.cast(pl.String))
        .otherwise(
            pl.when(value.is_null())
            .then(pl.lit("null"))
            .otherwise(pl.concat_str(pl.lit('"'), value.cast(pl.String), pl.lit('"')))
        )
    )
    told = samples.with_columns(
        quoted(samples["series"]).alias("series"),
        quoted(samples["name"]).alias("name"),
        again=pl.int_range(pl.len()).over(*key, "series") if samples.height else pl.lit(0),
    ).with_columns(sample=pl.concat_str(pl.col("series"), pl.lit(":"), text))
    grouped = told.group_by([*key, "again"], maintain_order=True).agg(
        pl.col("sample").str.join(",")
    )
    parts = [
        member("name", pl.col("name")),
        pl.col("where"),
        member("ts", microseconds(pl.col("time") + zero)),
        pl.concat_str(pl.lit('"args":{'), pl.col("sample"), pl.lit("}")),
    ]
    events = grouped.with_columns(where=_places(trace)["where"].gather(grouped["track"]))
    _hand_on(file, events.select(_counter(parts)).to_series())
    return samples.height


def _counter(parts: list[pl.Expr]) -> pl.Expr:
    return pl.concat_str(pl.lit('{"ph":"C",'), joined(parts), pl.lit("}"))
